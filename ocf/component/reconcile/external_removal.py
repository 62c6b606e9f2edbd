"""Removal of external resources: of those that are not wanted any more, and of all before their owner is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ocf.component.external.calls import Held, Verb
from ocf.component.external.records import Record, records_of, stage_record
from ocf.component.model.registration import Registration
from ocf.component.model.resource_options import EffectiveOptions, Lifecycle
from ocf.component.reconcile.external_apply import POLL, ExternalApplier
from ocf.component.status.conditions import ResourceObservation
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import AliveStatus, GraceStatus, StatusReport
from ocf.concepts.external import GROUP, Client, ExternalResource
from ocf.concepts.recorder import Why

if TYPE_CHECKING:
    from ocf.component.reconcile.run import ReconcileRun

__all__ = ["is_removed", "pending_removals", "remove_all", "remove_unwanted", "without_client"]

_ENDED: Final = frozenset({Action.ABSENT, Action.DELETED, Action.KEPT, Action.ORPHANED})
_MADE: Final = frozenset({Lifecycle.MANAGED, Lifecycle.DELETED})


class _Remover(ExternalApplier):
    """Deletes or forgets an external resource at one target, in one reconcile."""

    _has_deleted = False

    async def remove(self, why: str) -> ResourceOutcome:
        """Delete the resource if it is of this owner; the outcome is `Absent` or `Deleted` once it is gone."""
        if self._other_operator:
            return self._outcome(Action.KEPT, detail=f'managed by operator "{self._other_operator}"')
        if self._is_unmade:
            return self._outcome(Action.ABSENT)
        held = await self._landed() or self._backing_off("")
        while held is None:
            step = await self._remove(why)
            if isinstance(step, ResourceOutcome):
                return step
            held = step
        if held.failing:
            self._run.reporter.attempted(self._entry, None, Why.FAILED)
        status = AliveStatus.FAILING if held.failing else AliveStatus.UPDATING
        report = StatusReport(status, f"{self._entry.identity}: {held.text}")
        outcome = self._outcome(Action.UNCHANGED, report=report)
        return replace(outcome, retry_after=held.retry_after, why=Why.FAILED if held.failing else None)

    @property
    def _is_unmade(self) -> bool:
        """Whether nothing was made, or nothing shows whose it is."""
        if self.record is not None or self._known.flight is not None:
            return False
        has_keys = type(self._client).key_of is not Client.key_of
        if not has_keys or self._resource.targets == ():
            return True
        # Its record may be lost; that is looked for as often as a change of a resource.
        at = self._known.read_at
        return at is not None and self._known.observed is None and self._context.elapsed - at < self._client.resync

    async def _remove(self, why: str) -> ResourceOutcome | Held | None:
        """Observe the resource, and delete it if it is there; return the outcome once it is not."""
        seen = await self._observe()
        if isinstance(seen, Held):
            return seen
        if seen.value is None:
            return await self._invisible() or await self._gone(why)
        if self._foreign(seen.value) or not (self.record or self._key_in(seen.value)):
            self._known.record = None
            await stage_record(self._context, self._place, None)
            return self._outcome(Action.KEPT, detail="not made for this owner, nor adopted")
        if self._context.dry_run:
            return self._outcome(Action.DELETED, detail=why)
        if self._has_deleted:
            self._known.read_at = None
            return Held("it is being deleted", POLL)
        self._context.require_running()
        identity, self._has_deleted = self._identity, True
        return await self._answer(Verb.DELETE, lambda: self._client.delete(identity))

    async def drop(self) -> ResourceOutcome:
        """Forget the resource, which stays."""
        if self.record is None:
            return self._outcome(Action.ABSENT)
        if not self._context.dry_run:
            self._known.record = None
            await stage_record(self._context, self._place, None)
            self._run.reporter.external(self._entry, "Orphan", "orphaned: it stays, and is not managed any more")
        return self._outcome(Action.ORPHANED)

    async def _gone(self, why: str) -> ResourceOutcome:
        existed = self._known.is_deleting
        if self.record is not None and not self._context.dry_run:
            self._known.record = None
            await stage_record(self._context, self._place, None)
            self._calls.forget(self._mark, self._entry.identity)
        if not existed:
            return self._outcome(Action.ABSENT)
        self._run.reporter.external(self._entry, "Delete", why)
        return self._outcome(Action.DELETED, detail=why)


def is_removed(outcome: ResourceOutcome) -> bool:
    """Return whether a resource that had to be removed is gone, or is not this owner's."""
    return outcome.action in _ENDED


def pending_removals(outcomes: Iterable[ResourceOutcome]) -> list[ResourceObservation]:
    """Return what resources mean for the condition that have to be removed and are still there: never `Down`."""
    return [
        ResourceObservation(one.resource, one.report, StatusReport(GraceStatus.DEGRADED, one.report.reason))
        for one in outcomes
        if one.report is not None
    ]


