"""Problems: the scenario of a candidate, and combinations that cannot be run."""

import re
from datetime import timedelta
from typing import Any

import pytest

from ocf.errors import ConfigError
from ocf.simulation.scenario.scenario import HpaEdit
from ocf.simulation.tuning import LoadTrace, Problem, parse_setting
from ocf.simulation.tuning.problem import InvalidCandidate, with_value
from tests.simulation.tuning.cases import SCENARIO, UTILIZATION, WINDOW, problem, trace


def test_a_candidate_has_its_values_in_the_hpa_and_in_the_scenario() -> None:
    several = problem(f"{UTILIZATION}=40|70", "controller.tolerance=0.1|0.2", "workload.readiness.mean=8s|20s")
    scenario = several.scenario(several.traces[0], (1, 1, 1))
    [metric] = several.hpa((1, 1, 1))["spec"]["metrics"]
    assert metric["resource"]["target"]["averageUtilization"] == 70
    assert (scenario.controller.tolerance, scenario.workload.readiness.mean.total_seconds()) == (0.2, 20)
    assert scenario.load == several.traces[0].scenario.load
    assert several.values((1, 0, 1)) == {
        UTILIZATION: 70,
        "controller.tolerance": 0.1,
        "workload.readiness.mean": "20s",
    }


def test_the_current_settings_are_those_of_the_scenario() -> None:
    several = problem(f"{UTILIZATION}=40|70", WINDOW + "=0..60", "controller.tolerance=0.1|0.2")
    assert several.scenario(several.traces[0], None) is several.traces[0].scenario
    assert several.values(None) == {UTILIZATION: 60, WINDOW: None, "controller.tolerance": 0.1}


def test_a_candidate_holds_throughout_a_run_whose_hpa_was_edited() -> None:
    first = trace()
    edits = (HpaEdit(at=timedelta(minutes=5), spec={**first.hpa["spec"], "maxReplicas": 5}),)
    edited = LoadTrace(name="web", scenario=first.scenario.model_copy(update={"hpa_edits": edits}), load=first.load)
    several = problem(f"{UTILIZATION}=40|70", traces=(edited,))
    assert several.scenario(edited, None).hpa_edits == edits
    assert several.scenario(edited, (0,)).hpa_edits == ()


def test_a_path_may_name_a_policy_of_the_defaults() -> None:
    found = problem("spec.behavior.scaleUp.policies[1].value=50|200").hpa((0,))
    assert found["spec"]["behavior"]["scaleUp"]["policies"] == [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 50, "periodSeconds": 15},
    ]


@pytest.mark.parametrize(
    ("setting", "problem_text"),
    [
        pytest.param(
            "spec.minReplicas=21", "spec.maxReplicas: Invalid value: 20: must be greater than or equal to", id="bounds"
        ),
        pytest.param(f"{UTILIZATION}=0", "must be greater than 0", id="target"),
        pytest.param(
            "spec.behavior.scaleDown.selectPolicy=Mix", "spec.behavior.scaleDown.selectPolicy: Unsupported", id="choice"
        ),
        pytest.param("spec.metrics[3].type=Pods", "spec.metrics[3]: spec.metrics has 1 items: add one", id="position"),
        pytest.param("spec.minReplicas.x=1", "spec.minReplicas.x: spec.minReplicas has no such field", id="scalar"),
        pytest.param("spec.minReplicsa=1", "spec.minReplicsa: unknown field", id="unknown field"),
        pytest.param(
            "controller.tolerence=1",
            'controller.tolerence: unknown field, did you mean "tolerance"?',
            id="unknown field of the scenario",
        ),
        pytest.param("workload.capacity=-1", "workload.capacity: must be greater than 0", id="value of the scenario"),
        pytest.param("workload.requests.cpu=null", "workload.requests: required value: spec.metrics[0]", id="removed"),
    ],
)
def test_an_invalid_combination_has_the_reasons_of_the_validator(setting: str, problem_text: str) -> None:
    one = problem(setting)
    with pytest.raises(InvalidCandidate, match=re.escape(problem_text)):
        one.scenario(one.traces[0], (0,))
    with pytest.raises(ConfigError, match=re.escape(problem_text)):
        one.check()


def test_a_setting_is_valid_if_another_one_repairs_it() -> None:
    problem("spec.minReplicas=30..40", "spec.maxReplicas=40..60").check()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        pytest.param(["spec.minReplicas=1..2"] * 2, "spec.minReplicas: is searched twice", id="twice"),
        pytest.param(["spec.behavior={}", f"{WINDOW}=0..9"], "spec.behavior: one of its own fields", id="part"),
    ],
)
def test_contradicting_settings_are_rejected(settings: list[str], error: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(error)):
        problem(*settings)


def test_all_traces_tune_the_same_hpa() -> None:
    other = trace(name="other", text=SCENARIO.replace("averageUtilization: 60", "averageUtilization: 70"))
    with pytest.raises(ConfigError, match="other: its HPA differs from that of web"):
        Problem(traces=(trace(), other), settings=(parse_setting("spec.minReplicas=1..2"),))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param(("a", "b"), 1, {"a": {"b": 1}, "l": [{"x": 1}]}, id="new maps"),
        pytest.param(("l", 0, "x"), 2, {"l": [{"x": 2}]}, id="item"),
        pytest.param(("l", 0, "x"), None, {"l": [{}]}, id="removed"),
        pytest.param(("l",), [1], {"l": [1]}, id="whole list"),
    ],
)
def test_a_value_is_set_in_a_copy(path: tuple[str | int, ...], value: Any, expected: Any) -> None:
    document = {"l": [{"x": 1}]}
    assert with_value(document, path, value) == expected
    assert document == {"l": [{"x": 1}]}


@pytest.mark.parametrize("start", ["", "start: 2026-03-01T14:04:00Z\n"], ids=["without a date", "with a date"])
def test_a_setting_of_the_scenario_leaves_its_date_as_it_is(start: str) -> None:
    found = problem("controller.syncPeriod=15s|30s", traces=(trace(text=SCENARIO + start),))
    assert found.scenario(found.traces[0], (1,)).is_dated is bool(start)
