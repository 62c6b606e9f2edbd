"""Names for everything that can decide a number of replicas.

A decision that nobody can retrace is a decision nobody trusts, so each step of the algorithm says which of its rules
it took, in one vocabulary. Where the API has a word of its own (the reason of a condition), that word is used.
"""

from enum import StrEnum

__all__ = ["Rule"]


class Rule(StrEnum):
    """A rule of the algorithm that can have the last word."""

    # Before any metric is looked at.
    UNREADABLE = "FailedGetScale"
    DISABLED = "ScalingDisabled"
    ABOVE_MAXIMUM = "above the maximum"
    BELOW_MINIMUM = "below the minimum"
    FAILED = "no usable metric"

    # How one metric came to its proposal.
    WITHIN_TOLERANCE = "within tolerance"
    READY_PODS = "ratio times ready pods"
    FROM_ZERO = "ratio, from zero"
    TOTAL = "total divided by target"
    FILLED_WITHIN_TOLERANCE = "within tolerance after filling in"
    FILLED_TURNED_RATIO = "kept: filling in turned the ratio around"
    FILLED_TURNED_COUNT = "kept: filling in turned the change around"
    FILLED = "ratio times pods, after filling in"

    # What became of the best proposal.
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    WITHIN_RANGE = "DesiredWithinRange"
    TOO_FEW = "TooFewReplicas"
    TOO_MANY = "TooManyReplicas"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
