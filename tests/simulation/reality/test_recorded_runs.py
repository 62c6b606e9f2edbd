"""The simulation scales as the real HPA controller did, over whole runs in closed loop.

`scripts/record/simulated_run.py` recorded the runs on a real control plane. What differs from run to run of the same
scenario on a cluster is the jitter, and it is known: the controller waits for its period after each sync, so that syncs
come 1 to 20 % late, and a pod starts up to 0.25 s late, after the scheduler, the controllers of Deployments and
ReplicaSets, and kwok. With the instants of the recorded syncs and the recorded mean delays of pods, replicas are equal
at each sync. With the mean period and the delays of the scenario, they are equal within one sync period.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import cache
from statistics import fmean

import pytest

from ocf.autoscaling.algorithm import Autoscaler
from ocf.simulation import LoadSeries, Scenario, load_series, simulate
from ocf.simulation.engine.clock import NEVER, SECOND
from ocf.simulation.engine.run import Run
from ocf.simulation.engine.together import run_together
from ocf.simulation.result import Columns
from ocf.simulation.scenario.workload import Delay
from tests.simulation.reality.recorded import RecordedRun, load_run
from tests.simulation.reality.scenarios import NAMES, autoscaler_of, read, with_timing

LATE = 0.3  # seconds until a watch has reported a change, and a workload has taken its next step
every_run = pytest.mark.parametrize("name", NAMES)


class RunAtInstants(Run):
    """A simulation that syncs at given instants.

    Args:
        instants: Seconds since the start; the first one is 0.
    """

    def __init__(
        self, scenario: Scenario, load: LoadSeries, autoscaler: Autoscaler, *, instants: Iterable[float]
    ) -> None:
        super().__init__(scenario, load, autoscaler)
        self._instants = iter([*(round(at * SECOND) for at in instants), NEVER])
        self._sync_due = next(self._instants)
        # Stretches have their syncs at the multiples of a period.
        self._stretches = None

    def process(self, now: int, *, moved: bool) -> bool:
        synced = self._sync_due <= now
        changed = super().process(now, moved=moved)
        if synced:
            self._sync_due = next(self._instants)
        return changed


@cache
def recorded(name: str) -> RecordedRun:
    return load_run(name)


def scenario_of(name: str) -> Scenario:
    """Return a scenario at the time of the run: the API server stores full seconds, so that fractions matter."""
    run = recorded(name)
    return with_timing(read(name), start=run.began, sync_period=run.sync_period)


@cache
def at_recorded_instants(name: str) -> Columns:
    """Return a simulation with the sync instants and the mean delays of a run."""
    run, scenario = recorded(name), scenario_of(name)
    delays = {
        "startup": _mean(pod.started - pod.created for pod in run.pods if pod.started is not None),
        "readiness": _mean(
            pod.ready - pod.started for pod in run.pods if pod.started is not None and pod.ready is not None
        ),
    }
    scenario = scenario.model_copy(update={"workload": scenario.workload.model_copy(update=delays)})
    instants = [sync.at for sync in run.syncs]
    run_at = RunAtInstants(scenario, load_series(scenario), autoscaler_of(scenario), instants=instants)
    run_together([run_at])
    return run_at.result().columns


def _mean(delays: Iterable[float]) -> Delay:
    return Delay(mean=timedelta(seconds=fmean(delays)))


def syncs_of(columns: Columns) -> list[int]:
    """Return the rows of the syncs."""
    return [row for row, synced in enumerate(columns.synced) if synced]


def around(columns: Columns, values: Sequence[int], at: float, span: float) -> tuple[int, int]:
    """Return the least and the greatest value of a column within some time around an instant."""
    first = max(0, bisect_right(columns.time, at - span) - 1)
    found = values[first : bisect_left(columns.time, at + span)]
    return min(found), max(found)


@every_run
def test_replicas_are_equal_at_each_sync(name: str) -> None:
    columns = at_recorded_instants(name)

    simulated = [columns.replicas[row] for row in syncs_of(columns)]
    assert simulated == [sync.replicas for sync in recorded(name).syncs]


@every_run
def test_ready_pods_are_equal_at_each_sync(name: str) -> None:
    columns = at_recorded_instants(name)

    ranges = [around(columns, columns.ready, sync.at, LATE) for sync in recorded(name).syncs]
    wrong = [
        f"{sync.at} s: {sync.ready} ready pods, simulated {least} to {most}"
        for sync, (least, most) in zip(recorded(name).syncs, ranges, strict=True)
        if not least <= sync.ready <= most
    ]
    assert wrong == []


@every_run
def test_metrics_are_equal_while_replicas_stay(name: str) -> None:
    """A sample averages over 1.5 s, and the workload of the run takes its steps 20 ms apart: 5 % of a change."""
    columns, run = at_recorded_instants(name), recorded(name)
    scenario = scenario_of(name)
    (metric,) = autoscaler_of(scenario).metrics
    request = scenario.workload.requests.get(metric.name, 0)
    wrong, compared = list[str](), 0
    for number, row in enumerate(syncs_of(columns)):
        sync = run.syncs[number]
        if len({each.replicas for each in run.syncs[max(0, number - 8) : number + 1]}) > 1:
            continue
        target = (metric.target.average or (metric.target.utilization or 0) * request / 100) / 1000
        pods = run.syncs[max(0, number - 1)].replicas if metric.type == "External" else len(sync.samples)
        ratio = sum(sync.samples) / pods / target
        compared += 1
        if abs(ratio - columns.utilization[row]) > 0.05:
            wrong.append(f"{sync.at} s: {ratio:.3f} of the target, simulated {columns.utilization[row]:.3f}")
    assert wrong == []
    assert compared > 20


@every_run
def test_replicas_are_equal_within_a_sync_period_without_recorded_instants(name: str) -> None:
    scenario = scenario_of(name)
    columns = simulate(scenario, load_series(scenario)).columns
    period = scenario.controller.sync_period.total_seconds()

    ranges = [around(columns, columns.replicas, sync.at, period) for sync in recorded(name).syncs]
    wrong = [
        f"{sync.at} s: {sync.replicas} replicas, simulated {least} to {most}"
        for sync, (least, most) in zip(recorded(name).syncs, ranges, strict=True)
        if not least <= sync.replicas <= most
    ]
    assert wrong == []


@every_run
def test_runs_scale_in_both_directions(name: str) -> None:
    run = recorded(name)

    assert len(run.syncs) >= 70
    assert any(after > before for _, before, after in run.actions)
    assert any(after < before for _, before, after in run.actions)
