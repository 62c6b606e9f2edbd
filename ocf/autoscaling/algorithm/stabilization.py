"""Holding a size for a while, so that a number that goes up and down does not take the workload along.

Without a `behavior` there is one window, and only shrinking waits: the highest recommendation of the window counts.
With one, each direction has its window, and the size moves only if everything that was recommended within them lies on
one side of it. Neither is a delay: a recommendation that was wanted all along is followed at once.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from ocf.autoscaling.algorithm.history import Recommendation, add_recommendation, window_start
from ocf.autoscaling.algorithm.rules import Rule

__all__ = ["Stabilization", "stabilize", "stabilize_with_behavior"]


class Stabilization(NamedTuple):
    """What was made of a recommendation.

    Args:
        replicas: The number after it.
        wanted: The number before.
        lowest: The lowest that growing has to respect; None if growing never waits.
        highest: The highest that shrinking has to respect.
        rule: Why the number changed; None if it did not.
        recommendations: What is remembered now.
    """

    replicas: int
    wanted: int
    lowest: int | None
    highest: int
    rule: Rule | None
    recommendations: tuple[Recommendation, ...]


def stabilize(
    wanted: int, recommendations: tuple[Recommendation, ...], *, window: timedelta, now: datetime
) -> Stabilization:
    """Stabilize without a `behavior`: take the highest of the window.

    A recommendation that is exactly as old as the window still counts.

    Args:
        wanted: What the metrics want.
        recommendations: What they wanted before.
        window: How far back to look.
        now: The instant of the round.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        >>> stabilize(2, (Recommendation(5, noon),), window=timedelta(minutes=5), now=noon).replicas
        5
    """
    start = window_start(now, window)
    highest, slot = wanted, None
    for position, (replicas, at) in enumerate(recommendations):
        if at < start:
            slot = position
        elif replicas > highest:
            highest = replicas
    rule = None if highest == wanted else Rule.SCALE_DOWN_STABILIZED
    kept = add_recommendation(recommendations, Recommendation(wanted, now), slot)
    return Stabilization(highest, wanted, None, highest, rule, kept)


def stabilize_with_behavior(
    wanted: int,
    current: int,
    recommendations: tuple[Recommendation, ...],
    *,
    up_window: timedelta,
    down_window: timedelta,
    now: datetime,
) -> Stabilization:
    """Stabilize with a `behavior`: move only as far as everything recommended within the windows agrees.

    A recommendation that is exactly as old as a window no longer counts for it, and its place is not free yet.

    Args:
        wanted: What the metrics want.
        current: What the workload should have now.
        recommendations: What the metrics wanted before.
        up_window: How far back growing has to look.
        down_window: How far back shrinking has to look.
        now: The instant of the round.
    """
    up_start, down_start = window_start(now, up_window), window_start(now, down_window)
    lowest = highest = wanted
    slot = None
    both = min(up_start, down_start)
    for position, (replicas, at) in enumerate(recommendations):
        if at < both:
            slot = position
            continue
        if at > up_start:
            lowest = min(lowest, replicas)
        if replicas > highest and at > down_start:
            highest = replicas
    held = min(max(current, lowest), highest)
    rule = None
    if held != wanted:
        rule = Rule.SCALE_UP_STABILIZED if wanted >= current else Rule.SCALE_DOWN_STABILIZED
    kept = add_recommendation(recommendations, Recommendation(wanted, now), slot)
    return Stabilization(held, wanted, lowest, highest, rule, kept)
