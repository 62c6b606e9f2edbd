"""Averages of a step function over windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.engine.averages import Gauge, Peak

steps = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=15)


@given(steps, st.lists(st.tuples(st.integers(0, 30), st.integers(1, 200)), min_size=1, max_size=5))
def test_an_average_is_the_sum_of_all_instants_divided_by_their_number(
    changes: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    gauge, now, values = Gauge(3.0), 0, {}
    for later, value in changes:
        now += later
        gauge.set(now, value)
        values[now] = value
    length = max(length for _, length in windows)
    for later, _ in windows:
        now += later
        begin = now - length
        instants = [next((values[at] for at in range(each, -1, -1) if at in values), 3) for each in range(begin, now)]
        assert gauge.window(begin, now) == pytest.approx(sum(instants) / length)
        middle = begin + length // 2
        assert gauge.mean(middle, now) == pytest.approx(sum(instants[length // 2 :]) / (now - middle))


def test_the_average_of_a_steady_quantity_is_exactly_that_quantity() -> None:
    gauge = Gauge(0.1)
    gauge.set(7, 0.7)
    assert gauge.window(7, 10_000_007) == 0.7


@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=30),
    st.integers(0, 90),
    st.integers(0, 40),
)
def test_a_peak_is_the_highest_value_of_the_time(changes: list[tuple[int, float]], back: int, more: int) -> None:
    peak, now, values = Peak(0.7, kept=90), 0, [(-1000, 0.7)]
    for later, value in changes:
        now += later
        peak.set(now, value)
        values.append((now, value))
    now += more
    begin = now - back
    ends = [*(at for at, _ in values[1:]), now + 1]
    wanted = max(value for (_, value), end in zip(values, ends, strict=True) if end > begin)
    assert peak.highest(begin) == wanted
