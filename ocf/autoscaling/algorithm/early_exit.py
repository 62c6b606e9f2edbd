"""The rounds that end before any metric is looked at.

They are told apart before anything is measured, so that whoever gathers what a round sees asks for metrics only where
the controller would.
"""

from collections.abc import Iterable

from ocf.autoscaling.algorithm.hpa_spec import Autoscaler
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Scale, Unavailable
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.schema.kubernetes import FeatureGates

__all__ = ["early_exit_rule", "was_scaled_to_zero_by_us"]


def early_exit_rule(
    autoscaler: Autoscaler, scale: Scale | Unavailable, conditions: Iterable[HpaCondition], settings: Settings
) -> Rule | None:
    """Tell which rule ends a round before its metrics matter.

    Args:
        autoscaler: What is asked for.
        scale: The scale of its target, or why there is none.
        conditions: The conditions of the HPA's status, as it was read.
        settings: The controller's settings.

    Returns:
        The rule; None if the metrics decide.

    Example:
        >>> web = Autoscaler(name="web", maximum=9)
        >>> early_exit_rule(web, Scale(11, 11, "app=web"), (), Settings()).value
        'above the maximum'
        >>> early_exit_rule(web, Scale(3, 3, "app=web"), (), Settings()) is None
        True
    """
    if isinstance(scale, Unavailable) or autoscaler.api_version.count("/") > 1:
        return Rule.UNREADABLE
    if scale.replicas == 0:
        return None if _may_leave_zero(autoscaler, conditions, settings.features) else Rule.DISABLED
    if scale.replicas > autoscaler.maximum:
        return Rule.ABOVE_MAXIMUM
    return Rule.BELOW_MINIMUM if scale.replicas < autoscaler.minimum else None


def was_scaled_to_zero_by_us(conditions: Iterable[HpaCondition], features: FeatureGates) -> bool:
    """Tell whether the controller, and not a person, took the workload to zero; only 1.36 and newer know.

    Args:
        conditions: The conditions of the HPA's status.
        features: The controller's feature gates.
    """
    told = (each.status == "True" for each in conditions if each.type == "ScaledToZero")
    return features.remembered_zero and features.scale_to_zero and any(told)


def _may_leave_zero(autoscaler: Autoscaler, conditions: Iterable[HpaCondition], features: FeatureGates) -> bool:
    if not features.remembered_zero:
        return autoscaler.minimum == 0
    return was_scaled_to_zero_by_us(conditions, features) and (autoscaler.minimum != 0 or autoscaler.has_podless_metric)
