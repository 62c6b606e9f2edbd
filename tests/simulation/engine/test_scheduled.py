"""Metrics that follow a schedule, as the triggers of type `cron` of KEDA."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.simulation import InputError, Shared, parse_scenario
from ocf.simulation.engine.clock import SECOND, Clock
from ocf.simulation.engine.scheduled import Scheduled
from ocf.simulation.load import LoadSeries
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.schedule import Schedule
from tests.simulation.engine.scenarios import CPU, hpa_of, run, scenario_of
from tests.simulation.engine.test_exactness import calm_loads, calm_scenarios, same, steps_of


def cron(start: str, end: str, replicas: int, zone: str = "UTC") -> dict[str, Any]:
    """Return a signal of a schedule."""
    schedule = {"start": start, "end": end, "desired_replicas": replicas, "time_zone": zone}
    return {"source": "schedule", "schedule": schedule}


def trigger(name: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": "1"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def scheduled(signals: dict[str, Any], *metrics: dict[str, Any], **rest: Any) -> SimulationResult:
    """Run an HPA with a metric for each schedule, without windows, from midnight on."""
    at_once = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
    hpa = hpa_of(*(trigger(name) for name in signals), *metrics, **at_once)
    return run(scenario_of(hpa, workload={"signals": signals}, **{"duration": "4h", **rest}), (0, 0))


def replicas_at(result: SimulationResult, *hours: float) -> list[int]:
    """Return the replicas some time after the start."""
    columns = result.columns
    rows = list(zip(columns.time, columns.replicas, strict=True))
    return [[count for time, count in rows if time <= hour * 3600][-1] for hour in hours]


@pytest.mark.parametrize(
    ("schedule", "at", "expected"),
    [
        pytest.param(("0 8 * * *", "0 18 * * *"), "2026-01-01T07:59:59Z", 0, id="before the start"),
        pytest.param(("0 8 * * *", "0 18 * * *"), "2026-01-01T08:00:00Z", 5, id="at the start"),
        pytest.param(("0 8 * * *", "0 18 * * *"), "2026-01-01T17:59:59Z", 5, id="before the end"),
        pytest.param(("0 8 * * *", "0 18 * * *"), "2026-01-01T18:00:00Z", 0, id="at the end"),
        pytest.param(("0 22 * * *", "0 6 * * *"), "2026-01-01T23:00:00Z", 5, id="over midnight"),
        pytest.param(("0 22 * * *", "0 6 * * *"), "2026-01-01T12:00:00Z", 0, id="between two nights"),
        pytest.param(("0 8 * * 1", "0 18 * * 5"), "2026-01-07T03:00:00Z", 5, id="from Monday to Friday"),
        pytest.param(("0 0 * * 6", "0 0 * * 0"), "2026-01-04T00:00:00Z", 0, id="the end of a Saturday"),
        pytest.param(("0 * * * *", "0 */2 * * *"), "2026-01-01T13:30:00Z", 5, id="both at the same instant"),
    ],
)
def test_a_schedule_is_active_from_its_start_to_its_end(schedule: tuple[str, str], at: str, expected: int) -> None:
    found = Schedule(start=schedule[0], end=schedule[1], desired_replicas=5)
    assert Scheduled(found, Clock(datetime.fromisoformat(at))).at(0) == expected


def test_a_schedule_has_the_clock_of_its_time_zone() -> None:
    office = Schedule(start="0 8 * * *", end="0 18 * * *", desired_replicas=5, time_zone="Europe/Berlin")
    for day, begins in (("2026-03-28", 7), ("2026-03-29", 6)):
        found = Scheduled(office, Clock(datetime.fromisoformat(f"{day}T00:00:00Z")))
        assert (found.at(begins * 3600 * SECOND - 1), found.at(begins * 3600 * SECOND)) == (0, 5)


def test_the_hpa_follows_a_schedule() -> None:
    result = scheduled({"day": cron("0 1 * * *", "0 2 * * *", 8)})
    assert replicas_at(result, 0.9, 1.1, 1.9, 2.1) == [1, 8, 8, 1]


def test_of_several_schedules_the_largest_counts() -> None:
    signals = {"day": cron("0 1 * * *", "0 3 * * *", 4), "peak": cron("30 1 * * *", "0 2 * * *", 9)}
    assert replicas_at(scheduled(signals), 0.5, 1.25, 1.75, 2.5, 3.5) == [1, 4, 9, 4, 1]


def test_a_schedule_activates_a_workload_and_another_trigger_keeps_it_active() -> None:
    signals = {"day": cron("0 1 * * *", "0 2 * * *", 4), "jobs": {"source": "load"}}
    hpa = hpa_of(trigger("day"), trigger("jobs"))
    activator = {"cooldown_period": "10m"}
    scenario = scenario_of(hpa, workload={"signals": signals}, activator=activator, duration="4h")
    result = run(scenario, (0, 0), (6600, 1), (9000, 0))
    actions = [(each.time, each.after, each.reason) for each in result.actions if each.actor == "activator"]
    assert actions == [
        (0, 0, "no trigger was active since the start"),
        (3600, 1, "trigger day is 4, active above 0"),
        # The last look at which the load was above 0 in its window was at 9000 s.
        (9600, 0, "no trigger was active for 10m0s"),
    ]


def test_a_factor_multiplies_the_replicas_of_a_schedule() -> None:
    assert replicas_at(scheduled({"day": {**cron("0 1 * * *", "0 2 * * *", 4), "factor": 2}}), 1.5) == [8]


schedules = st.builds(
    lambda start, length, replicas: {
        "start": f"{start} * * * *",
        "end": f"{(start + length) % 60} * * * *",
        "desired_replicas": replicas,
    },
    st.integers(0, 59),
    st.integers(1, 59),
    st.integers(1, 40),
)


@given(calm_scenarios(), calm_loads(), schedules)
@settings(max_examples=60)
def test_syncs_that_run_together_give_what_snapshots_give_with_a_schedule(
    scenario: Any, changes: list[tuple[int, float]], schedule: dict[str, Any]
) -> None:
    steps = steps_of(changes)
    signals = {**scenario.workload.signals, "day": {"source": "schedule", "schedule": schedule}}
    made = scenario_of(
        {
            **scenario.hpa,
            "spec": {**scenario.hpa["spec"], "metrics": [*scenario.hpa["spec"]["metrics"], trigger("day")]},
        },
        workload={"signals": signals},
    )
    workload = scenario.workload.model_copy(update={"signals": made.workload.signals})
    tried = scenario.model_copy(update={"hpa": made.hpa, "workload": workload})
    shared = Shared(LoadSeries.of(steps))
    full = run(tried, *steps, full=True)
    same(run(tried, *steps), full)
    # A run with another schedule and the same load leaves nothing behind.
    other = tried.workload.model_copy(
        update={"signals": {**workload.signals, "day": workload.signals["day"].model_copy(update={"factor": 2.0})}}
    )
    run(tried.model_copy(update={"workload": other}), *steps, shared=shared)
    same(run(tried, *steps, shared=shared), full)


def test_runs_with_other_schedules_share_no_samples() -> None:
    steps = [(15.0 * step, 20.0 + step % 7) for step in range(200)]
    shared = Shared(LoadSeries.of(steps))
    for replicas in (3, 7):
        signals = {"day": cron("10 * * * *", "40 * * * *", replicas)}
        scenario = scenario_of(hpa_of(CPU, trigger("day")), workload={"signals": signals}, duration="50m")
        same(run(scenario, *steps, shared=shared), run(scenario, *steps, full=True))


TEXT = """\
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 9
    metrics: [{type: KIND, FIELD: {metric: {name: day}, target: {type: AverageValue, averageValue: 1}}}]
