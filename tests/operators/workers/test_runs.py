"""Runs in virtual time: the cluster of a run ends with its runner, and nothing starts a second time."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from ocf.cluster import Verb
from ocf.testing import FaultyCluster, faults
from tests.operators.workers.world import World, in_virtual_time

KINDS: Final = ("ComputeCluster", "WorkerGroup", "Deployment")


async def end(world: World, way: str) -> None:
    """Let the runner end."""
    runner = world.key("Pod", "night-runner")
    if way == "gone":
        await world.cluster.delete(runner)
        return
    code = "0" if way == "succeeds" else "3"
    await world.edit(runner, {"metadata": {"annotations": {"ocf.dev/finish-after": "1s", "ocf.dev/exit-code": code}}})


async def left(world: World) -> list[str]:
    """Return what is left of the cluster of the run."""
    return [name for kind in KINDS for name in await world.names(kind)]


async def finished(world: World) -> tuple[str, str]:
    condition = (await world.conditions("ComputeRun", "night"))["Finished"]
    return condition["status"], condition["reason"]


ENDS: Final = pytest.mark.parametrize(
    ("way", "result"), [("succeeds", "Succeeded"), ("fails", "Failed"), ("gone", "Failed")]
)


def test_a_runner_starts_once_its_cluster_is_ready() -> None:
    async def scene(world: World) -> None:
        await world.run()
        await asyncio.sleep(2)
        assert "night-runner" not in await world.names("Pod")
        assert await finished(world) == ("False", "Running")
        assert (await world.conditions("ComputeRun", "night"))["Ready"]["message"].startswith(
            "Pod night-runner: the cluster is not ready"
        )
        await asyncio.sleep(30)
        assert "night-runner" in await world.names("Pod")
        assert await world.reasons("ComputeCluster", "night") == {"Ready": "Healthy"}
        assert await world.reasons("ComputeRun", "night") == {"Ready": "Healthy", "Finished": "Running"}

    in_virtual_time(scene)


@ENDS
def test_the_cluster_ends_with_the_runner_and_nothing_of_it_starts_again(way: str, result: str) -> None:
    async def scene(world: World) -> None:
        run = world.key("ComputeRun", "night")
        async with world.process():
            await world.run()
            await asyncio.sleep(30)
            await end(world, way)
            await asyncio.sleep(30)
            assert (await world.status("ComputeRun", "night"))["result"] == result
            assert await finished(world) == ("True", result)
            assert await left(world) == []
            # The pod is kept for its log, until a user deletes it.
            assert await world.names("Pod") == ([] if way == "gone" else ["night-runner"])
            if way != "gone":
                await world.cluster.delete(world.key("Pod", "night-runner"))
            await world.edit(run, {"spec": {"command": ["again"], "cluster": {"groups": {"b": 3}}}})
            await asyncio.sleep(60)
        async with world.process():
            await asyncio.sleep(60)
            assert (await left(world), await world.names("Pod")) == ([], [])
            assert await finished(world) == ("True", result)
            assert [reason for reason, _ in await world.events(run)].count(result) == 1
            await world.settle()
            await world.cluster.delete(run)
            await world.until_gone(run)

    in_virtual_time(scene, operated=False)


@ENDS
def test_a_runner_that_ends_while_no_process_runs_is_noticed_later(way: str, result: str) -> None:
    async def scene(world: World) -> None:
        async with world.process():
            await world.run()
            await asyncio.sleep(30)
        await end(world, way)
        await asyncio.sleep(60)
        assert "night-a-0" in await left(world)
        async with world.process():
            await asyncio.sleep(30)
        assert await left(world) == []
        assert await finished(world) == ("True", result)

    in_virtual_time(scene, operated=False)


def test_a_cluster_that_cannot_be_deleted_yet_is_deleted_later_and_the_result_stands() -> None:
    async def scene(world: World) -> None:
        refused = faults.server_error(503, verbs=[Verb.DELETE], kind="ComputeCluster", times=4)
        world.account = faulty = FaultyCluster(world.cluster, [refused])
        async with world.process():
            await world.run()
            await asyncio.sleep(30)
            await end(world, "succeeds")
            await asyncio.sleep(5)
            assert await finished(world) == ("True", "Succeeded")
            assert "night" in await left(world)
            await asyncio.sleep(60)
        faulty.assert_all_injected()
        assert await left(world) == []

    in_virtual_time(scene, operated=False)


def test_a_cluster_that_a_user_deletes_during_the_run_is_back_and_the_runner_stays() -> None:
    async def scene(world: World) -> None:
        await world.run()
        await asyncio.sleep(30)
        before = (await world.found(world.key("Pod", "night-runner")))["metadata"]["uid"]
        await world.cluster.delete(world.key("ComputeCluster", "night"))
        await asyncio.sleep(60)
        assert "night-a-0" in await left(world)
        assert (await world.found(world.key("Pod", "night-runner")))["metadata"]["uid"] == before
        assert await finished(world) == ("False", "Running")

    in_virtual_time(scene)


def test_all_of_a_run_that_is_deleted_goes() -> None:
    async def scene(world: World) -> None:
        await world.run()
        await asyncio.sleep(30)
        await world.cluster.delete(world.key("ComputeRun", "night"))
        await asyncio.sleep(30)
        assert (await left(world), await world.names("Pod")) == ([], [])

    in_virtual_time(scene)


@pytest.mark.parametrize("taken", ["ComputeCluster", "Pod"])
def test_what_another_client_has_made_under_the_name_is_neither_used_nor_deleted(taken: str) -> None:
    async def scene(world: World) -> None:
        if taken == "Pod":
            key = world.key("Pod", "night-runner")
            await world.create(key, spec={"containers": [{"name": "other", "image": "other:1"}]})
        else:
            key = world.key("ComputeCluster", "night")
            await world.cluster_of("night", a=1)
        before = (await world.found(key))["metadata"]["uid"]
        await world.run()
        await asyncio.sleep(60)
        assert (await world.reasons("ComputeRun", "night"))["Ready"] == "Blocked"
        assert "night" in (await world.conditions("ComputeRun", "night"))["Ready"]["message"]
        await world.cluster.delete(world.key("ComputeRun", "night"))
        await asyncio.sleep(60)
        live = await world.found(key)
        assert live["metadata"]["uid"] == before
        assert "ownerReferences" not in live["metadata"]

    in_virtual_time(scene)
