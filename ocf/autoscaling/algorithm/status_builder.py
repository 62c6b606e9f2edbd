"""Conditions and events of a sync.

Reasons and messages are an interface: users alert on reasons and search for messages, so both are exactly those of the
controller. Conditions keep the order in which they first appeared; the transition time of a condition changes only with
its status.
"""

from datetime import datetime
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.objects.conditions import transition_time

__all__ = ["MESSAGES", "HpaEvent", "StatusBuilder", "rescale_message", "rescale_reason"]

MESSAGES: Final = {
    Rule.SCALE_UP_STABILIZED: (
        "recent recommendations were lower than current one, applying the lowest recent recommendation"
    ),
    Rule.SCALE_DOWN_STABILIZED: (
        "recent recommendations were higher than current one, applying the highest recent recommendation"
    ),
    Rule.WITHIN_RANGE: "the desired count is within the acceptable range",
    Rule.TOO_FEW: "the desired replica count is less than the minimum replica count",
    Rule.TOO_MANY: "the desired replica count is more than the maximum replica count",
    Rule.SCALE_UP_LIMIT: "the desired replica count is increasing faster than the maximum scale rate",
    Rule.SCALE_DOWN_LIMIT: "the desired replica count is decreasing faster than the maximum scale rate",
    Rule.DISABLED: "scaling is disabled since the replica count of the target is zero",
    Rule.ABOVE_MAXIMUM: "Current number of replicas above Spec.MaxReplicas",
    Rule.BELOW_MINIMUM: "Current number of replicas below Spec.MinReplicas",
}
"""The message of a condition, or the reason of a rescale, by rule."""


class HpaEvent(NamedTuple):
    """An event about the HPA; its source is the component `horizontal-pod-autoscaler`.

    Args:
        type: `Normal` or `Warning`.
        reason: The reason, one word.
        message: The message, a sentence.
    """

    type: str
    reason: str
    message: str


class StatusBuilder:
    """Collects the conditions and events of a sync.

    Example:
        >>> builder = StatusBuilder((), datetime(2026, 1, 31))
        >>> builder.set("AbleToScale", "True", "SucceededGetScale", "found")
        >>> builder.set("AbleToScale", "True", "ReadyForNewScale", "ready")
        >>> [condition.reason for condition in builder.conditions]
        ['ReadyForNewScale']
    """

    __slots__ = ("_conditions", "_to_apply", "events", "now")

    def __init__(self, conditions: tuple[HpaCondition, ...], now: datetime) -> None:
        self._conditions = {condition.type: condition for condition in conditions}
        # A sync sets `AbleToScale` twice and mostly ends with what was read, so conditions are created on demand.
        self._to_apply: dict[str, tuple[str, str, str]] = {}
        self.events: list[HpaEvent] = []
        self.now = now

    @property
    def conditions(self) -> tuple[HpaCondition, ...]:
        """The current conditions."""
        self._apply()
        return tuple(self._conditions.values())

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        """Set a condition: update it in place, or append it.

        Args:
            status: `True` or `False`.
        """
        earlier = self._to_apply.get(kind)
        if earlier is not None:
            before, _, _ = earlier
            if before != status:
                self._apply()  # a status that was set for a moment moves the transition time as well
        self._to_apply[kind] = (status, reason, message)

    def remove(self, kind: str) -> None:
        """Remove a condition if it exists."""
        self._apply()
        self._conditions.pop(kind, None)

    def warn(self, reason: str, message: str) -> None:
        """Add an event of type Warning."""
        self.events.append(HpaEvent("Warning", reason, message))

    def _apply(self) -> None:
        known = self._conditions
        for kind, (status, reason, message) in self._to_apply.items():
            stored = known.get(kind)
            since: datetime | None = self.now
            if stored is not None:
                if stored.status == status and stored.message == message and stored.reason == reason:
                    continue
                since = transition_time(status, self.now, stored=(stored.status, stored.since))
            # A rule is its own reason, and a manifest has plain strings.
            known[kind] = HpaCondition(kind, status, str(reason), message, since)
        self._to_apply.clear()


def rescale_message(desired: int) -> str:
    """Return the message of the condition `AbleToScale` after a rescale."""
    return f"the HPA controller was able to update the target scale to {desired}"


def rescale_reason(metric: str, wanted: int, current: int) -> str:
    """Return the reason of a rescale that metrics decide, as its event has it; empty if they do not ask for one.

    Args:
        wanted: The proposal of the metrics, not negative.

    Example:
        >>> rescale_reason("pods metric rps", 5, 3)
        'pods metric rps above target'
    """
    if wanted == current:
        return ""
    return f"{metric} above target" if wanted > current else "All metrics below target"
