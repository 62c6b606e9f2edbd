"""Work queue of keys without duplicates.

A key waits, is being processed, or is scheduled for later. A key that is added while it is being processed waits again
once that is done. So two workers never process the same key, and no change is missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Final, Generic, Protocol, TypeVar

from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ConfigError, OcfError
from ocf.runtime.workqueue.metrics import QueueMetrics

__all__ = ["FixedDelay", "Priority", "QueueClosedError", "RateLimiter", "WorkQueue"]


class QueueClosedError(OcfError):
    """A work queue is closed and returns no more items."""


class RateLimiter(Protocol):
    """Computes the delay before a failed key is retried."""

    def after(self, failures: int) -> timedelta:
        """Return the delay.

        Args:
            failures: Number of failures in a row, at least 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """A rate limiter with a constant delay, for controllers that process everything once per period.

    Source: `FixedItemIntervalRateLimiter` of the HorizontalPodAutoscaler's controller.

    Raises:
        ConfigError: If it is not positive.
    """

    delay: timedelta

    def __post_init__(self) -> None:
        if self.delay <= timedelta(0):
            raise ConfigError(f"a delay must be positive, got {self.delay}")

    def after(self, failures: int) -> timedelta:
        """Return the delay.

        Args:
            failures: Number of failures in a row; ignored.
        """
        del failures
        return self.delay


class Priority(IntEnum):
    """The priority of a key that waits; a key that is added with several ones has the highest.

    `CHANGED` and `UNCHANGED` have the values of controller-runtime's priority queue.
    """

    CHANGED = 0
    """Something about the key has changed."""
    SCHEDULED = -50
    """Its time has come: a retry, or a reconcile that the last one asked for."""
    UNCHANGED = -100
    """Nothing about it is known to have changed: the start, a resync."""


K = TypeVar("K", bound=Hashable)

# How many keys of higher priorities may be processed in a row while one of a lower priority waits.
_OVERTAKING: Final = 10
_DEFAULT: Final = ExponentialBackoff()
SHORTEST_DELAY: Final = timedelta(milliseconds=100)
"""A key that asks for itself again and again must leave time to others, and to the API server."""

