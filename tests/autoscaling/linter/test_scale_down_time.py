"""Time from the largest size to the smallest."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.linter.scale_down_time import scale_down_seconds, shown_duration


def pods(value: int, period: int) -> dict[str, Any]:
    return {"type": "Pods", "value": value, "periodSeconds": period}


def percent(value: int, period: int) -> dict[str, Any]:
    return {"type": "Percent", "value": value, "periodSeconds": period}


def rules(policies: list[dict[str, Any]], selection: str, window: int) -> dict[str, Any]:
    return {"policies": policies, "selectPolicy": selection, "stabilizationWindowSeconds": window}


@pytest.mark.parametrize(
    ("given_rules", "sizes", "seconds"),
    [
        pytest.param(rules([percent(100, 15)], "Max", 300), (50, 1), 300, id="the server's defaults: one window"),
        pytest.param(rules([percent(100, 15)], "Max", 0), (50, 1), 0, id="at once"),
        pytest.param(rules([pods(1, 60)], "Max", 0), (5, 1), 180, id="one a minute"),
        pytest.param(rules([pods(1, 300)], "Max", 300), (50, 1), 300 + 48 * 300, id="one per five minutes"),
        pytest.param(rules([pods(2, 60)], "Max", 0), (6, 1), 120, id="the last step is shorter"),
        pytest.param(rules([percent(50, 60)], "Max", 0), (8, 1), 120, id="halves: 4, 2, 1"),
        pytest.param(
            rules([percent(90, 15)], "Max", 0),
            (20, 1),
            0,
            id="a percentage is truncated: 10 percent of 20 leave 1, by way of 1.99",
        ),
        pytest.param(rules([pods(1, 60), pods(3, 60)], "Max", 0), (7, 1), 60, id="the largest change counts"),
        pytest.param(rules([pods(1, 60), pods(3, 60)], "Min", 0), (4, 1), 120, id="the smallest change counts"),
        pytest.param(rules([pods(1, 1)], "Max", 0), (4, 1), 30, id="never more often than the controller syncs"),
        pytest.param(rules([pods(1, 15)], "Max", 300), (3, 3), 0, id="nothing to do"),
    ],
)
def test_the_time_follows_from_the_policies(given_rules: dict[str, Any], sizes: tuple[int, int], seconds: int) -> None:
    assert scale_down_seconds(given_rules, *sizes) == seconds


def test_the_default_window_is_that_of_the_controller() -> None:
    assert scale_down_seconds({"policies": [percent(100, 15)], "selectPolicy": "Max"}, 5, 1) == 300


@pytest.mark.parametrize(
    "rules_given",
    [
        pytest.param({"policies": [pods(1, 15)], "selectPolicy": "Disabled"}, id="disabled"),
        pytest.param({"policies": [pods(1, 1800)], "selectPolicy": "Max"}, id="days"),
        pytest.param({"policies": [], "selectPolicy": "Max"}, id="no policies"),
    ],
)
def test_an_endless_scale_down_is_none(rules_given: dict[str, Any]) -> None:
    assert scale_down_seconds(rules_given, 10_000, 1) is None


@given(st.integers(1, 60), st.integers(1, 10), st.integers(15, 120))
def test_a_larger_size_never_takes_less_time(size: int, value: int, period: int) -> None:
    slow = rules([pods(value, period)], "Max", 0)

    assert (scale_down_seconds(slow, size, 1) or 0) <= (scale_down_seconds(slow, size + 1, 1) or 0)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h 0 min")]
)
def test_durations_are_written_with_units(seconds: int, shown: str) -> None:
    assert shown_duration(seconds) == shown
