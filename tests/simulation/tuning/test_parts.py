"""Parts of a run."""

from dataclasses import fields
from datetime import timedelta

import pytest

from ocf.simulation import LoadSeries, Scenario, simulate
from ocf.simulation.measures import measure
from ocf.simulation.measures.catalog import MEASURES, MeasureUnit
from ocf.simulation.result import Columns, GroupColumns, SimulationResult
from ocf.simulation.scenario.objectives import Objectives
from ocf.simulation.scenario.workload import Workload
from ocf.simulation.tuning.evaluating import part_of, scaled_totals
from tests.simulation.engine.nodes.clusters import group_of, node_scenario
from tests.simulation.runs import run, scaled
from tests.simulation.tuning.cases import trace

WORKLOAD = Workload(capacity=10)


@pytest.mark.parametrize("end", [300, 611, 900])
def test_the_first_part_of_a_run_has_the_measures_of_a_run_that_ends_there(end: int) -> None:
    web = trace()
    short = simulate(web.scenario.model_copy(update={"duration": timedelta(seconds=end)}), web.load)
    part = part_of(simulate(web.scenario, web.load), 0, end)
    found = [measure(each, workload=web.scenario.workload, objectives=Objectives()) for each in (part, short)]
    assert found[0] == found[1]
    assert (part.syncs, part.actions, part.condition_changes) == (short.syncs, short.actions, short.condition_changes)


def test_totals_of_two_parts_add_up_to_those_of_the_run() -> None:
    whole = run([0, 60, 120], duration=180, ready=[1, 2, 4], actions=[scaled(60, 1, 2), scaled(120, 2, 4)])
    parts = [part_of(whole, begin, end) for begin, end in ((0, 90), (90, 180))]
    found = [measure(each, workload=WORKLOAD, objectives=Objectives()) for each in (*parts, whole)]
    for name in ("pod_hours", "scaling_actions", "scale_ups"):
        assert found[0][name] + found[1][name] == pytest.approx(found[2][name])
    assert [[each.time for each in part.actions] for part in parts] == [[60], [30]]


def test_a_row_that_is_cut_holds_from_the_begin_and_is_not_a_sync() -> None:
    part = part_of(run([0, 60, 120], duration=180, ready=[1, 2, 4]), 90, 150)
    assert (list(part.columns.time), list(part.columns.ready), list(part.columns.synced)) == ([0, 30], [2, 4], [0, 1])
    assert part.duration == 60


def on_nodes(*, seconds: int = 2400) -> tuple[Scenario, SimulationResult]:
    """Simulate pods on nodes of two groups, of which some are ordered and some removed."""
    down = {"duration": "2m", "cooldown": "2m"}
    groups = (group_of(scaleDown=down, maxNodes=2, priority=1), group_of("spare", scaleDown=down))
    scenario = node_scenario(*groups, duration=f"{seconds}s", workload={"replicas": 2})
    return scenario, simulate(scenario, LoadSeries.of([(0, 10), (300, 60), (900, 10)]))


@pytest.mark.parametrize("end", [320, 611, 1500])
def test_the_first_part_of_a_run_on_nodes_is_a_run_that_ends_there(end: int) -> None:
    (scenario, whole), (_, short) = on_nodes(), on_nodes(seconds=end)
    part = part_of(whole, 0, end)
    assert (part.columns, part.node_groups, part.node_actions) == (short.columns, short.node_groups, short.node_actions)
    found = [measure(each, workload=scenario.workload, objectives=scenario.objectives) for each in (part, short)]
    assert found[0] == found[1]


@pytest.mark.parametrize("cut", [320, 357.5, 900, 1700])
def test_columns_and_actions_of_nodes_are_cut_with_the_others(cut: float) -> None:
    scenario, whole = on_nodes()
    parts = [part_of(whole, begin, end) for begin, end in ((0, cut), (cut, whole.duration))]
    assert {each.source for each in whole.node_actions} == {"workers", "spare"}
    shifts = zip((0, cut), parts, strict=True)
    shifted = [(begin + each.time, each.source) for begin, part in shifts for each in part.node_actions]
    assert shifted == [(each.time, each.source) for each in whole.node_actions]
    for part in parts:
        lengths = {len(getattr(part.columns, each.name)) for each in fields(Columns)}
        lengths |= {len(getattr(of, each.name)) for of in part.node_groups.values() for each in fields(GroupColumns)}
        assert lengths == {len(part.columns.time)}
    found = [measure(each, workload=scenario.workload, objectives=scenario.objectives) for each in (*parts, whole)]
    for name in ("node_hours", "node_cost", "pending_pod_seconds", "nodes_added", "nodes_removed"):
        assert found[2][name] > 0, name
        assert found[0][name] + found[1][name] == pytest.approx(found[2][name]), name
    assert max(found[0]["nodes_max"], found[1]["nodes_max"]) == found[2]["nodes_max"]


def test_only_totals_are_scaled() -> None:
    scaled_names = {name for name, value in scaled_totals(dict.fromkeys(MEASURES, 1.0), 4).items() if value == 4}
    assert {"pod_hours", "cost", "scaling_actions", "flaps", "overloads", "dropped"} <= scaled_names
    rates = {MeasureUnit.SHARE, MeasureUnit.SECONDS, MeasureUnit.PODS, MeasureUnit.PER_HOUR, MeasureUnit.PLAIN}
    assert not {name for name in scaled_names if MEASURES[name].unit in rates}
    assert "backlog_max" not in scaled_names
