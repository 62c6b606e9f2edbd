"""How far a workload may move at once: the bounds of the HPA, and the rate of change.

Without a `behavior` there is one limit, and it is for a round, not for a time: whoever asks twice as often grows twice
as fast. With one, policies limit the change within periods, counted from the size at the start of the period.
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
"""What one policy allows: the policy, the size at the start of its period, and the size that may be reached."""


class Limit(NamedTuple):
    """What was made of a number by the limits.

    Args:
        replicas: The number after them.
        rule: Which limit changed it, or that none did.
        wanted: The number before.
        bound: The most that could be reached, or the least when shrinking; None if there was nothing to change.
        rate: The same by the rate of change alone.
        allowances: What each policy allowed.
    """

    replicas: int
    rule: Rule
    wanted: int
    bound: int | None = None
    rate: int | None = None
    allowances: tuple[Allowance, ...] = ()


def apply_limits(current: int, wanted: int, *, minimum: int, maximum: int, settings: Settings) -> Limit:
    """Limit a number where the HPA has no `behavior`.

    Args:
        current: What the workload should have now.
        wanted: What it should have next.
        minimum: The fewest replicas.
        maximum: The most replicas.
        settings: The controller's settings; with the limit of growth.

    Example:
        >>> apply_limits(3, 100, minimum=1, maximum=50, settings=Settings()).replicas
        6
    """
    rate = to_int32(max(settings.scale_up_limit_factor * float(current), settings.scale_up_limit_minimum))
    cap, rule = (rate, Rule.SCALE_UP_LIMIT) if maximum > rate else (maximum, Rule.TOO_MANY)
    if wanted < minimum:
        return Limit(minimum, Rule.TOO_FEW, wanted, minimum)
    if wanted > cap:
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
    """Limit a number where the HPA has a `behavior`.

    Args:
        current: What the workload should have now.
        wanted: What it should have next, after stabilization.
        minimum: The fewest replicas; it holds only for a number that makes the workload smaller.
        maximum: The most replicas; it holds only for a number that makes the workload larger.
        behavior: The rules of both directions.
        history: The changes made before.
        now: The instant of the round.
    """
    if wanted > current:
        rate, allowances = _scale_up_rate(current, behavior.up, history, now)
        rate = max(rate, current)
        bound, rule = (rate, Rule.SCALE_UP_LIMIT) if maximum > rate else (maximum, Rule.TOO_MANY)
        exceeded = wanted > bound
    elif wanted < current:
        rate, allowances = _scale_down_rate(current, behavior.down, history, now)
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
    result = _INT32_MIN if smallest else INT32_MAX
    allowances: list[Allowance] = []
    proposed = 0
    changed = history.scale_ups or history.scale_downs
    for policy in rules.policies:
        start = _replicas_at_start(current, history, policy.period, now) if changed else current
        if policy.type == "Percent":
            proposed = to_int32(start * (1 - policy.value / 100))
        elif policy.type == "Pods":
            proposed = wrap32(start - policy.value)
        allowances.append((policy, start, proposed))
        if proposed > result if smallest else proposed < result:
            result = proposed
    return result, tuple(allowances)


def _replicas_at_start(current: int, history: History, period: timedelta, now: datetime) -> int:
    """Return the size at the start of a period: what was added since then is taken off, what was removed put back."""
    added, removed = (change_within(period, events, now) for events in (history.scale_ups, history.scale_downs))
    return wrap32(current - added + removed)
