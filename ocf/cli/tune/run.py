"""The run of `ocf tune`: scenarios are read, settings are searched, results are written and printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from ocf.cli.output import echo
from ocf.cli.output_files import check_folder, write_file
from ocf.cli.simulate.names import distinct_names
from ocf.cli.simulate.output import print_notes
from ocf.cli.tune.executors import executor_of
from ocf.cli.tune.output import print_json, print_text
from ocf.errors import ConfigError
from ocf.objects import dump_document
from ocf.objects.documents import load_documents
from ocf.simulation import load_series, read_scenario
from ocf.simulation.measures import parse_expression
from ocf.simulation.measures.measuring import without_latencies
from ocf.simulation.recording.format import is_recording
from ocf.simulation.tuning import LoadTrace, Method, Problem, Target, parse_objectives, parse_setting, tune
from ocf.simulation.tuning.across import Across
from ocf.simulation.tuning.manifests import tuned_manifest, tuned_text
from ocf.simulation.tuning.objectives import scenario_requirements
from ocf.simulation.tuning.page import to_html
from ocf.simulation.tuning.samplers import SamplerName
from ocf.simulation.tuning.search import SearchFile, read_search
from ocf.simulation.tuning.settings import TunedSetting
from ocf.simulation.tuning.tables import setting_text
from ocf.simulation.tuning.tuned import Tuned

__all__ = ["TuneRequest", "print_schema", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """The arguments and options of `ocf tune`.

    Args:
        across: How objectives of several scenarios become one; None for what a file of a search says.
        jobs: Number of processes; None for one per processor.
        dask: Address of a Dask cluster; None for processes.
        state: File of the evaluations; None for none.
        write: File of the manifest; None for none.
        report: File of the page; None for none.
    """

    files: tuple[str, ...]
    search: tuple[str, ...]
    objectives: tuple[str, ...]
    require: tuple[str, ...]
    across: str | None
    sampler: str
    trials: int
    batch: int
    seed: int
    holdout: str
    jobs: int | None
    dask: str | None
    state: str | None
    write: str | None
    as_json: bool
    report: str | None


def print_schema() -> None:
    """Print the JSON schema of a search."""
    click.echo(json.dumps(SearchFile.model_json_schema(by_alias=True), indent=2))


def run(request: TuneRequest) -> bool:
    """Search, write the files and print the result."""
    for option, file in (("--report", request.report), ("--write", request.write), ("--state", request.state)):
        if file is not None:
            check_folder(Path(file), option)
    method = _method(request)
    settings, objectives, require, across = _search(request)
    problem = Problem(traces=tuple(_traces(request)), settings=settings)
    bounds = (
        text
        for trace in problem.traces
        for text in scenario_requirements(
            trace.scenario.objectives, has_latencies=without_latencies(trace.scenario) is None
        )
    )
    target = Target(
        objectives=parse_objectives(objectives),
        requirements=tuple(map(parse_expression, dict.fromkeys((*require, *bounds)))),
        across=across,
    )
    with executor_of(jobs=request.jobs, dask=request.dask) as executor, _progress() as advance:
        state = None if request.state is None else Path(request.state)
        tuned = tune(problem, target, method, executor=executor, state=state, progress=advance)
    currency = problem.traces[0].scenario.objectives.prices.currency
    _write(request, tuned, currency)
    if request.as_json:
        print_json(tuned)
    else:
        print_text(tuned, currency)
        if request.report is not None:
            echo(f"report: {request.report}", err=True)
    return tuned.is_feasible


def _method(request: TuneRequest) -> Method:
    if request.sampler not in set(SamplerName):
        raise ConfigError(f"--sampler: must be one of {', '.join(SamplerName)}, got {request.sampler!r}")
    return Method(
        sampler=SamplerName(request.sampler),
        trials=request.trials,
        batch=request.batch,
        seed=request.seed,
        holdout=_share(request.holdout),
    )


def _share(text: str) -> float:
    number = text.strip()
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        value = -1
    if not 0 <= value < 1:
        raise ConfigError(f"--holdout: must be from 0% to less than 100%, got {text!r}")
    return value


def _search(request: TuneRequest) -> tuple[tuple[TunedSetting, ...], tuple[str, ...], tuple[str, ...], Across]:
    """Return the settings, objectives and requirements of files and options, and how several scenarios become one.

    Objectives of options take precedence, and so does the last.
    """
    settings: list[TunedSetting] = []
    objectives: list[str] = []
    require = list(request.require)
    across = Across.MEAN
    for each in request.search:
        if "=" in each and not Path(each).exists():
            settings.append(parse_setting(each))
            continue
        found = read_search(each)
        settings += found.parsed()
        objectives += found.objectives
        require += found.require
        across = found.across or across
    if not settings:
        raise ConfigError("nothing to search: name a field and its values, such as --search spec.minReplicas=2..8")
    if request.across is not None:
        if request.across not in set(Across):
            raise ConfigError(f"--across: must be one of {', '.join(Across)}, got {request.across!r}")
        across = Across(request.across)
    return tuple(settings), tuple(request.objectives or objectives), tuple(require), across


def _traces(request: TuneRequest) -> Iterator[LoadTrace]:
    if not request.files:
        raise ConfigError("no scenario given: write its file, or `ocf simulate --init FILE` to get one for an HPA")
    paths = [Path(each) for each in request.files]
    for path, name in zip(paths, distinct_names(paths), strict=True):
        scenario = read_scenario(path)
        load, *neighbors = (load_series(each, path.parent) for each in scenario.services())
        yield LoadTrace(name=name or scenario.name, scenario=scenario, load=load, neighbors=tuple(neighbors))
    print_notes(paths)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """Provide a function that moves a progress bar; on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("candidates"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("candidates")
        yield lambda done, planned: bars.update(task, completed=done, total=planned)


def _write(request: TuneRequest, tuned: Tuned, currency: str) -> None:
    if request.write is not None and tuned.is_feasible:
        write_file(Path(request.write), [_manifest(Path(request.files[0]), tuned)], "--write")
        _note_unwritten(tuned)
    if request.report is not None:
        write_file(Path(request.report), [to_html(tuned, currency=currency)], "--report")


def _note_unwritten(tuned: Tuned) -> None:
    """Print which settings of the winner the manifest does not have: those of fields of the scenario."""
    for path, value in tuned.winner.values.items():
        if not path.startswith("spec."):
            detail = f"{path}: the winner has {setting_text(value)}, which is not a field of the HPA"
            echo(f"note: {detail}: set it where the scenario has it from", err=True)


def _manifest(scenario: Path, tuned: Tuned) -> str:
    """Return the manifest of the winner: the file of the HPA, or the HPA in the scenario, with the tuned fields."""
    if is_recording(scenario):
        return dump_document(tuned.hpa)
    [document] = load_documents(scenario.read_text(encoding="utf-8"))
    hpa = document["hpa"]
    if isinstance(hpa, str):
        return tuned_text((scenario.parent / hpa).read_text(encoding="utf-8"), tuned.hpa, tuned.winner.values)
    return dump_document(tuned_manifest(hpa, tuned.hpa, tuned.winner.values))
