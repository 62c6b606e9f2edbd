"""Time-outs of a phase, counted from the stored transition of a condition; on both servers.

Public reports: https://github.com/operator-framework/operator-controller/issues/2861 (a reason has no time),
https://github.com/knative/serving/issues/561 (clocks that differ),
https://github.com/operator-framework/java-operator-sdk/pull/994 (a wait that a restart begins anew),
https://github.com/gocardless/theatre/pull/52 (a deadline that has passed is never reached).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.component import reconciling
from ocf.component.status.conditions import since_transition
from ocf.errors import ConfigError
from ocf.objects.timestamps import format_time
from ocf.testing import RecordingCluster, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.component import ReconcileContext
    from tests.component.conftest import Env

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def fail_over(context: ReconcileContext, *, status: str = "True") -> str:
    """Set the condition of the phase, with a reason that depends on how long it has lasted."""
    reason = "PrimaryTimedOut" if context.timed_out("FailingOver", MINUTE, status=status) else "WaitingForPrimary"
    context.set_condition("FailingOver", status=status, reason=reason, message="")
    return reason


async def in_reconcile(env: Env, act: Callable[[ReconcileContext], Any]) -> tuple[Any, timedelta | None, int]:
    """Return what the act returns, the delay that it asks for, and the number of writes."""
    sent = RecordingCluster(env.cluster)
    async with reconciling(await env.owner_manifest(), sent, clock=env.clock) as context:
        found = act(context)
    return found, context.delay, len(sent.writes)


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
async def test_a_phase_times_out_at_its_deadline_whichever_process_looks(env: Env, status: str) -> None:
    """Each reconcile has a context of its own, as after a restart; at rest nothing is written."""
    waiting, timed_out = "WaitingForPrimary", "PrimaryTimedOut"
    steps = [(0, waiting, 60, 1), (20, waiting, 40, 0), (39, waiting, 1, 0), (1, timed_out, None, 1)]
    for advance, reason, left, writes in [*steps, (3600, timed_out, None, 0)]:
        env.clock.advance(advance * SECOND)
        found = await in_reconcile(env, lambda context: fail_over(context, status=status))
        assert found == (reason, None if left is None else left * SECOND, writes)


async def test_a_phase_that_begins_again_gets_the_whole_time(env: Env) -> None:
    await in_reconcile(env, fail_over)
    env.clock.advance(50 * SECOND)
    over = {"status": "False", "reason": "Over", "message": ""}
    await in_reconcile(env, lambda context: context.set_condition("FailingOver", **over))
    env.clock.advance(50 * SECOND)
    assert await in_reconcile(env, fail_over) == ("WaitingForPrimary", MINUTE, 1)


@pytest.mark.parametrize("stored", [True, False], ids=["stored in between", "only staged"])
async def test_a_condition_whose_removal_was_stored_begins_its_time_anew(env: Env, *, stored: bool) -> None:
    """Of https://github.com/CrunchyData/postgres-operator/issues/652: the next candidate gets the whole time."""
    await in_reconcile(env, fail_over)
    env.clock.advance(MINUTE)
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        context.remove_condition("FailingOver")
        if stored:
            await context.write_status()
        context.set_condition("FailingOver", status="True", reason="NextCandidate", message="")
        assert context.timed_out("FailingOver", MINUTE) is not stored
    env.clock.advance(59 * SECOND)
    assert (await in_reconcile(env, fail_over))[0] == ("WaitingForPrimary" if stored else "PrimaryTimedOut")


@pytest.mark.parametrize("back", [SECOND, MINUTE, timedelta(days=400)], ids=str)
async def test_the_time_begins_anew_where_a_clock_that_was_set_back_puts_the_beginning_in_the_future(
    env: Env, back: timedelta
) -> None:
    """Otherwise the phase would last until the clock has caught up."""
    await in_reconcile(env, fail_over)
    env.clock.jump(env.clock.now() - back)
    assert await in_reconcile(env, fail_over) == ("WaitingForPrimary", MINUTE, 1)
    env.clock.advance(59 * SECOND)
    assert await in_reconcile(env, fail_over) == ("WaitingForPrimary", SECOND, 0)
    env.clock.advance(SECOND)
    assert await in_reconcile(env, fail_over) == ("PrimaryTimedOut", None, 1)


async def test_a_clock_that_was_set_forward_ends_the_phase(env: Env) -> None:
    await in_reconcile(env, fail_over)
    env.clock.jump(env.clock.now() + timedelta(days=400))
    assert await in_reconcile(env, fail_over) == ("PrimaryTimedOut", None, 1)


@pytest.mark.embedded_only("a schema that has the condition rejects such times")
@pytest.mark.parametrize("since", [None, "noon", 12, "", "0001-01-01T00:00:00Z"], ids=repr)
async def test_a_time_that_cannot_be_read_is_now(env: Env, since: object) -> None:
    stored = {"type": "FailingOver", "status": "True", "lastTransitionTime": since}
    live = await env.owner_manifest()
    async with reconciling(live | {"status": {"conditions": [stored]}}, env.cluster, clock=env.clock) as context:
        long_ago = since == "0001-01-01T00:00:00Z"
        assert context.timed_out("FailingOver", MINUTE) == long_ago
        assert context.delay == (None if long_ago else MINUTE)


@pytest.mark.embedded_only("nothing is sent")
@pytest.mark.parametrize("after", [timedelta(0), -SECOND, timedelta.min], ids=str)
async def test_no_time_is_over_at_once(env: Env, after: timedelta) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        context.set_condition("FailingOver", status="True", reason="WaitingForPrimary", message="")
        assert context.timed_out("FailingOver", after)
        assert not context.timed_out("FailingOver", timedelta.max)
        assert context.delay == timedelta.max


@pytest.mark.embedded_only("nothing is sent")
async def test_a_period_without_a_unit_is_an_error(env: Env) -> None:
    wrong: Any = 60
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        with pytest.raises(ConfigError, match="timed_out: the period must be a timedelta, got an object of type int"):
            context.timed_out("FailingOver", wrong)


@given(
    before=st.timedeltas(timedelta(0), timedelta(days=9)),
    after=st.timedeltas(timedelta(0), timedelta(days=9)),
)
def test_the_stored_beginning_is_never_later_than_the_real_one(before: timedelta, after: timedelta) -> None:
    """It is cut to whole seconds: a phase ends up to a second early, and never late."""
    begin: datetime = VirtualClock().now() + before
    since = since_transition({"lastTransitionTime": format_time(begin)}, begin + after)
    assert after <= since < after + SECOND
