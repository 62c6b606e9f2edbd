"""What Prometheus's own engine computes for the expressions of a dashboard."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from scripts.record.dashboard_parts.run import Scrape

__all__ = ["ORACLE", "Query", "Series", "build_oracle", "evaluate", "run_program"]

ORACLE: Final = Path(__file__).parents[2] / "oracles" / "promql"
"""The source of the program that calls Prometheus's packages."""

# Prometheus adds them to each series of a target.
_TARGET: Final = {"job": "shops", "instance": "10.0.0.7:8080"}


class Query(NamedTuple):
    """A range query, or an instant query if it has no step.

    Args:
        expression: The expression.
        start: The first time.
        end: The last time, or that of an instant query.
        step: The time from one value to the next; None for an instant query.
    """

    expression: str
    start: datetime
    end: datetime
    step: timedelta | None


class Series(NamedTuple):
    """A series of the result.

    Args:
        labels: Its labels.
        points: Unix seconds to the value at this time; of an instant query, one.
    """

    labels: Mapping[str, str]
    points: Mapping[int, float]


def evaluate(scrapes: Sequence[Scrape], queries: Sequence[Query]) -> list[list[Series]]:
    """Return the series of each query, in the order of Prometheus.

    Args:
        scrapes: What Prometheus has scraped.
        queries: The queries.
    """
    given = {
        "target": _TARGET,
        "scrapes": [{"time": each.at, "text": each.text} for each in scrapes],
        "queries": [_as_json(query) for query in queries],
    }
    with TemporaryDirectory() as folder:
        program = build_oracle(Path(folder))
        results = json.loads(run_program(str(program), "evaluate", cwd=Path(folder), given=json.dumps(given)))
    return [[_series(each) for each in result] for result in results]


def build_oracle(folder: Path) -> Path:
    """Build the program that calls Prometheus's packages; needs Go.

    Args:
        folder: Where it is written.
    """
    program = folder / "promql_oracle"
    run_program("go", "build", "-buildvcs=false", "-o", str(program), ".", cwd=ORACLE)
    return program


def run_program(*command: str, cwd: Path, given: str | None = None) -> str:
    """Run a program; return its output.

    Args:
        command: The program and its arguments.
        cwd: Its working directory.
        given: Its input.

    Raises:
        SystemExit: If it fails, with its error output.
    """
    done = subprocess.run(command, cwd=cwd, input=given, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
    return done.stdout


def _as_json(query: Query) -> dict[str, object]:
    start, end = (int(each.timestamp()) for each in (query.start, query.end))
    step = 0 if query.step is None else int(query.step.total_seconds())
    return {"expression": query.expression, "start": start, "end": end, "step": step}


def _series(result: Mapping[str, Any]) -> Series:
    points = result["values"] if "values" in result else [result["value"]]
    return Series(result["metric"], {int(at): float(value) for at, value in points})
