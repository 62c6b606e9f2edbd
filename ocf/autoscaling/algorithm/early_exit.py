"""Early exits: the rules that end a sync before its metrics are read.

They depend on the HPA and its scale only. So a caller can apply them first, and query the metrics APIs only if the
controller would.
"""

from collections.abc import Iterable

from ocf.autoscaling.algorithm.hpa_spec import Autoscaler
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Scale, Unavailable
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.schema.kubernetes import FeatureGates

__all__ = ["early_exit_rule", "rule_for_scale", "was_scaled_to_zero_by_us"]


def early_exit_rule(
    autoscaler: Autoscaler, scale: Scale | Unavailable, conditions: Iterable[HpaCondition], settings: Settings
) -> Rule | None:
    """Return the rule that ends a sync before its metrics are read.

    Args:
        scale: The scale of its target, or why it could not be read.
        conditions: The conditions of the HPA's status as it was read.
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
    return rule_for_scale(autoscaler, scale, conditions, settings)


def rule_for_scale(
    autoscaler: Autoscaler, scale: Scale, conditions: Iterable[HpaCondition], settings: Settings
) -> Rule | None:
    """Return the rule that ends a sync before its metrics are read, for a scale that was read.

    Args:
        autoscaler: The autoscaler; its API version is valid.
    """
    # Zero is tested first: below the minimum otherwise, it would be scaled up although a user has switched it off.
    if scale.replicas == 0:
        return None if _may_scale_from_zero(autoscaler, conditions, settings.features) else Rule.DISABLED
    if scale.replicas > autoscaler.maximum:
        return Rule.ABOVE_MAXIMUM
    return Rule.BELOW_MINIMUM if scale.replicas < autoscaler.minimum else None


def was_scaled_to_zero_by_us(conditions: Iterable[HpaCondition], features: FeatureGates) -> bool:
    """Return whether the controller, and not a user, scaled the workload to zero; recorded from Kubernetes 1.36."""
    recorded = any(each.status == "True" for each in conditions if each.type == "ScaledToZero")
    return features.remembered_zero and features.scale_to_zero and recorded


def _may_scale_from_zero(autoscaler: Autoscaler, conditions: Iterable[HpaCondition], features: FeatureGates) -> bool:
    # Until 1.35 nothing records who scaled to zero, so `minReplicas: 0` alone decides, and a user's zero does not last.
    if not features.remembered_zero:
        return autoscaler.minimum == 0
    # With a minimum that was raised since, the workload comes back even without a metric that works without pods: the
    # minimum itself is the reason (horizontal.go, shouldComputeMetricsForZeroReplicas).
    return was_scaled_to_zero_by_us(conditions, features) and (autoscaler.minimum != 0 or autoscaler.has_podless_metric)
