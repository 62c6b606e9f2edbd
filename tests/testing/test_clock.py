"""Clock of a test: it changes only when the test advances it or jumps."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ocf.concepts import Clock
from ocf.errors import ConfigError
from ocf.objects import ObjectKey
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster


def test_the_clock_stands_still_and_implements_clock() -> None:
    virtual = VirtualClock()
    clock: Clock = virtual
    assert clock.now() == clock.now()
    assert clock.now().tzinfo is UTC


def test_the_clock_advances_by_the_given_duration() -> None:
    clock = VirtualClock()
    start = clock.now()
    clock.advance(timedelta(seconds=90))
    clock.advance(timedelta(0))
    assert clock.now() - start == timedelta(seconds=90)


def test_the_clock_starts_at_the_given_time_in_utc() -> None:
    clock = VirtualClock(datetime(2026, 1, 1, 2, 0, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now().isoformat() == "2026-01-01T00:00:00+00:00"


def test_jump_sets_an_earlier_or_a_later_time() -> None:
    clock = VirtualClock()
    earlier = clock.now() - timedelta(hours=1)
    clock.jump(earlier)
    assert clock.now() == earlier


def test_advancing_by_a_negative_duration_is_rejected() -> None:
    with pytest.raises(ConfigError, match="cannot advance by a negative duration"):
        VirtualClock().advance(timedelta(seconds=-1))


@pytest.mark.parametrize("use", [VirtualClock, VirtualClock().jump], ids=["start", "jump"])
def test_an_instant_needs_a_time_zone(use: type[VirtualClock]) -> None:
    with pytest.raises(ConfigError, match="needs a time zone"):
        use(datetime(2026, 1, 1))  # noqa: DTZ001 (rejected for this reason)


async def test_the_embedded_cluster_takes_timestamps_from_the_clock() -> None:
    clock = VirtualClock(datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC))
    found = await EmbeddedCluster(now=clock.now).get(ObjectKey("v1", "Namespace", "default"))
    assert found["metadata"]["creationTimestamp"] == "2030-05-06T07:08:09Z"
