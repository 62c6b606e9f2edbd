"""What holds a size, how much budget policies have left, and when either lets go."""

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

__all__ = ["Hold", "PolicyAllowance", "Release", "Return", "first_release", "hold_of", "policy_allowances"]

_MOST: Final = 2**31 - 1
# Without a `behavior`, an entry exactly as old as the window still counts.
_JUST: Final = timedelta(microseconds=1)


class Hold(NamedTuple):
    """A recommendation of the past that holds the size.

    Args:
        recommendation: The one that counts; of several equal ones the youngest, as it lets go last.
        until: When it lets go.
    """

    recommendation: Recommendation
    until: datetime


class Return(NamedTuple):
    """A change that falls out of the period of a policy.

    Args:
        at: When.
        allowed: The size that the policy allows from then on, if nothing changes until then.
    """

    at: datetime
    allowed: int


class PolicyAllowance(NamedTuple):
    """How far one policy lets a workload go.

    Args:
        policy: The policy.
        start: The size at the start of the period.
        added: What was added within the period.
        removed: What was removed within it.
        allowed: The size that it allows now.
        left: How many replicas that is from here.
        returns: What it allows later, oldest change first.
    """

    policy: ScalingPolicy
    start: int
    added: int
    removed: int
    allowed: int
    left: int
    returns: tuple[Return, ...]


class Release(NamedTuple):
    """The first change to come if everything measured stays as it is.

    Args:
        at: From when on.
        replicas: What results then.
    """

    at: datetime
    replicas: int


def hold_of(decision: Decision, settings: Settings) -> Hold | None:
    """Find the recommendation that keeps a decision from what its metrics want.

    Args:
        decision: The decision.
        settings: The settings that it was made with.

    Returns:
        The one that holds, and when it lets go; None if none does.
    """
    step, now, known = decision.trace.stabilization, decision.trace.now, decision.history.recommendations or ()
    if step is None or step.rule is None:
        return None
    autoscaler = decision.snapshot.autoscaler
    down, up = _windows(autoscaler, settings)
    growing = step.replicas < step.wanted
    window, held_by = (up, step.lowest) if growing else (down, step.highest)
    # The round's own entry is among them; it wants something else.
    counted = [each for each in known if each.replicas == held_by and now <= _leaving(each.at, window, autoscaler)]
    if not counted:
        return None
    holder = max(counted, key=lambda each: each.at)
    return Hold(holder, _leaving(holder.at, window, autoscaler))


def policy_allowances(
    autoscaler: Autoscaler, current: int, history: History, *, up: bool, now: datetime
) -> tuple[PolicyAllowance, ...]:
    """Tell what each policy of a direction allows.

    Args:
        autoscaler: The autoscaler.
        current: What the workload should have now.
        history: The changes made before.
        up: Whether it is about growing.
        now: The instant.

    Returns:
        One per policy; none without a `behavior`, or where the direction is disabled.
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

    def returns(position: int, policy: ScalingPolicy) -> Iterator[Return]:
        for at in _ends((*history.scale_ups, *history.scale_downs), policy.period, now):
            yield Return(at, allowances(at)[position][2])

    found = []
    for position, (policy, start, allowed) in enumerate(allowances(now) if rules.policies else ()):
        added, removed = (_within(events, policy.period, now) for events in (history.scale_ups, history.scale_downs))
        left = max(0, allowed - current if up else current - max(0, allowed))
        found.append(PolicyAllowance(policy, start, added, removed, allowed, left, tuple(returns(position, policy))))
    return tuple(found)


def first_release(decision: Decision, history: History, settings: Settings) -> Release | None:
    """Find out when something else results, if nothing that is measured changes.

    Args:
        decision: The decision.
        history: What was remembered when it was made.
        settings: The settings that it was made with.

    Returns:
        The first instant with another result; None if time alone changes nothing, or the metrics had no say.
    """
    trace, autoscaler = decision.trace, decision.snapshot.autoscaler
    step, current = trace.stabilization, trace.current
    if step is None or current is None:
        return None
    history = history.with_first_recommendation(current, trace.now)

    def result(at: datetime) -> int:
        return normalize(autoscaler, current, step.wanted, history, settings=settings, now=at)[1].replicas

    now = result(trace.now)
    for at in sorted({each for each in _turning_points(autoscaler, history, settings) if each > trace.now}):
        then = result(at)
        if then != now:
            return Release(at, then)
    return None


def _turning_points(autoscaler: Autoscaler, history: History, settings: Settings) -> Iterator[datetime]:
    for entry in history.recommendations or ():
        for window in _windows(autoscaler, settings):
            yield _leaving(entry.at, window, autoscaler)
    behavior = autoscaler.behavior
    for policy in () if behavior is None else (*behavior.up.policies, *behavior.down.policies):
        for event in (*history.scale_ups, *history.scale_downs):
            yield _later(event.at, policy.period)


def _windows(autoscaler: Autoscaler, settings: Settings) -> tuple[timedelta, timedelta]:
    behavior = autoscaler.behavior
    up = timedelta() if behavior is None or behavior.up.window is None else behavior.up.window
    return downscale_window(autoscaler, settings), up


def _leaving(at: datetime, window: timedelta, autoscaler: Autoscaler) -> datetime:
    """Return the first instant at which an entry no longer counts."""
    end = _later(at, window)
    return _later(end, _JUST) if autoscaler.behavior is None else end


def _later(at: datetime, by: timedelta) -> datetime:
    try:
        return at + by
    except OverflowError:
        return datetime.max.replace(tzinfo=at.tzinfo)


def _within(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> int:
    return sum(each.change for each in events if _later(each.at, period) > now)


def _ends(events: Iterable[ScaleEvent], period: timedelta, now: datetime) -> list[datetime]:
    return sorted({end for each in events if (end := _later(each.at, period)) > now})
