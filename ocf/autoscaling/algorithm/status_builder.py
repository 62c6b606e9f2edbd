"""What the controller says about a round: the conditions of the status, and events.

The words are an interface: people alert on reasons and search for messages, so they are the controller's to the
letter. The order of conditions is the order in which they first appeared, and the time of one moves only when its
status does.
"""

from datetime import datetime
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.objects.conditions import transition_time

__all__ = ["MESSAGES", "HpaEvent", "StatusBuilder"]

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
"""The message of a condition, or the reason of a change, by the rule that is behind it."""


class HpaEvent(NamedTuple):
    """An event about the HPA; its source is the component `horizontal-pod-autoscaler`.

    Args:
        type: `Normal` or `Warning`.
        reason: One word.
        message: A sentence.
    """

    type: str
    reason: str
    message: str


class StatusBuilder:
    """Collects conditions and events while a round is under way.

    Args:
        conditions: The conditions as they were read.
        now: The instant of the round.

    Example:
        >>> board = StatusBuilder((), datetime(2026, 1, 31))
        >>> board.set("AbleToScale", "True", "SucceededGetScale", "found")
        >>> board.set("AbleToScale", "True", "ReadyForNewScale", "ready")
        >>> [condition.reason for condition in board.conditions]
        ['ReadyForNewScale']
    """

    __slots__ = ("_conditions", "events", "now")

    def __init__(self, conditions: tuple[HpaCondition, ...], now: datetime) -> None:
        self._conditions = {condition.type: condition for condition in conditions}
        self.events: list[HpaEvent] = []
        self.now = now

    @property
    def conditions(self) -> tuple[HpaCondition, ...]:
        """The conditions as they are by now."""
        return tuple(self._conditions.values())

    def set(self, kind: str, status: str, reason: str, message: str) -> None:
        """Change a condition in its place, or add it at the end.

        Args:
            kind: Its type.
            status: `True` or `False`.
            reason: One word.
            message: A sentence.
        """
        known = self._conditions.get(kind)
        since = transition_time(status, self.now, stored=None if known is None else (known.status, known.since))
        self._conditions[kind] = HpaCondition(kind, status, reason, message, since)

    def remove(self, kind: str) -> None:
        """Remove a condition, if it is there.

        Args:
            kind: Its type.
        """
        self._conditions.pop(kind, None)

    def warn(self, reason: str, message: str) -> None:
        """Add an event of type Warning.

        Args:
            reason: One word.
            message: A sentence.
        """
        self.events.append(HpaEvent("Warning", reason, message))
