"""Rate limit of events per object.

Without it, an operator that never gets in sync would fill the cluster with events about the same object. The numbers
are those of client-go (`tools/record/events_cache.go`): a burst of 25, and one more every five minutes.
"""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import timedelta
from typing import Final

__all__ = ["TokenBucket"]

_BURST: Final = 25
_REFILL: Final = timedelta(minutes=5)
_CAPACITY: Final = 4096


class TokenBucket:
    """A token bucket for each source of events.

    Args:
        burst: Size of a bucket.
        refill: Time until a bucket gets one more token.
        capacity: Maximum number of buckets; beyond it the least recently used one is dropped, and its source starts
            with a full one.

    Example:
        >>> allowance = TokenBucket(burst=1, refill=timedelta(minutes=5))
        >>> [allowance.take("corner", timedelta(minutes=minute)) for minute in (0, 4, 6, 7)]
        [True, False, True, False]
    """

    def __init__(self, *, burst: int = _BURST, refill: timedelta = _REFILL, capacity: int = _CAPACITY) -> None:
        self._burst = burst
        self._refill = refill
        self._capacity = capacity
        self._left: OrderedDict[Hashable, tuple[float, timedelta]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def take(self, source: Hashable, elapsed: timedelta) -> bool:
        """Take one token of a source.

        Args:
            source: The source of the event.
            elapsed: The present `elapsed` of the clock.

        Returns:
            Whether a token was left.
        """
        left, since = self._left.pop(source, (float(self._burst), elapsed))
        left = min(float(self._burst), left + (elapsed - since) / self._refill)
        allowed = left >= 1
        self._left[source] = (left - 1 if allowed else left, elapsed)
        if len(self._left) > self._capacity:
            self._left.popitem(last=False)
        return allowed
