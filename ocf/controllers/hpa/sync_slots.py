"""`SyncSlots`: bring the syncs of one namespace together, so that they share the reads of its metrics.

A shared read serves the syncs of a few seconds. Autoscalers that were created at different seconds would each be synced
at another time of the period, and need several reads per namespace and period.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from ocf.objects import ObjectKey

__all__ = ["SyncSlots"]

# They meet over some syncs, of which none comes much earlier than the period says.
_LARGEST_STEP: Final = 0.1
_NO_TIME: Final = timedelta(0)


@dataclass(slots=True)
class _Namespace:
    names: set[str] = field(default_factory=set)
    starts: dict[timedelta, timedelta] = field(default_factory=dict)
    """The time of the first sync for each period."""


class SyncSlots:
    """The times at which the autoscalers of each namespace are synced.

    The first sync of a namespace sets the time in the period. Other autoscalers reach it over some syncs: each of their
    delays is at most a tenth shorter than the period, so none is synced twice in a row. A delay is never longer.

    Example:
        >>> slots, period, second = SyncSlots(), timedelta(seconds=15), timedelta(seconds=1)
        >>> first, late = (ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", name, "shop") for name in "ab")
        >>> slots.delay(first, period, now=100 * second).total_seconds()
        15.0
        >>> slots.delay(late, period, now=102 * second).total_seconds()  # at 115.5, and then at 130
        13.5
    """

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    def __len__(self) -> int:
        return len(self._namespaces)

    def delay(self, key: ObjectKey, period: timedelta, *, now: timedelta) -> timedelta:
        """Return the delay until the next sync of an autoscaler."""
        known = self._namespaces.setdefault(key.namespace, _Namespace())
        known.names.add(key.name)
        # Per period, because own settings may give the autoscalers of a namespace different ones.
        early = (now - known.starts.setdefault(period, now)) % period
        return period - min(early, _LARGEST_STEP * period)

    def forget(self, key: ObjectKey) -> None:
        """Drop a deleted autoscaler."""
        known = self._namespaces.get(key.namespace)
        if known is not None:
            known.names.discard(key.name)
            if not known.names:
                del self._namespaces[key.namespace]
