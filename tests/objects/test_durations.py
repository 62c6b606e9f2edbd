"""Durations in Go's notation."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("0", 0, id="nothing needs no unit"),
        pytest.param("1h1m1s", 3661, id="several units"),
        pytest.param("1.5h", 5400, id="a fraction"),
        pytest.param(".5s", 0.5, id="a fraction without a whole"),
        pytest.param("100ms", 0.1, id="milliseconds are no minutes"),
        pytest.param("7us", 7e-6, id="microseconds"),
        pytest.param("7µs", 7e-6, id="microseconds with a sign"),
    ],
)
def test_it_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "1 m", "-1s", "+1s", "s", ".s", "1.2.3s", "1m30", "1h 1m", "1h,1m"),
        *("1d", "1w", "1mm", "1y"),
    ],
)
def test_a_text_that_is_not_a_duration_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration like 1m30s, not '"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["9" * 400 + "h", "99999999999999h"])
def test_a_duration_that_is_too_long_is_rejected_as_such(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a duration like 1m30s, and '9+h' is too long"):
        parse_duration(text)


@given(st.integers(0, 10**12))
def test_what_is_written_is_read(microseconds: int) -> None:
    duration = timedelta(microseconds=microseconds)

    assert abs(parse_duration(format_duration(duration)) - duration) <= timedelta(microseconds=1)


def test_the_microseconds_of_centuries_are_exact() -> None:
    assert parse_duration("2502000h0m0.000001s") == timedelta(days=104_250, microseconds=1)
