"""Pods, their hours and their price, and scaling actions."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import fsum
from operator import mul
from typing import Final

from ocf.simulation.result import Columns, ScalingAction
from ocf.simulation.scenario.objectives import Prices

__all__ = ["FLAP_SECONDS", "resources", "scaling"]

FLAP_SECONDS: Final = 600
"""Seconds after a scaling action in which one in the other direction is a flap."""

_HOUR: Final = 3600


def resources(columns: Columns, lengths: Sequence[float], duration: float, *, prices: Prices) -> Mapping[str, float]:
    """Return the measures of pods and cost.

    Args:
        duration: Length of the run in seconds, more than 0.
    """
    ready = fsum(map(mul, lengths, columns.ready))
    starting = fsum(map(mul, lengths, columns.starting))
    terminating = fsum(map(mul, lengths, columns.terminating))
    pod_hours = fsum((ready, starting, terminating)) / _HOUR
    nodes = fsum(map(mul, lengths, columns.node_price)) / _HOUR
    return {
        "pod_hours": pod_hours,
        "cost": pod_hours * prices.pod_hour + nodes,
        "ready_mean": ready / duration,
        "replicas_max": max(columns.replicas, default=0),
    }


def scaling(actions: Iterable[ScalingAction]) -> Mapping[str, float]:
    """Return the measures of the scaling actions.

    Example:
        >>> up = ScalingAction(time=0, before=2, after=4, reason="cpu above target", rule="Total")
        >>> down = ScalingAction(time=600, before=4, after=3, reason="all metrics below target", rule="Total")
        >>> scaling([up, down])
        {'scaling_actions': 2, 'scale_ups': 1, 'scale_downs': 1, 'flaps': 1}
    """
    signed = [(each.time, each.after > each.before) for each in actions]
    ups = sum(is_up for _, is_up in signed)
    flaps = sum(
        is_up != was_up and time - before <= FLAP_SECONDS for (before, was_up), (time, is_up) in pairwise(signed)
    )
    return {"scaling_actions": len(signed), "scale_ups": ups, "scale_downs": len(signed) - ups, "flaps": flaps}
