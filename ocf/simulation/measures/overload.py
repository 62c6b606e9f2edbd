"""Overload, recovery, and load that is dropped."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import fsum
from operator import itemgetter, mul
from typing import Final

from ocf.simulation.result import Columns

__all__ = ["overload"]

# Capacity is a product of floats, so a load that is exactly met may exceed it in the last bit.
_ROUNDING: Final = 1 + 1e-9


def overload(
    columns: Columns, lengths: Sequence[float], duration: float, *, target_utilization: float
) -> Mapping[str, float]:
    """Return the measures of overload, recovery and dropped load.

    Args:
        duration: Length of the run in seconds, more than 0.
        target_utilization: Share of its capacity up to which a pod is not overloaded.
    """
    episodes = _episodes(columns, lengths, target_utilization * _ROUNDING)
    offered = fsum(map(mul, lengths, columns.load))
    dropped = fsum(map(mul, lengths, columns.dropped))
    return {
        "overload_time": fsum(episodes) / duration,
        "overloads": len(episodes),
        "time_to_recover_mean": fsum(episodes) / len(episodes) if episodes else 0.0,
        "time_to_recover_max": max(episodes, default=0.0),
        "dropped": dropped,
        "dropped_share": dropped / offered if offered else 0.0,
        "backlog_max": max(columns.queue, default=0.0),
    }


def _episodes(columns: Columns, lengths: Iterable[float], share: float) -> list[float]:
    """Return the lengths of the uninterrupted overloads in seconds."""
    flags = [
        load > capacity * share or queue > 0
        for load, capacity, queue in zip(columns.load, columns.capacity, columns.queue, strict=True)
    ]
    rows = zip(flags, lengths, strict=True)
    return [fsum(length for _, length in several) for flag, several in groupby(rows, key=itemgetter(0)) if flag]
