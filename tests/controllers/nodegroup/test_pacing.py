"""`Retry-After` of a provider: it holds for all calls and all nodes, and its cause is shown at once, and once."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, NoReturn

import pytest

from ocf.controllers.nodegroup.pacing import PacedProvider
from ocf.errors import ProviderUnavailableError
from ocf.nodegroups import Machine, MachineRequest, MachineState, Provider
from ocf.testing import VirtualClock
from ocf.testing.hostile_cloud import HostileCloud
from tests.controllers.nodegroup.conftest import GROUP, SMALL, Env, run

REQUEST: Final = MachineRequest("pool-1", "pool", "small", "fra")
SENT: Final[dict[str, Callable[[Provider], Awaitable[object]]]] = {
    "instance_types": lambda provider: provider.instance_types(),
    "create": lambda provider: provider.create(REQUEST),
    "get": lambda provider: provider.get(REQUEST),
    "list": lambda provider: provider.list(),
    "delete": lambda provider: provider.delete(Machine("pool-1", MachineState.RUNNING)),
}


# https://github.com/kubernetes/autoscaler/issues/2817, https://github.com/kubernetes/autoscaler/issues/4133
@pytest.mark.parametrize("answered", list(SENT))
def test_no_call_is_sent_before_the_time_that_the_answer_to_any_call_names(answered: str) -> None:
    clock = VirtualClock()
    cloud = HostileCloud([SMALL], clock)
    paced = PacedProvider(cloud, clock)

    async def scenario() -> None:
        await paced.create(REQUEST)
        cloud.throttle(timedelta(seconds=120))
        with pytest.raises(ProviderUnavailableError, match=f"{answered}: too many requests"):
            await SENT[answered](paced)
        sent = len(cloud.calls)
        clock.advance(timedelta(seconds=119))
        for call in SENT.values():
            with pytest.raises(ProviderUnavailableError, match=f"{answered}: too many requests") as caught:
                await call(paced)
            assert caught.value.retry_after == 1
        assert len(cloud.calls) == sent
        clock.advance(timedelta(seconds=1))
        for call in SENT.values():
            await call(paced)

    asyncio.run(scenario())


def test_the_longest_wait_is_an_hour_also_after_the_clock_was_set_back() -> None:
    clock = VirtualClock()
    cloud = HostileCloud([SMALL], clock)
    paced = PacedProvider(cloud, clock)

    async def scenario() -> None:
        cloud.throttle(timedelta(days=1))
        with pytest.raises(ProviderUnavailableError):
            await paced.list()
        cloud.throttle(timedelta(0))
        clock.advance(timedelta(minutes=59))
        with pytest.raises(ProviderUnavailableError):
            await paced.list()
        clock.advance(timedelta(minutes=1))
        await paced.list()
        cloud.throttle(timedelta(minutes=30))
        with pytest.raises(ProviderUnavailableError):
            await paced.list()
        clock.jump(clock.now() - timedelta(days=1))
        cloud.throttle(timedelta(0))
        clock.advance(timedelta(minutes=30))
        await paced.list()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        pytest.param(1e15, timedelta(hours=1), id="longer than a time can be"),
        pytest.param(86400.0, timedelta(hours=1), id="a day"),
        pytest.param(float("inf"), timedelta(hours=1), id="infinite"),
        pytest.param(float("nan"), timedelta(seconds=10), id="not a number"),
        pytest.param(-5.0, timedelta(seconds=10), id="negative"),
        pytest.param(float("-inf"), timedelta(seconds=10), id="before all times"),
        pytest.param(90.0, timedelta(seconds=90), id="usual"),
    ],
)
def test_whatever_wait_a_provider_asks_for_the_next_reconcile_comes_within_an_hour(
    env: Env, monkeypatch: pytest.MonkeyPatch, asked: float, waited: timedelta
) -> None:
    async def fail() -> NoReturn:
        raise ProviderUnavailableError("too many requests", retry_after=asked)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"], minNodes=1)
        with monkeypatch.context() as patches:
            patches.setattr(env.provider, "list", fail)
            assert await env.controller.reconcile() == waited
        env.clock.advance(waited)
        await env.tick(2)
        assert await env.machines() == 1

    run(scenario())


# https://github.com/drone/autoscaler/pull/115, https://github.com/kubernetes/autoscaler/issues/3135
def test_a_group_waits_as_long_as_the_cloud_asks_and_shows_why_from_the_first_answer_on() -> None:
    env = Env((SMALL,), cloud=HostileCloud)
    cloud = env.provider
    assert isinstance(cloud, HostileCloud)

    async def scenario() -> None:
        await env.set_up(minNodes=3, offeringIDs=["small"])
        await env.tick(by=timedelta(seconds=10))
        cloud.throttle(timedelta(minutes=5))
        sent = len(cloud.calls)
        await env.tick(29, by=timedelta(seconds=10))
        # The nodes asked at once, before there was an answer.
        assert len(cloud.calls) - sent <= 4
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["status"], error["reason"]) == ("True", "ProviderError")
        assert "too many requests" in error["message"]
        (event,) = [each for each in env.events.all if each.reason == "ScaleUpFailed"]
        assert "too many requests" in event.note
        await env.tick(20)
        assert await env.phases() == ["Ready"] * 3
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"

    run(scenario())


@pytest.mark.parametrize("minutes", [5, 60])
def test_a_failure_to_create_is_one_event_with_its_cause(minutes: int) -> None:
    env = Env((SMALL,), cloud=HostileCloud)
    cloud = env.provider
    assert isinstance(cloud, HostileCloud)

    async def scenario() -> None:
        await env.set_up(minNodes=2, offeringIDs=["small"])
        cloud.fails_before = frozenset({"create"})
        await env.tick(minutes * 2)
        notes = [each.note for each in env.events.all if each.reason == "ScaleUpFailed"]
        assert notes[0] == "small: create is not available"
        # Later ones come with a new attempt, and when it is given up after 15 minutes: less and less often.
        assert all("create is not available" in note for note in notes)
        assert len(notes) <= 1 + 2 * (minutes // 15)
        assert "create is not available" in (await env.read_conditions(GROUP))["Error"]["message"]

    run(scenario())
