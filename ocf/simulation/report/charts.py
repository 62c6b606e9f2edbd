"""The charts of a report: titles, lines, marks and bands."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ocf.simulation.report.bands import Band, bands
from ocf.simulation.report.reported import Reported
from ocf.simulation.result import SimulationResult

__all__ = ["Chart", "Mark", "Series", "charts_of"]

_STYLES: Final = 6
_IF_ANY: Final = frozenset({"queue", "nodes_ready", "pending"})
"""Columns that are compared only where a run has values of them."""


@dataclass(frozen=True, slots=True)
class Series:
    """A line.

    Args:
        run: Number of the run.
        key: Name of the column.
    """

    run: int
    key: str
    name: str
    style: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A horizontal line at a value."""

    value: float
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart.

    Args:
        bands: Conditions; a chart has either lines or conditions.
    """

    title: str
    description: str
    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    bands: tuple[Band, ...] = ()
    whole: bool = False


_LOAD: Final = (
    "Load and capacity, load units per second",
    (("load", "load"), ("capacity", "capacity"), ("dropped", "dropped")),
)
_REPLICAS: Final = (
    ("replicas", "replicas"),
    ("wanted", "wanted by the metrics"),
    ("stabilized", "stabilized"),
    ("desired", "desired"),
    ("demand", "demand"),
)
_NODES: Final = (("nodes_ready", "ready"), ("nodes_booting", "booting"), ("nodes_draining", "draining"))
_PODS: Final = (("ready", "ready"), ("starting", "starting"), ("terminating", "terminating"))


def charts_of(runs: Sequence[Reported]) -> tuple[Chart, ...]:
    """Return the charts of runs.

    Args:
        runs: One run, or several to compare; these share charts, with a line each.
    """
    return tuple(_single(runs[0].result) if len(runs) == 1 else _compared(runs))


def _single(result: SimulationResult) -> Iterator[Chart]:
    columns = result.columns
    title, keys = _LOAD
    present = [(key, name) for key, name in keys if key != "dropped" or any(columns.dropped)]
    yield Chart(
        title=title,
        description="Offered load, and what the ready pods can serve; pods that warm up count in part.",
        series=_lines(present),
    )
    lowest, highest = result.bounds
    yield Chart(
        title="Replicas",
        description="Replicas of the scale, the steps of each decision that lead to them, and the demand.",
        series=_lines(_REPLICAS),
        marks=(Mark(lowest, f"minReplicas {lowest}"), Mark(highest, f"maxReplicas {highest}")),
        whole=True,
    )
    yield Chart(title="Pods", description="Pods by state.", series=_lines(_PODS), whole=True)
    yield from _of_nodes(result)
    yield Chart(
        title="Utilization of the target",
        description="Current value over target value of the metric that decided; 1 is on target.",
        series=_lines([("utilization", "value / target")]),
        marks=(Mark(1.0, "on target"),),
    )
    if any(columns.queue):
        yield Chart(
            title="Queue, load units", description="Load units that wait.", series=_lines([("queue", "waiting")])
        )
    if result.condition_changes:
        yield Chart(
            title="Conditions",
            description="Conditions of the autoscaler.",
            bands=tuple(bands(result.condition_changes, result.duration)),
        )


def _of_nodes(result: SimulationResult) -> Iterator[Chart]:
    """Yield the charts of nodes; none without node groups."""
    groups = result.node_groups
    if not groups:
        return
    lines = [*_NODES, *((f"nodes_ready.{name}", f"ready: {name}") for name in groups if len(groups) > 1)]
    yield Chart(title="Nodes", description="Nodes of all groups by state.", series=_lines(lines), whole=True)
    yield Chart(
        title="Pods that wait for a node",
        description="Pods for which no node has room.",
        series=_lines([("pending", "waiting")]),
        whole=True,
    )
    yield Chart(
        title="Requests of the nodes",
        description="What pods on nodes request, as a share of what the nodes that are up have.",
        series=_lines([("node_cpu", "cpu"), ("node_memory", "memory")]),
        marks=(Mark(1.0, "all"),),
    )


def _compared(runs: Sequence[Reported]) -> Iterator[Chart]:
    first = runs[0].result
    same = all(each.result.columns.load == first.columns.load for each in runs)
    loads = _lines([("load", "load")]) if same else _overlaid(runs, "load")
    yield Chart(title="Load, load units per second", description="Offered load.", series=loads)
    for title, key, whole in (
        ("Replicas", "replicas", True),
        ("Ready pods", "ready", True),
        ("Utilization of the target", "utilization", False),
        ("Queue, load units", "queue", False),
        ("Ready nodes", "nodes_ready", True),
        ("Pods that wait for a node", "pending", True),
    ):
        if key not in _IF_ANY or any(any(getattr(each.result.columns, key)) for each in runs):
            yield Chart(title=title, description=f"{title} of each run.", series=_overlaid(runs, key), whole=whole)


def _lines(keys: Iterable[tuple[str, str]]) -> tuple[Series, ...]:
    return tuple(Series(0, key, name, f"s{which % _STYLES}") for which, (key, name) in enumerate(keys))


def _overlaid(runs: Sequence[Reported], key: str) -> tuple[Series, ...]:
    return tuple(Series(which, key, each.name, f"s{which % _STYLES}") for which, each in enumerate(runs))
