"""Reconcile of the members of a rollout: those in sync first, then those that may be changed now, one after another.

Nothing is remembered between reconciles: which members are done follows from the live objects. So a crash, another
change of the owner or a deleted member in the middle need no step of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.component.model.ownership import is_ending
from ocf.component.model.rollout import BeforeUpdate, Member, Rollout, next_member
from ocf.component.status.conditions import ResourceObservation
from ocf.component.status.reasons import READY, STICKY, Reason
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, GuardStatus, StatusReport, SuspensionStatus
from ocf.concepts.recorder import Why
from ocf.errors import ConfigError, ReconcileError, failure_text

if TYPE_CHECKING:
    from ocf.component.apply.applier import Applier
    from ocf.component.context import ReconcileContext
    from ocf.component.model.registration import Registration
    from ocf.component.reconcile.run import ReconcileRun
    from ocf.component.status.results import Drift
    from ocf.objects import Manifest

__all__ = ["Reached", "RolloutRun"]

Reached: TypeAlias = "tuple[ResourceOutcome, Manifest | None]"
"""The outcome of a resource, and its live object."""

_WAITING: Final = "Waiting for its turn in the rollout"


@dataclass(slots=True)
class _Found:
    """A member as it was read."""

    entry: Registration
    live: Manifest | None
    state: Member
    report: StatusReport[Any] | None = None
    drift: tuple[Drift, ...] = ()


@dataclass(slots=True)
class RolloutRun:
    """One reconcile of the members of one rollout.

    Args:
        members: The members, in the order in which they are changed.
        reconcile: Reconciles one of them.

    Attributes:
        reached: Outcome and live object of each member that was reached, by identity.
        is_blocked: Whether a member is blocked, so that neither later members nor later resources are reached.
        has_begun: Whether the update of a member that was available has begun, and its time to converge with it.
    """

    members: Sequence[Registration]
    rollout: Rollout
    run: ReconcileRun
    reconcile: Callable[[Registration], Awaitable[Reached]]
    reached: dict[str, Reached] = field(default_factory=dict)
    is_blocked: bool = False
    has_begun: bool = False
    _found: list[_Found] = field(default_factory=list)
    _note: str = ""

    async def start(self) -> None:
        """Reconcile the members that are in sync, and those that may be changed now."""
        self._found = [await self._observed(entry) for entry in self.members]
        movable = [found for found in self._found[: await self._reach_those_in_sync()] if found.state.is_pending]
        while (found := self._next(movable)) is not None:
            self._note = await self._prepared(found)
            if self._note:
                break
            await self._change(found)
            if self.reached[found.entry.identity][0].action is Action.BLOCKED:
                break
        for found in movable:
            if found.state.is_pending:
                await self._leave(found)

    def observations(self, observed: Sequence[ResourceObservation], *, updating: bool) -> list[ResourceObservation]:
        """Return what the members report, as one update while it is one.

        Args:
            observed: What each member reports that counts.
            updating: Whether the component was updating before.
        """
        own = {found.entry.identity for found in self._found}
        waiting = {name for name, (outcome, _) in self.reached.items() if outcome.why is Why.WAITING}
        # A member that waits although it is available is counted by the summary, and needs no sentence of its own.
        silent = {found.entry.identity for found in self._found if found.state.is_ready} & waiting
        members = [one for one in observed if one.resource in own]
        under_way = (updating or self.has_begun) and not all(one.is_ready for one in members)
        if not members or not (waiting or under_way):
            return list(observed)
        done = sum(found.state.is_ready and not found.state.is_pending for found in self._found)
        text = f"{done} of {len(self._found)} are up to date"
        summary = StatusReport(AliveStatus.UPDATING, f"{text}; {self._note}" if self._note else text)
        shown = [_as_update(one) for one in members if one.resource not in silent]
        others = [one for one in observed if one.resource not in own]
        return [ResourceObservation("rollout", summary, is_rollout=True), *shown, *others]

    async def _observed(self, entry: Registration) -> _Found:
        """Read a member, and find out what an apply would change."""
        run, applier = self.run, self.run.applier(entry)
        with run.reporter.failures_attempted(entry):
            live = await applier.get()
            if live is None:
                return _Found(entry, None, Member(is_ready=False, is_down=True, is_pending=True))
            report = await run.status(entry, ApplyOperation.NONE, live)
            ready = report is None or Reason(report.status) in READY
            is_down = is_ending(live) or await self._is_down(entry, live, ready=ready)
            state = Member(is_ready=ready and not is_ending(live), is_down=is_down, is_pending=False)
            return _Found(entry, live, state, report)

    async def _is_down(self, entry: Registration, live: Manifest, *, ready: bool) -> bool:
        ask, suspendable = self.run.ask, entry.suspendable
        if suspendable is not None and not await ask("suspend", entry, suspendable.delete_on_suspend):
            step = "determine suspension status of"
            if (await ask(step, entry, suspendable.suspension_status, live)).status is SuspensionStatus.SUSPENDED:
                return True
        if ready or entry.graceful is None:
            return not ready
        grade = await ask("evaluate grace status for", entry, entry.graceful.grace_status, live)
        return grade.status is GraceStatus.DOWN

    async def _reach_those_in_sync(self) -> int:
        """Reconcile those that an apply would not change, up to one that exists and is blocked; return its place."""
        for at, found in enumerate(self._found):
            entry, applier = found.entry, self.run.applier(found.entry)
            guardable, is_blocked = entry.guardable, False
            if guardable is not None:
                guard = await self.run.ask("evaluate guard for", entry, guardable.guard_status)
                is_blocked = guard.status is GuardStatus.BLOCKED
            if not is_blocked:
                found.drift = await self._drift(applier, found)
            if found.live is None and not is_blocked:
                continue
            found.state = found.state._replace(is_pending=bool(found.drift))
            if found.drift:
                continue
            await self._reach(found)
            # One that is being deleted, or whose guard lets it not be created yet, is unavailable, but nothing that the
            # repair of a later member depends on: replicas may wait for a primary that is the last one.
            stops = found.live is not None and (is_blocked or not is_ending(found.live))
            if self.reached[entry.identity][0].action is Action.BLOCKED and stops:
                return at
        return len(self._found)

    async def _drift(self, applier: Applier, found: _Found) -> tuple[Drift, ...]:
        """Return what an apply would change; nothing in an object that it would leave alone."""
        if found.live is None or is_ending(found.live) or self.run.blocking_controller(found.entry, found.live):
            return ()
        with self.run.reporter.failures_attempted(found.entry):
            return await applier.pending(found.live)

    def _next(self, movable: Sequence[_Found]) -> _Found | None:
        """Return the member that is changed next."""
        there = {id(found) for found in movable}
        states = [
            found.state if id(found) in there else found.state._replace(is_pending=False) for found in self._found
        ]
        at = next_member(states, self.rollout.max_unavailable)
        return None if at is None else self._found[at]

    async def _prepared(self, found: _Found) -> str:
        """Call the author's function before a change of an available member; return why the change has to wait."""
        before, context, entry = self.rollout.before_update, self.run.context, found.entry
        if before is None or found.live is None or found.state.is_down or context.dry_run:
            return ""
        with self.run.reporter.failures_attempted(entry):
            if not await self.run.applier(entry).changes_spec(found.live, found.drift):
                return ""
            try:
                why = await _answer(before, found.live, context)
            except Exception as error:
                problem = f"failed to prepare the update of resource {entry.identity}: {failure_text(error)}"
                raise ReconcileError(self.run.component, problem, resource=entry.identity) from error
        return f"{entry.key.kind} {entry.key.name}: {why}" if why else ""

    async def _change(self, found: _Found) -> None:
        before, was_available = found.live, found.live is not None and not found.state.is_down
        await self._reach(found)
        outcome, live = self.reached[found.entry.identity]
        ready = outcome.report is None or Reason(outcome.report.status) in READY
        if outcome.writes and _generation(before) != _generation(live):
            self.has_begun |= was_available
            # Its status is older than the change, also where its controller does not say of which generation it is.
            ready = False
        found.state = Member(is_ready=ready, is_down=False, is_pending=False)

    async def _reach(self, found: _Found) -> None:
        self.reached[found.entry.identity] = reached = await self.reconcile(found.entry)
        self.is_blocked |= reached[0].action is Action.BLOCKED

    async def _leave(self, found: _Found) -> None:
        """Record the outcome of a member that waits, and extract its data."""
        entry, run = found.entry, self.run
        run.reporter.attempted(entry, ApplyOperation.NONE, Why.WAITING)
        if found.live is not None and entry.cells_filled:
            await run.extract(entry, found.live)
        report = StatusReport(AliveStatus.UPDATING, _WAITING) if found.state.is_ready else found.report
        outcome = ResourceOutcome(
            resource=entry.identity, action=Action.HELD_BACK, report=report, reasons=found.drift, why=Why.WAITING
        )
        self.reached[entry.identity] = outcome, found.live


async def _answer(before: BeforeUpdate, live: Manifest, context: ReconcileContext) -> str | None:
    answer: object = before(live, context)
    why = await answer if inspect.isawaitable(answer) else answer
    if not inspect.isawaitable(answer) or not isinstance(why, str | None):
        what = f"got a value of type {type(why).__name__}"
        raise ConfigError(f"before_update must be an `async def` function that returns a text or None, {what}")
    return why


def _as_update(observation: ResourceObservation) -> ResourceObservation:
    """Return what a member reports, as the update of which it is a part; a failure stays one."""
    if observation.is_ready or Reason(observation.report.status) not in STICKY:
        return observation
    return replace(observation, report=replace(observation.report, status=AliveStatus.UPDATING))


def _generation(live: Manifest | None) -> object:
    return None if live is None else live["metadata"].get("generation")
