"""The replica calculator proposes as in the controller's own tests."""

import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import (
    CalculatorInputs,
    Pod,
    Rule,
    Sample,
    Settings,
    Tolerances,
    Unavailable,
    from_average,
    from_total,
    from_total_per_pod,
    from_utilization,
)
from ocf.autoscaling.algorithm.arithmetic import INT32_MAX, INT64_MAX
from ocf.autoscaling.algorithm.replica_calculator import Calculation, sum_series

TABLE: Final = Path(__file__).parent / "data" / "upstream.jsonl.gz"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)

Case = dict[str, Any]


def instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def upstream() -> Iterator[Any]:
    """Yield the cases of Kubernetes' own tests; see `scripts/oracles/hpa/cases.sh`."""
    with gzip.open(TABLE, "rt", encoding="utf-8") as lines:
        for position, line in enumerate(lines):
            row = json.loads(line)
            if row["kind"] == "calculation":
                yield pytest.param(row["in"], row["out"], id=f"{row['test']}-{position}")


def inputs_of(case: Case) -> CalculatorInputs:
    return CalculatorInputs(
        current=case["current"],
        observed=case["current"],
        pods=[Pod.of(pod) for pod in case["pods"] or ()],
        tolerances=Tolerances(*case["tolerances"]),
        settings=Settings(
            cpu_initialization_period=timedelta(milliseconds=case["cpuInit"]),
            initial_readiness_delay=timedelta(milliseconds=case["readiness"]),
            features=FeatureGates(pod_level_resources=case["podLevel"]),
        ),
        now=instant(case["now"]),
    )


def samples(recorded: Mapping[str, Any]) -> dict[str, Sample]:
    return {
        name: Sample(value, instant(at), timedelta(milliseconds=window))
        for name, (value, at, window) in recorded["samples"].items()
    }


def computed(case: Case) -> Calculation | Unavailable:
    """Return the calculation of a case that has metric values."""
    inputs, target, (recorded,) = inputs_of(case), case["target"], case["readings"].values()
    match case["call"]:
        case "utilization":
            found = samples(recorded)
            return from_utilization(inputs, found, target, resource=case["resource"], container=case["container"])
        case "average":
            return from_average(inputs, samples(recorded), target, resource=case["resource"])
        case "total":
            return from_total(inputs, recorded["values"][0], target)
        case "external":
            return from_total(inputs, sum_series(recorded["values"], per_pod=False), target)
        case "objectPerPod":
            return from_total_per_pod(inputs, recorded["values"][0], target)
        case _:
            return from_total_per_pod(inputs, sum_series(recorded["values"], per_pod=True), target)


@pytest.mark.parametrize(("case", "answer"), list(upstream()))
def test_calculations_equal_the_controllers_own_cases(case: Case, answer: Case) -> None:
    (recorded,) = case["readings"].values()
    if recorded["error"]:
        assert recorded["error"] in answer["error"]
        return
    result = computed(case)
    if isinstance(result, Unavailable):
        assert result.message == answer["error"]
        return

    assert answer["error"] == ""
    assert result.replicas == answer["replicas"]
    assert result.measured == answer["usage"]
    assert (result.utilization or 0) == answer["utilization"]


def test_there_are_as_many_cases_as_in_kubernetes() -> None:
    assert len(list(upstream())) >= 75


def inputs_with(current: int, *, tolerance: float = 0.1) -> CalculatorInputs:
    return CalculatorInputs(current, current, (), Tolerances(tolerance, tolerance), Settings(), NOON)


@pytest.mark.parametrize(
    ("values", "per_pod", "expected"),
    [
        pytest.param([INT64_MAX, 1], False, INT64_MAX, id="too large"),
        pytest.param([INT64_MAX, 1], True, INT64_MAX, id="too large, by overflow"),
        pytest.param([-5, 3], False, -2, id="below zero"),
        pytest.param([-5, 3], True, INT64_MAX, id="below zero counts as overflow per pod"),
        pytest.param([], False, 0, id="no series"),
    ],
)
def test_series_are_added_up(values: list[int], per_pod: bool, expected: int) -> None:
    assert sum_series(values, per_pod=per_pod) == expected


def test_without_observed_replicas_the_total_decides() -> None:
    """With zero observed replicas the ratio is infinite, and so never tolerated."""
    result = from_total_per_pod(inputs_with(0), 1000, 100)

    assert (result.replicas, result.rule) == (10, Rule.TOTAL)
    assert result.measured == -(2**63)


def test_proposals_are_capped_at_the_largest_number() -> None:
    result = from_total_per_pod(inputs_with(1), INT64_MAX, 1)

    assert (result.replicas, result.measured) == (INT32_MAX, INT64_MAX)


@pytest.mark.parametrize(
    ("total", "inside"),
    [(1100, True), (1101, False), (900, True), (899, False)],
)
def test_both_ends_of_the_tolerance_are_inside(total: int, inside: bool) -> None:
    result = from_total(inputs_with(4), total, 1000)

    assert isinstance(result, Unavailable) is not inside