async def remove_unwanted(
    entries: Sequence[Registration],
    clients: Sequence[Client[Any, Any]],
    run: ReconcileRun,
    why: str = "",
    *,
    prunes: bool,
    kept: Collection[str] = (),
) -> list[ResourceOutcome]:
    """Remove the resources that are registered to be deleted, those at former targets, and pruned ones.

    Args:
        entries: The external resources of the component.
        clients: Further clients, of kinds of which it registers no resource any more.
        why: Why all that is managed is removed, too, because the component is disabled; empty if it is not.
        prunes: Whether what the component has made and does not register any more is removed.
        kept: Kinds of which it is kept nevertheless.
    """
    wanted = {_place(entry) for entry in entries if entry.options.lifecycle is not Lifecycle.DELETED}
    named = _lifecycles(entries)
    work = []
    for entry in entries:
        lifecycle = entry.options.lifecycle
        if lifecycle is Lifecycle.ORPHANED:
            work.append(_Remover(entry, run).drop())
        elif lifecycle is Lifecycle.DELETED or (why and lifecycle is Lifecycle.MANAGED):
            reason = "due to closed resource gate" if entry.options.gate_closed else "due to resource deletion flag"
            work.append(_Remover(entry, run).remove(why or reason))
    known = {client.kind: client for client in (*clients, *_clients(entries))}
    for place, record in records_of(run.context.status, run.context.owned_by.operator).items():
        is_former_target = (record.kind, record.name) in named and place not in {_place(entry) for entry in entries}
        client = known.get(record.kind)
        moved = run.context.claims.other_than(run.component, (GROUP, record.kind, "", _registered_name(record)))
        if client is None or moved or record.component != run.component or place in wanted:
            continue
        entry, registered = _of_record(record, client), named.get((record.kind, record.name))
        if is_former_target and registered is Lifecycle.READ_ONLY:
            continue
        if is_former_target and registered is Lifecycle.ORPHANED:
            work.append(_Remover(entry, run).drop())
        elif is_former_target or (prunes and registered is None and record.kind not in kept):
            reason = "because it has left its targets" if is_former_target else "because it is not registered any more"
            work.append(_Remover(entry, run).remove(reason))
    return [*await asyncio.gather(*work)] if work else []


async def remove_all(
    entries: Sequence[Registration],
    clients: Sequence[Client[Any, Any]],
    run: ReconcileRun,
    components: Collection[str],
) -> list[ResourceOutcome]:
    """Remove everything that the component has made, or an earlier one that its owner does not have any more.

    Args:
        components: The names of all components of the owner.
    """
    registered, named = {_place(entry): entry for entry in entries}, _lifecycles(entries)
    known = {client.kind: client for client in (*clients, *_clients(entries))}
    found: dict[str, Registration] = {}
    for place, record in records_of(run.context.status, run.context.owned_by.operator).items():
        is_ours = record.component == run.component or record.component not in components
        client = known.get(record.kind)
        if is_ours and client is not None:
            found[place] = registered.get(place) or _of_record(record, client)
    # A record may be lost.
    found |= {place: entry for place, entry in registered.items() if entry.options.lifecycle in _MADE}
    work = [
        _Remover(entry, run).drop()
        if named.get((entry.key.kind, _name_of(entry))) is Lifecycle.ORPHANED
        else _Remover(entry, run).remove("because its owner is")
        for entry in found.values()
    ]
    return [*await asyncio.gather(*work)] if work else []


def without_client(records: Iterable[Record]) -> list[ResourceOutcome]:
    """Return the outcomes of records of which no component has the client."""
    text = (
        "no component has a client of its kind: pass the client to `with_resource`, or to "
        "`with_prune(external=[...])`, of a component"
    )
    found = [f"{GROUP}/{record.identity}" for record in records]
    report = [StatusReport(AliveStatus.FAILING, f"{identity}: {text}") for identity in found]
    return [
        ResourceOutcome(resource=identity, action=Action.BLOCKED, report=one)
        for identity, one in zip(found, report, strict=True)
    ]


def _lifecycles(entries: Iterable[Registration]) -> dict[tuple[str, str], Lifecycle]:
    """Return how the registered resources are managed, by kind and name: also at targets that they have left."""
    return {(entry.key.kind, _name_of(entry)): entry.options.lifecycle for entry in entries}


def _name_of(entry: Registration) -> str:
    return entry.external.name if entry.external is not None else entry.key.name


def _clients(entries: Iterable[Registration]) -> list[Client[Any, Any]]:
    return [entry.external.client for entry in entries if entry.external is not None]


def _place(entry: Registration) -> str:
    return f"{entry.key.kind}/{entry.key.name}"


def _registered_name(record: Record) -> str:
    return record.identity.removeprefix(f"{record.kind}/")


def _of_record(record: Record, client: Client[Any, Any]) -> Registration:
    resource = ExternalResource(client=client, name=record.name, desired=None, target=record.target)
    return Registration.of(resource, EffectiveOptions())
