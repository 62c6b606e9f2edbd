from datetime import UTC, datetime, timedelta
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from ocf.runtime.events.series import EventSeries, EventWrite, Instant

MINUTE = timedelta(minutes=1)


def at(minutes: float) -> Instant:
    return Instant(datetime(2026, 1, 1, 12, tzinfo=UTC) + minutes * MINUTE, minutes * MINUTE)


def happened(going_on: EventSeries, minutes: float, key: str = "scaled") -> list[EventWrite]:
    """Tell an event as the poster does."""
    ended = list(going_on.ended(at(minutes).elapsed))
    write = going_on.repeated(key, at(minutes)) if key in going_on else going_on.first(key, {"note": key}, at(minutes))
    return [*ended, *([write] if write else [])]


def counts(writes: list[EventWrite]) -> list[int]:
    """Return the count in each write, 1 where the event is created."""
    return [write.series["count"] if write.series else 1 for write in writes]


def test_the_first_two_are_written_and_then_only_counted() -> None:
    going_on = EventSeries()

    assert [counts(happened(going_on, minutes)) for minutes in range(6)] == [[1], [2], [], [], [], []]


def test_six_minutes_of_quiet_end_a_series_with_its_last_count() -> None:
    going_on = EventSeries()
    for minutes in range(4):
        happened(going_on, minutes)

    assert list(going_on.ended(9 * MINUTE)) == []
    (last,) = going_on.ended(9 * MINUTE + timedelta(seconds=1))
    assert last.series == {"count": 4, "lastObservedTime": "2026-01-01T12:03:00.000000Z"}
    assert len(going_on) == 0


def test_an_event_after_the_end_is_a_new_one() -> None:
    going_on = EventSeries()
    for minutes in range(4):
        happened(going_on, minutes)

    assert counts(happened(going_on, 20)) == [4, 1]


def test_what_is_told_is_not_told_again() -> None:
    """A single event, and one of which the last count is written, end silently."""
    going_on = EventSeries()
    happened(going_on, 0, "once")
    happened(going_on, 0, "twice")
    happened(going_on, 0, "twice")

    assert list(going_on.ended(20 * MINUTE)) == []
    assert len(going_on) == 0


def test_the_count_of_a_long_series_is_written_every_half_hour() -> None:
    going_on = EventSeries()
    written = []
    for minutes in range(95):
        happened(going_on, minutes)
        written += [(minutes, *counts([write])) for write in going_on.heartbeats(at(minutes).elapsed)]

    assert written == [(31, 32), (61, 62), (91, 92)]


def test_different_events_do_not_mix() -> None:
    going_on = EventSeries()

    assert counts(happened(going_on, 0, "one")) == counts(happened(going_on, 0, "other")) == [1]


def test_the_event_that_was_quiet_longest_is_forgotten() -> None:
    going_on = EventSeries(capacity=2)
    for minutes, key in enumerate(["first", "second", "first", "third"]):
        happened(going_on, minutes, key)

    assert [key in going_on for key in ("first", "second", "third")] == [True, False, True]


@given(gaps=st.lists(st.integers(0, 15), max_size=60))
def test_no_occurrence_is_lost(gaps: list[int]) -> None:
    """The last counts of all series add up to how often it happened."""
    going_on = EventSeries()
    written: list[EventWrite] = []
    times = list(accumulate(gaps))
    for minutes in times:
        written += happened(going_on, minutes)
        written += going_on.heartbeats(at(minutes).elapsed)
    written += going_on.all_ended(at(1000).elapsed)

    last: list[int] = []
    for count in counts(written):
        if count == 1:
            last.append(1)
        else:
            last[-1] = count
    assert sum(last) == len(times)
