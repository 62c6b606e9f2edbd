"""The clock is set: an hour ahead, an hour back, and over both ends of summer time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final

import pytest

from ocf.cluster import Verb
from ocf.component import Action
from ocf.testing import VirtualClock, assert_quiet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.conftest import Operator

WINTER: Final = timezone(timedelta(hours=1), "CET")
SUMMER: Final = timezone(timedelta(hours=2), "CEST")
HOUR: Final = timedelta(hours=1)
# Where the clock stands, and what it then shows. The hands of a local clock move by an hour; the instant does not.
JUMPS: Final = {
    "an hour ahead": (datetime(2026, 1, 1, 12, 0, tzinfo=UTC), datetime(2026, 1, 1, 13, 0, tzinfo=UTC)),
    "an hour back": (datetime(2026, 1, 1, 12, 0, tzinfo=UTC), datetime(2026, 1, 1, 11, 0, tzinfo=UTC)),
    "summer time begins": (datetime(2026, 3, 29, 2, 0, tzinfo=WINTER), datetime(2026, 3, 29, 3, 0, tzinfo=SUMMER)),
    "summer time ends": (datetime(2026, 10, 25, 3, 0, tzinfo=SUMMER), datetime(2026, 10, 25, 2, 0, tzinfo=WINTER)),
}
GRACE: Final = timedelta(minutes=5)
SECOND: Final = timedelta(seconds=1)


@pytest.mark.parametrize("jump", JUMPS)
class TestJumps:
    @pytest.mark.promise("clock-quiet", runs="4 jumps: an hour ahead, an hour back, both ends of summer time")
    async def test_what_is_at_rest_stays_at_rest(self, new_operator: Callable[..., Operator], jump: str) -> None:
        start, shown = JUMPS[jump]
        clock = VirtualClock(start)
        operator = new_operator(clock)
        cluster = await operator.at_rest()
        before = await operator.state(cluster)
        clock.jump(shown)
        await assert_quiet(cluster, operator.reconcile)
        assert await operator.state(cluster) == before

    @pytest.mark.promise("clock-grace", runs="4 jumps in the middle of a grace period, 6 passes around its end each")
    async def test_a_grace_period_is_time_on_the_wall_since_the_stored_transition(
        self, new_operator: Callable[..., Operator], jump: str
    ) -> None:
        """A jump may move the verdict, by as much as it is; it writes no object and deletes none."""
        start, shown = JUMPS[jump]
        clock = VirtualClock(start)
        operator = new_operator(clock)
        cluster = await operator.new_cluster()
        await operator.reconcile(cluster)
        cluster.requests.clear()
        clock.advance(timedelta(minutes=2))
        clock.jump(shown + timedelta(minutes=2))
        moved = shown - start
        assert moved in (HOUR, -HOUR, timedelta(0))

        left = GRACE - timedelta(minutes=2) - moved
        for at in sorted([timedelta(0), SECOND, left - SECOND, left, left + SECOND, left + HOUR]):
            if at < timedelta(0):
                continue
            clock.jump(shown + timedelta(minutes=2) + at)
            result = await operator.reconcile(cluster)
            assert result is not None
            assert (result.condition.reason == "Down") is (at > left)
            assert {outcome.action for outcome in result.outcomes} == {Action.UNCHANGED}
        assert {request.kind for request in cluster.requests if not request.verb.is_read} == {"Shop"}
        assert not cluster.requests.of(Verb.DELETE, Verb.APPLY)

    @pytest.mark.promise("clock-back-off", runs="4 jumps in the middle of a back-off")
    async def test_a_back_off_is_time_that_has_passed(self, new_operator: Callable[..., Operator], jump: str) -> None:
        """Somebody undoes what we write until we wait; no jump makes the wait shorter or longer."""
        start, shown = JUMPS[jump]
        clock = VirtualClock(start)
        operator = new_operator(clock)
        cluster = await operator.at_rest()
        while True:
            await operator.change(cluster, operator.settings, data={"greeting": "go away"})
            result = await operator.reconcile(cluster)
            assert result is not None
            held = result.outcomes[0].retry_after
            if held is not None:
                break
        cluster.requests.clear()
        clock.jump(shown)
        for passed in (timedelta(0), held - SECOND, timedelta(0)):
            clock.advance(passed)
            await operator.reconcile(cluster)
            assert not cluster.requests.of(Verb.APPLY, Verb.DELETE)
        clock.advance(SECOND)
        await operator.reconcile(cluster)
        assert [request.kind for request in cluster.requests.of(Verb.APPLY)] == ["ConfigMap"]
