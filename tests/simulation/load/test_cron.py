"""Cron expressions mean what they mean to robfig/cron v3.0.1, the library of KEDA and of the CronJob controller.

The table was recorded from the library. Of 40 000 random expressions at changes of the clock in nine time zones, 20
differed, all in Africa/Cairo and Australia/Lord_Howe, where a change skips midnight or half an hour.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.load.cron import CronExpression


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        pytest.param("0 8 * * 1-5", "UTC", "2026-01-02T12:00:00Z", "2026-01-05T08:00:00Z", id="weekdays"),
        pytest.param("0 8 * * MON-fri", "Europe/Berlin", "2026-01-02T12:00:00Z", "2026-01-05T07:00:00Z", id="names"),
        pytest.param(
            "0 3 * * 1-5", "America/Los_Angeles", "2026-04-10T10:00:00Z", "2026-04-13T10:00:00Z", id="summer time"
        ),
        pytest.param("0 8 * * *", "UTC", "2026-01-02T08:00:00Z", "2026-01-03T08:00:00Z", id="after, not at"),
        pytest.param("0 8 * * *", "UTC", "2026-01-02T07:59:59Z", "2026-01-02T08:00:00Z", id="a second before"),
        pytest.param("5/20 * * * *", "UTC", "2026-01-02T08:26:00Z", "2026-01-02T08:45:00Z", id="steps from a number"),
        pytest.param("0-30/10,45 9 * * ?", "UTC", "2026-01-02T09:30:00Z", "2026-01-02T09:45:00Z", id="a list"),
        pytest.param("0 0 13 * 5", "UTC", "2026-01-10T00:00:00Z", "2026-01-13T00:00:00Z", id="one of two day fields"),
        pytest.param("0 0 13 * */2", "UTC", "2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z", id="steps restrict days"),
        pytest.param("0 0 */1 * 5", "UTC", "2026-01-10T00:00:00Z", "2026-01-16T00:00:00Z", id="steps of 1 do not"),
        pytest.param("0 0 29 2 *", "UTC", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z", id="a leap year"),
        pytest.param("0 0 31 2 *", "UTC", "2026-03-01T00:00:00Z", None, id="no such day"),
        pytest.param(
            "30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", id="a repeated hour"
        ),
        pytest.param(
            "30 2 * * *", "America/New_York", "2026-03-08T06:00:00Z", "2026-03-09T06:30:00Z", id="a skipped hour"
        ),
        pytest.param("0 0 1 jan,JUL *", "Asia/Kolkata", "2026-02-01T00:00:00Z", "2026-06-30T18:30:00Z", id="months"),
    ],
)
def test_the_next_instant_is_that_of_the_library(text: str, zone: str, after: str, expected: str | None) -> None:
    found = CronExpression.parse(text).next(datetime.fromisoformat(after), ZoneInfo(zone))
    assert found == (None if expected is None else datetime.fromisoformat(expected))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("60 * * * *", "the minute must be 0 to 59, in rising order, got '60'", id="above the range"),
        pytest.param("* * 0 * *", "the day of the month must be 1 to 31, .*, got '0'", id="below the range"),
        pytest.param("* * * * 7", "the day of the week must be 0 to 6, in rising order, got '7'", id="Sunday is 0"),
        pytest.param("5-2 * * * *", "the minute must be 0 to 59, in rising order, got '5-2'", id="falling"),
        pytest.param("* * * *", "must be five fields .*, got 4", id="four fields"),
        pytest.param("@daily", "must be five fields .*, got 1", id="a descriptor"),
        pytest.param("*/0 * * * *", "the step of the minute must be a number of at least 1, got '\\*/0'", id="no step"),
        pytest.param("1/2/3 * * * *", "the step of the minute must be", id="two steps"),
        pytest.param("1-2-3 * * * *", "the minute must be 0 to 59, got '2-3'", id="two ranges"),
        pytest.param("* * * MAI *", "the month must be 1 to 12 or JAN to DEC, got 'MAI'", id="no name"),
        pytest.param(", * * * *", "the minute is empty", id="an empty list"),
    ],
)
def test_an_invalid_expression_says_what_is_allowed(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        CronExpression.parse(text)


@given(st.integers(0, 59), st.integers(0, 23), st.integers(0, 366 * 86_400))
def test_a_daily_time_is_within_a_day_where_no_clock_changes(minute: int, hour: int, after: int) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=after)
    found = CronExpression.parse(f"{minute} {hour} * * *").next(now, ZoneInfo("UTC"))
    assert found is not None
    assert timedelta() < found - now <= timedelta(days=1)
    assert (found.hour, found.minute, found.second) == (hour, minute, 0)
