"""The pace of the reconciles that changes of other objects trigger.

The first change triggers a reconcile at once. While further ones follow, the pauses between reconciles grow: a hundred
children that become ready one by one are a hundred changes, and each reconcile reads all of them. The last change is
never left out. Changes of a status have a pace of their own, so that an edit is reverted soon although statuses change
all the time. An edit of the owner itself has no pace: a user waits for what it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

__all__ = ["Pace", "Pacer", "due_at", "pace_after"]

K = TypeVar("K")

# Seconds.
_SHORTEST: Final = 1.0
_LONGEST: Final = 30.0
# A change after which no other one follows is seen after this time, however long the pause is.
_QUIET: Final = 2.0


class Pace(NamedTuple):
    """The pace of one owner.

    Args:
        since: When the last reconcile was triggered, in seconds of the loop's clock.
        pause: Seconds until the next one.
    """

    since: float
    pause: float


def due_at(pace: Pace | None, changed: float, *, failing: bool) -> float:
    """Return when the reconcile may begin that a change triggers.

    Args:
        pace: The pace so far; None before the first change.
        changed: When the change came.
        failing: Whether the last reconcile has failed: then each one is as likely to fail, whatever has changed.
    """
    if pace is None:
        return changed
    latest = pace.since + pace.pause
    return max(changed, latest if failing else min(latest, changed + _QUIET))


def pace_after(pace: Pace | None, now: float, *, burst: bool, failing: bool) -> Pace:
    """Return the pace after a change has triggered a reconcile.

    Args:
        burst: Whether another change has come less than two seconds before it.
        failing: Whether the last reconcile has failed.
    """
    grows = burst or failing
    return Pace(now, min(pace.pause * 2, _LONGEST) if pace is not None and grows else _SHORTEST)


@dataclass(slots=True)
class _Changes:
    """The changes of one sort, those of a status or all others, that affect one owner."""

    pace: Pace | None = None
    at: float = -_QUIET
    """When the last one came."""
    waits: bool = False
    burst: bool = False
    """Whether one that waits has followed another one."""

    def came(self, now: float) -> None:
        self.burst = self.burst or now - self.at < _QUIET
        self.at, self.waits = now, True

    def triggered(self, now: float, *, failing: bool) -> None:
        """Record a reconcile, whichever sort of changes it was triggered by."""
        burst = self.burst if self.waits else now - self.at < _QUIET
        if self.waits or not burst:
            self.pace = pace_after(self.pace, now, burst=burst, failing=failing)
        elif self.pace is not None:
            self.pace = self.pace._replace(since=now)
        self.seen()

    def seen(self) -> None:
        self.waits = self.burst = False


@dataclass(slots=True)
class _Owner:
    edits: _Changes = field(default_factory=_Changes)
    statuses: _Changes = field(default_factory=_Changes)
    failing: bool = False
    not_before: float = 0.0
    alarm: asyncio.TimerHandle | None = None

    @property
    def sorts(self) -> tuple[_Changes, _Changes]:
        return self.edits, self.statuses

    def due(self) -> float:
        times = (due_at(one.pace, one.at, failing=self.failing) for one in self.sorts if one.waits)
        return max(min(times), self.not_before)

    def silence(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None


class Pacer(Generic[K]):
    """Calls a function for each owner that changes have affected, at the pace of the owner.

    Args:
        trigger: Called with an owner whose reconcile is due.
    """

    def __init__(self, trigger: Callable[[K], object]) -> None:
        self._trigger = trigger
        self._owners: dict[K, _Owner] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def changed(self, owner: K, *, urgent: bool) -> None:
        """Trigger a reconcile of an owner, now or later.

        Args:
            urgent: Whether more than a status has changed: an object was made, edited or deleted.
        """
        loop, state = asyncio.get_running_loop(), self._owners.setdefault(owner, _Owner())
        now = loop.time()
        (state.edits if urgent else state.statuses).came(now)
        state.silence()
        when = state.due()
        if when <= now:
            self._ring(owner)
        else:
            state.alarm = loop.call_at(when, self._ring, owner)

    def began(self, owner: K) -> None:
        """Record that a reconcile begins, which sees every change so far."""
        state = self._owners.get(owner)
        if state is not None:
            state.silence()
            for changes in state.sorts:
                changes.seen()

    def ended(self, owner: K, *, failed: bool, held: float = 0.0) -> None:
        """Record the end of a reconcile.

        Args:
            held: Seconds for which no change triggers a reconcile.
        """
        state = self._owners.get(owner)
        if failed:
            state, now = self._owners.setdefault(owner, _Owner()), asyncio.get_running_loop().time()
            state.failing, state.not_before = True, now + held if held else 0.0
            for changes in state.sorts:
                changes.pace = changes.pace or Pace(now, _SHORTEST)
        elif state is not None:
            state.failing, state.not_before = False, 0.0

    def forget(self, owner: K) -> None:
        """Drop an owner."""
        state = self._owners.pop(owner, None)
        if state is not None:
            state.silence()

    def close(self) -> None:
        """Drop all owners."""
        for owner in [*self._owners]:
            self.forget(owner)

    def _ring(self, owner: K) -> None:
        state, now = self._owners[owner], asyncio.get_running_loop().time()
        state.silence()
        for changes in state.sorts:
            changes.triggered(now, failing=state.failing)
        self._trigger(owner)
