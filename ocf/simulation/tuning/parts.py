"""Parts of a run: one that the search sees, and one that is held out."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from ocf.simulation.measures import MEASURES, Unit
from ocf.simulation.result import Action, Columns, GroupColumns, SimulationResult

__all__ = ["part_of", "scaled_totals"]

_TOTALS: Final = frozenset({Unit.COUNT, Unit.POD_HOURS, Unit.POD_SECONDS, Unit.NODE_HOURS, Unit.PRICE})


def part_of(result: SimulationResult, begin: float, end: float) -> SimulationResult:
    """Return a part of a run, with times since its begin.

    Args:
        result: The run.
        begin: Begin of the part, in seconds since the start.
        end: End of the part, in seconds since the start.

    Example:
        >>> from datetime import UTC, datetime
        >>> rows = Columns(time=array("d", [0, 60, 120]), ready=array("q", [1, 2, 3]))
        >>> run = SimulationResult(name="web", start=datetime(2026, 1, 1, tzinfo=UTC), duration=180, columns=rows)
        >>> part = part_of(run, 90, 150)
        >>> list(part.columns.time), list(part.columns.ready), part.duration
        ([0.0, 30.0], [2, 3], 60)
    """
    first = bisect_right(result.columns.time, begin) - 1
    last = bisect_left(result.columns.time, end)
    columns = Columns(**{each.name: getattr(result.columns, each.name)[first:last] for each in fields(Columns)})
    if columns.time:
        cut = columns.time[0] < begin
        times = array("d", (max(0.0, time - begin) for time in columns.time))
        columns = replace(columns, time=times)
        if cut and columns.synced:
            columns.synced[0] = 0
    return replace(
        result,
        duration=end - begin,
        columns=columns,
        actions=_actions(result.actions, begin, end),
        node_actions=_actions(result.node_actions, begin, end),
        node_groups={
            name: GroupColumns(**{each.name: getattr(found, each.name)[first:last] for each in fields(GroupColumns)})
            for name, found in result.node_groups.items()
        },
        condition_changes=tuple(
            each._replace(time=each.time - begin) for each in result.condition_changes if begin <= each.time < end
        ),
        syncs=sum(columns.synced),
    )


def _actions(actions: Iterable[Action], begin: float, end: float) -> tuple[Action, ...]:
    return tuple(replace(each, time=each.time - begin) for each in actions if begin <= each.time < end)


def scaled_totals(measures: Mapping[str, float], factor: float) -> dict[str, float]:
    """Return measures in which totals, such as pod-hours, are those of a longer time.

    So the measures of parts of different length can be compared with each other and with a bound.

    Args:
        measures: Measures by name.
        factor: Length of the whole over length of the part.

    Example:
        >>> scaled_totals({"pod_hours": 3.0, "overload_time": 0.02}, 4)
        {'pod_hours': 12.0, 'overload_time': 0.02}
    """
    return {name: _scaled(value, factor) if _is_total(name) else value for name, value in measures.items()}


def _is_total(name: str) -> bool:
    return MEASURES[name].unit in _TOTALS or name == "dropped"


def _scaled(value: float, factor: float) -> Any:
    return value if factor == 1 else float(f"{value * factor:.9g}")
