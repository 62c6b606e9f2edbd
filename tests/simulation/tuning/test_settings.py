"""Settings: ranges, choices, and what cannot be searched."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.simulation.tuning import parse_setting
from ocf.simulation.tuning.settings import range_setting


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("a=2..4", (2, 3, 4), id="whole numbers"),
        pytest.param("a=2..9 step 3", (2, 5, 8), id="the end is not a step"),
        pytest.param("a=0.1..0.3 step 0.1", (0.1, 0.2, 0.3), id="exact decimals"),
        pytest.param("a=-1..1", (-1, 0, 1), id="negative"),
        pytest.param("a=5..5", (5,), id="one value"),
        pytest.param("a=30s..60s step 15s", ("30s", "45s", "60s"), id="unit"),
        pytest.param("a=100m..200m step 50", ("100m", "150m", "200m"), id="step without a unit"),
        pytest.param("a=Max|Min", ("Max", "Min"), id="texts"),
        pytest.param("a=1|2.5|true|null", (1, 2.5, True, None), id="as in YAML"),
        pytest.param("a=1|1|true", (1, True), id="equal values count once"),
        pytest.param("a={type: Pods, value: 4}", ({"type": "Pods", "value": 4},), id="a map"),
    ],
)
def test_a_setting_has_these_values(text: str, values: tuple[Any, ...]) -> None:
    found = parse_setting(text).values
    assert (found, [*map(type, found)]) == (values, [*map(type, values)])


def test_a_range_without_a_step_has_whole_steps_or_a_twentieth() -> None:
    assert len(parse_setting("a=0..50").values) == 51
    assert parse_setting("a=0..0.5").values[:3] == (0, 0.025, 0.05)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("spec.minReplicas", "invalid setting 'spec.minReplicas': write the path", id="no values"),
        pytest.param("=1..2", "invalid setting '=1..2'", id="no path"),
        pytest.param("a=9..2", "a: the range is empty: 9 is more than 2", id="empty"),
        pytest.param("a=1s..2m", "a: both ends of a range must have the same unit, got 1s and 2m", id="units"),
        pytest.param("a=1..9 step 0", "a: the step must be more than 0, in the unit of the range, got 0", id="step"),
        pytest.param("a=1..9 step 2s", "a: the step must be more than 0, in the unit of the range", id="step unit"),
        pytest.param("a=one..two", "a: must be a number, with or without a unit, such as 60", id="text"),
        pytest.param("a=1..1e9", "a: must have at most 10000 values, got 1000000000: set a larger step", id="many"),
        pytest.param("a[=1..2", r"invalid field path 'a['", id="path"),
        pytest.param("seed=1..2", "seed: cannot be searched: all candidates have the same seed", id="seed"),
        pytest.param("load[0].rate=1..2", "load[0].rate: cannot be searched", id="load"),
        pytest.param("hpa.spec.minReplicas=1..2", "write spec.… for a field of the HPA", id="hpa"),
    ],
)
def test_an_invalid_setting_is_rejected(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_setting(text)
    assert error in str(caught.value)


@given(first=st.integers(-999, 999), steps=st.integers(0, 50), step=st.integers(1, 40), digits=st.integers(0, 4))
def test_values_rise_evenly_and_keep_the_decimals_of_the_range(first: int, steps: int, step: int, digits: int) -> None:
    scale = 10**digits
    found = range_setting("a", first / scale, (first + steps * step) / scale, step / scale).values
    assert found == tuple((first + step * number) / scale for number in range(steps + 1))
