"""Elastic speedup: how much better a run is than another one."""

from collections.abc import Mapping
from math import fsum, prod
from typing import Final

__all__ = ["elastic_speedup"]

_NAMES: Final = (
    "under_provisioning",
    "over_provisioning",
    "under_provisioned_time",
    "over_provisioned_time",
    "instability",
)
_DIGITS: Final = 9


def elastic_speedup(
    baseline: Mapping[str, float], candidate: Mapping[str, float], weights: Mapping[str, float] | None = None
) -> float | None:
    """Return the weighted geometric mean of baseline over candidate; more than 1 if the candidate is better.

    Args:
        baseline: Measures of the baseline.
        candidate: Measures of the candidate.
        weights: Weights by name of the measure, which add up to more than 0; None: accuracies, timeshares and
            instability, all alike.

    Returns:
        The speedup; None if it is not defined because a measure is 0 in one of the two runs only.

    Example:
        >>> elastic_speedup({"instability": 0.4}, {"instability": 0.1}, weights={"instability": 1})
        4.0
    """
    chosen = dict.fromkeys(_NAMES, 1.0) if weights is None else weights
    total = fsum(chosen.values())
    factors = []
    for name, weight in chosen.items():
        before, after = baseline[name], candidate[name]
        if before == after:
            continue
        if before == 0 or after == 0:
            return None
        factors.append((before / after) ** (weight / total))
    return float(f"{prod(factors):.{_DIGITS}g}")
