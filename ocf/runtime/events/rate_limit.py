"""How many events one object may get: many at once, few for ever.

An operator that cannot come to rest would fill the cluster with events about the same object. The numbers are those of
the recorder that the controllers of Kubernetes use (`tools/record/events_cache.go` of client-go): 25 at once, and one
more every five minutes.
"""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import timedelta
from typing import Final

__all__ = ["TokenBucket"]

_BURST: Final = 25
_REFILL: Final = timedelta(minutes=5)
_REMEMBERED: Final = 4096


class TokenBucket:
    """A token bucket for each source of events.

    Args:
        burst: How many events may come at once.
        refill: How long it takes until one more may come.
        remembered: Of how many sources is kept what they have used up; beyond that the one that was quiet for the
            longest time starts anew.

    Example:
        >>> allowance = TokenBucket(burst=1, refill=timedelta(minutes=5))
        >>> [allowance.take("corner", timedelta(minutes=minute)) for minute in (0, 4, 6, 7)]
        [True, False, True, False]
    """

    def __init__(self, *, burst: int = _BURST, refill: timedelta = _REFILL, remembered: int = _REMEMBERED) -> None:
        self._burst = burst
        self._refill = refill
        self._remembered = remembered
        self._left: OrderedDict[Hashable, tuple[float, timedelta]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def take(self, source: Hashable, elapsed: timedelta) -> bool:
        """Take one event out of what a source may send.

        Args:
            source: Whose event it is.
            elapsed: What the clock tells as elapsed.

        Returns:
            Whether there was one left.
        """
        left, since = self._left.pop(source, (float(self._burst), elapsed))
        left = min(float(self._burst), left + (elapsed - since) / self._refill)
        allowed = left >= 1
        self._left[source] = (left - 1 if allowed else left, elapsed)
        if len(self._left) > self._remembered:
            self._left.popitem(last=False)
        return allowed
