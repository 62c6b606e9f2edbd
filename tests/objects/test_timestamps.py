"""Timestamps in RFC 3339, as `metav1.Time` and as `metav1.MicroTime`."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.timestamps import (
    Fraction,
    format_micro_time,
    format_time,
    parse_micro_time,
    parse_rfc3339,
    parse_time,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ZONES = st.integers(min_value=-12 * 60, max_value=14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=ZONES)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("microsecond", "fraction", "expected"),
    [
        pytest.param(999_999, Fraction.NONE, "2026-01-31T12:00:00Z", id="a fraction is cut off"),
        pytest.param(999_999, Fraction.MILLISECONDS, "2026-01-31T12:00:00.999Z", id="milliseconds are cut off too"),
        pytest.param(5, Fraction.MICROSECONDS, "2026-01-31T12:00:00.000005Z", id="microseconds"),
        pytest.param(0, Fraction.MICROSECONDS, "2026-01-31T12:00:00.000000Z", id="zero microseconds are written"),
        pytest.param(500_000, Fraction.NONZERO, "2026-01-31T12:00:00.500000Z", id="a fraction that is not zero"),
        pytest.param(0, Fraction.NONZERO, "2026-01-31T12:00:00Z", id="a fraction that is zero"),
    ],
)
def test_an_instant_is_written_with_the_digits_asked_for(microsecond: int, fraction: Fraction, expected: str) -> None:
    assert format_time(NOON.replace(microsecond=microsecond), fraction) == expected


def test_an_instant_of_another_zone_is_written_in_utc() -> None:
    at = datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))

    assert format_time(at) == "2026-01-31T12:00:00Z"
    assert format_micro_time(at) == "2026-01-31T12:00:00.000000Z"


def test_a_year_has_four_digits() -> None:
    assert format_time(datetime(33, 4, 3, tzinfo=UTC)) == "0033-04-03T00:00:00Z"


@given(INSTANTS)
def test_what_is_written_is_parsed_to_the_same_instant(at: datetime) -> None:
    second = at.replace(microsecond=0)

    assert parse_micro_time(format_micro_time(at)) == parse_time(format_micro_time(at)) == at
    assert parse_rfc3339(format_time(at)) == parse_time(format_time(at)) == second


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.000Z",
        "2026-01-31T13:00:00+01:00",
        "2026-01-31T06:30:00-05:30",
        "2026-01-31T12:00:00.0000000001Z",
    ],
)
def test_every_form_of_rfc_3339_is_parsed(text: str) -> None:
    assert parse_rfc3339(text) == parse_time(text) == NOON


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026-01-31", "2026-01-31T12:00:00", "20260131T120000Z", "2026-01-31 12:00:00Z"),
        *("2026-01-31T12:00:00Z\n", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00+0100", "2026-W05-6T12:00:00Z"),
        *("2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:60Z", "2026-01-31T12:00:00+24:00"),
        *("2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "٢٠٢٦-01-31T12:00:00Z"),
    ],
)
def test_other_texts_are_rejected(text: str) -> None:
    for lenient in (False, True):
        with pytest.raises(ValueError, match='parsing time "'):
            parse_rfc3339(text, comma=lenient, lower_case=lenient, optional_seconds=lenient)


def test_a_comma_needs_leave() -> None:
    text = "2026-01-31T12:00:00,000Z"

    assert parse_rfc3339(text, comma=True) == NOON
    with pytest.raises(ValueError, match="cannot parse"):
        parse_rfc3339(text, lower_case=True, optional_seconds=True)


def test_lower_case_needs_leave() -> None:
    text = "2026-01-31t12:00:00z"

    assert parse_rfc3339(text, lower_case=True) == NOON
    with pytest.raises(ValueError, match="cannot parse"):
        parse_rfc3339(text, comma=True, optional_seconds=True)


def test_missing_seconds_need_leave() -> None:
    text = "2026-01-31T12:00Z"

    assert parse_rfc3339(text, optional_seconds=True) == NOON
    with pytest.raises(ValueError, match="cannot parse"):
        parse_rfc3339(text, comma=True, lower_case=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "2026-01-01T00:00:00Z",
            'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
            id="no fraction",
        ),
        pytest.param("2026-01-01T00:00:00.00000Z", 'cannot parse ".00000Z" as ".000000"', id="five digits"),
        pytest.param("2026-01-01T00:00:00.0000000Z", 'cannot parse ".0000000Z" as ".000000"', id="seven digits"),
        pytest.param("2026-01-01T00:00Z", 'cannot parse "2026-01-01T00:00Z" as "2006"', id="no seconds"),
        pytest.param("yesterday", 'cannot parse "yesterday" as "2006"', id="not a time"),
        pytest.param("2026-13-01T00:00:00.000000Z", ": month out of range", id="a month that does not exist"),
        pytest.param("2026-00-01T00:00:00.000000Z", ": month out of range", id="no month"),
        pytest.param("2026-02-29T00:00:00.000000Z", ": day out of range", id="a day that does not exist"),
        pytest.param("2026-02-00T00:00:00.000000Z", ": day out of range", id="no day"),
        pytest.param("2026-02-01T24:00:00.000000Z", ": hour out of range", id="hour 24"),
        pytest.param("2026-02-01T00:60:00.000000Z", ": minute out of range", id="minute 60"),
        pytest.param("2026-02-01T00:00:60.000000Z", ": second out of range", id="a leap second"),
        pytest.param("2026-13-01T25:00:00.000000Z", ": month out of range", id="the first of two"),
        pytest.param("0000-01-01T00:00:00.000000Z", ": year out of range", id="a year that Python cannot represent"),
    ],
)
def test_a_micro_time_has_six_digits(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="parsing time") as caught:
        parse_micro_time(text)

    assert problem in str(caught.value)
