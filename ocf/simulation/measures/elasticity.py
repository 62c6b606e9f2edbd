"""Elasticity metrics of the SPEC Research Group: accuracy, timeshare, instability, jitter and deviation.

Supply is the number of ready pods; demand is the column of that name. The definitions are those of Herbst et al., Ready
for Rain? A View from SPEC Research on the Future of Cloud Metrics (https://arxiv.org/abs/1604.03470), and of Bauer et
al., Chameleon (https://doi.org/10.1109/TPDS.2018.2870389), as shares instead of percentages.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, pairwise
from math import fsum, prod, sqrt
from typing import Final

from ocf.simulation.result import Columns

__all__ = ["elastic_speedup", "elasticity"]

_HOUR = 3600
_NAMES: Final = (
    "under_provisioning",
    "over_provisioning",
    "under_provisioned_time",
    "over_provisioned_time",
    "instability",
)
_DIGITS: Final = 9


def elasticity(columns: Columns, lengths: Sequence[float], duration: float) -> Mapping[str, float]:
    """Return the elasticity metrics.

    Args:
        duration: Length of the run in seconds, more than 0.

    Example:
        >>> from array import array
        >>> rows = Columns(time=array("d", [0, 60]), demand=array("q", [4, 4]), ready=array("q", [3, 5]))
        >>> found = elasticity(rows, [60, 60], 120)
        >>> found["under_provisioning"], found["over_provisioned_time"]
        (0.125, 0.5)
    """
    # A list for each sum: fsum rounds once, so the result is the same in every order and on every machine.
    missing, missing_share, missing_time = [], [], []
    excess, excess_share, excess_time = [], [], []
    for length, demand, ready in zip(lengths, columns.demand, columns.ready, strict=True):
        if demand > ready:
            pods = length * (demand - ready)
            missing.append(pods)
            missing_share.append(pods / demand)
            missing_time.append(length)
        elif ready > demand:
            pods = length * (ready - demand)
            excess.append(pods)
            excess_share.append(pods / (demand or 1))
            excess_time.append(length)
    ideal = {
        "under_provisioning": fsum(missing_share) / duration,
        "over_provisioning": fsum(excess_share) / duration,
        "under_provisioned_time": fsum(missing_time) / duration,
        "over_provisioned_time": fsum(excess_time) / duration,
    }
    instability, jitter = _movements(columns)
    return {
        **ideal,
        "missing_pods": fsum(missing) / duration,
        "excess_pods": fsum(excess) / duration,
        "instability": instability,
        "jitter": jitter * _HOUR / duration,
        "deviation": sqrt(fsum(each * each for each in (*ideal.values(), instability))),
    }


def _movements(columns: Columns) -> tuple[float, int]:
    """Return the instability, and the changes of the supply minus those of the demand."""
    apart: list[float] = []
    jitter = 0
    first = last = None
    for (time, demand, ready), (until, next_demand, next_ready) in pairwise(_syncs(columns)):
        first, last = time if first is None else first, until
        wanted, given = _sign(next_demand - demand), _sign(next_ready - ready)
        if wanted != given:
            apart.append(until - time)
        jitter += abs(given) - abs(wanted)
    if first is None or last is None:
        return 0.0, 0
    return fsum(apart) / (last - first), jitter


def _syncs(columns: Columns) -> Iterator[tuple[float, int, int]]:
    return compress(zip(columns.time, columns.demand, columns.ready, strict=True), columns.synced)


def _sign(change: int) -> int:
    return (change > 0) - (change < 0)


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
