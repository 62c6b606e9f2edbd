"""A crash, a rejected write and a lost answer at each write: nothing is left behind, and no pod is lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from ocf.errors import ApiError
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedCrash, SimulatedProcess
from tests.controllers.nodegroup.conftest import GROUP, TICK, Env, run

GROWTH = 14
SHRINKING = 70


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
