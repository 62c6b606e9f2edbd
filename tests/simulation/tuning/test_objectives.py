"""Objectives, dominance, and the ranking of a front."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.simulation.measures import parse_expression
from ocf.simulation.scenario.objectives import Objectives
from ocf.simulation.tuning.objectives import dominates, front_of, parse_objectives, ranked, scenario_requirements

LOSSES = st.integers(1, 3).flatmap(
    lambda count: st.lists(st.tuples(*[st.integers(0, 6).map(float)] * count), min_size=1, max_size=40)
)


def test_without_objectives_overload_and_pod_hours_are_minimized() -> None:
    assert [each.name for each in parse_objectives([])] == ["overload_time", "pod_hours"]


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        pytest.param(["overlod_time"], "there is no measure 'overlod_time'; did you mean overload_time?", id="unknown"),
        pytest.param(["flaps", "flaps"], "the objective flaps is given twice", id="twice"),
        pytest.param(["cost:max"], "objective cost:max: contradicts the measure, of which lower", id="contradiction"),
        pytest.param(["ready_mean"], "objective ready_mean: lower values are not always better: write", id="direction"),
        pytest.param(["cost:down"], "objective cost: the direction must be min or max, got 'down'", id="misspelled"),
    ],
)
def test_invalid_objectives_are_rejected(texts: list[str], error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_objectives(texts)
    assert error in str(caught.value)


@given(LOSSES)
def test_the_front_has_no_dominated_member_and_dominates_all_others(losses: list[tuple[float, ...]]) -> None:
    front = front_of(losses)
    members = [losses[at] for at in front]
    assert len(set(members)) == len(members)
    assert not any(dominates(one, other) for one in losses for other in members)
    assert all(each in members or any(dominates(member, each) for member in members) for each in losses)


@given(LOSSES)
def test_the_best_of_a_front_is_not_worse_in_all_objectives_than_its_ideal_corner(
    losses: list[tuple[float, ...]],
) -> None:
    members = [losses[at] for at in front_of(losses)]
    order = ranked(members)
    assert sorted(order) == list(range(len(members)))
    if len(losses[0]) == 1:
        assert members[order[0]] == min(losses)


def test_bounds_of_a_scenario_are_requirements() -> None:
    objectives = Objectives.model_validate(
        {"overloadTime": 0.02, "podHours": 40, "cost": 3, "latency": {"atMost": "1s", "percentile": 99}}
    )
    found = scenario_requirements(objectives)
    assert found == ("overload_time <= 0.02", "pod_hours <= 40", "cost <= 3", "late_share <= 0.01")
    assert [parse_expression(each).text for each in found] == list(found)
