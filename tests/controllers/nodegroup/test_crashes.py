"""A crash, a rejected write and a lost answer at each write: nothing is left behind, and no pod is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from ocf.cluster import Cluster, Request
from ocf.cluster.interceptor import InterceptingCluster
from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedCrash, SimulatedProcess
from tests.controllers.nodegroup.conftest import GROUP, TICK, Env, run

GROWTH = 14
# The last write comes within 17 turns, whatever is disturbed; a node may be removed 10 turns after it became idle.
SHRINKING = 30


async def story(disturbance: Disturbance | None = None, number: int = 0) -> tuple[Env, int]:
    """Let a group grow for pods and shrink again, with one write disturbed.

    Returns:
        The environment at the end, and the number of writes.
    """
    env = Env()
    await env.set_up(offeringIDs=["small"], scaleDownPolicy={"underutilizedFor": "5m"}, scaleDownCooldown="1m")
    simulation = SimulatedCluster(env.cluster)
    process = SimulatedProcess(simulation, disturbance, number)
    env.restart(process)
    # One large and one small pod on each node: the small ones have to be evicted later.
    for name, cpu in (("big-0", "1300m"), ("big-1", "1300m"), ("web-0", "600m"), ("web-1", "600m")):
        await env.add_pod(name, cpu=cpu)
    for turn in range(GROWTH + SHRINKING):
        if turn == GROWTH:
            await check_grown(env)
            await env.remove_pods("big-0", "big-1")
        with suppress(ApiError, SimulatedCrash, BaseExceptionGroup, asyncio.CancelledError):
            await env.controller.reconcile()
        if process.dead:
            process = SimulatedProcess(simulation)
            env.restart(process)
        await env.others()
        env.clock.advance(TICK)
    return env, len(simulation.writes)


async def check_grown(env: Env) -> None:
    assert await env.waiting() == []
    assert await env.phases() == ["Ready"] * 2
    assert (len(await env.nodes()), await env.machines()) == (2, 2)


async def check_shrunk(env: Env) -> None:
    assert await env.waiting() == []
    assert len(await env.objects("Pod")) == 2
    assert await env.phases() == ["Ready"]
    (node,) = await env.objects("Node")
    assert not node["spec"].get("unschedulable")
    assert await env.machines() == 1
    status = await env.status()
    assert (status["currentNodes"], status["desiredNodes"], status["readyNodes"]) == (1, 1, 1)
    assert (await env.read_conditions(GROUP))["Scaling"]["status"] == "False"


@pytest.mark.promise("node-groups-crash", runs="each write of a group that grows and shrinks, disturbed in each way")
@pytest.mark.parametrize("disturbance", Disturbance)
def test_any_write_may_be_disturbed(disturbance: Disturbance) -> None:
    async def scenario() -> None:
        env, writes = await story()
        await check_shrunk(env)
        assert writes > 20
        assert env.value("node_drain_duration_seconds_count", result="success") == 1
        for number in range(1, writes + 1):
            env, _ = await story(disturbance, number)
            await check_shrunk(env)

    run(scenario())


class CrashingCluster(InterceptingCluster):
    """A cluster that fails the writes of the status of groups while drains are stored."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.failing = True
        self._stored: list[Manifest] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        drains = [each for each in self._stored if (each.get("status") or {}).get("drain")]
        if self.failing and drains and (request.verb, request.kind) == ("update", "NodeGroup"):
            raise ApiError("the process was killed")
        answer = await send()
        if request.kind == "VPSieNode" and request.verb == "update":
            self._stored.append(answer)
        return answer


def test_a_drain_that_the_group_does_not_count_yet_goes_on_and_starts_the_cooldown(env: Env) -> None:
    """The time of the drain is in the status of its node; the next reconcile counts it for the group."""

    async def scenario() -> None:
        policy = {"underutilizedFor": "1m", "maxEmpty": 1}
        await env.set_up(offeringIDs=["small"], scaleDownPolicy=policy, scaleDownCooldown="10m")
        for number in range(2):
            await env.add_pod(f"web-{number}", cpu="1900m")
        await env.tick(26)
        await env.remove_pods()
        crashing = CrashingCluster(env.cluster)
        env.restart(crashing)
        while "Draining" not in await env.phases():
            await env.tick()
        (drain,) = (each["status"]["drain"] for each in await env.objects("VPSieNode") if "drain" in each["status"])
        assert "lastScaleDownTime" not in await env.status()
        crashing.failing = False
        env.restart()
        await env.tick()
        assert (await env.status())["lastScaleDownTime"] == drain["startedAt"]
        await env.tick(8)
        assert await env.phases() == ["Ready"]
        await env.tick(20)
        assert await env.phases() == []

    run(scenario())
