"""Backoff: exponential delays, caps and jitter."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts.backoff import ExponentialBackoff, with_jitter
from ocf.errors import ConfigError

SECOND = timedelta(seconds=1)
DRAWN = st.floats(0, 1, exclude_max=True)


def test_delays_double_up_to_the_cap() -> None:
    backoff = ExponentialBackoff(SECOND, 10 * SECOND, jitter=0.5, random=lambda: 0.0)

    assert [backoff.after(n).total_seconds() for n in (1, 2, 3, 4, 5, 10_000)] == [1, 2, 4, 8, 10, 10]


@given(failures=st.integers(1, 10_000), jitter=DRAWN, drawn=DRAWN)
def test_the_jitter_of_a_backoff_only_shortens(failures: int, jitter: float, drawn: float) -> None:
    full = ExponentialBackoff(SECOND, 300 * SECOND, jitter=0).after(failures)
    delay = ExponentialBackoff(SECOND, 300 * SECOND, jitter=jitter, random=lambda: drawn).after(failures)

    assert full * (1 - jitter) - SECOND / 1_000_000 <= delay <= full


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(lambda: ExponentialBackoff(0 * SECOND), "0 < base", id="no base"),
        pytest.param(lambda: ExponentialBackoff(2 * SECOND, SECOND), "base <= cap", id="cap below base"),
        pytest.param(lambda: ExponentialBackoff(jitter=1), "jitter must be from 0 up to 1, got 1", id="all jitter"),
        pytest.param(lambda: ExponentialBackoff(jitter=-0.1), "from 0 up to 1, got -0.1", id="negative jitter"),
    ],
)
def test_impossible_settings_are_rejected(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make()


@pytest.mark.parametrize(
    ("jitter", "drawn", "seconds"),
    [(0.25, 0.0, 10), (0.25, 0.5, 11.25), (1.2, 0.5, 16), (0, 0.9, 10)],
)
def test_with_jitter_only_lengthens(jitter: float, drawn: float, seconds: float) -> None:
    assert with_jitter(10 * SECOND, jitter, lambda: drawn) == timedelta(seconds=seconds)


def test_jitter_is_drawn_anew_for_each_delay() -> None:
    draw = iter([0.0, 0.5]).__next__
    backoff = ExponentialBackoff(SECOND, SECOND, jitter=0.5, random=draw)

    assert [backoff.after(1), backoff.after(1)] == [SECOND, SECOND * 0.75]
