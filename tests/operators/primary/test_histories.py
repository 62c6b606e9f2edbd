"""The operator of databases in random histories: it ends with the members that the spec wants, and is quiet then."""

from __future__ import annotations

import asyncio
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.primary.world import World, in_virtual_time

STEPS: Final = st.one_of(
    st.tuples(st.just("fail"), st.integers(0, 6)),
    st.tuples(st.just("hold and fail"), st.integers(0, 6)),
    st.tuples(st.just("delete"), st.integers(0, 6)),
    st.tuples(st.just("promote"), st.integers(0, 6)),
    st.tuples(st.just("unreachable"), st.integers(0, 6)),
    st.tuples(st.just("replicas"), st.integers(0, 3)),
    st.tuples(st.just("image"), st.integers(1, 3)),
    st.tuples(st.just("suspended"), st.integers(0, 1)),
)


async def take(world: World, step: str, number: int) -> None:
    """Let something happen, to a member where it is about one."""
    names = await world.names()
    member = names[number % len(names)]
    pods = await world.names("v1", "Pod")
    match step:
        case "replicas":
            await world.change(replicas=number)
        case "image":
            await world.change(image=f"db:{number}")
        case "suspended":
            await world.change(suspended=bool(number))
        case "promote":
            await world.change(promote=f"main-{number}")
        case "unreachable":
            world.servers.unreachable.add(member)
        case "delete":
            await world.cluster.delete(world.key("StatefulSet", member))
        case _ if f"{member}-0" in pods and not await is_stopping(world, member):
            if step == "hold and fail":
                await world.hold(member)
            await world.make_unready(member)


async def is_stopping(world: World, member: str) -> bool:
    return "deletionTimestamp" in (await world.get("Pod", f"{member}-0"))["metadata"]


@settings(max_examples=4)
@given(st.lists(st.tuples(STEPS, st.sampled_from([0.3, 3, 20, 70, 200])), min_size=2, max_size=8))
def test_whatever_happens_there_is_one_primary_with_its_replicas_at_the_end(
    steps: list[tuple[tuple[str, int], float]],
) -> None:
    async def scene(world: World) -> None:
        for (step, number), seconds in steps:
            await take(world, step, number)
            await asyncio.sleep(seconds)
            assert world.servers.most_primaries == 1
        # What has failed for good is repaired by a user, and the database has time.
        world.servers.unreachable.clear()
        for name in await world.names("v1", "Pod"):
            await world.release(name.removesuffix("-0"))
        await world.change(suspended=False)
        await asyncio.sleep(900)
        for name in await world.names("v1", "Pod"):
            if "annotations" in (await world.get("Pod", name))["metadata"]:
                await world.cluster.delete(world.key("Pod", name))
        await asyncio.sleep(900)
        wanted = (await world.database())["spec"]
        names = await world.names()
        assert len(names) == 1 + wanted["replicas"]
        await world.check(names)
        assert world.servers.primaries & {*names} == {*await world.endpoints("main-rw")}
        conditions = await world.conditions()
        assert (conditions["Ready"]["reason"], conditions["PrimaryAvailable"]["status"]) == ("Healthy", "True")
        assert "Promoting" not in conditions
        for name in names:
            live = await world.get("StatefulSet", name)
            assert live["spec"]["template"]["spec"]["containers"][0]["image"] == wanted["image"]
        before = world.cluster.resource_version
        await asyncio.sleep(3600)
        assert world.cluster.resource_version == before

    in_virtual_time(scene)
