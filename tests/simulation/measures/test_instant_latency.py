"""Latency at one instant, with cases computed by hand."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.measures.instant_latency import LatencyModel
from ocf.simulation.measures.queueing import exceeding, servers_of, waiting_probability


@pytest.mark.parametrize(
    ("percentile", "state", "expected"),
    [
        # M/M/1 with a service rate of 10: the time in the system is exponential with the rate 10 - 8.
        pytest.param(None, (8, 10, 0), 1 / 2, id="mean of one server"),
        pytest.param(95.0, (8, 10, 0), log(20) / 2, id="percentile of one server"),
        # M/M/2 with service rates of 10, utilization 0.75: Erlang C is 9 / 14, so waiting takes 9 / 14 / (20 - 15).
        pytest.param(None, (15, 20, 0), 9 / 14 / 5 + 1 / 10, id="mean of two servers"),
        pytest.param(None, (0, 20, 0), 1 / 10, id="no load"),
        pytest.param(99.0, (0, 20, 0), log(100) / 10, id="percentile of no load"),
        # 30 units at 20 per second are served in 1.5 s.
        pytest.param(None, (5, 20, 30), 1.5 + 1 / 10, id="mean behind a backlog"),
        pytest.param(95.0, (5, 20, 30), 1.5 + log(20) / 10, id="percentile behind a backlog"),
        # Above a utilization of 0.99, that of 0.99 counts: one server, 1 / (10 - 9.9).
        pytest.param(None, (10, 10, 0), 10, id="full"),
        pytest.param(None, (12, 10, 0), 10, id="overload that has just begun"),
        # As if one pod served.
        pytest.param(None, (5, 0, 30), 3.1, id="no capacity"),
        pytest.param(None, (0, 0, 0), 0.1, id="no capacity and nothing that waits"),
    ],
)
def test_cases_by_hand(percentile: float | None, state: tuple[float, float, float], expected: float) -> None:
    rate, capacity, waiting = state
    model = LatencyModel(pod_capacity=10, service_time=0.1, percentile=percentile)

    assert model.at(rate=rate, capacity=capacity, waiting=waiting) == pytest.approx(expected)
    assert model.at(rate=rate, capacity=capacity, waiting=waiting) == pytest.approx(expected), "remembered"


@given(
    st.floats(1, 99.9),
    st.floats(0, 0.98),
    st.integers(1, 200),
    st.floats(0.01, 5),
)
def test_a_percentile_is_exceeded_by_the_other_share(
    percentile: float, utilization: float, pods: int, service_time: float
) -> None:
    capacity = 10.0 * pods
    model = LatencyModel(pod_capacity=10, service_time=service_time, percentile=percentile)
    found = model.at(rate=utilization * capacity, capacity=capacity, waiting=0)
    servers, rate = servers_of(capacity, 10, service_time)
    load = utilization * capacity / capacity
    slack = servers * rate * (1 - load)
    share = exceeding(found, service_rate=rate, slack=slack, waiting=waiting_probability(servers, load))

    assert share == pytest.approx(1 - percentile / 100, rel=1e-4)
