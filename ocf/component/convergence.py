"""The resource loop: each resource in its turn is guarded, applied or read, judged, and asked for its data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ocf.component.judging import Observation
from ocf.component.options import Fate, Participation
from ocf.component.passes import Pass, outcome_of
from ocf.component.results import Action, Outcome
from ocf.concepts import GraceStatus, GuardStatus, Operation, StatusReport
from ocf.errors import ReconcileError

if TYPE_CHECKING:
    from ocf.component.entries import Entry
    from ocf.component.managing import ManagedObject
    from ocf.objects import Manifest

__all__ = ["converge"]


async def converge(entries: Iterable[Entry], current: Pass) -> tuple[list[Outcome], list[Observation]]:
    """Work through the resources, strictly in order, up to the first that is blocked.

    Args:
        entries: The managed and read-only resources.
        current: The pass.

    Returns:
        What was done, and the reports that count for the condition.

    Raises:
        ReconcileError: Naming the first resource that failed; later ones are not reached.
    """
    outcomes: list[Outcome] = []
    observations: list[Observation] = []
    for entry in entries:
        outcome, live = await _one(entry, current)
        outcomes.append(outcome)
        blocked = outcome.action is Action.BLOCKED
        counts = blocked or entry.options.participation is Participation.REQUIRED
        if outcome.report is not None and counts:
            observations.append(_observed(entry, outcome.report, live, current))
        if blocked:
            break
    return outcomes, observations


async def _one(entry: Entry, current: Pass) -> tuple[Outcome, Manifest | None]:
    if entry.guardable is not None:
        with current.failing("evaluate guard for", entry):
            guard = entry.guardable.guard_status()
        if guard.status is GuardStatus.BLOCKED:
            return _blocked(entry, guard.reason), None
    managed = current.object_of(entry)
    live = await managed.get()
    if entry.fate is Fate.READ_ONLY:
        return _read(entry, live, current)
    return await _managed(entry, live, managed, current)


def _read(entry: Entry, live: Manifest | None, current: Pass) -> tuple[Outcome, Manifest | None]:
    if live is None:
        if entry.options.ignore_if_absent:
            return Outcome(resource=entry.identity, action=Action.ABSENT), None
        if entry.options.block_on_absence:
            return _blocked(entry, f"waiting for {entry.identity}"), None
        problem = f"failed to read resource {entry.identity}: it does not exist"
        raise ReconcileError(current.component, problem, resource=entry.identity)
    report = _status(entry, Operation.NONE, live, current)
    current.extract(entry, live)
    return Outcome(resource=entry.identity, action=Action.UNCHANGED, report=report), live


async def _managed(
    entry: Entry, live: Manifest | None, managed: ManagedObject, current: Pass
) -> tuple[Outcome, Manifest | None]:
    if live is not None and entry.options.block_on_foreign_controller:
        controller = current.context.owned_by.foreign_controller(live)
        if controller:
            return _blocked(entry, f"controlled by {controller}"), None
    applied = await managed.apply(live)
    report = _status(entry, applied.operation, applied.live, current)
    current.extract(entry, applied.live)
    return outcome_of(entry, applied, report), applied.live


def _status(entry: Entry, operation: Operation, live: Manifest, current: Pass) -> StatusReport[Any] | None:
    with current.failing("determine converging status of", entry):
        if entry.alive is not None:
            return entry.alive.alive_status(operation, live)
        if entry.operational is not None:
            return entry.operational.operational_status(operation, live)
        if entry.completable is not None:
            return entry.completable.completion_status(operation, live)
    return None


def _observed(entry: Entry, report: StatusReport[Any], live: Manifest | None, current: Pass) -> Observation:
    graceful = entry.graceful
    if graceful is None or live is None:
        return Observation(entry.identity, report)

    def grade() -> StatusReport[GraceStatus]:
        with current.failing("evaluate grace status for", entry):
            return graceful.grace_status(live)

    return Observation(entry.identity, report, grade)


def _blocked(entry: Entry, reason: str) -> Outcome:
    return Outcome(resource=entry.identity, action=Action.BLOCKED, report=StatusReport(GuardStatus.BLOCKED, reason))
