"""The queue in front of the pods, as a fluid.

Load arrives, waits, is served or dropped at rates that are constant between two changes.
"""

import math
from typing import Final

from ocf.simulation.engine.averages import Gauge, Peak
from ocf.simulation.engine.clock import NEVER, SECOND

__all__ = ["FluidQueue", "PodLoad"]

_UNLIMITED: Final = math.inf


class FluidQueue:
    """A queue between an offered load and a capacity.

    Args:
        limit: The load units that can wait; None for no limit.

    Attributes:
        capacity: Load units per second that can be served.
        served: Load units per second that are served.
        dropped: Load units per second that are dropped.
        utilization: Share of the capacity that is in use, from 0 to 1.
        due: The instant at which the queue is empty or full, in microseconds.

    Example:
        >>> queue = FluidQueue(limit=None)
        >>> queue.change(0, rate=30, capacity=20)
        >>> queue.advance(60 * SECOND)
        >>> queue.length, queue.served
        (600.0, 20)
        >>> queue.change(60 * SECOND, rate=10, capacity=20)
        >>> queue.due // SECOND
        120
    """

    __slots__ = ("_at", "_limit", "_rate", "capacity", "dropped", "due", "length", "served", "utilization")

    def __init__(self, limit: float | None) -> None:
        self._limit = _UNLIMITED if limit is None else limit
        self._at = 0
        self._rate = self.capacity = 0.0
        self.length = self.served = self.dropped = self.utilization = 0.0
        self.due = NEVER

    def advance(self, now: int) -> None:
        """Compute the length at an instant."""
        if self.due == now:
            # Not by the sum below: its rounding would leave a rest, and the queue would never be empty.
            self.length = 0.0 if self._rate < self.capacity else self._limit
        elif growth := self._rate - self.served - self.dropped:
            # A queue that was longer than its limit when that shrank only gets shorter.
            most = max(self._limit, self.length)
            self.length = max(0.0, min(most, self.length + growth * ((now - self._at) / SECOND)))
        self._at = now

    def change(self, now: int, *, rate: float, capacity: float) -> None:
        """Set the rates that hold from an instant on.

        Args:
            now: The instant in microseconds, to which the queue has advanced.
            capacity: Load units per second that can be served.
        """
        self._rate, self.capacity = rate, capacity
        self.dropped = 0.0
        self.due = NEVER
        if rate <= capacity and self.length == 0:
            self.served = rate
            self.utilization = rate / capacity if capacity else 0.0
            return
        self.served = capacity
        self.utilization = 1.0 if capacity else 0.0
        if rate > capacity:
            if self.length >= self._limit:
                self.dropped = rate - capacity
            elif self._limit != _UNLIMITED:
                self.due = _after(now, (self._limit - self.length) / (rate - capacity))
        elif rate < capacity:
            self.due = _after(now, self.length / (capacity - rate))

    def refill(self, limit: float | None, more: float) -> float:
        """Change the limit, and let more load wait, as far as it fits; the rates have to be set anew.

        Load that waits already stays, also above the new limit.

        Returns:
            The load units that do not fit.
        """
        self._limit = _UNLIMITED if limit is None else limit
        fits = min(more, max(0.0, self._limit - self.length))
        self.length += fits
        return more - fits


class PodLoad:
    """The load of a ready pod.

    Attributes:
        share: Its share of the connections, and so of the load.
        queue: The load that waits for it.
        gauges: What the metrics pipeline measures of it, one for each meter; none before it is observed.
    """

    __slots__ = ("gauges", "queue", "share")

    def __init__(self, limit: float | None) -> None:
        self.share = 0.0
        self.queue = FluidQueue(limit)
        self.gauges: tuple[Gauge | Peak, ...] = ()


def _after(now: int, seconds: float) -> int:
    """Return the first microsecond that is some time later."""
    span = seconds * SECOND
    return now + max(1, math.ceil(span)) if span < NEVER - now else NEVER
