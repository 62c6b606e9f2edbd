"""One reconcile of an owner as a block, and its context: what its components share, and the changes of its status.

The owner's manifest is kept as it was read. Components, and the user's code inside the block of `reconciling`, change a
copy of its status. Leaving the block writes it once, if it changed; also after an error, but not after a cancellation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.component.author_code import GateAnswers
from ocf.component.model.arguments import require_arguments
from ocf.component.model.claims import Claims
from ocf.component.model.holds import recorded
from ocf.component.model.ownership import DEFAULT_OPERATOR, Owner, finalizers_of, is_ending, status_of
from ocf.component.owner_status import (
    FINALIZER_EVENT,
    REVERTED_EVENT,
    UNSTORED_EVENT,
    failure_events,
    own_condition,
    owner_event,
    replaced_value,
    shows,
    write_accepted,
)
from ocf.component.pause import Pause, find_pause, invalid_pause, pause_path, shown_pause
from ocf.component.pause_guard import PauseGuard
from ocf.component.status.conditions import Condition, ConditionContext, Conditioned, aggregate, stored_condition
from ocf.component.status.reasons import Reason
from ocf.component.status.status_changes import StatusChanges
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.concepts.recorder import NullRecorder
from ocf.concepts.tracing import SpanAttributes, SpanStart, object_attributes, spanning
from ocf.errors import ApiError, ConfigError, FieldProblem, ManifestError, ReconcileError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, write_model
from ocf.objects.conditions import find_condition, typed_conditions

__all__ = ["ReconcileContext", "reconciling"]

_log: Final = logging.getLogger("ocf.component")
_UPDATE_STATUS: Final = "UpdateStatus"


@asynccontextmanager
async def reconciling(
    owner: Manifest | BaseModel,
    cluster: Cluster,
    *,
    operator: str = DEFAULT_OPERATOR,
    former_managers: Sequence[str] = (),
    clock: Clock | None = None,
    recorder: Recorder | None = None,
    pause_field: str = "",
) -> AsyncIterator[ReconcileContext]:
    """Reconcile the components of one owner, and write its status once.

    Args:
        owner: The owner as read from the cluster: its manifest, or a model of it that keeps every field.
        cluster: The cluster of the objects.
        operator: Name of the operator, a DNS label. It is part of the field managers, the finalizers and the condition
            of the clean-up: of programs that reconcile owners of the same kind, each needs a name of its own.
        former_managers: Field managers, by name or pattern, whose fields each component takes over once, in addition to
            its own `Builder.with_former_managers`.
        clock: Clock for the time of the reconcile; the system clock by default.
        recorder: Receives attempts, events and conditions; by default they are discarded.
        pause_field: A field of the owner that pauses it while it is true, `spec.paused`, beside the annotation
            `<operator>.ocf.dev/paused`; empty for none.

    Yields:
        The context for `Component.reconcile`. Set further fields of the owner's status in its `status`.

    Raises:
        ConfigError: If owner or cluster is something else, such as None, or the operator's name is not a DNS label.
        ManifestError: If the owner has no name or no uid, or if its new status contains what cannot be written, such
            as a value that JSON does not have, or an entry of `conditions` that is not a condition. The rest of the
            status is written; those fields keep their stored values.
        ApiError: If the status cannot be written. After an error inside the block, that error is raised with a note.
    """
    require_arguments(owner, cluster, operator, former_managers)
    manifest = owner if isinstance(owner, dict) else write_model(owner)
    pausing = pause_path(pause_field)
    context = ReconcileContext(manifest, cluster, clock or SystemClock(), recorder, operator, pause_field=pausing)
    context.former_managers = tuple(former_managers)
    with spanning(_span, context):
        try:
            yield context
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            try:
                await context.write_status()
            except (ApiError, ManifestError) as unwritten:
                key = context.owned_by.key
                _log.warning("%s: the status could not be written: %s", key, unwritten, extra={"owner": str(key)})
                error.add_note(f"the status of {key} could not be written either: {unwritten}")
            raise
        else:
            await context.write_status()
            if context.pause is None:
                context.release_conditions()
        finally:
            context.end()


def _span(context: ReconcileContext) -> SpanStart:
    owner = context.owned_by
    own: SpanAttributes = {"ocf.owner.uid": owner.uid, "ocf.owner.generation": owner.generation}
    attributes = {**object_attributes("ocf.owner", owner.key), **own}
    return SpanStart(name=f"reconcile {owner.key.kind}", attributes=attributes)


class ReconcileContext:
    """State that the components of one owner share during a reconcile.

    Attributes:
        owner: The owner as it was read.
        owned_by: Key, uid and generation of the owner.
        recorder: Receives attempts, events and conditions.
        unobserved: The cluster for lists of which the reconcile uses only objects that belong to the owner. An operator
            does not reconcile the owner again because another object that they select changes.
        now: Time of the reconcile.
        elapsed: The same on the monotonic clock.
        claims: Objects that the components of the owner manage in this reconcile.
        retry_after: Time until a write of the owner that is held back is sent; for its status known after its write.
        failure_types: Types of the conditions that show a status that the API server refuses.
        gates: Answers of the gates of the components in this reconcile.
        held: Objects that are held until the clean-up of the owner has succeeded.
        pause: What pauses the owner, so that nothing is written for it; None if it is not paused.
        read_latest: Returns the owner as it is known now, without a request, or None if it has not changed.
        former_managers: Field managers whose fields every component takes over once, by name or pattern.
    """

    def __init__(
        self,
        owner: Manifest,
        cluster: Cluster,
        clock: Clock,
        recorder: Recorder | None = None,
        operator: str = DEFAULT_OPERATOR,
        *,
        pause_field: tuple[str, ...] = (),
    ) -> None:
        self.owner = owner
        self._changes = StatusChanges(status_of(owner))
        self._cluster: Final = cluster
        self._guarded: Final = PauseGuard(cluster, self.require_running)
        self._pause_field: Final = pause_field
        self.held = recorded(owner, operator)
        self.pause: Pause | None = find_pause(owner, operator, pause_field)
        self.read_latest: Callable[[], Manifest | None] | None = None
        self.unobserved: Cluster = cluster
        self.owned_by: Final = Owner.of(owner, operator)
        self.recorder: Final[Recorder] = recorder or NullRecorder()
        self.now: Final = clock.now()
        self.elapsed: Final = clock.elapsed()
        self.claims: Final = Claims()
        self.gates: Final = GateAnswers()
        self.former_managers: tuple[str, ...] = ()
        self._problems: list[str] = []
        self._unpublished: dict[str, Condition] = {}
        self._claimed: set[str] = set()
        self._taken: set[str] = set()
        self._ended = False
        self._is_gone = False
        self.retry_after: timedelta | None = None
        self.failure_types: tuple[str, ...] = ()

    @property
    def status(self) -> dict[str, Any]:
        """Copy of the owner's status, for changes; leaving `reconciling` writes it.

        Raises:
            ConfigError: If the block of `reconciling` has ended: a change would not be written.
        """
        return self._open_changes.status

    @property
    def cluster(self) -> Cluster:
        """The cluster of the objects.

        Raises:
            ConfigError: If the block of `reconciling` has ended.
        """
        self._require_open()
        return self._guarded

    def _notice_pause(self) -> None:
        """Look whether the owner was paused after the reconcile has begun."""
        latest = self.read_latest() if self.pause is None and self.read_latest is not None else None
        if latest is not None and latest["metadata"].get("uid") == self.owned_by.uid:
            self.pause = find_pause(latest, self.owned_by.operator, self._pause_field)

    def require_running(self) -> None:
        """Raise an error if the owner is paused, also if it was paused after the reconcile has begun."""
        self._notice_pause()
        if self.pause is not None:
            raise ReconcileError(self.owned_by.operator, f"the owner is paused by {self.pause}")

    @property
    def _open_changes(self) -> StatusChanges:
        self._require_open()
        return self._changes

    def end(self) -> None:
        """End the reconcile: from now on, using status, conditions or cluster is an error."""
        self._ended = True

    def _require_open(self) -> None:
        if self._ended:
            raise ConfigError(
                f"the context of {self.owned_by.key} was used after its block had ended: use it inside of "
                "`async with reconciling(...)`, and open a new block for each reconcile"
            )

    @property
    def is_ending(self) -> bool:
        """Whether the owner is being deleted: then components apply nothing, and nothing new should be made for it."""
        return is_ending(self.owner)

    @property
    def is_gone(self) -> bool:
        """Whether the owner was found to be removed during the reconcile: then nothing is made for it any more."""
        return self._is_gone

    @property
    def is_over(self) -> bool:
        """Whether nothing may be written for the owner any more in this reconcile: it is gone, or paused."""
        return self._is_gone or self.pause is not None

    def condition(self, name: str) -> Condition:
        """Return a condition of the owner, as staged or stored.

        Args:
            name: Type of the condition.

        Returns:
            The condition; its reason is Unknown if it was never written.
        """
        return stored_condition(self._open_changes.conditions, name, self.owned_by.generation)

    def condition_context(self, name: str) -> ConditionContext:
        """Return what the next condition of a type is computed from."""
        return ConditionContext(self.condition(name), self.owned_by.generation, self.now)

    def claim_conditions(self, types: Iterable[str]) -> None:
        """Record which conditions this operator sets, so that no other one of the process sets them for this owner."""
        for name in types:
            if problem := self._claim(name):
                raise ConfigError(problem)

    def release_conditions(self) -> None:
        """Leave the conditions that were not set in this reconcile, which is complete, to other operators."""
        owner, changes = self.owned_by, self._changes
        assigned = {one["type"] for one in changes.conditions} - changes.untouched_types
        self._cluster.apply_cache.release_conditions(owner.uid, owner.operator, kept=self._claimed, assigned=assigned)

    def _claim(self, name: str, *, assigned: bool = False) -> str:
        """Record that this operator sets a condition; return a problem if another one of the process does already."""
        owner = self.owned_by
        other = self._cluster.apply_cache.claim_condition(owner.key, owner.uid, owner.operator, name, assigned=assigned)
        if not other:
            self._claimed.add(name)
            return ""
        self._taken.add(name)
        return (
            f'operators "{other}" and "{owner.operator}" both set the condition "{name}" of {owner.key}: use different'
            " types, or each would overwrite the condition of the other one"
        )

    def stage(self, condition: Condition, *, published: bool = True) -> None:
        """Stage the condition of a component; it replaces the one of its type, at its place."""
        if published:
            self.claim_conditions([condition.type])
            self._open_changes.set_condition(condition.to_manifest())
        else:
            self._unpublished[condition.type] = condition

    def set_condition(self, name: str, *, status: str, reason: str, message: str) -> None:
        """Stage a condition of the operator's own; its transition time changes only with its status.

        Args:
            name: Type of the condition, as the API allows it.
            status: `True`, `False` or `Unknown`.
            reason: Machine-readable reason, as the API allows it: a word in CamelCase.
            message: Human-readable message; cut at the API's limit of 32 768 characters.

        Raises:
            ConfigError: If the API server would reject the type, the status or the reason, or another operator of this
                process sets a condition of this type for the owner.
        """
        condition = own_condition(
            find_condition(self._changes.stored_conditions, name),
            name,
            status=status,
            reason=reason,
            message=message,
            generation=self.owned_by.generation,
            now=self.now,
        )
        self.claim_conditions([name])
        self._open_changes.set_condition(condition)

    def fail(self, types: Iterable[str], problem: str, *, reason: Reason = Reason.ERROR) -> None:
        """Stage a failure in conditions: they become False, with the reason `Error` and the owner's generation.

        When the status is written, a failure that no stored condition showed becomes one event of type Warning.

        Args:
            types: Types of the conditions; without any, there is only the event.
            problem: The message, without the values of Secrets; see `ocf.errors.failure_text`.
            reason: `Error`, or a more precise reason.

        Example:
            >>> from ocf.concepts import SystemClock
            >>> from ocf_server import EmbeddedCluster
            >>> owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "uid": "1"}}
            >>> context = ReconcileContext(owner, EmbeddedCluster(), SystemClock())
            >>> context.fail(["WebReady", "Ready"], "the registry cannot be reached")
            >>> str(context.condition("Ready").reason), context.condition("Ready").message
            ('Error', 'the registry cannot be reached')
        """
        self._problems.append(problem)
        # A condition of another operator stays: the failure may be that both set it.
        for name in dict.fromkeys(name for name in types if name not in self._taken):
            # A failure that goes on is not a new one.
            self._open_changes.undo_removal(name)
            failed = self.condition_context(name).failed(problem, reason=reason)
            self._open_changes.set_condition(failed.to_manifest())

    @property
    def staged(self) -> frozenset[str]:
        """Types of the conditions that were set in this reconcile."""
        return self._open_changes.changed_types

    def clear_failure(self, name: str) -> None:
        """Remove a condition that `fail` set earlier, and that of our own whatever other clients have made of it."""
        self._open_changes.remove_failure(name, whatever=name.startswith(f"{self.owned_by.operator}/"))

    def shows(self, problem: str) -> bool:
        """Return whether a condition that was set in this reconcile contains the text of a failure."""
        staged = self.staged
        return shows((one for one in self._changes.conditions if one.get("type") in staged), problem)

    def aggregate(self, name: str, *components: Conditioned) -> Condition:
        """Stage one condition that aggregates the present conditions of several components.

        In a reconcile that failed before the components were known or reached, a stored condition stays as it is.

        Args:
            name: Type of the condition.
            components: Components of this owner. The condition of an unpublished one is Unknown until it was
                reconciled in this reconcile.

        Returns:
            The condition: True if all of theirs are; reason and message are those of the condition with the highest
            priority. Its generation is the oldest of theirs.
        """
        types = [(component.name, component.condition_type) for component in components]
        standing = [(name, self._unpublished.get(kind) or self.condition(kind)) for name, kind in types]
        # Compared with the stored condition, because a failure that was staged before is not a transition.
        stored = stored_condition(self._changes.stored_conditions, name, self.owned_by.generation)
        condition = aggregate(standing, ConditionContext(stored, self.owned_by.generation, self.now))
        if condition.reason is Reason.UNKNOWN and self._problems and stored.last_transition_time:
            return stored
        self.stage(condition)
        return condition

    def arrange(self, types: Iterable[str]) -> None:
        """Sort the conditions that are new in this reconcile into a given order, after the existing ones."""
        self._open_changes.arrange(types)

    def owner_changed(self, live: Manifest) -> None:
        """Record the component's own change of the owner, so that the next write of its status does not conflict."""
        self._is_gone = is_ending(live) and not finalizers_of(live)
        if status_of(live) == self._changes.stored:
            self.owner = live

    def owner_removed(self) -> None:
        """Record that the owner does not exist any more, so that its status is not written."""
        self._is_gone = True

    def require_plain_status(self) -> None:
        """Raise an error if the staged status contains what cannot be written; the rest can be.

        That is what JSON does not have, what was assigned to `conditions` and is not a condition, and a condition that
        another operator of this process sets.
        """
        changes = self._open_changes
        problems = [*changes.make_plain(self.now)]
        for name in changes.changed_types - self._claimed:
            if problem := self._claim(name, assigned=name in changes.assigned_types):
                changes.restore(name)
                problems.append(FieldProblem("status.conditions", problem))
        if problems:
            key = self.owned_by.key
            raise ManifestError(f"{key.kind} {key.namespace}/{key.name}".replace(" /", " "), problems)

    async def write_status(self) -> None:
        """Write the staged status if it differs from the one that was read; while paused, the condition of the pause.

        After a conflict the status is read again. Other writers' changes are kept, except in the conditions and fields
        that were changed here. Nothing is written for an owner that was deleted meanwhile.

        A status that is refused, of which fields are not stored, or that another writer reverts again and again,
        becomes an event of type Warning. What the API server refuses is withdrawn, and the rest is written.
        """
        self._notice_pause()
        if self.pause is not None:
            # What was staged before the pause was noticed is not written.
            self._changes, self._problems = StatusChanges(self._changes.stored), []
        self._show_pause()
        unwritable: ManifestError | None = None
        try:
            self.require_plain_status()
        except ManifestError as error:
            unwritable = error
            self.fail((), str(error))
        await self._write_plain_status()
        if unwritable is not None:
            raise unwritable

    def _show_pause(self) -> None:
        owner = self.owned_by
        invalid = "" if self.pause is not None else invalid_pause(self.owner, owner.operator, self._pause_field)
        for event in shown_pause(self._changes, self.owner, owner, self.pause, invalid=invalid, now=self.now):
            self._log(event.note)
            self.recorder.happened(event)

    async def _write_plain_status(self) -> None:
        owner, changes = self.owned_by, self._open_changes
        for event in failure_events(owner, self._problems, changes.stored_conditions):
            self.recorder.happened(event)
        if self._is_gone:
            return
        show = self._show_refusal
        written, refusal = await write_accepted(self._cluster, self.owner, owner, changes, self.elapsed, show=show)
        if written is None:
            self._is_gone = True
            return
        self._log(replaced_value(self.owner, written.status))
        self._log_loss(UNSTORED_EVENT, written.problem)
        self.hold_back(REVERTED_EVENT, written.reverted, written.retry_after)
        self.recorder.observed(owner.key, typed_conditions(written.status.get("conditions")))
        if refusal is not None:
            raise refusal
        self._is_new_refusal("")

    def _show_refusal(self, error: ApiError) -> None:
        """Show why the API server refused the status in conditions, if another status is accepted, and in an event."""
        problem = f"the API server refused the status: {error}"
        if self._is_new_refusal(problem) and not shows(self._changes.stored_conditions, problem):
            self._record_loss(UNSTORED_EVENT, problem)
        self.fail(self.failure_types, problem)

    def _is_new_refusal(self, problem: str) -> bool:
        manager = self.owned_by.field_manager("status")
        return self._cluster.apply_cache.is_new_refusal(self.owned_by.uid, manager, problem)

    def hold_back(self, reason: str, note: str, rest: timedelta | None) -> None:
        """Record that a write of the owner waits because another writer reverts it; without a note, it is known."""
        self._log_loss(reason, note, "Update" if reason == FINALIZER_EVENT else _UPDATE_STATUS)
        self.retry_after = min((one for one in (self.retry_after, rest) if one is not None), default=None)

    def _log_loss(self, reason: str, note: str, action: str = _UPDATE_STATUS) -> None:
        """Log and record that a write of the owner, or a part of it, is not stored, unless the note is empty."""
        self._log(note)
        if note:
            self._record_loss(reason, note, action)

    def _log(self, note: str) -> None:
        if note:
            owner = self.owned_by.key
            _log.warning("%s: %s", owner, note, extra={"owner": str(owner)})

    def _record_loss(self, reason: str, note: str, action: str = _UPDATE_STATUS) -> None:
        self.recorder.happened(owner_event(self.owned_by, reason, note, action=action))
