"""Services in a row: what one serves is the load of the next, in one scenario, or by way of the time series in CSV."""

from pathlib import Path
from textwrap import indent

import pytest

from ocf.cli.simulate.files import write_csv
from ocf.simulation import load_series, parse_scenario, read_scenario, simulate
from ocf.simulation.measures import with_measures
from ocf.simulation.report import Reported
from ocf.simulation.result import SimulationResult

SCENARIO = """\
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: NAME}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
    maxReplicas: 20
    metrics:
    - {type: External, external: {metric: {name: load}, target: {type: AverageValue, averageValue: 8}}}
workload: {capacity: 10, replicas: REPLICAS, signals: {load: {source: load}}, readiness: {mean: 47s}}
load: LOAD
duration: 40m
"""
FRONT = "[{type: Steady, rate: 12}, {type: Spike, at: 5m, peak: 120, hold: 10m}]"
BACK = "{type: Csv, path: front.csv, time: time, value: served, gaps: Hold, unit: PerSecond}"


def simulated(folder: Path, name: str, load: str, replicas: int) -> SimulationResult:
    file = folder / f"{name}.yaml"
    file.write_text(SCENARIO.replace("NAME", name).replace("LOAD", load).replace("REPLICAS", str(replicas)))
    scenario = read_scenario(file)
    result = with_measures(simulate(scenario, load_series(scenario, folder)), scenario)
    write_csv(folder / f"{name}.csv", [Reported.of(result, scenario)])
    return result


@pytest.mark.parametrize(
    ("replicas", "most"),
    [
        pytest.param(20, 132, id="a front that has the pods"),
        pytest.param(2, 170, id="a front that serves its backlog once it has them"),
    ],
)
def test_the_next_service_gets_what_the_one_before_serves(tmp_path: Path, replicas: int, most: float) -> None:
    front = simulated(tmp_path, "front", FRONT, replicas)
    back = simulated(tmp_path, "back", BACK, 2)

    def at(result: SimulationResult, values: list[float], time: float) -> float:
        return [value for begin, value in zip(result.columns.time, values, strict=True) if begin <= time][-1]

    times = sorted({*front.columns.time, *back.columns.time})
    served, arrived = list(front.columns.served), list(back.columns.load)
    assert [at(back, arrived, time) for time in times] == pytest.approx([at(front, served, time) for time in times])
    assert max(arrived) == most

    together = parse_scenario(in_one_file(replicas))
    result = simulate(
        together, load_series(together), neighbors=[load_series(each) for each in together.services()[1:]]
    )
    [called] = result.neighbors
    assert [(each.time, each.after) for each in result.actions] == [(each.time, each.after) for each in front.actions]
    assert [(each.time, each.after) for each in called.actions] == [(each.time, each.after) for each in back.actions]
    arrived = list(called.columns.load)
    assert [at(called, arrived, time) for time in times] == pytest.approx([at(front, served, time) for time in times])


def in_one_file(replicas: int) -> str:
    """Return both services as one scenario; the delays of pods do not differ from each other."""
    front, back = (
        SCENARIO.replace("NAME", name).replace("REPLICAS", str(count))
        for name, count in (("front", replicas), ("back", 2))
    )
    own = back.replace("LOAD", "{type: Served, by: front}").replace("duration: 40m\n", "")
    return f"name: front\n{front.replace('LOAD', FRONT)}neighbors:\n- name: back\n{indent(own, '  ')}"