_log: Final = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    """Keys to be processed, by priority, and of one priority in the order in which they were added.

    No priority waits for ever: after ten keys of higher priorities comes one of a lower.

    It must be used in one event loop, whose time it uses.

    Args:
        name: Name of the queue in metrics and log lines.
        delays: Rate limiter of failed keys.
        metrics: Metrics of the queues; None collects none.

    Attributes:
        name: Name of the queue in metrics and log lines.

    Example:
        >>> async def main() -> None:
        ...     queue: WorkQueue[str] = WorkQueue("shops")
        ...     queue.add("corner")
        ...     queue.add("corner")
        ...     key = await queue.get()
        ...     queue.add("corner")  # it is being processed, and waits again once that is done
        ...     print(key, queue.depth)
        ...     queue.done(key)
        ...     print(queue.depth)
        >>> asyncio.run(main())
        corner 0
        1
    """

    def __init__(self, name: str, *, delays: RateLimiter = _DEFAULT, metrics: QueueMetrics | None = None) -> None:
        self.name: Final = name
        self._delays = delays
        # Since when each key waits, the highest priority first; a dictionary is an ordered set.
        self._waiting: dict[Priority, dict[K, float]] = {priority: {} for priority in Priority}
        self._running: dict[K, float] = {}
        self._again: dict[K, Priority] = {}
        self._alarms: dict[K, asyncio.TimerHandle] = {}
        self._held: set[K] = set()
        self._failures: dict[K, int] = {}
        self._overtaken = dict.fromkeys(Priority, 0)
        """How many keys of higher priorities have been processed in a row while one of a priority waited."""
        self._has_warned = False
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._series = metrics.follow(self) if metrics is not None else None

    def __repr__(self) -> str:
        return f"WorkQueue({self.name!r}, waiting={self.depth}, running={len(self._running)}, later={self.later})"

    def __contains__(self, key: K) -> bool:
        return any(key in waiting for waiting in self._waiting.values())

    @property
    def depth(self) -> int:
        """Number of waiting keys."""
        return sum(map(len, self._waiting.values()))

    @property
    def depths(self) -> Mapping[int, int]:
        """Number of waiting keys of each priority."""
        return {priority: len(waiting) for priority, waiting in self._waiting.items()}

    @property
    def later(self) -> int:
        """Number of keys that are scheduled for later."""
        return len(self._alarms)

    @property
    def running(self) -> tuple[K, ...]:
        """The keys in process, the oldest first."""
        return tuple(self._running)

    @property
    def durations(self) -> tuple[float, ...]:
        """How many seconds each key in process has been processed so far, the longest first."""
        now = _now() if self._running else 0.0
        return tuple(now - since for since in self._running.values())

    @property
    def closed(self) -> bool:
        """Whether the queue is closed."""
        return self._closing.is_set()

    def failures(self, key: K) -> int:
        """Return the number of failures of a key in a row."""
        return self._failures.get(key, 0)

    def add(self, key: K, *, priority: Priority = Priority.CHANGED) -> None:
        """Add a key, to be processed now, or again if it is in process.

        A key that `retry` holds back for a server's `Retry-After` stays held back.

        Args:
            key: The key; one that waits already is not added again.
            priority: Which other keys are processed before it.
        """
        if self.closed or key in self._held:
            return
        if self._series is not None:
            self._series.added()
        if key in self._running:
            self._again[key] = max(self._again.get(key, priority), priority)
            return
        self._wait(key, priority)

    def add_after(self, key: K, delay: timedelta) -> None:
        """Add a key after a delay, with the priority `SCHEDULED`; of several scheduled times the earliest counts.

        Args:
            delay: The delay, at least 100 milliseconds, for which zero and negative ones stand; another one that is
                shorter is raised to that, which is logged once.
        """
        delay = self._at_least_shortest(delay)
        if not self.closed and key not in self._held:
            self._set_alarm(key, _now() + delay.total_seconds())

    def retry(self, key: K, *, at_least: timedelta = timedelta(0), after: timedelta | None = None) -> timedelta:
        """Add a failed key after the delay of the rate limiter, or when it is scheduled, if that is earlier.

        Args:
            after: Replaces the delay of the rate limiter; None for that.
            at_least: Minimum delay, during which neither `add` nor an earlier schedule has an effect: a server's
                `Retry-After`.

        Returns:
            The delay.
        """
        self._failures[key] = self._failures.get(key, 0) + 1
        asked = self._delays.after(self._failures[key]) if after is None else after
        delay = self._at_least_shortest(max(asked, at_least))
        if self._series is not None:
            self._series.retried()
        if self.closed:
            return delay
        if at_least > timedelta(0) or key in self._held:
            self._hold(key, _now() + delay.total_seconds())
        else:
            self.add_after(key, delay)
            delay = min(delay, timedelta(seconds=self._alarms[key].when() - _now()))
        return delay

    def forget(self, key: K) -> None:
        """Reset the failures of a key; call it after every success."""
        self._failures.pop(key, None)

    def unschedule(self, key: K) -> None:
        """Cancel the scheduled addition of a key."""
        self._held.discard(key)
        alarm = self._alarms.pop(key, None)
        if alarm is not None:
            alarm.cancel()

    async def get(self) -> K:
        """Wait for a key and return it; the caller must call `done` with it.

        Raises:
            QueueClosedError: If the queue is closed, even if keys still wait.
        """
        while not self.closed:
            if self.depth:
                return self._next()
            self._wake.clear()
            await self._wake.wait()
        raise QueueClosedError(f'queue "{self.name}" is closed')

    def done(self, key: K) -> None:
        """Mark a key as processed; it waits again if it was added meanwhile."""
        since = self._running.pop(key)
        if self._series is not None:
            self._series.finished(_now() - since)
        priority = self._again.pop(key, None)
        if priority is not None and not self.closed:
            self._wait(key, priority)

    def close(self) -> None:
        """Close the queue and drop all waiting and scheduled keys; keys in process are not affected."""
        for key in [*self._alarms]:
            self.unschedule(key)
        for waiting in self._waiting.values():
            waiting.clear()
        self._again.clear()
        self._closing.set()
        self._wake.set()

    async def closing(self) -> None:
        """Wait until the queue is closed."""
        await self._closing.wait()

    def _at_least_shortest(self, delay: timedelta) -> timedelta:
        if timedelta(0) < delay < SHORTEST_DELAY and not self._has_warned:
            self._has_warned = True
            text = "%s: a delay of %s is raised to the shortest one, %s; this is logged once"
            _log.warning(text, self.name, delay, SHORTEST_DELAY)
        return max(delay, SHORTEST_DELAY)

    def _wait(self, key: K, priority: Priority) -> None:
        since = _now()
        for before, waiting in self._waiting.items():
            if key in waiting:
                if before >= priority:
                    return
                since = waiting.pop(key)
        self._waiting[priority][key] = since
        self._wake.set()

    def _next(self) -> K:
        waits = [priority for priority, keys in self._waiting.items() if keys]
        late = (priority for priority in waits if self._overtaken[priority] >= _OVERTAKING)
        chosen = next(late, waits[0])
        for priority in waits:
            self._overtaken[priority] += priority < chosen
        self._overtaken[chosen] = 0
        waiting = self._waiting[chosen]
        key = next(iter(waiting))
        now = _now()
        if self._series is not None:
            self._series.started(now - waiting[key])
        del waiting[key]
        self._running[key] = now
        return key

    def _set_alarm(self, key: K, when: float) -> None:
        alarm = self._alarms.get(key)
        if alarm is not None:
            if alarm.when() <= when:
                return
            alarm.cancel()
        self._alarms[key] = asyncio.get_running_loop().call_at(when, self._ring, key)

    def _ring(self, key: K) -> None:
        del self._alarms[key]
        self._held.discard(key)
        self.add(key, priority=Priority.SCHEDULED)

    def _hold(self, key: K, when: float) -> None:
        """Hold a key back until a time; `add` has no effect until then."""
        if key in self._held:
            when = max(when, self._alarms[key].when())
        self.unschedule(key)
        for waiting in self._waiting.values():
            waiting.pop(key, None)
        self._again.pop(key, None)
        self._held.add(key)
        self._set_alarm(key, when)


def _now() -> float:
    return asyncio.get_running_loop().time()
