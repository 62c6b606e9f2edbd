"""What `ocf simulate` prints: the summary of a run, the comparison of several, and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from ocf.cli.output import as_json, echo, grid
from ocf.simulation.measures import group_totals
from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.measures.elasticity import elastic_speedup
from ocf.simulation.measures.formatting import number_text, value_text
from ocf.simulation.report import Reported
from ocf.simulation.report.text import summary_lines
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.autoscaler_file import conversion_note

__all__ = ["print_comparison", "print_json", "print_notes", "print_summary"]

_MISSED: Final = "  MISSED"


def print_notes(scenarios: Sequence[Path]) -> None:
    """Print which HPAs were converted, on standard error; that of several scenarios once."""
    for note in dict.fromkeys(map(conversion_note, scenarios)):
        if note:
            echo(f"note: {note}", err=True)


def print_summary(runs: Sequence[Reported]) -> None:
    """Print the summary of a run."""
    for line in summary_lines(runs[0]):
        echo(line, color="red" if line.startswith(_MISSED) else None)


def print_comparison(runs: Sequence[Reported], *, baseline: bool = True) -> None:
    """Print the measures of several runs side by side.

    Args:
        runs: The runs, in the order of the columns.
        baseline: Whether the first run is the baseline of the others; otherwise they are workloads of one scenario.
    """
    rows = [
        (measure.title, *(_text(run, name) for run in runs))
        for name, measure in MEASURES.items()
        if any(run.result.measures.get(name) for run in runs)
    ]
    if baseline:
        speedups = [elastic_speedup(runs[0].result.measures, run.result.measures) for run in runs]
        rows.append(("elastic speedup", *("-" if each is None else number_text(each) for each in speedups)))
    met = [{each.objective: "met" if each.met else "MISSED" for each in run.verdicts} for run in runs]
    objectives = dict.fromkeys(each for verdicts in met for each in verdicts)
    rows += [(f"objective: {each}", *(verdicts.get(each, "-") for verdicts in met)) for each in objectives]
    for run in runs:
        for warning in run.result.warnings:
            echo(f"warning: {run.name}: {warning}", err=True)
    grid("comparison" if baseline else "workloads", ("measure", *(run.name for run in runs)), rows)


def _text(run: Reported, name: str) -> str:
    value = run.result.measures.get(name)
    return "-" if value is None else value_text(name, value, currency=run.currency)


def print_json(runs: Sequence[Reported], gates: Mapping[str, bool]) -> None:
    """Print runs as JSON."""
    click.echo(as_json({"runs": [_run(each) for each in runs], "gates": gates}))


def _run(run: Reported) -> dict[str, Any]:
    result = run.result
    replay = run.replay
    compared = {} if replay is None else {"replay": replay.to_json()}
    return {
        **compared,
        "name": run.name,
        "start": result.start.isoformat(),
        "dated": result.is_dated,
        "duration": result.duration,
        "syncs": result.syncs,
        "measures": dict(result.measures),
        "objectives": [asdict(each) for each in run.verdicts],
        "actions": [
            {
                "time": each.time,
                "at": _at(result, each.time),
                "source": each.actor,
                "before": each.before,
                "after": each.after,
                "reason": each.reason,
                "rule": each.rule,
                "explanation": list(each.explanation),
            }
            for each in result.all_actions
        ],
        "nodeGroups": [asdict(each) for each in group_totals(result)],
        "warnings": list(result.warnings),
        "conditions": [{"at": _at(result, each.time), **each._asdict()} for each in result.condition_changes],
    }


def _at(result: SimulationResult, time: float) -> str | None:
    return result.instant(time).isoformat() if result.is_dated else None
