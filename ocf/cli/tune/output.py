"""What `ocf tune` prints: tables and a verdict, or JSON."""

from __future__ import annotations

from typing import Any, Final

import click

from ocf.cli.output import as_json, echo, grid
from ocf.simulation.tuning.tables import measure_names, tables, verdict_lines
from ocf.simulation.tuning.tuned import Finalist, Tuned

__all__ = ["print_json", "print_text"]

_MOST: Final = 10


def print_text(tuned: Tuned, currency: str) -> None:
    """Print the tables and the verdict."""
    invalid = f", {tuned.invalid} invalid" if tuned.invalid else ""
    echo(f"{', '.join(tuned.traces)}: {tuned.evaluated} candidates simulated{invalid}")
    echo()
    for table in tables(tuned, currency=currency, most=_MOST):
        grid(table.title, table.headings, table.rows)
        if table.note:
            echo(f"  {table.note}")
        echo()
    is_good = tuned.is_feasible and not tuned.is_worse_when_held_out and not tuned.worse_overload
    color = None if is_good else "red"
    for line in verdict_lines(tuned, currency=currency):
        echo(line, color=color)


def print_json(tuned: Tuned) -> None:
    """Print the result as JSON."""
    click.echo(
        as_json(
            {
                "scenarios": list(tuned.traces),
                "objectives": [
                    {"measure": each.name, "direction": "min" if each.is_minimized else "max"}
                    for each in tuned.objectives
                ],
                "requirements": [each.text for each in tuned.requirements],
                "across": tuned.across.value,
                "evaluated": tuned.evaluated,
                "invalid": tuned.invalid,
                "searched": tuned.searched,
                "heldOutFrom": [None if each is None else each.isoformat() for each in tuned.held_out_from],
                "feasible": tuned.is_feasible,
                "keepCurrent": tuned.is_current,
                "worseWhenHeldOut": tuned.is_worse_when_held_out,
                "worseOverload": list(tuned.worse_overload),
                "current": _finalist(tuned.current),
                "winner": _finalist(tuned.winner),
                "runnerUp": None if tuned.runner_up is None else _finalist(tuned.runner_up),
                "front": [
                    {
                        "settings": dict(each.values),
                        "measures": {name: each.measures[name] for name in measure_names(tuned)},
                    }
                    for each in tuned.front
                ],
                "effects": [
                    {
                        "setting": each.path,
                        "value": each.value,
                        "measures": dict(each.measures),
                        "allowed": each.is_allowed,
                        "weight": each.weight,
                    }
                    for each in tuned.effects
                ],
                "hpa": tuned.hpa,
            }
        )
    )


def _finalist(finalist: Finalist) -> dict[str, Any]:
    return {
        "settings": dict(finalist.values),
        "searched": [dict(each) for each in finalist.searched],
        "heldOut": [dict(each) for each in finalist.held_out],
        "violated": list(finalist.unmet),
        "violatedHeldOut": list(finalist.unmet_held_out),
        "warnings": list(finalist.warnings),
    }
