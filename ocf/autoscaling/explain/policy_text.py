"""Text of the scaling policies of a behavior."""

from collections.abc import Iterator
from datetime import datetime

from ocf.autoscaling.algorithm import Limit
from ocf.autoscaling.algorithm.history import window_start
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock, policy_text
from ocf.autoscaling.explain.stabilization_holds import PolicyAllowance

__all__ = ["policy_lines"]

_SELECTS = {"Max": "the largest change counts", "Min": "the smallest change counts"}


def policy_lines(explanation: Explanation, step: Limit) -> Iterator[str]:
    """Render what the policies allow in the direction of a change, or in both directions without a change."""
    current = explanation.decision.trace.current or 0
    # The algorithm asks the policies of the direction of the change only; without a change, a reader may want either.
    if step.wanted >= current:
        yield from _direction(explanation, up=True)
    if step.wanted <= current:
        yield from _direction(explanation, up=False)


def _direction(explanation: Explanation, *, up: bool) -> Iterator[str]:
    behavior = explanation.decision.snapshot.autoscaler.behavior
    if behavior is None:
        return
    rules, found = (
        (behavior.up, explanation.scale_up_allowances) if up else (behavior.down, explanation.scale_down_allowances)
    )
    field, title = ("scaleUp", "Scale up") if up else ("scaleDown", "Scale down")
    if rules.select == "Disabled":
        yield f"{title}: behavior.{field}.selectPolicy is Disabled."
        return
    several = f" (of {len(found)} policies, {_SELECTS.get(rules.select, '')})" if len(found) > 1 else ""
    yield f"{title}{several}:"
    for allowance in found:
        changed = _unknown_change(allowance, explanation)
        if changed is not None:
            at = clock(changed, explanation.decision.trace.now)
            yield f"  {policy_text(allowance.policy)}: not known: the size of the last change, at {at}, is not known."
            continue
        yield f"  {policy_text(allowance.policy)}: {_state(allowance, up=up)}"
        yield from _later(allowance, explanation, up=up)


def _unknown_change(allowance: PolicyAllowance, explanation: Explanation) -> datetime | None:
    """Return when the replicas were last changed by an unknown amount, if within the period of a policy."""
    changed = None if explanation.range is None else explanation.range.changed
    start = window_start(explanation.decision.trace.now, allowance.policy.period)
    return changed if changed is not None and changed > start else None


def _state(allowance: PolicyAllowance, *, up: bool) -> str:
    since = [f"{count} {word}" for count, word in ((allowance.added, "added"), (allowance.removed, "removed")) if count]
    start = (
        f"{allowance.start} at its start ({' and '.join(since)} since)"
        if since
        else f"no change from {allowance.start}"
    )
    side = "up" if up else "down"
    return f"{start}, so {side} to {max(0, allowance.allowed)}; {allowance.remaining} left."


def _later(allowance: PolicyAllowance, explanation: Explanation, *, up: bool) -> Iterator[str]:
    now, side = explanation.decision.trace.now, "up" if up else "down"
    for each in allowance.later:
        yield f"    at {clock(each.at, now)} {side} to {max(0, each.allowed)}"
