"""Recommendations that hold the replicas, allowances of scaling policies, and when either ends."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Decision,
    History,
    Recommendation,
    ScaleEvent,
    ScalingPolicy,
    Settings,
    apply_behavior_limits,
    downscale_window,
    normalize,
)

__all__ = ["Hold", "HoldRelease", "LaterAllowance", "PolicyAllowance", "first_release", "hold_of", "policy_allowances"]

_MOST: Final = 2**31 - 1
# Without a `behavior`, an entry exactly as old as the window still counts.
_JUST: Final = timedelta(microseconds=1)


class Hold(NamedTuple):
    """A past recommendation that holds the number of replicas.

    Args:
        recommendation: The recommendation that counts; of several equal ones the youngest, as its hold ends last.
        until: When the hold ends.
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
        policy: The policy.
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


class HoldRelease(NamedTuple):
    """The first change of the result by time alone, with unchanged measurements.

    Args:
        at: When the result changes.
        replicas: The result from then on.
    """

    at: datetime
    replicas: int


def hold_of(decision: Decision, settings: Settings) -> Hold | None:
    """Return the recommendation that keeps a decision from the replicas that its metrics want.

    Args:
        decision: The decision.
        settings: The settings that it was made with.

    Returns:
        The recommendation and the end of the hold; None without a hold.
    """
    step, now, known = decision.trace.stabilization, decision.trace.now, decision.history.recommendations or ()
    if step is None or step.rule is None:
        return None
    autoscaler = decision.snapshot.autoscaler
    down, up = _windows(autoscaler, settings)
    scaling_up = step.replicas < step.wanted
    window, held_by = (up, step.lowest) if scaling_up else (down, step.highest)
    # The entry of this sync is among them, but it has another number.
    counted = [each for each in known if each.replicas == held_by and now <= _expiry(each.at, window, autoscaler)]
    if not counted:
        return None
    holder = max(counted, key=lambda each: each.at)
    return Hold(holder, _expiry(holder.at, window, autoscaler))


def policy_allowances(
    autoscaler: Autoscaler, current: int, history: History, *, up: bool, now: datetime
) -> tuple[PolicyAllowance, ...]:
    """Return what each policy of a direction allows.

    Args:
        autoscaler: The autoscaler.
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


def first_release(decision: Decision, history: History, settings: Settings) -> HoldRelease | None:
    """Return when the result changes by time alone, with unchanged measurements.

    Args:
        decision: The decision.
        history: The history that it was made with.
        settings: The settings that it was made with.

    Returns:
        The first change; None if time alone changes nothing, or if the metrics were not evaluated.
    """
    trace, autoscaler = decision.trace, decision.snapshot.autoscaler
    step, current = trace.stabilization, trace.current
    if step is None or current is None:
        return None
    history = history.with_first_recommendation(current, trace.now)

    def result(at: datetime) -> int:
        return normalize(autoscaler, current, step.wanted, history, settings=settings, now=at)[1].replicas

    now = result(trace.now)
    for at in sorted({each for each in _expiries(autoscaler, history, settings) if each > trace.now}):
        then = result(at)
        if then != now:
            return HoldRelease(at, then)
    return None


def _expiries(autoscaler: Autoscaler, history: History, settings: Settings) -> Iterator[datetime]:
    for entry in history.recommendations or ():
        for window in _windows(autoscaler, settings):
            yield _expiry(entry.at, window, autoscaler)
    behavior = autoscaler.behavior
    for policy in () if behavior is None else (*behavior.up.policies, *behavior.down.policies):
        for event in (*history.scale_ups, *history.scale_downs):
            yield _end(event.at, policy.period)


def _windows(autoscaler: Autoscaler, settings: Settings) -> tuple[timedelta, timedelta]:
    behavior = autoscaler.behavior
    up = timedelta() if behavior is None or behavior.up.window is None else behavior.up.window
    return downscale_window(autoscaler, settings), up


def _expiry(at: datetime, window: timedelta, autoscaler: Autoscaler) -> datetime:
    """Return the first instant at which an entry no longer counts."""
    end = _end(at, window)
    return _end(end, _JUST) if autoscaler.behavior is None else end


def _end(at: datetime, by: timedelta) -> datetime:
    try:
        return at + by
    except OverflowError:
        return datetime.max.replace(tzinfo=at.tzinfo)


def _within(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> int:
    return sum(each.change for each in events if _end(each.at, period) > now)


def _ends(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> list[datetime]:
    return sorted({end for each in events if (end := _end(each.at, period)) > now})