workload: {capacity: 10, signals: {day: SIGNAL}}
load: {type: Steady, rate: 1}
duration: 1h
"""
DAY = "{start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: 3}"


@pytest.mark.parametrize(
    ("kind", "signal", "problem"),
    [
        pytest.param("External", "{source: schedule}", "signals.day.schedule: required value", id="no schedule"),
        pytest.param("External", f"{{schedule: {DAY}}}", "and only with it", id="another source"),
        pytest.param("Pods", f"{{source: schedule, schedule: {DAY}}}", "is of type Pods", id="a metric of pods"),
        pytest.param(
            "External",
            f"{{source: schedule, schedule: {DAY.replace('18', '8')}}}",
            "start and end must differ, got '0 8 * * *' for both",
            id="no length",
        ),
        pytest.param(
            "External",
            f"{{source: schedule, schedule: {DAY.replace('0 8 * * *', '0 8 31 2 *')}}}",
            "schedule.start: has no instant within five years, got '0 8 31 2 *'",
            id="a day that does not exist",
        ),
        pytest.param(
            "External",
            f"{{source: schedule, schedule: {DAY.replace('0 8 * * *', '0 24 * * *')}}}",
            "schedule.start: the hour must be 0 to 23",
            id="an hour that does not exist",
        ),
        pytest.param(
            "External",
            f"{{source: schedule, schedule: {DAY.replace('3}', '3, timeZone: Berlin}')}}}",
            "schedule.timeZone: must be a time zone of the IANA database",
            id="an unknown time zone",
        ),
    ],
)
def test_an_invalid_schedule_is_an_error_of_its_field(kind: str, signal: str, problem: str) -> None:
    text = TEXT.replace("KIND", kind).replace("FIELD", kind.lower()).replace("SIGNAL", signal)
    with pytest.raises(InputError) as error:
        parse_scenario(text)
    assert problem in str(error.value)
