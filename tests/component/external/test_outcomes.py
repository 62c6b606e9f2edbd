"""What users see of external resources: events, and what becomes of them when their owner is deleted and orphans."""

from __future__ import annotations

import asyncio

import pytest

from ocf.cluster import DeleteOptions, Propagation
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.testing import run_in_virtual_time
from tests.component.external.test_targets import World

CORNER = ObjectKey("example.com/v1", "Shop", "s0", "town")


async def events(world: World) -> list[tuple[str, str, str]]:
    found = (await world.cluster.list("events.k8s.io/v1", "Event")).items
    return [(one["reason"], one["type"], one["note"]) for one in found if one["regarding"]["kind"] == "Shop"]


async def edit(world: World, size: int) -> None:
    live = await world.owner()
    live["spec"]["size"] = size
    await world.cluster.update(live, field_manager="user")


def test_each_outcome_is_an_event_of_the_owner_that_names_resource_and_target() -> None:
    async def check() -> None:
        world = World("eu", "us")
        async with world.running():
            await world.create(1)
            await asyncio.sleep(5)
            await edit(world, 2)
            await asyncio.sleep(5)
            world.system.faults["*", "us"] = ConnectionError()
            await edit(world, 3)
            # It is repeated several times, for one cause.
            await asyncio.sleep(30)
            world.system.faults.clear()
            await asyncio.sleep(100)
            await world.cluster.delete(CORNER)
            await asyncio.sleep(30)
        assert sorted(await events(world)) == [
            ("CreatedBucket", "Normal", "Created Bucket 'town-s0@eu'"),
            ("CreatedBucket", "Normal", "Created Bucket 'town-s0@us'"),
            (
                "ExternalCallFailed",
                "Warning",
                "Call for external/Bucket/town-s0@us failed: no connection: ConnectionError",
            ),
            ("ResourceDeleted", "Normal", "Resource external/Bucket/town-s0@eu deleted because its owner is"),
            ("ResourceDeleted", "Normal", "Resource external/Bucket/town-s0@us deleted because its owner is"),
            ("UpdatedBucket", "Normal", "Updated Bucket 'town-s0@eu'"),
            ("UpdatedBucket", "Normal", "Updated Bucket 'town-s0@us'"),
        ]

    run_in_virtual_time(check())


@pytest.mark.parametrize("propagation", Propagation)
def test_external_resources_are_deleted_whatever_becomes_of_the_objects(propagation: Propagation) -> None:
    """`kubectl delete --cascade=orphan` keeps objects of the cluster; nothing else would delete what is outside."""

    async def check() -> None:
        world = World("eu", "us")
        async with world.running():
            await world.create(1)
            await asyncio.sleep(5)
            world.system.faults["delete", "us"] = ConnectionError()
            await world.cluster.delete(CORNER, DeleteOptions(propagation=propagation))
            await asyncio.sleep(5)
            shown = {one["type"]: one["message"] for one in (await world.owner())["status"]["conditions"]}
            assert "external/Bucket/town-s0@us: no connection: ConnectionError" in shown["shops/CleanedUp"]
            assert (world.at("eu"), world.at("us")) == (0, 1)
            world.system.faults.clear()
            await asyncio.sleep(60)
            assert not world.system.buckets
            with pytest.raises(NotFoundError):
                await world.owner()

    run_in_virtual_time(check())
