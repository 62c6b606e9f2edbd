"""The report of simulated runs as one self-contained page, with charts that zoom.

It loads nothing. It is readable on a screen of 390 pixels, in the dark scheme and in print, and each chart has a table
with the same values.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any, Final

from ocf.autoscaling.explain.html_page import html_page
from ocf.autoscaling.explain.svg import element, path, picture
from ocf.simulation.measures.catalog import MEASURES, Measure
from ocf.simulation.measures.formatting import duration_text, value_text
from ocf.simulation.report.actions import action_data, actions_table, groups_table, has_actors, whole
from ocf.simulation.report.bands import Band
from ocf.simulation.report.charts import Chart, charts_of
from ocf.simulation.report.reported import Reported
from ocf.simulation.report.series import MOST_ROWS, Sampled, sampled
from ocf.simulation.report.static_charts import static_chart
from ocf.simulation.report.tables import best, chart_table
from ocf.simulation.result import SimulationResult

__all__ = ["ReportContent", "report_content", "report_part", "to_html"]

_FIRST: Final = (
    "overload_time",
    "latency_p95",
    "dropped_share",
    "pod_hours",
    "cost",
    "node_hours",
    "pending_pod_seconds",
    "scaling_actions",
)
_TOOLS: Final = (("in", "Zoom in"), ("out", "Zoom out"), ("earlier", "Earlier"), ("later", "Later"), ("all", "All"))
_HINT: Final = (
    "Drag over a chart to zoom in. A legend entry hides its line. On a chart that has the focus,"
    " <kbd>←</kbd> and <kbd>→</kbd> move the cursor, <kbd>+</kbd> and <kbd>-</kbd> zoom,"
    " <kbd>0</kbd> and <kbd>Esc</kbd> show all."
)
_START: Final = 'drawReport(document, JSON.parse(document.getElementById("data").textContent));\n'


@dataclass(frozen=True, slots=True)
class ReportContent:
    """A report without its page.

    Args:
        data: JSON for `drawReport`.
    """

    title: str
    body: str
    data: str


def to_html(runs: Sequence[Reported]) -> str:
    """Render runs as a page.

    Args:
        runs: One run; or several to compare, of which the first is the baseline.

    Returns:
        An HTML document with everything that it needs; equal runs give equal documents.
    """
    content = report_content(runs)
    return html_page(
        title=f"{content.title}: simulation",
        body=(
            f"<main>\n<header><h1>{escape(content.title)}</h1>\n"
            f"<p class='at'>{escape(_subtitle(runs[0].result))}</p></header>\n{content.body}\n</main>"
        ),
        marks=report_part("charts.css"),
        script=f"{report_part('charts.js')}{_START}",
        data=content.data,
    )


def report_content(runs: Sequence[Reported]) -> ReportContent:
    """Render runs as a part of a page, which needs the style and the script of `report_part`.

    Args:
        runs: One run; or several to compare, of which the first is the baseline.
    """
    first = runs[0]
    # Several runs share the rows of a page, but each keeps enough for its peaks.
    most = MOST_ROWS if len(runs) == 1 else max(MOST_ROWS // 8, MOST_ROWS // len(runs))
    samples = [
        sampled(each.result.columns, each.result.duration, most=most, groups=each.result.node_groups) for each in runs
    ]
    charts = charts_of(runs)
    title = first.name if len(runs) == 1 else " / ".join(each.name for each in runs)
    body = [
        *_notes(runs),
        *(_cards(first) if len(runs) == 1 else ()),
        *_verdicts(runs),
        *(_measures(runs) if len(runs) > 1 else ()),
        _tools(),
        *(_figure(number, chart, runs, samples) for number, chart in enumerate(charts)),
        *(actions_table(first.result) if len(runs) == 1 else ()),
        *(groups_table(first) if len(runs) == 1 else ()),
        *(_measures(runs) if len(runs) == 1 else ()),
    ]
    return ReportContent(title=title, body="\n".join(body), data=_data(runs, samples, charts))


@cache
def report_part(name: str) -> str:
    """Return a file of the report.

    Args:
        name: `charts.css`, or `charts.js`, which defines the function `drawReport`.
    """
    return files("ocf.simulation.report").joinpath(name).read_text(encoding="utf-8")


def _subtitle(result: SimulationResult) -> str:
    start = f"{result.instant(0):%Y-%m-%d %H:%M:%S}"
    return f"Simulation of {duration_text(result.duration)} from {start} UTC, {result.syncs} syncs"


def _notes(runs: Sequence[Reported]) -> Iterator[str]:
    for run in runs:
        name = f"{run.name}: " if len(runs) > 1 else ""
        for warning in run.result.warnings:
            yield f"<p><strong>Warning:</strong> {escape(f'{name}{warning}')}</p>"
    if len({each.result.start for each in runs}) > 1:
        yield f"<p>The runs start at different instants: times are those of {escape(runs[0].name)}.</p>"
    lowest, highest = runs[0].result.bounds
    if len(runs) == 1:
        yield f"<p>minReplicas {lowest}, maxReplicas {highest}.</p>"
    yield (
        "<p>The demand is the smallest number of warm pods that serve the load within"
        f" {runs[0].target_utilization * 100:g} % of their capacity.</p>"
    )


def _cards(run: Reported) -> Iterator[str]:
    cells = "".join(
        f"<div><dt>{escape(MEASURES[name].title)}</dt><dd>{escape(_text(run, name))}</dd></div>"
        for name in _FIRST
        if name in run.result.measures and (name != "cost" or run.result.measures[name])
    )
    yield f"<dl>{cells}</dl>"


def _text(run: Reported, name: str) -> str:
    value = run.result.measures.get(name)
    return "–" if value is None else value_text(name, value, currency=run.currency)  # noqa: RUF001 (a dash for none)


def _verdicts(runs: Sequence[Reported]) -> Iterator[str]:
    for run in runs:
        items = "".join(
            f'<li class="{"met" if each.met else "missed"}">{escape(each.objective)}: {escape(each.found)},'
            f" {'met' if each.met else 'missed'}</li>"
            for each in run.verdicts
        )
        if items:
            name = f" of {run.name}" if len(runs) > 1 else ""
            yield f"<section><h2>Objectives{escape(name)}</h2><ul>{items}</ul></section>"


def _tools() -> str:
    buttons = "".join(f'<button type="button" data-command="{name}">{text}</button>' for name, text in _TOOLS)
    return (
        f'<div class="tools" role="group" aria-label="Range of the charts" hidden>{buttons}<span id="range"></span>'
        f"</div>\n<p class='at hint' hidden>{_HINT}</p>"
    )


def _figure(number: int, chart: Chart, runs: Sequence[Reported], samples: Sequence[Sampled]) -> str:
    entries = "".join(
        f'<li><span class="entry" data-series="{which}">'
        f"{_sample('series ' + entry.style)}"
        f'{escape(entry.name)}</span> <output data-series="{which}"></output></li>'
        for which, entry in enumerate(chart.series)
    ) or "".join(
        f'<li>{escape(band.name)} <output data-series="{which}"></output></li>'
        for which, band in enumerate(chart.bands)
    )
    marks = "".join(f"<li>{_sample('mark', within='plot')}{escape(mark.name)}</li>" for mark in chart.marks)
    drawn = picture(
        [static_chart(chart, runs, samples)],
        title=chart.title,
        description=f"{chart.description} The table below has its values.",
        identifier=f"chart{number}",
        class_="plot static",
        role="img",
        tabindex=0,
    )
    return (
        f'<section>\n<h2>{escape(chart.title)}</h2>\n<figure data-chart="{number}">'
        f"{drawn}\n"
        f'<figcaption><output class="moment"></output><ul class="legend">{entries}{marks}</ul></figcaption></figure>\n'
        f"{chart_table(chart, runs, samples)}</section>"
    )


def _sample(style: str, *, within: str = "") -> str:
    """Return a line of the legend."""
    return element("svg", path("M0 6H24", style), viewBox="0 0 24 12", class_=within, aria_hidden="true")


def _measures(runs: Sequence[Reported]) -> Iterator[str]:
    names = "".join(f'<th scope="col">{escape(each.name if len(runs) > 1 else "value")}</th>' for each in runs)
    bodies = "".join(
        f'<tbody><tr><th scope="rowgroup" colspan="{len(runs) + 1}">{str(group).capitalize()}</th></tr>'
        f"{''.join(_measure_row(each, runs) for each in members)}</tbody>"
        for group, members in groupby(_present(runs), key=lambda each: each.group)
    )
    yield (
        '<section>\n<h2>Measures</h2>\n<div class="scroll"><table class="measures"><thead><tr>'
        f'<th scope="col">measure</th>{names}</tr></thead>{bodies}</table></div>\n</section>'
    )


def _present(runs: Sequence[Reported]) -> list[Measure]:
    return [each for each in MEASURES.values() if any(each.name in run.result.measures for run in runs)]


def _measure_row(measure: Measure, runs: Sequence[Reported]) -> str:
    winners = best(measure, [each.result.measures.get(measure.name) for each in runs])
    cells = "".join(
        f"<td{' class=best' if which in winners else ''}>{escape(_text(each, measure.name))}</td>"
        for which, each in enumerate(runs)
    )
    heading = f"{escape(measure.title)}<small>{escape(measure.definition)}</small>"
    return f'<tr><th scope="row">{heading}</th>{cells}</tr>'


def _data(runs: Sequence[Reported], samples: Sequence[Sampled], charts: Sequence[Chart]) -> str:
    texts: dict[str, int] = {}
    needed = {(series.run, series.key) for chart in charts for series in chart.series}
    data = {
        "start": runs[0].result.start.timestamp(),
        "end": max(each.result.duration for each in runs),
        "dated": runs[0].result.is_dated,
        "runs": [
            {
                "times": [whole(round(time, 3)) for time in sample.times],
                "low": {key: _whole_values(values) for key, values in sample.low.items() if (number, key) in needed},
                "high": {key: _whole_values(values) for key, values in sample.high.items() if (number, key) in needed},
                "end": run.result.duration,
            }
            for number, (run, sample) in enumerate(zip(runs, samples, strict=True))
        ],
        "charts": [_chart_data(chart) for chart in charts],
        "actions": list(action_data(runs[0].result.all_actions, texts)) if len(runs) == 1 else [],
        "count": len(runs[0].result.all_actions),
        "sources": has_actors(runs[0].result),
    }
    return json.dumps({**data, "texts": list(texts)}, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _chart_data(chart: Chart) -> Mapping[str, Any]:
    series = [{"run": each.run, "key": each.key, "style": each.style} for each in chart.series]
    bands = [_band_data(each) for each in chart.bands] or None
    return {"series": series, "marks": [asdict(each) for each in chart.marks], "whole": chart.whole, "bands": bands}


def _band_data(band: Band) -> Mapping[str, Any]:
    states = list(dict.fromkeys(change[1:] for change in band.changes))
    changes = [[whole(round(change[0], 3)), states.index(change[1:])] for change in band.changes]
    return {"name": band.name, "states": states, "changes": changes}


def _whole_values(values: Sequence[float | None]) -> list[float | None]:
    return [whole(value) for value in values]
