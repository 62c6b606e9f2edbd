"""A clock that is set forward or back, in the process or while it restarts, ends no delay at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import Cluster, Request
from ocf.cluster.interceptor import InterceptingCluster
from ocf.concepts import Clock
from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.controllers.nodegroup.steady_clock import SteadyClock, server_time
from ocf.errors import ApiError, ForbiddenError, ServerError
from ocf.nodegroups import Machine
from ocf.objects import ObjectKey
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster
from tests.controllers.nodegroup.conftest import API, TICK, Env, run
from tests.controllers.nodegroup.test_drains import draining

A_WHILE: Final = timedelta(minutes=7) // TICK
SET_BY: Final = {
    "an hour forward": timedelta(hours=1),
    "an hour back": timedelta(hours=-1),
    "a day forward": timedelta(days=1),
    "a day back": timedelta(days=-1),
    "not at all": timedelta(0),
}


class WrongClock:
    """The clock of the controller, which is set while those of the cluster and of the cloud stay right."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.shift = timedelta(0)

    def now(self) -> datetime:
        return self._clock.now() + self.shift

    def elapsed(self) -> timedelta:
        return self._clock.elapsed()


class Forgetful(SimulatedProvider):
    """A provider that leaves a machine out of its list."""

    forgotten = ""

    async def list(self) -> Sequence[Machine]:
        return [each for each in await super().list() if each.name != self.forgotten]


class Jump:
    """A controller whose clock is set by a shift, while it runs or while it restarts."""

    def __init__(self, by: timedelta, *, restarts: bool) -> None:
        self._by = by
        self._restarts = restarts
        self.env = Env(cloud=Forgetful)
        self._clock = WrongClock(self.env.clock)
        self._start()

    def _start(self) -> None:
        env = self.env
        env.controller = NodeGroupController(
            env.cluster, env.provider, clock=self._clock, events=env.events, monitor=env.monitor
        )

    def happens(self) -> None:
        """Set the clock ten seconds after what happened last."""
        self.env.clock.advance(timedelta(seconds=10))
        self._clock.shift += self._by
        if self._restarts:
            self._start()

    async def names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in await self.env.objects("VPSieNode"))


async def a_node_that_is_not_ready_for_a_moment_stays(jump: Jump) -> None:
    env = jump.env
    await env.set_up(minNodes=3, offeringIDs=["small"])
    await env.tick(5)
    before = await jump.names()
    name = (await env.nodes())[0]
    await env.kill_node(name)
    await env.controller.reconcile()
    jump.happens()
    await env.tick(A_WHILE)
    assert await jump.names() == before
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    await env.patch_status(ObjectKey("v1", "Node", name), ready, by="kubelet")
    await env.tick(80)
    assert await jump.names() == before


