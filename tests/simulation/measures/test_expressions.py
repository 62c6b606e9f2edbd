"""Expressions over measures."""

import pytest

from ocf.errors import ConfigError
from ocf.simulation.measures import parse_expression

MEASURES = {"overload_time": 0.02, "latency_p95": 0.25, "time_to_recover_max": 90.0, "pod_hours": 12.0, "cost": 3.0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("overload_time > 2%", False, id="percent"),
        pytest.param("overload_time >= 2 %", True, id="a space before the unit"),
        pytest.param("overload_time > .019", True, id="a plain number"),
        pytest.param("latency_p95 > 249ms", True, id="milliseconds"),
        pytest.param("time_to_recover_max < 2m", True, id="minutes"),
        pytest.param("time_to_recover_max == 0.025h", True, id="hours"),
        pytest.param("latency_p95 != 0.25s", False, id="seconds"),
        pytest.param("cost / pod_hours <= 0.25", True, id="a ratio"),
        pytest.param("pod_hours - 2 * (cost + 1) > 3", True, id="arithmetic"),
        pytest.param("-cost < -2", True, id="a sign"),
        pytest.param("overload_time > 5% or pod_hours > 10", True, id="or"),
        pytest.param("overload_time > 5% and pod_hours > 10", False, id="and"),
        pytest.param("not overload_time > 5%", True, id="not"),
        pytest.param("10 < pod_hours < 11", False, id="a chain"),
    ],
)
def test_a_condition_is_evaluated(text: str, expected: bool) -> None:
    assert parse_expression(text).holds(MEASURES) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "overload_time",
        "overload_time > ",
        "overload_time > 2% 3",
        "overload_time > '2'",
        "overload_time = 2%",
        "overload_time > 2d",
        "overload_time > True",
        "overload_time > 1j",
        "pod_hours in (1, 2)",
        "pod_hours ** 9 > 1",
        "pod_hours.real > 1",
        "print(1) > 2",
        "(lambda: 1)() > 2",
        "[overload_time] > 2",
        "overload_time > \0",
        "(" * 400,
    ],
)
def test_what_is_not_a_condition_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match="write a comparison of measures, such as 'overload_time > 2%'"):
        parse_expression(text)


def test_an_unknown_measure_gives_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"no measure 'overlaod_time'; did you mean overload_time\?"):
        parse_expression("overlaod_time > 2%")


def test_a_name_like_no_other_gives_all_of_them() -> None:
    with pytest.raises(ConfigError, match="no measure 'xyz'; the measures are overload_time, overloads, "):
        parse_expression("xyz > 2%")


def test_a_measure_that_the_run_does_not_have_is_an_error() -> None:
    with pytest.raises(ConfigError, match="the run has no late_share: the scenario has no objective for the latency"):
        parse_expression("late_share > 1%").holds(MEASURES)
    with pytest.raises(ConfigError, match="the run has no latency_p99: no load was served"):
        parse_expression("latency_p99 > 1s").holds(MEASURES)


def test_division_by_zero_is_an_error() -> None:
    with pytest.raises(ConfigError, match="'cost / pod_hours > 1': division by 0"):
        parse_expression("cost / pod_hours > 1").holds({"cost": 1.0, "pod_hours": 0.0})


def test_a_long_expression_is_rejected() -> None:
    with pytest.raises(ConfigError, match="may have 500 characters, not 600"):
        parse_expression("1" * 600)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("overload_time <= 2%", 0, id="met"),
        pytest.param("overload_time <= 1%", 1, id="twice the bound"),
        pytest.param("pod_hours < 8", 0.5, id="half more than the bound"),
        pytest.param("pod_hours < 12", 1e-9, id="a strict bound that is met exactly"),
        pytest.param("pod_hours < 8 and cost < 2", 1, id="and adds up"),
        pytest.param("pod_hours < 8 or cost < 1", 0.5, id="or takes the nearest"),
        pytest.param("not (pod_hours > 8 or cost > 2)", 1, id="not turns or into and"),
        pytest.param("not (pod_hours > 8 and cost > 1)", 0.5, id="not turns and into or"),
        pytest.param("not not pod_hours < 8", 0.5, id="not twice"),
        pytest.param("cost < pod_hours < 8", 0.75, id="the largest distance of a chain"),
        pytest.param("pod_hours <= 0", 1, id="a bound of 0"),
    ],
)
def test_the_violation_is_the_distance_from_the_condition(text: str, expected: float) -> None:
    assert parse_expression(text).violation(MEASURES) == pytest.approx(expected)


def test_the_violation_falls_as_values_come_closer_to_the_bound() -> None:
    rule = parse_expression("overload_time < 1% or pod_hours < 2")
    found = [rule.violation({"overload_time": value, "pod_hours": 9}) for value in (0.05, 0.03, 0.02, 0.01, 0.009)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == 0
