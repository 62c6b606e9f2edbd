"""The actions of the HPA and of node groups in a report: table, data of the script, and totals of node groups."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from ocf.simulation.report.reported import Reported
from ocf.simulation.report.tables import TOTALS_HEAD, moment, totals_rows
from ocf.simulation.result import ScalingAction, SimulationResult

__all__ = ["action_data", "actions_table", "groups_table", "has_actors", "whole"]

_MOST_ACTIONS: Final = 100
_MOST_STORED: Final = 10_000
"""Actions in a page; later ones are left out."""
_MOST_EXPLAINED: Final = 250_000
"""Characters of explanations in a page; the explanations of later actions are left out."""
_ARROW: Final = "→"


def actions_table(result: SimulationResult) -> Iterator[str]:
    """Yield the table of the actions."""
    actions = result.all_actions
    sources = has_actors(result)
    names = (
        "time (UTC)",
        *(("source",) if sources else ()),
        "replicas or nodes" if result.node_groups else "replicas",
        "reason",
    )
    head = "".join(f'<th scope="col">{text}</th>' for text in names)
    rows = "".join(
        f"<tr><td>{moment(result, each.time)}</td>{f'<td>{escape(each.actor)}</td>' if sources else ''}"
        f"<td>{each.before} {_ARROW} {each.after}</td><td>{escape(each.reason)}</td></tr>"
        for each in actions[:_MOST_ACTIONS]
    )
    yield (
        f'<section>\n<h2>Scaling actions</h2>\n<p id="shown">{min(_MOST_ACTIONS, len(actions))} of'
        f' {len(actions)} scaling actions.</p>\n<table id="actions"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></section>"
    )


def has_actors(result: SimulationResult) -> bool:
    """Return whether a report names who acts: not where it is always the HPA."""
    return bool(result.node_groups) or any(each.actor != "HPA" for each in result.all_actions)


def groups_table(run: Reported) -> Iterator[str]:
    """Yield the table of node groups, if there are some."""
    if not run.result.node_groups:
        return
    head = "".join(f'<th scope="col">{text}</th>' for text in TOTALS_HEAD)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(value)}</td>" for value in values)}</tr>'
        for name, *values in totals_rows(run)
    )
    yield (
        '<section>\n<h2>Node groups</h2>\n<div class="scroll"><table id="groups"><thead><tr>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div>\n</section>"
    )


def action_data(actions: Sequence[ScalingAction], texts: dict[str, int]) -> Iterator[list[Any]]:
    """Yield the data of the actions; equal texts are stored once."""
    length = 0
    for action in actions[:_MOST_STORED]:
        data: list[Any] = [
            whole(round(action.time, 3)),
            action.before,
            action.after,
            texts.setdefault(action.reason, len(texts)),
            texts.setdefault(action.actor, len(texts)),
        ]
        if length < _MOST_EXPLAINED:
            # Making an explanation takes time, so that is done once, and only where there is space for it.
            lines = tuple(action.explanation)
            length += sum(len(line) for line in lines if line not in texts)
            data.append([texts.setdefault(line, len(texts)) for line in lines])
        yield data


def whole(value: float | None) -> float | None:
    """Return a whole number without `.0`, which is shorter.

    Args:
        value: The number; None stays None.

    Example:
        >>> whole(3.0), whole(2.5)
        (3, 2.5)
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value
