"""Simulations for the playground: a request as JSON in, an answer as JSON out.

The playground is a page in which this module runs in the browser, with Pyodide. The files of the scenario come with
each request and are those that `ocf simulate` takes, so that its result is the same.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from ocf.errors import ConfigError, ManifestError
from ocf.objects.yaml_places import YamlNode
from ocf.simulation.engine import simulate
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load import LoadSeries
from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.measures.formatting import duration_text, value_text
from ocf.simulation.report import Reported, to_html
from ocf.simulation.report.page import report_content
from ocf.simulation.report.rows import csv_lines
from ocf.simulation.report.series import part_means
from ocf.simulation.scenario import Scenario, load_series, read_scenario

__all__ = ["CURVE_PARTS", "MAX_SYNCS", "RequestedOutput", "answer"]

CURVE_PARTS: Final = 60
"""Parts of the curve of the load, all of the same length."""
MAX_SYNCS: Final = 50_000
"""Most syncs of a simulation in the browser: 8 days with a sync every 15 s."""
_SCENARIO: Final = "scenario.yaml"
_SUMMARIZED: Final = ("overload_time", "latency_p95", "pod_hours")


class RequestedOutput(StrEnum):
    """What a request asks for."""

    VIEW = "view"
    """The parts of a page that show the run."""
    CSV = "csv"
    """The time series."""
    REPORT = "report"
    """The page that `ocf simulate` writes."""


def answer(request: str, progress: Callable[[float], object] | None = None) -> str:
    r"""Simulate the scenario of a request.

    Args:
        request: JSON with `files`, the text of each file by name, of which `scenario.yaml` is the scenario; and
            `output`, what is asked for, see `RequestedOutput`.

    Returns:
        JSON with `problems`, each with `file`, `line` (from 1; null if it is not known), `field` and `detail`. If there
        are none, also `text`, the CSV or the report; or for a view:

        * `summary`: a sentence about the run,
        * `title`, `body` (HTML) and `data`, see `ocf.simulation.report.page.report_content`,
        * `curve`: the `rates` of the load, means of equal parts of the time; its `end` in seconds; and `fixed`, whether
          the scenario sets the duration, so that it does not follow from the load.

    Example:
        >>> json.loads(answer('{"files": {"scenario.yaml": "load: {type: Steady, rate: 2}"}}'))["problems"][0]
        {'file': 'scenario.yaml', 'line': 1, 'field': 'hpa', 'detail': 'required value'}
    """
    asked = json.loads(request)
    output, files = RequestedOutput(asked.get("output", RequestedOutput.VIEW)), asked["files"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done: Mapping[str, Any] = _answer(Path(folder), files, output, progress)
            problems: list[InputProblem] = []
        except InputError as error:
            done, problems = {}, list(error.problems)
        except (ConfigError, ManifestError) as error:
            done, problems = {}, [InputProblem("", str(error))]
        found = [_problem(each, Path(folder)) for each in problems]
    return json.dumps({"problems": found, **done}, ensure_ascii=False, allow_nan=False)


def _answer(
    folder: Path, files: Mapping[str, str], output: RequestedOutput, progress: Callable[[float], object] | None
) -> Mapping[str, Any]:
    for name, text in files.items():
        # A name with a folder in it would lead out of the directory.
        (folder / Path(name).name).write_text(text, encoding="utf-8")
    scenario = read_scenario(folder / _SCENARIO)
    if scenario.duration is not None:
        _check_length(scenario, scenario.duration.total_seconds(), files[_SCENARIO])
    load = load_series(scenario, folder)
    _check_length(scenario, load.end or 0.0, files[_SCENARIO])
    neighbors = [load_series(each, folder) for each in scenario.services()[1:]]
    runs = Reported.all_of(simulate(scenario, load, neighbors=neighbors, progress=progress), scenario)
    if output is RequestedOutput.CSV:
        return {"text": "".join(csv_lines(runs))}
    if output is RequestedOutput.REPORT:
        return {"text": to_html(runs)}
    run, content = runs[0], report_content(runs)
    return {
        "summary": _summary(run),
        "title": content.title,
        "body": content.body,
        "data": content.data,
        "curve": _curve(scenario, load, run.result.duration),
    }


def _check_length(scenario: Scenario, length: float, text: str) -> None:
    """Reject a simulation that takes long: each edit runs it anew."""
    longest = MAX_SYNCS * scenario.controller.settings().sync_period.total_seconds()
    if length <= longest:
        return
    root = YamlNode.root(text)
    line = None if root is None or scenario.duration is None else root.descend(["duration"]).line
    detail = (
        f"must be at most {duration_text(longest)} in the browser, {MAX_SYNCS} syncs, got {duration_text(length)}:"
        " run it with `ocf simulate`"
    )
    raise InputError([InputProblem(_SCENARIO, detail, line, "duration")])


def _curve(scenario: Scenario, load: LoadSeries, end: float) -> Mapping[str, Any]:
    rates = part_means(load.times, load.rates, 0.0, end, CURVE_PARTS)
    # Sums of floats leave a difference in the last digits.
    return {"rates": [float(f"{rate:.6g}") for rate in rates], "end": end, "fixed": scenario.duration is not None}


def _summary(run: Reported) -> str:
    result = run.result
    measures = ", ".join(
        f"{MEASURES[name].title} {value_text(name, result.measures[name], currency=run.currency)}"
        for name in _SUMMARIZED
        if name in result.measures
    )
    return f"{result.syncs} syncs, {len(result.actions)} scaling actions, {measures}"


def _problem(problem: InputProblem, folder: Path) -> Mapping[str, Any]:
    place = f"{folder}/"
    return {
        "file": problem.file.removeprefix(place),
        "line": problem.line,
        "field": problem.field,
        "detail": problem.detail.replace(place, ""),
    }
