"""Tasks that run once: a finished run is remembered in a condition of the owner, and not repeated.

A Job alone cannot show that it has run, because its TTL, a user or a suspension deletes it. So nothing is applied any
more once its run has finished, and it gets its TTL only after the owner is stored with the condition: whatever a
process does between, the Job or the condition is there. A run that is not known to have finished is asked for at the
API server before its Job is created, because a cache of owners may be older than that of their Jobs.

The owner holds one run of a task. The Job of another key is deleted, in the foreground, so that two runs never overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ocf.cluster import PatchOptions, PatchType
from ocf.component.apply.adoption import adoption_problem
from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.apply.owner_check import latest_owner
from ocf.component.model.ownership import is_ending, status_of
from ocf.component.model.resource_options import Adoption
from ocf.component.model.write_backoff import record_revert, wait, written
from ocf.component.status.results import Action, Drift, ResourceOutcome
from ocf.concepts import ApplyOperation, CompletionStatus, GuardStatus, StatusReport
from ocf.concepts.recorder import Why
from ocf.errors import NotFoundError, OcfError, ReconcileError
from ocf.objects.conditions import ConditionStatus, find_condition, typed_conditions
from ocf.objects.paths import format_path, get_field, with_field

if TYPE_CHECKING:
    from ocf.component.apply.applier import Applier
    from ocf.component.model.registration import Registration
    from ocf.component.reconcile.run import ReconcileRun
    from ocf.concepts import Completable
    from ocf.concepts.resource import RunsOnce
    from ocf.objects import Manifest

__all__ = ["OnceRun"]

_ENDS: Final = {
    CompletionStatus.COMPLETED: (ConditionStatus.TRUE, "Completed"),
    CompletionStatus.FAILING: (ConditionStatus.FALSE, "Failed"),
}
# When the next reconcile finds the owner as this one stores it.
_UNTIL_STORED: Final = timedelta(seconds=1)
_REPLACED: Final = "to be created again for another run"


@dataclass(frozen=True, slots=True)
class OnceRun:
    """The run of a task in one reconcile."""

    entry: Registration
    task: RunsOnce
    completable: Completable
    run: ReconcileRun

    @classmethod
    def of(cls, entry: Registration, run: ReconcileRun) -> OnceRun | None:
        """Return the run of a resource; None for one that is not a task that runs once."""
        if entry.once is None or entry.completable is None:
            return None
        return cls(entry, entry.once, entry.completable, run)

    async def before_apply(self, live: Manifest | None, applier: Applier) -> ResourceOutcome | None:
        """Return the outcome of a run that has finished, or that waits for the end of another one; else None."""
        if live is not None and self._is_of_another_run(live):
            self._forget(self._remembered_types)
            return await self._replace(live, applier)
        past = await self.finished(live)
        if past is not None or live is not None:
            return past
        record = await self._latest_record()
        return None if record is None else await self._past(record, None)

    async def finished(self, live: Manifest | None) -> ResourceOutcome | None:
        """Return the outcome of a run that has finished, and remember it; None if it is not known to have finished."""
        context = self.run.context
        record = find_condition(context.stored_conditions, self._type)
        if record is not None and not (live is not None and self._is_of_another_run(live)):
            self._forget(self._remembered_types - {self._type})
            return await self._past(record, live)
        if live is None or not (self.task.has_finished(live) and self._is_this_run(live)):
            return None
        status = self.completable.completion_status
        report = await self.run.ask("determine converging status of", self.entry, status, ApplyOperation.NONE, live)
        outcome = ResourceOutcome(resource=self.entry.identity, action=Action.UNCHANGED, report=report)
        return self.after_apply(live, outcome)

    def after_apply(self, live: Manifest, outcome: ResourceOutcome) -> ResourceOutcome:
        """Remember a run that has finished, and forget those of other keys; return the outcome."""
        self._forget(self._remembered_types - {self._type})
        report = outcome.report
        if report is None or report.status not in _ENDS or not self.task.has_finished(live):
            return outcome
        status, reason = _ENDS[report.status]
        self.run.context.set_condition(self._type, status=status, reason=reason, message=report.reason or reason)
        return outcome if self.task.expiry is None else replace(outcome, retry_after=_UNTIL_STORED)

    @property
    def _prefix(self) -> str:
        # Namespaces and names have no `_`, so no two tasks share a type.
        key = self.entry.key
        return f"{self.run.context.owned_by.operator}/Completed_{key.namespace}_{key.name}_"

    @property
    def _type(self) -> str:
        return f"{self._prefix}{self.task.run_key}"

    @property
    def _remembered_types(self) -> frozenset[str]:
        types = (one["type"] for one in self.run.context.stored_conditions)
        return frozenset(name for name in types if name.startswith(self._prefix))

    def _forget(self, types: frozenset[str]) -> None:
        for name in sorted(types):
            self.run.context.remove_condition(name)

    def _is_this_run(self, live: Manifest) -> bool:
        """Return whether a live object is this run: also one that was applied before its run had a key."""
        owner, key = self.run.context.owned_by, self.task.run_of(live)
        if owner.foreign_controller(live):
            return False
        if OwnedObjectDeleter(self.run.component, self.run.context).is_applied_by_us(live):
            return key in ("", self.task.run_key)
        adoption = self.entry.options.adopt or Adoption.ALWAYS
        is_own = owner.references(live) or owner.earlier_uids(live)
        return key == self.task.run_key and bool(is_own or not adoption_problem(live, owner.key, adoption))

    def _is_of_another_run(self, live: Manifest) -> bool:
        return self.task.run_of(live) not in ("", self.task.run_key)

    async def _latest_record(self) -> Manifest | None:
        """Return the condition of the run as the API server has it: caches of two kinds are of different ages."""
        owner = self.run.context.owned_by
        try:
            found = await latest_owner(self.run.context)
        except OcfError as error:
            raise self._failed(f"read the runs that {owner.key} remembers of", error) from error
        return (
            None if found is None else find_condition(typed_conditions(status_of(found).get("conditions")), self._type)
        )

    async def _past(self, record: Manifest, live: Manifest | None) -> ResourceOutcome:
        """Return the outcome of a run that is remembered, after its object was given its time to live."""
        succeeded = record["status"] == ConditionStatus.TRUE
        status = CompletionStatus.COMPLETED if succeeded else CompletionStatus.FAILING
        outcome = ResourceOutcome(
            resource=self.entry.identity,
            action=Action.ABSENT if live is None else Action.UNCHANGED,
            report=StatusReport(status, str(record.get("message") or record.get("reason"))),
        )
        if live is None or self.task.expiry is None or is_ending(live) or not self._is_this_run(live):
            return outcome
        path, value = self.task.expiry
        if get_field(live, path) == value:
            return outcome
        return await self._set_expiry(outcome, live, path, value)

    async def _set_expiry(
        self, outcome: ResourceOutcome, live: Manifest, path: tuple[str, ...], value: int
    ) -> ResourceOutcome:
        """Set the time to live of an object, unless another writer changes it again and again."""
        context, shown = self.run.context, format_path(path)
        cache, manager = self.run.cluster.apply_cache, context.owned_by.field_manager(self.run.component)
        memory, intent = f"{manager}/expiry", str(value).encode()
        last = cache.last_write(self.entry.key, memory)
        reverted = record_revert(last, intent, context.elapsed, [shown])
        if reverted is not None:
            cache.note_write(self.entry.key, memory, reverted)
        rest = wait(reverted, intent, context.elapsed, [shown])
        drift = Drift(shown, Why.CHANGED, sent=value, stored=get_field(live, path))
        if rest is not None:
            return replace(outcome, why=Why.BACKING_OFF, retry_after=rest, reasons=(drift,))
        patch = with_field({"metadata": {"uid": live["metadata"]["uid"]}}, path, value)
        try:
            options = PatchOptions(patch_type=PatchType.MERGE, field_manager=manager)
            await self.run.cluster.patch(self.entry.key, patch, options)
        except NotFoundError:
            return replace(outcome, action=Action.ABSENT)
        except OcfError as error:
            raise self._failed(f"set {shown} of", error) from error
        cache.note_write(self.entry.key, memory, written(reverted or last, intent, context.elapsed))
        return replace(outcome, action=Action.UPDATED, writes=1, reasons=(drift,))

    async def _replace(self, live: Manifest, applier: Applier) -> ResourceOutcome:
        """Delete the object of another run, with its dependents, and return the outcome of waiting for that."""
        applied = await applier.replace_run(live)
        self.run.reporter.attempted(self.entry, applied.operation, applied.why)
        if applied.writes:
            self.run.reporter.deleted(self.entry.key, _REPLACED)
        return ResourceOutcome(
            resource=self.entry.identity,
            action=Action.BLOCKED,
            report=StatusReport(GuardStatus.BLOCKED, applied.waiting),
            writes=applied.writes,
            why=applied.why,
            retry_after=applied.retry_after,
        )

    def _failed(self, what: str, error: OcfError) -> ReconcileError:
        identity = self.entry.identity
        return ReconcileError(self.run.component, f"failed to {what} resource {identity}: {error}", resource=identity)
