"""The grace period of a component, in virtual time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import Component, Reason
from ocf.concepts import GraceStatus, StatusReport
from ocf.errors import BuildError, ReconcileError
from ocf.primitives import deployment

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from tests.component.conftest import Env


def with_grace(resource: deployment.Resource, *, minutes: float = 5, suspended: bool = False) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_resource(resource)
    return builder.with_grace_period(timedelta(minutes=minutes)).suspend(suspended).build()


async def test_the_requeue_finds_the_end_of_the_period(env: Env, web: deployment.Resource) -> None:
    first = await env.reconcile(with_grace(web))
    assert (first.condition.reason, first.requeue_after) == (Reason.CREATING, timedelta(minutes=5, seconds=1))
    env.clock.advance(timedelta(minutes=2))
    second = await env.reconcile(with_grace(web))
    assert second.requeue_after == timedelta(minutes=3, seconds=1)
    env.clock.advance(timedelta(minutes=3, seconds=1))
    third = await env.reconcile(with_grace(web))
    assert (third.condition.reason, third.condition.message) == (
        Reason.DOWN,
        "Component is down: Deployment web: No replicas are ready",
    )
    assert third.requeue_after is None


@pytest.mark.parametrize("ahead", [timedelta(seconds=1), timedelta(hours=1), timedelta(days=400)], ids=str)
async def test_a_period_that_begins_in_the_future_begins_now(
    env: Env, web: deployment.Resource, ahead: timedelta
) -> None:
    """The clock was set back, or is behind that of the replica that led before."""
    await env.reconcile(with_grace(web))
    env.clock.jump(env.clock.now() - ahead)
    again = await env.reconcile(with_grace(web))
    assert again.requeue_after == timedelta(minutes=5, seconds=1)
    assert again.condition.reason is Reason.CREATING
    before = (await env.condition())["lastTransitionTime"]
    env.clock.advance(timedelta(minutes=2))
    assert (await env.reconcile(with_grace(web))).requeue_after == timedelta(minutes=3, seconds=1)
    assert (await env.condition())["lastTransitionTime"] == before
    env.clock.advance(timedelta(minutes=3, seconds=1))
    assert (await env.reconcile(with_grace(web))).condition.reason is Reason.DOWN


async def test_without_a_period_the_time_of_a_transition_stays(env: Env, web: deployment.Resource) -> None:
    await env.reconcile(with_grace(web, minutes=0))
    before = await env.condition()
    env.clock.jump(env.clock.now() - timedelta(hours=1))
    await env.reconcile(with_grace(web, minutes=0))
    assert await env.condition() == before


async def test_resuming_restarts_the_period(env: Env, web: deployment.Resource) -> None:
    await env.reconcile(with_grace(web))
    await env.reconcile(with_grace(web, suspended=True))
    env.clock.advance(timedelta(hours=1))
    resumed = await env.reconcile(with_grace(web))
    assert resumed.condition.reason is not Reason.DOWN
    assert resumed.requeue_after == timedelta(minutes=5, seconds=1)


async def test_an_error_in_between_neither_stops_nor_restarts_it(env: Env, web_base: Manifest) -> None:
    failing = [True]

    def sometimes(_mutator: deployment.Mutator) -> None:
        if failing[0]:
            raise ValueError("boom")

    subject = with_grace(deployment.Builder(web_base).with_mutation(deployment.Mutation("m", sometimes)).build())
    failing[0] = False
    await env.reconcile(subject)
    failing[0] = True
    env.clock.advance(timedelta(minutes=4))
    with pytest.raises(ReconcileError):
        await env.reconcile(subject)
    failing[0] = False
    env.clock.advance(timedelta(minutes=2))
    assert (await env.reconcile(subject)).condition.reason is Reason.DOWN


async def test_a_failing_grace_handler_is_an_error(env: Env, web_base: Manifest) -> None:
    def crash(_live: Any) -> StatusReport[GraceStatus]:
        raise RuntimeError("no idea")

    subject = with_grace(deployment.Builder(web_base).with_custom_grace_status(crash).build())
    await env.reconcile(subject)
    env.clock.advance(timedelta(hours=1))
    with pytest.raises(
        ReconcileError, match="failed to evaluate grace status for resource apps/v1/Deployment/shop/web"
    ):
        await env.reconcile(subject)
    assert (await env.condition())["reason"] == "Error"


def test_a_negative_period_is_rejected_and_zero_is_no_limit() -> None:
    builder = component.Builder("web", condition_type="WebReady")
    builder.with_grace_period(timedelta(0)).build()
    with pytest.raises(BuildError, match="grace period must be positive"):
        builder.with_grace_period(timedelta(seconds=-1)).build()
