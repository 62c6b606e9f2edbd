"""The queue follows from the rates: lengths and instants computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.engine.clock import NEVER, SECOND
from ocf.simulation.engine.queue import FluidQueue


@pytest.mark.parametrize(
    ("limit", "rate", "capacity", "rates", "then"),
    [
        pytest.param(None, 8, 10, (8, 0), (0, NEVER), id="below the capacity, nothing waits"),
        pytest.param(None, 10, 10, (10, 0), (0, NEVER), id="at the capacity, nothing waits"),
        pytest.param(None, 15, 10, (10, 0), (50, NEVER), id="without a limit, the queue grows for ever"),
        pytest.param(200, 15, 10, (10, 0), (50, 40 * SECOND), id="a limited queue is full after 200 / 5 seconds"),
        pytest.param(0, 15, 10, (10, 5), (0, NEVER), id="without a queue, all that is too much is dropped"),
        pytest.param(None, 15, 0, (0, 0), (150, NEVER), id="without pods, everything waits"),
    ],
)
def test_load_above_the_capacity_waits_or_is_dropped(
    limit: float | None, rate: float, capacity: float, rates: tuple[float, float], then: tuple[float, int]
) -> None:
    """`rates` is what is served and dropped, `then` the length after 10 s and the instant of the next change."""
    queue = FluidQueue(limit)
    queue.change(0, rate=rate, capacity=capacity)
    due = queue.due
    assert (queue.served, queue.dropped) == rates
    queue.advance(10 * SECOND)
    assert (queue.length, due) == then


def test_what_waits_is_served_before_the_pods_are_idle() -> None:
    queue = FluidQueue(None)
    queue.change(0, rate=15, capacity=10)
    queue.advance(10 * SECOND)
    queue.change(10 * SECOND, rate=5, capacity=10)
    assert (queue.served, queue.utilization, queue.due) == (10, 1.0, 20 * SECOND)
    queue.advance(20 * SECOND)
    queue.change(20 * SECOND, rate=5, capacity=10)
    assert (queue.length, queue.served, queue.utilization, queue.due) == (0, 5, 0.5, NEVER)


def test_a_full_queue_drops_what_cannot_be_served() -> None:
    queue = FluidQueue(50)
    queue.change(0, rate=15, capacity=10)
    queue.advance(queue.due)
    queue.change(10 * SECOND, rate=15, capacity=10)
    assert (queue.length, queue.served, queue.dropped) == (50, 10, 5)


@given(
    st.none() | st.floats(0, 1000),
    st.lists(st.tuples(st.integers(1, 10**8), st.floats(0, 1e4), st.floats(0, 1e4)), max_size=20),
)
def test_load_is_neither_lost_nor_made_up(limit: float | None, changes: list[tuple[int, float, float]]) -> None:
    """What arrived equals what was served, what was dropped and what waits."""
    queue, now, arrived, left = FluidQueue(limit), 0, 0.0, 0.0
    for length, rate, capacity in changes:
        end = now + length
        while now < end:
            queue.change(now, rate=rate, capacity=capacity)
            until = min(end, queue.due)
            arrived += rate * (until - now) / SECOND
            left += (queue.served + queue.dropped) * (until - now) / SECOND
            queue.advance(until)
            now = until
            assert queue.length >= 0
            assert limit is None or queue.length <= limit
    # An instant is a whole microsecond, in which at most this much arrives or leaves.
    assert arrived == pytest.approx(left + queue.length, rel=1e-9, abs=0.05 * (len(changes) + 1))
