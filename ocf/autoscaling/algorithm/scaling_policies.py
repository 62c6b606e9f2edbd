"""Limits of a rescale: `minReplicas`, `maxReplicas`, and the rate of change.

Without a `behavior` there is one rate limit, and it applies per sync, not per time: with twice as many syncs a workload
is scaled up twice as fast. With a `behavior`, policies limit the change within periods, relative to the replicas at the
start of the period.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from ocf.autoscaling.algorithm.arithmetic import INT32_MAX, ceil32, to_int32, wrap32
from ocf.autoscaling.algorithm.history import History, change_within
from ocf.autoscaling.algorithm.hpa_spec import Behavior, ScalingPolicy, ScalingRules
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.settings import Settings

__all__ = ["Allowance", "Limit", "apply_behavior_limits", "apply_limits"]

_INT32_MIN = -(2**31)


Allowance = tuple[ScalingPolicy, int, int]
"""The limit of one policy: the policy, the replicas at the start of its period, and the allowed replicas."""


class Limit(NamedTuple):
    """The result of the limits.

    Args:
        replicas: The replicas after the limits.
        rule: The limit that changed the number, or `WITHIN_RANGE`.
        wanted: The replicas before the limits.
        bound: The most replicas allowed when scaling up, the fewest when scaling down; None if nothing changes.
        rate: The bound by the rate of change alone.
        allowances: The limit of each policy.
    """

    replicas: int
    rule: Rule
    wanted: int
    bound: int | None = None
    rate: int | None = None
    allowances: tuple[Allowance, ...] = ()


def apply_limits(current: int, wanted: int, *, minimum: int, maximum: int, settings: Settings) -> Limit:
    """Limit the replicas of an HPA without a `behavior`.

    Args:
        current: `spec.replicas` of the scale.
        wanted: The wanted replicas, after stabilization.
        minimum: `minReplicas`.
        maximum: `maxReplicas`.
        settings: The controller's settings, which have the scale-up limit.

    Example:
        >>> apply_limits(3, 100, minimum=1, maximum=50, settings=Settings()).replicas
        6
    """
    # A guard against single wrong samples (kubernetes/kubernetes#32304), not a rate: it knows no history.
    rate = to_int32(max(settings.scale_up_limit_factor * float(current), settings.scale_up_limit_minimum))
    cap = min(maximum, rate)
    # The minimum wins over the rate: a raised `minReplicas` is reached in one sync.
    if wanted < minimum:
        return Limit(minimum, Rule.TOO_FEW, wanted, minimum)
    if wanted > cap:
        rule = Rule.SCALE_UP_LIMIT if maximum > rate else Rule.TOO_MANY
        return Limit(cap, rule, wanted, cap, rate)
    return Limit(wanted, Rule.WITHIN_RANGE, wanted, cap, rate)


def apply_behavior_limits(
    current: int,
    wanted: int,
    *,
    minimum: int,
    maximum: int,
    behavior: Behavior,
    history: History,
    now: datetime,
) -> Limit:
    """Limit the replicas of an HPA with a `behavior`.

    Args:
        current: `spec.replicas` of the scale.
        wanted: The wanted replicas, after stabilization.
        minimum: `minReplicas`; applied only when scaling down.
        maximum: `maxReplicas`; applied only when scaling up.
        behavior: The scaling rules of both directions.
        history: The history, with the scale events.
        now: Time of the sync.
    """
    if wanted > current:
        rate, allowances = _scale_up_rate(current, behavior.up, history, now)
        # Events of the period can use up more than the policies allow, if these were tightened meanwhile; then the size
        # is held, and never reduced by a limit for scaling up.
        rate = max(rate, current)
        bound, rule = (rate, Rule.SCALE_UP_LIMIT) if maximum > rate else (maximum, Rule.TOO_MANY)
        exceeded = wanted > bound
    elif wanted < current:
        rate, allowances = _scale_down_rate(current, behavior.down, history, now)
        # As above: after a scale-up within the period, its undoing can put the limit above the current replicas.
        rate = min(rate, current)
        bound, rule = (rate, Rule.SCALE_DOWN_LIMIT) if minimum < rate else (minimum, Rule.TOO_FEW)
        exceeded = wanted < bound
    else:
        return Limit(wanted, Rule.WITHIN_RANGE, wanted)
    if exceeded:
        return Limit(bound, rule, wanted, bound, rate, allowances)
    return Limit(wanted, Rule.WITHIN_RANGE, wanted, bound, rate, allowances)


def _scale_up_rate(
    current: int, rules: ScalingRules, history: History, now: datetime
) -> tuple[int, tuple[Allowance, ...]]:
    if rules.select == "Disabled":
        return current, ()
    smallest = rules.select == "Min"
    result = INT32_MAX if smallest else _INT32_MIN
    allowances: list[Allowance] = []
    proposed = 0
    changed = history.scale_ups or history.scale_downs
    for policy in rules.policies:
        start = _replicas_at_start(current, history, policy.period, now) if changed else current
        if policy.type == "Percent":
            # Rounded up, because 10 percent of 5 pods would never add one. The product is a double as in Go, so 100
            # pods and 10 percent give 111.
            proposed = ceil32(start * (1 + policy.value / 100))
        elif policy.type == "Pods":
            proposed = wrap32(start + policy.value)
        allowances.append((policy, start, proposed))
        if proposed < result if smallest else proposed > result:
            result = proposed
    return result, tuple(allowances)


def _scale_down_rate(
    current: int, rules: ScalingRules, history: History, now: datetime
) -> tuple[int, tuple[Allowance, ...]]:
    if rules.select == "Disabled":
        return current, ()
    smallest = rules.select == "Min"
    # `Max` means the largest change, so the fewest replicas here.
    result = _INT32_MIN if smallest else INT32_MAX
    allowances: list[Allowance] = []
    proposed = 0
    changed = history.scale_ups or history.scale_downs
    for policy in rules.policies:
        start = _replicas_at_start(current, history, policy.period, now) if changed else current
        if policy.type == "Percent":
            # Truncated: the reverse of rounding up, so that small workloads can shrink at all.
            proposed = to_int32(start * (1 - policy.value / 100))
        elif policy.type == "Pods":
            proposed = wrap32(start - policy.value)
        allowances.append((policy, start, proposed))
        if proposed > result if smallest else proposed < result:
            result = proposed
    return result, tuple(allowances)


def _replicas_at_start(current: int, history: History, period: timedelta, now: datetime) -> int:
    """Return the replicas at the start of a period, by undoing the scale events since then."""
    added = change_within(period, history.scale_ups, now)
    removed = change_within(period, history.scale_downs, now)
    # Changes by users are not events. They count as if the replicas had been there at the start of the period.
    return wrap32(current - added + removed)
