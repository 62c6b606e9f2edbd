"""One of two servers hangs, or refuses for a while: the other one is filled at once, and then the first catches up."""

from __future__ import annotations

import asyncio

import pytest

from ocf.testing import LoopClock
from tests.operators.instances.servers import Boards
from tests.operators.instances.world import Panels, in_virtual_time

COUNT = 200


async def many(world: Panels, folder: str | None = None) -> None:
    if folder is not None:
        await world.make("Folder", folder, uid=folder)
    for number in range(COUNT):
        await world.board(f"b{number}", folder=folder)


def unanswered(world: Panels, host: str) -> int:
    return sum(one.host == host for one in world.stub.requests)


@pytest.mark.promise("external-targets")
@pytest.mark.parametrize(
    ("status", "folder", "catches_up", "calls"),
    [
        pytest.param(0, None, 420, 30, id="it hangs"),
        pytest.param(0, "news", 420, 10, id="it hangs, and the folder is awaited there"),
        pytest.param(429, None, 120, 12, id="it asks for two minutes"),
    ],
)
def test_two_hundred_dashboards_are_in_a_server_within_five_seconds_while_another_one_fails(
    status: int, folder: str | None, catches_up: float, calls: int
) -> None:
    async def scene(world: Panels) -> None:
        if status:
            world.stub.fail("us", status, retry_after=120)
        else:
            world.stub.hang("us")
        await many(world, folder)
        await asyncio.sleep(5)
        assert len(world.servers.at("eu", "dashboards")) == COUNT
        assert not world.servers.at("us", "dashboards")
        await asyncio.sleep(85)
        assert unanswered(world, "us") <= calls
        condition = await world.condition("Dashboard", "b199")
        assert condition[0] == "False"
        assert "us" in condition[2]
        assert (await world.condition("Instance", "eu"))[1] == "Healthy"
        world.stub.heal("us")
        await asyncio.sleep(catches_up)
        assert len(world.servers.at("us", "dashboards")) == COUNT
        assert {(await world.condition("Dashboard", f"b{number}"))[1] for number in range(COUNT)} == {"Healthy"}
        assert max(world.servers.created.values()) == 1

    in_virtual_time(scene)


def test_a_server_that_begins_to_hang_changes_nothing_in_the_other_one_and_stops_no_change_there() -> None:
    async def scene(world: Panels) -> None:
        await many(world)
        await asyncio.sleep(30)
        world.stub.hang("us")
        for number in range(COUNT):
            await world.change("Dashboard", f"b{number}", inline="[]")
        began = LoopClock().elapsed()
        await asyncio.sleep(5)
        assert {one["content"] for one in world.servers.at("eu", "dashboards").values()} == {"[]"}
        assert (LoopClock().elapsed() - began).total_seconds() < 6
        world.stub.heal("us")
        await asyncio.sleep(420)
        assert {one["content"] for one in world.servers.at("us", "dashboards").values()} == {"[]"}
        assert max(world.servers.created.values()) == 1

    in_virtual_time(scene)


def test_at_rest_nothing_is_written_and_each_thing_is_read_once_in_its_period() -> None:
    async def scene(world: Panels) -> None:
        await world.make("Folder", "news", uid="news")
        await world.make("Source", "db", uid="db", url="db:1")
        for number in range(5):
            await world.board(f"b{number}", folder="news")
        await asyncio.sleep(60)
        await world.world.settle()
        world.stub.requests.clear()
        periods = 6
        await asyncio.sleep(periods * Boards.resync.total_seconds())
        # A folder, a source, five dashboards and the server itself, in two servers.
        assert len(world.stub.requests) <= (periods + 1) * 2 * 8
        assert {one.method for one in world.stub.requests} == {"GET"}
        async with world.operating():  # another process, with an empty memory
            world.world.forget()
            await asyncio.sleep(60)
            assert not world.world.written

    in_virtual_time(scene)
