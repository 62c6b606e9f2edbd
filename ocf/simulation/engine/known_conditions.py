"""Conditions that full syncs have set, for the syncs that are computed from counts."""

from ocf.autoscaling.algorithm import Decision, Rule
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.autoscaling.algorithm.status_builder import rescale_message, rescale_reason

__all__ = ["KnownConditions", "Limited"]

_ABLE, _ACTIVE, _LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
_RESCALED = "SucceededRescale"

Limited = tuple[Rule, bool]
"""The rule of the limits, and whether it changed the number."""


class KnownConditions:
    """The conditions of an HPA by the outcome that sets them; the same outcome sets the same ones again.

    Example:
        >>> known = KnownConditions()
        >>> known.of(0, None, (Rule.WITHIN_RANGE, False), rescaled_to=None) is None
        True
    """

    __slots__ = ("_able", "_active", "_limited", "_names", "_same")

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._active: dict[int, HpaCondition] = {}
        self._able: dict[Rule | None, HpaCondition] = {}
        self._limited: dict[Limited, HpaCondition] = {}
        self._same: dict[tuple[HpaCondition, ...], tuple[HpaCondition, ...]] = {}

    def learn(self, decision: Decision) -> None:
        """Keep the conditions of a full sync whose metrics decided."""
        trace, conditions = decision.trace, {each.type: each for each in decision.status.conditions}
        found, step, limit = trace.combination, trace.stabilization, trace.limit
        if found is None or found.chosen is None or step is None or limit is None or trace.raised_to_minimum:
            return
        self._names[found.chosen] = found.name
        self._active[found.chosen] = conditions[_ACTIVE]
        self._limited[limit.rule, limit.replicas != limit.wanted] = conditions[_LIMITED]
        # The condition of a rescale has its number in the message, so it is made each time.
        if not decision.rescale:
            self._able[step.rule] = conditions[_ABLE]

    def of(
        self, chosen: int, stabilized: Rule | None, limited: Limited, *, rescaled_to: int | None
    ) -> tuple[HpaCondition, ...] | None:
        """Return the conditions that an outcome sets; None if no full sync has set them yet.

        Args:
            chosen: Position of the metric that decided.
            stabilized: The rule of the stabilization; None if it changed nothing.
            rescaled_to: The new replicas; None if they stay.

        Returns:
            The conditions; the same object for the same conditions, if the replicas stay.
        """
        active, limit, able = self._active.get(chosen), self._limited.get(limited), self._able.get(stabilized)
        if rescaled_to is not None:
            able = HpaCondition(_ABLE, "True", _RESCALED, rescale_message(rescaled_to))
        if active is None or limit is None or able is None:
            return None
        found = (able, active, limit)
        return found if rescaled_to is not None else self._same.setdefault(found, found)

    def reason(self, chosen: int, wanted: int, current: int) -> str:
        """Return the reason of a rescale.

        Args:
            chosen: Position of the metric that decided, which has conditions here.
        """
        return rescale_reason(self._names[chosen], wanted, current)
