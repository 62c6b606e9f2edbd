"""Stabilization windows, which keep a workload from following every change of a metric.

Without a `behavior` there is one window, for scaling down: the highest recommendation of the window applies. With a
`behavior` each direction has a window, and the workload is scaled only as far as all recommendations within the window
agree. A window is not a delay: a proposal that equals the earlier recommendations applies at once.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from ocf.autoscaling.algorithm.history import Recommendation, add_recommendation, window_start
from ocf.autoscaling.algorithm.rules import Rule

__all__ = ["Stabilization", "hold", "stabilize", "stabilize_with_behavior"]


class Stabilization(NamedTuple):
    """The result of the stabilization.

    Args:
        replicas: The replicas after stabilization.
        wanted: The replicas before.
        lowest: The lowest recommendation in the window for scaling up; None without such a window.
        highest: The highest recommendation in the window for scaling down.
        rule: The rule that changed the number; None if it did not change.
        recommendations: The recommendations to keep in the history.
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
    """Stabilize without a `behavior`: return the highest recommendation of the window.

    A recommendation that is exactly as old as the window still counts.

    Args:
        wanted: The proposal of the metrics.
        recommendations: The earlier recommendations.
        window: The stabilization window for scaling down.
        now: Time of the sync.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        >>> stabilize(2, (Recommendation(5, noon),), window=timedelta(minutes=5), now=noon).replicas
        5
    """
    start = window_start(now, window)
    highest, slot = wanted, None
    for position, each in enumerate(recommendations):  # unpacking a named tuple takes three times as long
        # Of several expired entries the last is overwritten, because the controller's loop remembers the last match;
        # the others wait for later syncs. The order of the list does not matter.
        if each.at < start:
            slot = position
        elif each.replicas > highest:
            highest = each.replicas
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
    """Stabilize with a `behavior`: scale only as far as all recommendations within the windows agree.

    A recommendation that is exactly as old as a window is not used for it, but is not overwritten yet either.

    Args:
        wanted: The proposal of the metrics.
        current: `spec.replicas` of the scale.
        recommendations: The earlier recommendations.
        up_window: The stabilization window for scaling up.
        down_window: The stabilization window for scaling down.
        now: Time of the sync.
    """
    up_start, down_start = window_start(now, up_window), window_start(now, down_window)
    lowest = highest = wanted
    slot = None
    both = min(up_start, down_start)
    for position, each in enumerate(recommendations):
        if each.at < both:
            slot = position
        elif each.replicas < lowest:
            if each.at > up_start:
                lowest = each.replicas
        elif each.replicas > highest and each.at > down_start:
            highest = each.replicas
    held, rule = hold(wanted, current, lowest=lowest, highest=highest)
    kept = add_recommendation(recommendations, Recommendation(wanted, now), slot)
    return Stabilization(held, wanted, lowest, highest, rule, kept)


def hold(wanted: int, current: int, *, lowest: int, highest: int) -> tuple[int, Rule | None]:
    """Return the replicas on which all recommendations within the windows of a `behavior` agree.

    Args:
        wanted: The proposal of the metrics.
        current: `spec.replicas` of the scale.
        lowest: The lowest recommendation in the window for scaling up, at most the proposal.
        highest: The highest recommendation in the window for scaling down, at least the proposal.

    Returns:
        The replicas after stabilization, and the rule that changed the number; None if it did not change.

    Example:
        >>> hold(2, 4, lowest=2, highest=3)
        (3, <Rule.SCALE_DOWN_STABILIZED: 'ScaleDownStabilized'>)
    """
    # Without a `behavior` the maximum applies directly, and could scale a workload up during a scale-down
    # (kubernetes/kubernetes#98174); here the current replicas change only when they are outside of what was
    # recommended.
    held = min(max(current, lowest), highest)
    if held == wanted:
        return held, None
    # By the proposal, not by the result, and equality counts as up (stabilizeRecommendationWithBehaviors).
    return held, Rule.SCALE_UP_STABILIZED if wanted >= current else Rule.SCALE_DOWN_STABILIZED