async def a_node_that_stays_dead_is_replaced(jump: Jump) -> None:
    env = jump.env
    await env.set_up(minNodes=3, offeringIDs=["small"])
    await env.tick(5)
    name = (await env.nodes())[0]
    await env.kill_node(name)
    await env.controller.reconcile()
    jump.happens()
    await env.tick(timedelta(minutes=26) // TICK)
    assert name not in await env.nodes()
    assert await env.phases() == ["Ready"] * 3


async def a_node_that_boots_is_not_given_up(jump: Jump) -> None:
    env = jump.env
    await env.set_up(minNodes=1, offeringIDs=["small"])
    await env.controller.reconcile()
    await env.controller.reconcile()
    before = await jump.names()
    jump.happens()
    await env.tick(A_WHILE)
    assert (await jump.names(), await env.phases()) == (before, ["Ready"])
    assert "ScaleUpFailed" not in env.events.reasons()


async def a_drain_is_not_given_up(jump: Jump) -> None:
    env = jump.env
    name = await draining(env)
    await env.add_budget(0)
    await env.tick(2)
    jump.happens()
    for _ in range(A_WHILE):
        await env.tick()
        found = {each["metadata"]["name"]: each["status"]["phase"] for each in await env.objects("VPSieNode")}
        assert found[name] == "Draining"
    # It still has an end.
    await env.tick(timedelta(minutes=10) // TICK)
    assert "drainBackoff" in await env.read_status(ObjectKey(API, "VPSieNode", name, "default"))


async def the_cooldown_after_a_scale_up_lasts(jump: Jump) -> None:
    env = jump.env
    await env.set_up(offeringIDs=["small"], scaleUpCooldown="10m")
    await env.add_pod("big-0", cpu="1900m")
    await env.tick(4)
    assert len(await jump.names()) == 1
    await env.add_pod("big-1", cpu="1900m")
    jump.happens()
    await env.tick(timedelta(minutes=5) // TICK)
    assert len(await jump.names()) == 1
    await env.tick(timedelta(minutes=15) // TICK)
    assert len(await jump.names()) == 2


async def a_node_that_is_idle_for_a_moment_stays(jump: Jump) -> None:
    env = jump.env
    await env.set_up(offeringIDs=["small"], scaleDownCooldown="1m")
    await env.add_pod("big-0", cpu="1900m")
    await env.tick(6)
    await env.remove_pods()
    await env.controller.reconcile()
    jump.happens()
    await env.tick(A_WHILE)
    assert await env.phases() == ["Ready"]
    await env.tick(timedelta(minutes=15) // TICK)
    assert await env.phases() == []


async def a_machine_that_is_not_listed_for_a_moment_is_not_lost(jump: Jump) -> None:
    env = jump.env
    await env.set_up(minNodes=2, offeringIDs=["small"])
    await env.tick(5)
    before = await jump.names()
    name = (await env.nodes())[0]
    await env.kill_node(name)
    assert isinstance(env.provider, Forgetful)
    env.provider.forgotten = name
    await env.controller.reconcile()
    jump.happens()
    await env.controller.reconcile()
    env.provider.forgotten = ""
    await env.tick(3)
    assert await jump.names() == before


@pytest.mark.parametrize("restarts", [pytest.param(False, id="in the process"), pytest.param(True, id="in a restart")])
@pytest.mark.parametrize("by", [pytest.param(by, id=name) for name, by in SET_BY.items()])
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, id=each.__name__.replace("_", " "))
        for each in (
            a_node_that_is_not_ready_for_a_moment_stays,
            a_node_that_stays_dead_is_replaced,
            a_node_that_boots_is_not_given_up,
            a_drain_is_not_given_up,
            the_cooldown_after_a_scale_up_lasts,
            a_node_that_is_idle_for_a_moment_stays,
            a_machine_that_is_not_listed_for_a_moment_is_not_lost,
        )
    ],
)
def test_a_clock_that_is_set_ends_no_delay_at_once(
    scenario: Callable[[Jump], Awaitable[None]], by: timedelta, *, restarts: bool
) -> None:
    async def play() -> None:
        await scenario(Jump(by, restarts=restarts))

    run(play())


class Answering(InterceptingCluster):
    """A cluster that answers a review for the controller with an error."""

    def __init__(self, inner: Cluster, error: ApiError) -> None:
        super().__init__(inner)
        self._error = error

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.kind == "SelfSubjectReview":
            raise self._error
        return await send()


def test_without_the_right_to_ask_for_the_time_the_own_clock_counts() -> None:
    async def scenario() -> None:
        cluster = EmbeddedCluster(now=VirtualClock().now)
        assert await server_time(cluster) == VirtualClock().now()
        assert await server_time(Answering(cluster, ForbiddenError("no"))) is None
        # The reconcile is tried again, as nothing else can be read now.
        with pytest.raises(ServerError):
            await server_time(Answering(cluster, ServerError("down")))

    run(scenario())


@pytest.mark.parametrize(
    ("differs", "starts"),
    [pytest.param(9, 9, id="hardly: as the system"), pytest.param(11, 0, id="as the API server")],
)
def test_a_process_begins_with_the_time_of_the_api_server(differs: int, starts: int) -> None:
    clock = VirtualClock()
    right = clock.now()
    clock.jump(right + timedelta(seconds=differs))
    assert SteadyClock(clock, right).now() == right + timedelta(seconds=starts)


SECONDS = st.integers(0, 7200).map(lambda seconds: timedelta(seconds=seconds))
SHIFTS = st.integers(-200_000, 200_000).map(lambda seconds: timedelta(seconds=seconds))


@given(st.lists(st.tuples(SECONDS, SHIFTS), min_size=1, max_size=20))
def test_the_steady_clock_keeps_the_length_of_delays_and_comes_back(steps: list[tuple[timedelta, timedelta]]) -> None:
    clock = VirtualClock()
    steady = SteadyClock(clock)
    for passes, shift in steps:
        before = steady.now()
        clock.jump(clock.now() + shift)
        clock.advance(passes)
        assert passes * 3 / 4 <= steady.now() - before <= passes * 5 / 4
    clock.advance(4 * abs(clock.now() - steady.now()))
    assert steady.now() == clock.now()
