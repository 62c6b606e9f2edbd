"""Faults: the wall clock jumps by an hour forwards or backwards, or by the begin or end of summer time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final

import pytest

from ocf.cluster import Verb
from ocf.component.status.results import Action
from ocf.testing import VirtualClock, assert_quiet

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.conftest import Operator

WINTER: Final = timezone(timedelta(hours=1), "CET")
SUMMER: Final = timezone(timedelta(hours=2), "CEST")
HOUR: Final = timedelta(hours=1)
# Time before and after the jump. At the begin and end of summer time the local time changes, but not the instant.
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
    async def test_a_clock_jump_causes_no_write(self, new_operator: Callable[..., Operator], jump: str) -> None:
        start, shown = JUMPS[jump]
        clock = VirtualClock(start)
        operator = new_operator(clock)
        cluster = await operator.at_rest()
        before = await operator.state(cluster)
        clock.jump(shown)
        await assert_quiet(cluster, operator.reconcile)
        assert await operator.state(cluster) == before

    @pytest.mark.promise(
        "clock-grace", runs="4 jumps in the middle of a grace period, 6 reconciles around its end each"
    )
    async def test_a_grace_period_is_wall_clock_time_since_the_stored_transition(
        self, new_operator: Callable[..., Operator], jump: str
    ) -> None:
        """A jump ahead shifts the end of the grace period; a jump back starts it again, so that it ends all the same.

        Neither writes an object or deletes one. Elsewhere such a time is trusted:
        https://github.com/kubernetes/kubernetes/issues/29229, https://github.com/knative/serving/issues/561.
        """
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

        left = GRACE if moved < timedelta(0) else GRACE - timedelta(minutes=2) - moved
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

    @pytest.mark.promise("clock-back-off", runs="4 jumps in the middle of a backoff")
    async def test_a_backoff_is_measured_by_the_monotonic_clock(
        self, new_operator: Callable[..., Operator], jump: str
    ) -> None:
        """Another controller reverts the writes until the backoff starts; a jump does not change its duration."""
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
