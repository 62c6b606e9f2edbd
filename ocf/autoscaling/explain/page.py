"""An explanation as one self-contained page: the reason, the numbers, the chart, and every step.

The page has no script and loads nothing; its policy forbids both. It is readable on a screen of 390 pixels, in the dark
scheme, and in print.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final

from ocf.autoscaling.explain.chart_svg import MARKS, legend, to_svg
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock
from ocf.autoscaling.explain.html_page import html_page
from ocf.autoscaling.explain.svg import element
from ocf.autoscaling.explain.text import Section, render
from ocf.autoscaling.explain.timeline import Timeline, bounded_timelines

__all__ = ["to_html"]

_INDENT: Final = "  "
# The first line is the cause.
_REASON: Final = ".card p:first-child{font-weight:600}\n"
_COLUMNS: Final = re.compile(r" {2,}")


def to_html(explanation: Explanation, *, reported: Iterable[Section] = ()) -> str:
    """Render an explanation as a page.

    Args:
        explanation: The explanation.
        reported: Sections to show after the result, such as what the controller last reported.

    Returns:
        An HTML document with everything that it needs; equal explanations give equal documents.

    Example:
        >>> from datetime import UTC, datetime
        >>> from ocf.autoscaling.algorithm import Autoscaler, Scale, Snapshot
        >>> from ocf.autoscaling.explain import explain
        >>> seen = Snapshot(autoscaler=Autoscaler(name="web", maximum=9), scale=Scale(11, 11, "app=web"))
        >>> page = to_html(explain(seen, now=datetime(2026, 1, 31, 12, tzinfo=UTC)))
        >>> page.startswith("<!doctype html>"), "<script" in page
        (True, False)
    """
    result, *steps = render(explanation)
    autoscaler = explanation.decision.snapshot.autoscaler
    name = f"{autoscaler.namespace}/{autoscaler.name}"
    subject, _, at = result.title.rpartition(", at ")
    body = [
        f"<main>\n<header><h1>{escape(subject)}</h1>\n<p class='at'>at {escape(at)}</p></header>",
        f'<div class="card">{_lines(result.lines)}</div>',
        _numbers(explanation),
        *_charts(explanation),
        *(_section(each) for each in (*reported, *steps)),
        "</main>",
    ]
    return html_page(title=f"{name}: {_summary(explanation)}", body="\n".join(body), marks=MARKS + _REASON)


def _summary(explanation: Explanation) -> str:
    trace = explanation.decision.trace
    if explanation.most is None or explanation.exact:
        return f"{trace.desired} replicas next"
    return f"{trace.desired} to {explanation.most.decision.desired} replicas next"


def _numbers(explanation: Explanation) -> str:
    trace, most = explanation.decision.trace, (explanation.most or explanation).decision.trace
    following = str(trace.desired) if trace.desired == most.desired else f"{trace.desired} to {most.desired}"
    rows: list[tuple[str, object]] = [("now", "not known" if trace.current is None else trace.current)]
    if trace.combination is not None and trace.stabilization is not None:
        rows.append(("wanted", trace.stabilization.wanted))
    rows += [("next", following), ("minReplicas", trace.minimum), ("maxReplicas", trace.maximum)]
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>" for name, value in rows)
    return f"<dl>{cells}</dl>"


def _charts(explanation: Explanation) -> Iterator[str]:
    for number, (title, window) in enumerate(bounded_timelines(explanation)):
        marks = "".join(
            f"<li>{element('svg', mark, viewBox='0 0 16 16', class_='chart', aria_hidden='true')}{escape(text)}</li>"
            for mark, text in legend(window)
        )
        yield (
            f"<section>\n<h2>{escape(title)}</h2>\n<figure>{to_svg(window, title, identifier=f'chart{number}')}\n"
            f'<figcaption><ul class="legend">{marks}</ul></figcaption></figure>\n{_table(window)}</section>'
        )


def _table(window: Timeline) -> str:
    """Return the recommendations as a table, in which equal ones that follow each other are one row."""
    rows = []
    for (replicas, assumed), several in groupby(
        window.recommendations, key=lambda each: (each.replicas, each.at in window.assumed)
    ):
        times = [clock(each.at, window.now) for each in several]
        span = times[0] if len(times) == 1 else f"{times[0]} to {times[-1]}, {len(times)} times"
        rows.append((span, f"{replicas} {'may have been recommended' if assumed else 'recommended'}"))
    for events, word in ((window.added, "added"), (window.removed, "removed")):
        rows += [(clock(each.at, window.now), f"{each.change} {word}") for each in events]
    cells = "".join(f"<tr><td>{escape(at)}</td><td>{escape(what)}</td></tr>" for at, what in sorted(rows))
    if not cells:
        return ""
    head = '<tr><th scope="col">time (UTC)</th><th scope="col">replicas</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{cells}</tbody></table>\n"


def _section(section: Section) -> str:
    return f"<section>\n<h2>{escape(section.title)}</h2>\n{_lines(section.lines)}</section>"


def _lines(lines: Sequence[str]) -> str:
    """Return lines as paragraphs; those that belong to the line above as its list."""
    parts: list[str] = []
    for indented, several in groupby(lines, key=lambda line: line.startswith(_INDENT)):
        if indented:
            items = "".join(map(_item, several))
            parts.append(f'<ul class="steps">{items}</ul>\n')
        else:
            parts += [f"<p>{escape(line)}</p>\n" for line in several]
    return "".join(parts)


def _item(line: str) -> str:
    text = line.strip()
    # The range of values that has the present one.
    here = text.startswith("> ")
    words = _COLUMNS.sub(": ", text.removeprefix("> "))
    return f'<li class="here">{escape(words)} (now)</li>' if here else f"<li>{escape(words)}</li>"
