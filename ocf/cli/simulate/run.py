"""The run of `ocf simulate`: scenarios are read, simulated, measured, written and printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from ocf.cli.output import echo
from ocf.cli.output_files import check_folder
from ocf.cli.simulate.files import parquet_library, write_csv, write_parquet, write_report
from ocf.cli.simulate.names import distinct_names
from ocf.cli.simulate.output import print_comparison, print_json, print_notes, print_summary
from ocf.errors import ConfigError
from ocf.objects.printable import printable
from ocf.simulation import Scenario, load_series, read_scenario, simulate
from ocf.simulation.measures import parse_expression
from ocf.simulation.measures.expressions import Expression
from ocf.simulation.recording.format import is_recording
from ocf.simulation.report import Reported
from ocf.simulation.scenario.replay import compare_replay

__all__ = ["SimulateRequest", "print_schema", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """The arguments and options of `ocf simulate`.

    Args:
        report: File of the page; None for none.
    """

    files: tuple[str, ...]
    compare: bool = False
    fail_if: tuple[str, ...] = ()
    as_json: bool = False
    report: str | None = None
    csv: str | None = None
    parquet: str | None = None


def print_schema() -> None:
    """Print the JSON schema of a scenario."""
    click.echo(json.dumps(Scenario.model_json_schema(by_alias=True), indent=2))


def run(request: SimulateRequest) -> bool:
    """Simulate, write the files and print the result."""
    gates = [parse_expression(text) for text in request.fail_if]
    _check(request)
    paths = [Path(each) for each in request.files]
    with _progress() as advance:
        runs = [
            each
            for path, name in zip(paths, distinct_names(paths), strict=True)
            for each in _simulated(path, name, advance(path.name))
        ]
    print_notes(paths)
    for each in runs:
        for line in () if each.replay is None else each.replay.lines():
            echo(f"{each.name}: {line}" if len(runs) > 1 else line, err=True)
    failed = [(gate, each) for gate in gates for each in runs if gate.holds(each.result.measures)]
    _write(request, runs)
    if request.as_json:
        print_json(runs, {gate.text: not any(gate is each for each, _ in failed) for gate in gates})
    else:
        if len(runs) == 1:
            print_summary(runs)
        else:
            print_comparison(runs, baseline=request.compare)
        if request.report is not None:
            echo(f"report: {request.report}", err=True)
    for gate, each in failed:
        echo(_failure(gate, each), color="red", err=True)
    return not failed


def _check(request: SimulateRequest) -> None:
    """Reject arguments before anything is read or simulated."""
    if not request.files:
        raise ConfigError("no scenario given: write its file, or --init FILE to get one for an HPA")
    if len(request.files) > 1 and not request.compare:
        raise ConfigError(f"{len(request.files)} scenarios given: add --compare to compare them")
    if request.compare and len(request.files) == 1:
        raise ConfigError("--compare needs at least two scenarios")
    for option, file in (("--report", request.report), ("--csv", request.csv), ("--parquet", request.parquet)):
        if file is not None:
            check_folder(Path(file), option)
    if request.parquet is not None:
        parquet_library()


def _simulated(path: Path, name: str | None, progress: Callable[[float], None] | None) -> list[Reported]:
    """Return the run of a file, and those of its neighbors."""
    scenario = read_scenario(path)
    load, *neighbors = (load_series(each, path.parent) for each in scenario.services())
    result = simulate(scenario, load, neighbors=neighbors, progress=progress)
    if is_recording(path):
        return [Reported.of(result, scenario, name=name, replay=compare_replay(path, scenario, result))]
    return Reported.all_of(result, scenario, name=name)


@contextmanager
def _progress() -> Iterator[Callable[[str], Callable[[float], None] | None]]:
    """Provide a function that starts a progress bar for a name; on a terminal only."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with Progress(console=console, transient=True) as bars:

        def advance(name: str) -> Callable[[float], None]:
            task = bars.add_task(escape(printable(name)), total=1.0)
            return lambda share: bars.update(task, completed=share)

        yield advance


def _write(request: SimulateRequest, runs: Sequence[Reported]) -> None:
    if request.csv is not None:
        write_csv(Path(request.csv), runs)
    if request.parquet is not None:
        write_parquet(Path(request.parquet), runs)
    if request.report is not None:
        write_report(Path(request.report), runs)


def _failure(gate: Expression, run: Reported) -> str:
    from ocf.simulation.measures.formatting import value_text

    values = ", ".join(
        f"{name} is {value_text(name, run.result.measures[name], currency=run.currency)}" for name in gate.names
    )
    return f"failed: {gate.text}: {values} in {run.name}"
