"""Rules of the algorithm that can decide the number of replicas.

Each step of the algorithm records the rule it applied, so that a decision can be retraced. If the API has a name for a
rule (the reason of a condition), the rule has that name.
"""

from enum import StrEnum

__all__ = ["Rule"]


class Rule(StrEnum):
    """A rule that can decide the number of replicas."""

    # Before the metrics are read.
    UNREADABLE = "FailedGetScale"
    DISABLED = "ScalingDisabled"
    ABOVE_MAXIMUM = "above the maximum"
    BELOW_MINIMUM = "below the minimum"
    FAILED = "no usable metric"

    # The proposal of one metric.
    WITHIN_TOLERANCE = "within tolerance"
    READY_PODS = "ratio times ready pods"
    FROM_ZERO = "ratio, from zero"
    TOTAL = "total divided by target"
    FILLED_WITHIN_TOLERANCE = "within tolerance after filling in"
    FILLED_TURNED_RATIO = "kept: filling in turned the ratio around"
    FILLED_TURNED_COUNT = "kept: filling in turned the change around"
    FILLED = "ratio times pods, after filling in"

    # Stabilization and limits of the chosen proposal.
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    WITHIN_RANGE = "DesiredWithinRange"
    TOO_FEW = "TooFewReplicas"
    TOO_MANY = "TooManyReplicas"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
