"""The summary of a run as plain text, 80 columns wide, with a small chart."""

from collections.abc import Iterator
from typing import Final

from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.measures.formatting import duration_text, number_text, value_text
from ocf.simulation.report.reported import Reported
from ocf.simulation.report.series import part_means
from ocf.simulation.result import SimulationResult

__all__ = ["chart_lines", "summary_lines"]

_SHOWN: Final = (
    "overload_time",
    "time_to_recover_max",
    "dropped_share",
    "late_share",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "under_provisioning",
    "over_provisioning",
    "pod_hours",
    "cost",
    "node_hours",
    "node_cost",
    "nodes_max",
    "pending_pod_seconds",
    "node_cpu_utilization",
    "node_memory_utilization",
    "node_interruptions",
    "ready_mean",
    "replicas_max",
    "scaling_actions",
    "flaps",
)
_IF_ANY: Final = frozenset({"cost", "node_cost", "node_interruptions"})
"""Measures that are shown if they are not 0."""
_WIDTH: Final = 68
_HEIGHT: Final = 8
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_MISSING: Final = "░"
_MARGIN: Final = 8


def summary_lines(run: Reported) -> Iterator[str]:
    """Yield the summary of a run: title, chart, measures, objectives, and the first scaling actions."""
    result = run.result
    start = f"{result.instant(0):%Y-%m-%d %H:%M:%S}"
    yield f"{run.name}: {duration_text(result.duration)} from {start}, {result.syncs} syncs"
    yield from (f"  warning: {each}" for each in result.warnings)
    yield ""
    yield from chart_lines(result)
    yield ""
    for name in _SHOWN:
        value = result.measures.get(name)
        if value is not None and (name not in _IF_ANY or value):
            yield f"  {MEASURES[name].title:<28}{value_text(name, value, currency=run.currency)}"
    for verdict in run.verdicts:
        yield f"  {'met   ' if verdict.met else 'MISSED'}  {verdict.objective}: {verdict.found}"


def chart_lines(result: SimulationResult) -> Iterator[str]:
    """Yield a chart of the ready pods, and above them of the pods that are missing to the demand.

    Example:
        >>> from array import array
        >>> from datetime import UTC, datetime
        >>> from ocf.simulation.result import Columns
        >>> rows = Columns(time=array("d", [0, 60]), ready=array("q", [1, 3]), demand=array("q", [2, 3]))
        >>> run = SimulationResult(name="web", start=datetime(2026, 1, 1, tzinfo=UTC), duration=120, columns=rows)
        >>> [line.split("│")[0].strip() for line in chart_lines(run)][1:3]
        ['3', '']
    """
    columns = result.columns
    lacking = [max(0, demand - pods) for demand, pods in zip(columns.demand, columns.ready, strict=True)]
    ready, missing = (
        part_means(columns.time, values, 0, result.duration, _WIDTH) for values in (columns.ready, lacking)
    )
    most = max((one + other for one, other in zip(ready, missing, strict=True)), default=0.0) or 1.0
    yield "pods: █ ready, ░ missing to the demand"
    for row in reversed(range(_HEIGHT)):
        label = number_text(most) if row == _HEIGHT - 1 else ""
        cells = "".join(
            _cell(one * _HEIGHT / most - row, (one + other) * _HEIGHT / most - row)
            for one, other in zip(ready, missing, strict=True)
        )
        yield f"{label:>{_MARGIN - 1}} │{cells}".rstrip()
    yield f"{0:>{_MARGIN - 1}} └{'─' * _WIDTH}"
    begin, end = "0", duration_text(result.duration)
    if result.is_dated:
        begin, end = (f"{result.instant(time):%Y-%m-%d %H:%M}" for time in (0, result.duration))
    yield f"{'':{_MARGIN}}{begin:<{_WIDTH // 2}}{end:>{_WIDTH - _WIDTH // 2 + 1}}"


def _cell(ready: float, demand: float) -> str:
    """Return the character of a cell, whose height is 1: filled by ready pods, then by missing ones."""
    filled = min(len(_EIGHTHS) - 1, max(0, round(ready * (len(_EIGHTHS) - 1))))
    if filled == 0 and demand * 2 > 1:
        return _MISSING
    return _EIGHTHS[filled]
