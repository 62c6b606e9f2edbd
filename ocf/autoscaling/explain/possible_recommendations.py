"""Recommendations that another controller may have in its memory, from the status of its last sync.

Of all recommendations in a window, only the highest or the lowest counts. So the extremes are found with few of them:
the one of the last sync, one that explains its stabilization, and one that does not matter to it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Final

from ocf.autoscaling.algorithm import Autoscaler, History, Recommendation, Settings
from ocf.autoscaling.algorithm.history import ZERO_TIME, window_start
from ocf.autoscaling.explain.last_sync import MOST, LastSync
from ocf.autoscaling.explain.next_syncs import windows

__all__ = ["possible_recommendations"]

_JUST: Final = timedelta(microseconds=1)
Recommendations = tuple[Recommendation, ...]


def possible_recommendations(
    autoscaler: Autoscaler, last: LastSync, *, settings: Settings, at: datetime, now: datetime, created: datetime | None
) -> Iterator[Recommendations]:
    """Yield the extremes of the recommendations up to the last sync, including its own.

    Args:
        created: When the autoscaler was created; None if that is not known.
    """
    before = [each for each in _before(autoscaler, last, settings, at) if _is_after(created, each)]
    if last.held is None:
        found = before
    else:
        found = [
            (*recommendations, Recommendation(wanted, at))
            for recommendations, wanted in product(before, _numbers(last))
            if last.has_stabilization(autoscaler, History(recommendations), wanted, settings=settings, at=at)
            # If none fits, something else has changed that the status does not show.
        ] or before
    yield from dict.fromkeys(_extremes(found, autoscaler, settings, now))


def _is_after(created: datetime | None, recommendations: Recommendations) -> bool:
    return created is None or all(each.at >= created for each in recommendations)


def _before(autoscaler: Autoscaler, last: LastSync, settings: Settings, at: datetime) -> Iterator[Recommendations]:
    # Just before the last sync, so that its own recommendation is the youngest.
    young = at - _JUST
    free = [(Recommendation(each, young),) for each in (0, last.most)]
    yield ()
    # A controller that starts recommends the replicas that it finds.
    yield (Recommendation(last.before, at),)
    yield from free
    if last.held is None:
        return
    # The oldest one that counted then; it does not count any more.
    inside = timedelta() if autoscaler.behavior is None else _JUST
    times = [young, *(window_start(at, window) + inside for window in windows(autoscaler, settings) if window)]
    for number, when in product(_numbers(last), times):
        one = (Recommendation(number, when),)
        yield one
        for other in free:
            yield (*one, *other)


def _numbers(last: LastSync) -> list[int]:
    """Return the numbers at which a recommendation begins to matter to the last sync."""
    held, before = last.held, last.before
    ends = () if held is None else (held.least - 1, held.least, held.most, held.most + 1)
    return sorted({each for each in (0, before - 1, before, before + 1, MOST, *ends) if 0 <= each <= MOST})


def _extremes(
    found: list[Recommendations], autoscaler: Autoscaler, settings: Settings, now: datetime
) -> Iterator[Recommendations]:
    """Yield those with the lowest and the highest limits in both windows; of equal ones, those that count longest."""
    if not found:
        return
    down, up = windows(autoscaler, settings)
    inside = timedelta() if autoscaler.behavior is None else _JUST
    # A window for scaling up exists only with a `behavior`, where an entry exactly as old as the window does not count.
    lowest, highest = window_start(now, up) + _JUST, window_start(now, down) + inside

    def low(recommendations: Recommendations) -> tuple[int, timedelta]:
        counted = ((each.replicas, now - each.at) for each in recommendations if each.at >= lowest)
        return min(counted, default=(MOST + 1, timedelta()))

    def high(recommendations: Recommendations) -> tuple[int, datetime]:
        counted = ((each.replicas, each.at) for each in recommendations if each.at >= highest)
        return max(counted, default=(-1, ZERO_TIME))

    yield min(found, key=low)
    yield max(found, key=low)
    yield max(found, key=high)
    yield min(found, key=high)
