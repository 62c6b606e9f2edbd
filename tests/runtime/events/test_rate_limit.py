from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ocf.runtime.events.poster import TokenBucket

START = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def test_25_at_once_and_one_more_every_five_minutes() -> None:
    allowance = TokenBucket()
    at_once = [allowance.take("corner", START) for _ in range(30)]
    later = [allowance.take("corner", START + minutes * MINUTE) for minutes in range(1, 21)]

    assert sum(at_once) == 25
    assert [minutes for minutes, taken in enumerate(later, 1) if taken] == [5, 10, 15, 20]


def test_a_noisy_source_takes_nothing_from_another() -> None:
    allowance = TokenBucket(burst=1)
    allowance.take("noisy", START)

    assert not allowance.take("noisy", START)
    assert allowance.take("quiet", START)


def test_what_is_not_used_is_not_saved_up() -> None:
    allowance = TokenBucket(burst=2)
    allowance.take("corner", START)

    assert sum(allowance.take("corner", START + timedelta(days=9)) for _ in range(9)) == 2


def test_the_source_that_was_quiet_longest_is_forgotten() -> None:
    allowance = TokenBucket(burst=1, capacity=2)
    for source in ("first", "second", "first", "third"):
        allowance.take(source, START)

    assert len(allowance) == 2
    assert not allowance.take("first", START)
    assert allowance.take("second", START)


@given(gaps=st.lists(st.integers(0, 600), max_size=80), burst=st.integers(1, 30))
def test_no_history_gives_more_than_the_bucket_and_its_refill(gaps: list[int], burst: int) -> None:
    allowance = TokenBucket(burst=burst, refill=timedelta(seconds=300))
    taken, now = 0, 0
    for gap in gaps:
        now += gap
        taken += allowance.take("corner", timedelta(seconds=now))

    assert taken <= burst + now / 300 + 1e-6
