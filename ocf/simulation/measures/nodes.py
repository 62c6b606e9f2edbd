"""Nodes, their hours, price and utilization, and pods that wait for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum
from operator import mul
from typing import Final

from ocf.simulation.result import BOOT_FAILED, INTERRUPTED, Columns, GroupColumns, ScalingAction, SimulationResult

__all__ = ["GroupTotals", "group_totals", "nodes"]

_HOUR: Final = 3600
_NO_DRAIN: Final = frozenset({BOOT_FAILED, INTERRUPTED})
_ORDERS: Final = frozenset({"scale_up", "replacement"})


def nodes(
    columns: Columns, lengths: Sequence[float], duration: float, *, actions: Sequence[ScalingAction] = ()
) -> Mapping[str, float]:
    """Return the measures of nodes; none without node groups.

    Args:
        duration: Length of the run in seconds, more than 0.

    Example:
        >>> from array import array
        >>> rows = Columns(
        ...     pending=array("q", [3, 0]),
        ...     nodes_booting=array("q", [1, 0]),
        ...     nodes_ready=array("q", [1, 2]),
        ...     nodes_draining=array("q", [0, 0]),
        ...     node_price=array("d", [0.4, 0.4]),
        ...     node_cpu=array("d", [1.0, 0.75]),
        ...     node_memory=array("d", [0.5, 0.25]),
        ... )
        >>> found = nodes(rows, [60, 3540], 3600)
        >>> found["node_hours"], found["node_cost"], found["pending_pod_seconds"]
        (2.0, 0.4, 180.0)
    """
    if not columns.pending:
        return {}
    numbers = _numbers(columns.nodes_booting, columns.nodes_ready, columns.nodes_draining)
    return {
        "node_hours": fsum(map(mul, lengths, numbers)) / _HOUR,
        "node_cost": fsum(map(mul, lengths, columns.node_price)) / _HOUR,
        "nodes_max": max(numbers),
        "pending_pod_seconds": fsum(map(mul, lengths, columns.pending)),
        "pending_time": fsum(length for length, pods in zip(lengths, columns.pending, strict=True) if pods) / duration,
        "node_cpu_utilization": _mean(columns.node_cpu, lengths),
        "node_memory_utilization": _mean(columns.node_memory, lengths),
        "nodes_added": _added(actions),
        "nodes_removed": _removed(actions),
        "node_interruptions": _interruptions(actions),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTotals:
    """Totals of a node group.

    Args:
        group: Its name.
        node_hours: Hours of its nodes from the order until they are gone.
        cost: Node-hours times the price of the instance type.
        most: Highest number of its nodes.
        added: Number of nodes that are ordered.
        removed: Number of nodes that the controller begins to drain.
        interruptions: Number of nodes that the provider takes away.
    """

    group: str
    node_hours: float
    cost: float
    most: int
    added: int
    removed: int
    interruptions: int


def group_totals(result: SimulationResult) -> tuple[GroupTotals, ...]:
    """Return the totals of each node group of a run.

    Args:
        result: The run.
    """
    lengths = [after - before for before, after in pairwise((*result.columns.time, result.duration))]
    return tuple(_totals(name, columns, lengths, result.node_actions) for name, columns in result.node_groups.items())


def _totals(
    name: str, columns: GroupColumns, lengths: Sequence[float], actions: Sequence[ScalingAction]
) -> GroupTotals:
    numbers = _numbers(columns.booting, columns.ready, columns.draining)
    mine = [each for each in actions if each.source == name]
    return GroupTotals(
        group=name,
        node_hours=fsum(map(mul, lengths, numbers)) / _HOUR,
        cost=fsum(map(mul, lengths, columns.price)) / _HOUR,
        most=max(numbers, default=0),
        added=_added(mine),
        removed=_removed(mine),
        interruptions=_interruptions(mine),
    )


def _added(actions: Sequence[ScalingAction]) -> int:
    return sum(each.after - each.before for each in actions if each.rule in _ORDERS)


def _removed(actions: Sequence[ScalingAction]) -> int:
    return sum(max(0, each.before - each.after) for each in actions if each.rule not in _NO_DRAIN)


def _interruptions(actions: Sequence[ScalingAction]) -> int:
    return sum(each.rule == INTERRUPTED for each in actions)


def _numbers(*states: Sequence[int]) -> list[int]:
    return [sum(row) for row in zip(*states, strict=True)]


def _mean(shares: Sequence[float], lengths: Sequence[float]) -> float:
    """Return the mean over the time in which there are nodes; 0 if there never are."""
    known = [(length, share) for length, share in zip(lengths, shares, strict=True) if share == share]  # noqa: PLR0124
    total = fsum(length for length, _ in known)
    return fsum(length * share for length, share in known) / total if total else 0.0
