"""Edits of the HPA during a run."""

from datetime import timedelta
from typing import Any

import pytest

from ocf.simulation import LoadSeries, Scenario, simulate
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.scenario import HpaEdit
from tests.simulation.engine.scenarios import CPU, hpa_of, rows_of, scenario_of


def edited(*edits: tuple[float, dict[str, Any]], **spec: Any) -> Scenario:
    """Return a scenario whose HPA is edited at some seconds."""
    changes = tuple(HpaEdit(at=timedelta(seconds=at), spec=hpa_of(**edit)["spec"]) for at, edit in edits)
    return scenario_of(hpa_of(**spec), workload={"replicas": 4}).model_copy(update={"hpa_edits": changes})


def run(scenario: Scenario, *steps: tuple[float, float]) -> SimulationResult:
    """Simulate ten minutes, by default at twice the target of four pods."""
    return simulate(scenario, LoadSeries.of(steps or [(0, 40)]))


@pytest.mark.parametrize(
    ("at", "first"),
    [
        pytest.param(120, 120, id="at a sync"),
        pytest.param(119.999999, 120, id="before a sync"),
        pytest.param(120.000001, 135, id="after a sync"),
    ],
)
def test_an_edit_counts_from_the_first_sync_that_is_not_before_it(at: float, first: float) -> None:
    found = run(edited((at, {"maxReplicas": 12}), maxReplicas=6))
    assert [(each.time, each.after) for each in found.actions] == [(0, 6), (first, 8)]
    assert found.syncs == 40


def test_edits_between_two_syncs_count_together() -> None:
    found = run(edited((121, {"maxReplicas": 20}), (124, {"maxReplicas": 7}), maxReplicas=6))
    assert [each.after for each in found.actions] == [6, 7]


def test_a_new_window_sees_what_was_recommended_before_the_edit() -> None:
    immediately, later = ({"behavior": {"scaleDown": {"stabilizationWindowSeconds": each}}} for each in (0, 200))
    found = run(edited((302, later), minReplicas=2, **immediately), (0, 40), (300, 10))
    # Eight were recommended until 300 s, so that none may be removed until 500 s.
    assert next(each.time for each in found.actions if each.after < each.before) == pytest.approx(510, abs=15)


@pytest.mark.parametrize(
    ("recreated", "removed"),
    [
        pytest.param(False, 510, id="edited: until 500 s, the eight of before 300 s count"),
        pytest.param(True, 615, id="created anew: the eight of its first sync count from 400 s on"),
    ],
)
def test_an_hpa_that_is_created_anew_has_no_history(recreated: bool, removed: float) -> None:
    window = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 200}}}
    scenario = edited((400, window), minReplicas=2, **window)
    [edit] = scenario.hpa_edits
    parts = {"hpa_edits": (edit.model_copy(update={"recreated": recreated}),), "duration": timedelta(minutes=15)}
    found = run(scenario.model_copy(update=parts), (0, 40), (300, 10))
    assert next(each.time for each in found.actions if each.after < each.before) == pytest.approx(removed, abs=15)


def test_an_edit_that_changes_nothing_changes_no_row() -> None:
    plain, same = run(edited()), run(edited((61, {}), (400, {})))
    assert repr(rows_of(same)) == repr(rows_of(plain))
    assert (same.actions, same.condition_changes) == (plain.actions, plain.condition_changes)


def test_a_metric_that_an_edit_adds_was_measured_before() -> None:
    signal = {"metric": {"name": "signal"}, "target": {"type": "AverageValue", "averageValue": "4"}}
    scenario = edited().model_copy(
        update={"hpa_edits": (HpaEdit(at=timedelta(seconds=90), spec=hpa_of(CPU, external(signal))["spec"]),)}
    )
    workload = scenario.workload.model_validate(
        {**scenario.workload.model_dump(mode="json", by_alias=True), "signals": {"signal": {"source": "load"}}}
    )
    found = run(scenario.model_copy(update={"workload": workload}))
    # 40 load units, four for each pod; the sample is that of the scrape before.
    assert [(each.time, each.after) for each in found.actions] == [(0, 8), (90, 10)]


def external(metric: dict[str, Any]) -> dict[str, Any]:
    """Return an external metric."""
    return {"type": "External", "external": metric}


def test_another_hpa_is_not_edited() -> None:
    scenario = edited((120, {"maxReplicas": 12}), maxReplicas=6)
    assert [each.after for each in simulate(scenario, LoadSeries.of([(0, 40)]), hpa=hpa_of(maxReplicas=5)).actions] == [
        5
    ]
