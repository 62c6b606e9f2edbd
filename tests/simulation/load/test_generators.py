"""Generated loads."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ocf.errors import ConfigError
from ocf.simulation import Scenario, load_series
from tests.simulation.load.support import scenario, series, steps

HERE = Path()


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        pytest.param({"type": "Steady", "rate": 5}, [(0, 5)], id="steady"),
        pytest.param({"type": "Steady", "rate": 5, "at": "10s"}, [(0, 0), (10, 5)], id="later"),
        pytest.param({"type": "Steady", "rate": 5, "duration": "30s"}, [(0, 5), (30, 0)], id="not until the end"),
        pytest.param({"type": "Steady", "rate": 5, "at": "2m"}, [(0, 0)], id="after the end"),
        pytest.param(
            {"type": "Ramp", "fromRate": 10, "toRate": 30, "over": "40s", "step": "20s"},
            [(0, 15), (20, 25), (40, 30)],
            id="ramp",
        ),
        pytest.param(
            {"type": "Ramp", "fromRate": 30, "toRate": 0, "over": "2m", "step": "30s"},
            [(0, 26.25), (30, 18.75)],
            id="ramp that is cut",
        ),
        pytest.param(
            {"type": "Ramp", "fromRate": 0, "toRate": 25, "over": "25s", "step": "10s"},
            [(0, 5), (10, 15), (20, 22.5), (25, 25)],
            id="ramp whose last step is shorter",
        ),
        pytest.param({"type": "Spike", "peak": 9, "at": "10s", "hold": "5s"}, [(0, 0), (10, 9), (15, 0)], id="spike"),
        pytest.param(
            {"type": "Spike", "peak": 8, "rise": "10s", "fall": "20s", "step": "10s"},
            [(0, 4), (10, 6), (20, 2), (30, 0)],
            id="spike that rises and falls",
        ),
        pytest.param(
            {"type": "Sine", "mean": 10, "amplitude": 10, "period": "40s", "step": "20s"},
            [(0, 20), (20, 0), (40, 20)],
            id="sine",
        ),
        pytest.param(
            {"type": "Sine", "mean": 10, "amplitude": 5, "period": "40s", "step": "20s", "phase": "20s"},
            [(0, 5), (20, 15), (40, 5)],
            id="sine with a phase",
        ),
        pytest.param(
            {"type": "Steps", "steps": [{"at": "10s", "rate": 5}, {"at": "20s", "rate": 0}, {"at": "2m", "rate": 9}]},
            [(0, 0), (10, 5), (20, 0)],
            id="steps",
        ),
    ],
)
def test_a_load_has_these_steps(load: dict[str, Any], expected: list[tuple[float, float]]) -> None:
    found = series(HERE, load, duration="1m")

    assert steps(found) == expected
    assert found.end == 60


def test_loads_are_added_up() -> None:
    found = series(
        HERE,
        {"type": "Steady", "rate": 1},
        {"type": "Steady", "rate": 2, "at": "10s", "duration": "20s"},
        {"type": "Steps", "steps": [{"at": 0, "rate": 4}, {"at": "20s", "rate": 8}]},
        duration="1m",
    )

    assert steps(found) == [(0, 5), (10, 7), (20, 11), (30, 9)]


def test_the_simulation_ends_with_the_load_that_ends_last() -> None:
    found = series(
        HERE,
        {"type": "Steady", "rate": 1},
        {"type": "Steady", "rate": 1, "duration": "20s"},
        {"type": "Steady", "rate": 1, "at": "30s", "duration": "15s"},
    )

    assert found.end == 45


def test_a_simulation_without_an_end_is_an_error() -> None:
    with pytest.raises(ConfigError, match="duration: required value: no load of the scenario ends"):
        series(HERE, {"type": "Steady", "rate": 1})


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        pytest.param({"type": "Steady", "rate": -1}, "greater than or equal to 0", id="negative rate"),
        pytest.param({"type": "Steady", "rate": math.nan}, "finite number", id="not a number"),
        pytest.param({"type": "Steady", "rates": 1}, "Extra inputs are not permitted", id="unknown field"),
        pytest.param({"type": "Stedy", "rate": 1}, "does not match any of the expected tags", id="unknown type"),
        pytest.param({"type": "Spike", "peak": 1}, "the spike takes no time", id="spike without a length"),
        pytest.param(
            {"type": "Sine", "mean": 1, "amplitude": 2, "period": "1h"},
            "amplitude 2 is above the mean 1: a load is never negative",
            id="sine below 0",
        ),
        pytest.param(
            {"type": "Steps", "steps": [{"at": "1m", "rate": 1}, {"at": "1m", "rate": 2}]},
            "0:01:00 does not come after 0:01:00",
            id="doubled steps",
        ),
        pytest.param({"type": "Steps", "steps": []}, "at least 1 item", id="no steps"),
        pytest.param({"type": "Daily", "rates": {"24:00": 1}}, "must be a time of day such as 08:30", id="time of day"),
        pytest.param({"type": "Daily", "rates": {}}, "at least 1 item", id="no rates"),
        pytest.param(
            {"type": "Daily", "rates": {"00:00": 1}, "timeZone": "Europe/Bern"},
            "must be a time zone of the IANA database",
            id="time zone",
        ),
        pytest.param({"type": "Weekly", "rates": {"00:00": 1}, "days": {"tag": 1}}, "'monday'", id="day of the week"),
    ],
)
def test_an_invalid_load_is_rejected(load: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        scenario(load)


def test_a_load_with_too_many_steps_is_rejected() -> None:
    load = {"type": "Sine", "mean": 1, "amplitude": 1, "period": "1h", "step": "1ms"}

    with pytest.raises(ConfigError, match=r"step: 0\.001s makes 86400000 steps in 86400s; at most 5000000 are allowed"):
        series(HERE, load, duration="24h")


def test_a_daily_load_follows_the_clock_of_its_time_zone() -> None:
    load = {
        "type": "Daily",
        "rates": {"06:00": 100, "12:00": 160, "18:00": 40},
        "timeZone": "Europe/Berlin",
        "step": "1s",
    }
    found = series(HERE, load, start="2026-03-28T23:00:00Z", duration="24h")

    # Clocks are set forward at 02:00, so 06:00 is five hours after midnight.
    assert [round(found.at(hour * 3600), 1) for hour in (0, 5, 8, 11, 17)] == [70.0, 100.0, 130.0, 160.0, 40.0]


def test_a_weekly_load_has_a_factor_for_each_day() -> None:
    load = {"type": "Weekly", "rates": {"00:00": 100}, "days": {"saturday": 0.5, "sunday": 0}, "step": "1h"}
    found = series(HERE, load, start="2026-01-02T00:00:00Z", duration="72h")  # a Friday

    assert [found.at(day * 86_400) for day in range(3)] == [100, 50, 0]


class TestNoise:
    @given(
        st.integers(0, 2**32),
        st.floats(0, 1),
        st.floats(0, 50),
        st.floats(0, 0.99),
        st.sampled_from(["7s", "15s", "1m"]),
    )
    def test_it_stays_within_its_bounds_and_never_below_zero(
        self, seed: int, share: float, spread: float, correlation: float, step: str
    ) -> None:
        noise = {"type": "Noise", "share": share, "spread": spread, "correlation": correlation, "step": step}
        loads = ({"type": "Steps", "steps": [{"at": 0, "rate": 20}, {"at": "3m", "rate": 90}]}, noise)
        found = series(HERE, *loads, duration="10m", seed=seed)

        for time, rate in steps(found):
            base = 20 if time < 180 else 90
            change = base * share + spread + 1e-6
            assert max(base - change, 0) <= rate <= base + change

    def test_it_has_a_begin_and_an_end(self) -> None:
        noise = {"type": "Noise", "spread": 5, "at": "1m", "duration": "1m"}
        found = series(HERE, {"type": "Steady", "rate": 20}, noise, duration="3m")

        changed = {time for time, rate in steps(found) if rate != 20}
        assert changed == {60, 75, 90, 105}

    def test_it_is_the_same_on_every_platform(self) -> None:
        loads = ({"type": "Steady", "rate": 20}, {"type": "Noise", "share": 0.5, "correlation": 0.5})

        found = series(HERE, *loads, duration="1m", seed=7)

        assert steps(found) == [(0.0, 17.964145725), (15.0, 20.867311571), (30.0, 17.209090781), (45.0, 20.013656651)]

    def test_two_noises_differ(self) -> None:
        base = {"type": "Steady", "rate": 20}
        noise = {"type": "Noise", "share": 0.5}
        first = series(HERE, base, noise, duration="1m")
        second = series(HERE, base, {"type": "Noise"}, noise, duration="1m")

        assert first.rates != second.rates


GENERATED = st.one_of(
    st.fixed_dictionaries({"type": st.just("Steady"), "rate": st.integers(0, 99)}),
    st.fixed_dictionaries(
        {
            "type": st.just("Ramp"),
            "fromRate": st.integers(0, 99),
            "toRate": st.integers(0, 99),
            "over": st.integers(1, 900),
            "step": st.sampled_from([7, 15, 60]),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("Spike"),
            "peak": st.integers(0, 99),
            "rise": st.integers(0, 90),
            "hold": st.integers(1, 90),
            "fall": st.integers(0, 90),
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("Sine"), "mean": st.just(9), "amplitude": st.just(8), "period": st.just(100)}
    ),
)
PLACED = st.builds(
    lambda load, at, duration: {**load, "at": at, **({"duration": duration} if duration else {})},
    GENERATED,
    st.integers(0, 700),
    st.none() | st.integers(1, 700),
)


@given(st.lists(PLACED, min_size=1, max_size=4))
def test_the_sum_is_the_sum_at_every_instant(loads: list[dict[str, Any]]) -> None:
    whole = series(HERE, *loads, duration=600)
    parts = [series(HERE, load, duration=600) for load in loads]

    for time in (*whole.times, 0.5, 123.4, 599.9):
        assert whole.at(time) == pytest.approx(sum(part.at(time) for part in parts))


@given(st.lists(PLACED, min_size=1, max_size=3), st.integers(0, 9))
def test_a_scenario_that_is_written_and_read_gives_the_same_load(loads: list[dict[str, Any]], seed: int) -> None:
    first = scenario(*loads, {"type": "Noise", "share": 0.2}, duration=600, seed=seed)
    second = Scenario.model_validate_json(first.model_dump_json(by_alias=True))

    assert load_series(first) == load_series(second)
