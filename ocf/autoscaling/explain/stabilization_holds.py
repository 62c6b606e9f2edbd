"""Recommendations that hold the replicas and allowances of scaling policies, each with its end."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Decision,
    History,
    Recommendation,
    ScalingPolicy,
    Settings,
    apply_behavior_limits,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.explain.next_syncs import expiry, recommendation_end, windows

__all__ = ["Hold", "LaterAllowance", "PolicyAllowance", "hold_of", "policy_allowances"]

_MOST: Final = 2**31 - 1


class Hold(NamedTuple):
    """A past recommendation that holds the number of replicas.

    Args:
        recommendation: The youngest recommendation that keeps the result, as its hold ends last.
        until: The first instant at which it no longer counts.
    """

    recommendation: Recommendation
    until: datetime


class LaterAllowance(NamedTuple):
    """The allowance of a policy after a past change has left its period.

    Args:
        at: When the change leaves the period.
        allowed: The replicas that the policy allows from then on, without further changes.
    """

    at: datetime
    allowed: int


class PolicyAllowance(NamedTuple):
    """What one policy allows.

    Args:
        start: The replicas at the start of the period.
        added: Replicas added within the period.
        removed: Replicas removed within the period.
        allowed: The replicas that the policy allows now.
        remaining: The difference to the replicas now.
        later: What it allows later, oldest change first.
    """

    policy: ScalingPolicy
    start: int
    added: int
    removed: int
    allowed: int
    remaining: int
    later: tuple[LaterAllowance, ...]


def hold_of(decision: Decision, settings: Settings) -> Hold | None:
    """Return the recommendation that keeps a decision from the replicas that its metrics want.

    Args:
        settings: The settings that it was made with.

    Returns:
        The recommendation and the end of the hold; None without a hold.
    """
    step, now = decision.trace.stabilization, decision.trace.now
    if step is None or step.rule is None:
        return None
    autoscaler = decision.snapshot.autoscaler
    down, up = windows(autoscaler, settings)
    scaling_up = step.replicas < step.wanted
    window = up if scaling_up else down
    # One recommendation on the other side of the result is enough to keep it, so the youngest of them keeps it longest.
    # The entry of this sync is on the side of what it wants.
    holders = [
        each
        for each in decision.history.recommendations or ()
        if (each.replicas <= step.replicas if scaling_up else each.replicas >= step.replicas)
        and now < recommendation_end(each.at, window, autoscaler)
    ]
    holder = max(holders, key=lambda each: each.at, default=None)
    return None if holder is None else Hold(holder, recommendation_end(holder.at, window, autoscaler))


def policy_allowances(
    autoscaler: Autoscaler, current: int, history: History, *, up: bool, now: datetime
) -> tuple[PolicyAllowance, ...]:
    """Return what each policy of a direction allows.

    Args:
        current: The `spec.replicas` of the target's scale.
        history: The history, with previous changes.
        up: Whether the direction is up.
        now: The instant.

    Returns:
        One per policy; empty without a `behavior`, or if the direction is disabled.
    """
    behavior = autoscaler.behavior
    if behavior is None:
        return ()
    rules = behavior.up if up else behavior.down

    def allowances(at: datetime) -> tuple[tuple[ScalingPolicy, int, int], ...]:
        # Beyond every limit, because the algorithm asks only the policies of the direction of the change.
        wanted = _MOST if up else -1
        limit = apply_behavior_limits(
            current, wanted, minimum=0, maximum=_MOST, behavior=behavior, history=history, now=at
        )
        return limit.allowances

    def later(position: int, policy: ScalingPolicy) -> Iterator[LaterAllowance]:
        for at in _ends((*history.scale_ups, *history.scale_downs), policy.period, now):
            yield LaterAllowance(at, allowances(at)[position][2])

    found = []
    for position, (policy, start, allowed) in enumerate(allowances(now) if rules.policies else ()):
        added, removed = (_within(events, policy.period, now) for events in (history.scale_ups, history.scale_downs))
        remaining = max(0, allowed - current if up else current - max(0, allowed))
        found.append(PolicyAllowance(policy, start, added, removed, allowed, remaining, tuple(later(position, policy))))
    return tuple(found)


def _within(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> int:
    return sum(each.change for each in events if expiry(each.at, period) > now)


def _ends(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> list[datetime]:
    return sorted({end for each in events if (end := expiry(each.at, period)) > now})
