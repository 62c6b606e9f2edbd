"""What the policies of a behavior allow, in words."""

from collections.abc import Iterator
from datetime import datetime

from ocf.autoscaling.algorithm import Limit
from ocf.autoscaling.algorithm.history import window_start
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock, duration
from ocf.autoscaling.explain.stabilization_holds import PolicyAllowance

__all__ = ["policy_lines"]

_SELECTS = {"Max": "the one that allows the largest change counts", "Min": "the one that allows the smallest counts"}


def policy_lines(explanation: Explanation, step: Limit) -> Iterator[str]:
    """Tell what policies allow in the direction of a change, or in both if there is none.

    Args:
        explanation: What it is part of.
        step: What was limited.
    """
    current = explanation.decision.trace.current or 0
    if step.wanted >= current:
        yield from _direction(explanation, up=True)
    if step.wanted <= current:
        yield from _direction(explanation, up=False)


def _direction(explanation: Explanation, *, up: bool) -> Iterator[str]:
    behavior = explanation.decision.snapshot.autoscaler.behavior
    if behavior is None:
        return
    rules, found = (behavior.up, explanation.growing) if up else (behavior.down, explanation.shrinking)
    field, verb = ("scaleUp", "Growing") if up else ("scaleDown", "Shrinking")
    if rules.select == "Disabled":
        yield f"{verb}: behavior.{field}.selectPolicy is Disabled."
        return
    several = f" (of {len(found)} policies, {_SELECTS.get(rules.select, '')})" if len(found) > 1 else ""
    yield f"{verb}{several}:"
    for budget in found:
        changed = _unknown_change(budget, explanation)
        if changed is not None:
            at = clock(changed, explanation.decision.trace.now)
            yield f"  {_policy(budget)}: not known, as the last change, at {at}, is of unknown size."
            continue
        yield f"  {_policy(budget)}: {_state(budget, up=up)}"
        yield from _returning(budget, explanation, up=up)


def _unknown_change(budget: PolicyAllowance, explanation: Explanation) -> datetime | None:
    """Return when the size was changed within the period of a policy, if nobody knows by how much."""
    changed = None if explanation.range is None else explanation.range.changed
    start = window_start(explanation.decision.trace.now, budget.policy.period)
    return changed if changed is not None and changed > start else None


def _policy(budget: PolicyAllowance) -> str:
    policy = budget.policy
    unit = "%" if policy.type == "Percent" else " pods" if policy.value != 1 else " pod"
    return f"{policy.value}{unit} in {duration(policy.period)}"


def _state(budget: PolicyAllowance, *, up: bool) -> str:
    since = [f"{count} {word}" for count, word in ((budget.added, "added"), (budget.removed, "removed")) if count]
    start = f"{budget.start} at the start of it ({' and '.join(since)} since)" if since else f"{budget.start} all along"
    side = "up" if up else "down"
    return f"{start}, so {side} to {max(0, budget.allowed)}; {budget.left} left."


def _returning(budget: PolicyAllowance, explanation: Explanation, *, up: bool) -> Iterator[str]:
    now, side = explanation.decision.trace.now, "up" if up else "down"
    for each in budget.returns:
        yield f"    at {clock(each.at, now)} {side} to {max(0, each.allowed)}"
