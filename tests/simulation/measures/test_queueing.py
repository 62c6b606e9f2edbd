"""The formulas of the queue M/M/c."""

from math import exp, factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.measures.queueing import exceeding, waiting_probability


def erlang_c(servers: int, utilization: float) -> float:
    """The formula as it is printed in textbooks; its factorials overflow with many servers."""
    offered = servers * utilization
    last = offered**servers / factorial(servers) / (1 - utilization)
    return last / (sum(offered**each / factorial(each) for each in range(servers)) + last)


@given(servers=st.integers(1, 100), utilization=st.floats(0.01, 0.99))
def test_the_recursion_is_the_formula(servers: int, utilization: float) -> None:
    assert waiting_probability(servers, utilization) == pytest.approx(
        erlang_c(servers, utilization), rel=1e-9, abs=1e-14
    )


def test_a_table_of_erlang_c() -> None:
    """Four servers that are offered 3 erlangs: 0.5094, as in tables of the formula."""
    assert waiting_probability(4, 0.75) == pytest.approx(0.50943, abs=1e-5)


def test_many_servers_start_near_the_offered_load() -> None:
    """With ten thousand servers the recursion from the first one is the reference."""
    inverse, offered = 1.0, 9_900.0
    for number in range(1, 10_001):
        inverse = 1 + inverse * number / offered
    expected = 1 / (0.99 + 0.01 * inverse)
    assert waiting_probability(10_000, 0.99) == pytest.approx(expected, rel=1e-9)


def test_idle_servers_let_nothing_wait() -> None:
    assert waiting_probability(3, 0.0) == 0
    assert waiting_probability(1_000, 0.1) == 0


@given(ratio=st.floats(0.999, 1.001), time=st.floats(0, 10))
def test_waiting_as_fast_as_service_is_not_a_special_case(ratio: float, time: float) -> None:
    """Where both rates are equal, the sum of two exponential times is an Erlang time."""
    found = exceeding(time, service_rate=1.0, slack=ratio, waiting=1.0)
    assert found == pytest.approx((1 + time) * exp(-time), abs=1e-3)
    assert 0 <= found <= 1 + 1e-9
