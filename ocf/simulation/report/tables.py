"""Tables of a report: the values of a chart, and the best of several runs."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from ocf.simulation.measures import group_totals
from ocf.simulation.measures.catalog import Measure
from ocf.simulation.measures.formatting import number_text, value_text
from ocf.simulation.report.charts import Chart, Series
from ocf.simulation.report.reported import Reported
from ocf.simulation.report.series import Sampled
from ocf.simulation.result import SimulationResult

__all__ = ["TOTALS_HEAD", "best", "chart_table", "moment", "totals_rows"]

TOTALS_HEAD: Final = ("node group", "node-hours", "cost", "most", "added", "removed", "interruptions")
"""Head of the table of node groups."""

_PARTS: Final = 12
_MOST_CHANGES: Final = 50


def best(measure: Measure, values: Sequence[float | None]) -> frozenset[int]:
    """Return the numbers of the runs with the best value; none where all are alike, or no direction is better.

    Example:
        >>> from ocf.simulation.measures.catalog import MEASURES
        >>> sorted(best(MEASURES["pod_hours"], [3.0, 2.0, 2.0, None]))
        [1, 2]
    """
    known = [value for value in values if value is not None]
    if measure.lower_is_better is None or len(set(known)) <= 1:
        return frozenset()
    winner = min(known) if measure.lower_is_better else max(known)
    return frozenset(number for number, value in enumerate(values) if value == winner)


def chart_table(chart: Chart, runs: Sequence[Reported], samples: Sequence[Sampled]) -> str:
    """Return the values of a chart as a table that can be opened."""
    names = [each.name for each in chart.series] or ["condition", "state"]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("from (UTC)", *names))
    rows = _band_rows(chart, runs[0]) if chart.bands else _line_rows(chart, runs, samples)
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<details><summary>{escape(chart.title)} as a table</summary><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table></div></details>\n"
    )


def _band_rows(chart: Chart, run: Reported) -> Iterator[tuple[str, ...]]:
    rows = sorted((begin, band.name, text) for band in chart.bands for begin, _, text in band.changes)
    for begin, name, text in rows[:_MOST_CHANGES]:
        yield moment(run.result, begin), name, text
    if len(rows) > _MOST_CHANGES:
        yield f"{len(rows) - _MOST_CHANGES} more", "", ""


def _line_rows(chart: Chart, runs: Sequence[Reported], samples: Sequence[Sampled]) -> Iterator[tuple[str, ...]]:
    end = max(each.result.duration for each in runs)
    for part in range(_PARTS):
        begin, until = end * part / _PARTS, end * (part + 1) / _PARTS
        values = (_span(series, samples[series.run], begin, until) for series in chart.series)
        yield moment(runs[0].result, begin), *values


def _span(series: Series, sample: Sampled, begin: float, until: float) -> str:
    """Return the lowest and the highest value in a part of the time."""
    first = max(0, bisect_right(sample.times, begin) - 1)
    last = max(first + 1, bisect_left(sample.times, until))
    low = [each for each in sample.low.get(series.key, ())[first:last] if each is not None]
    if not low:
        return "none"
    high = [each for each in sample.high.get(series.key, ())[first:last] if each is not None] or low
    least, most = min(low), max(high)
    return number_text(least) if least == most else f"{number_text(least)} to {number_text(most)}"


def moment(result: SimulationResult, time: float) -> str:
    """Return an instant of a run in UTC; with its year if the dates mean something."""
    return f"{result.instant(time):{'%Y-' if result.is_dated else ''}%m-%d %H:%M:%S}"


def totals_rows(run: Reported) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of node groups."""
    for each in group_totals(run.result):
        yield (
            each.group,
            number_text(each.node_hours),
            value_text("node_cost", each.cost, currency=run.currency),
            *(str(number) for number in (each.most, each.added, each.removed, each.interruptions)),
        )
