"""External resources that are only read: what was read before counts while the system is slow, or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.concepts import Data
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.primitives import configmap, external
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, RecordingCluster, run_in_virtual_time
from ocf_server import CustomKind, EmbeddedCluster
from tests.component.external.conftest import OWNER, Bucket, Buckets, Live, System

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ocf.objects import Manifest

REGION = Data[str]("region")
COPY = ObjectKey("v1", "ConfigMap", "copy", "town")


class World:
    """An owner whose ConfigMap has the region of a bucket that another system has made."""

    def __init__(self, targets: tuple[str, ...] = (), *, absent: str = "") -> None:
        self.system = System()
        self.targets = targets
        self.absent = absent
        self.inner = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
        self.cluster = RecordingCluster(self.inner)

    def declare(self, owner: Manifest) -> component.Component:
        bucket = external.Builder(Buckets(self.system), name="theirs", desired=Bucket())
        if self.targets:
            bucket.with_targets(*self.targets)
        bucket.extract_into(REGION, lambda live: live.region)
        copy = configmap.Builder({"metadata": {"name": "copy"}}).with_data_guard(REGION)
        motto = owner["spec"].get("motto", "")
        copy.with_mutation(configmap.Mutation("region", lambda m: m.ensure_entry("at", f"{motto}{REGION.require()}")))
        builder = component.Builder("web", owner=ObjectKey.of(owner))
        blocks, ignores = self.absent == "blocks", self.absent == "is ignored"
        builder.with_resource(bucket, read_only=True, block_on_absence=blocks, ignore_if_absent=ignores)
        return builder.with_resource(copy).build()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        shops: Operator[Any] = Operator(
            name="shops", owner=OwnerType("example.com/v1", "Shop"), components=self.declare
        )
        async with running(self.cluster, shops, options=ManagerOptions(listen=None, clock=LoopClock())):
            metadata = {"name": OWNER.name, "namespace": OWNER.namespace}
            shop = {"apiVersion": OWNER.api_version, "kind": OWNER.kind, "metadata": metadata, "spec": {}}
            await self.inner.create(shop, field_manager="user")
            await asyncio.sleep(5)
            yield

    def make(self, region: str = "eu") -> None:
        target = self.targets[0] if self.targets else ""
        self.system.buckets[target, "b"] = Live(id="b", key="", size=7, labels={}, region=region)
        self.system.names[target, "theirs"] = "b"

    async def ready(self) -> tuple[str, str]:
        found = (await self.inner.get(OWNER))["status"]["conditions"]
        return next((one["reason"], one["message"]) for one in found if one["type"] == "Ready")

    async def copied(self) -> str:
        try:
            return str((await self.inner.get(COPY))["data"]["at"])
        except NotFoundError:
            return ""

    async def say(self, motto: str) -> None:
        live = await self.inner.get(OWNER)
        await self.inner.update({**live, "spec": {"motto": motto}}, field_manager="user")


def play(scene: Callable[[World], Coroutine[Any, Any, None]], world: World, *, exists: bool = True) -> None:
    async def run() -> None:
        if exists:
            world.make()
        async with world.running():
            await scene(world)
        assert not world.system.writes

    run_in_virtual_time(run())


TARGETS = pytest.mark.parametrize("targets", [(), ("eu",)], ids=["without targets", "at a target"])


@TARGETS
def test_a_slow_read_changes_no_condition_and_holds_back_nothing(targets: tuple[str, ...]) -> None:
    async def scene(world: World) -> None:
        assert await world.copied() == "eu"
        world.system.faults["*", targets[0] if targets else ""] = 5.0
        world.cluster.requests.clear()
        read = "read@eu" if targets else "read"
        await asyncio.sleep(Buckets.resync.total_seconds() - 3)
        assert world.system.calls.count(read) == 2
        await world.say("near ")  # while it is read again
        await asyncio.sleep(1300)
        assert world.system.calls.count(read) >= 4
        assert await world.copied() == "near eu"
        assert [f"{one.verb} {one.kind}" for one in world.cluster.writes if one.kind != "Event"] == [
            "apply ConfigMap",
            "update Shop",  # the generation of its condition
        ]

    play(scene, World(targets))


@TARGETS
def test_what_was_read_before_counts_while_the_system_fails(targets: tuple[str, ...]) -> None:
    async def scene(world: World) -> None:
        world.system.faults["*", targets[0] if targets else ""] = ConnectionRefusedError()
        await asyncio.sleep(700)
        assert (await world.ready())[0] == "Failing"
        await world.say("near ")
        await asyncio.sleep(5)
        assert await world.copied() == "near eu"
        world.system.faults.clear()
        world.make("us")
        await asyncio.sleep(400)
        assert await world.copied() == "near us"
        assert (await world.ready())[0] == "Healthy"

    play(scene, World(targets))


@pytest.mark.parametrize(
    ("absent", "reason"),
    [
        pytest.param("blocks", "Blocked", id="it blocks"),
        pytest.param("is ignored", "Blocked", id="what needs its data is blocked"),
        pytest.param("", "Error", id="an error"),
    ],
)
def test_one_that_is_missing_is_looked_for(absent: str, reason: str) -> None:
    async def scene(world: World) -> None:
        found, message = await world.ready()
        assert found == reason
        assert "theirs" in message or "region" in message
        world.make()
        await asyncio.sleep(60)
        assert await world.copied() == "eu"
        assert (await world.ready())[0] == "Healthy"

    play(scene, World(absent=absent), exists=False)
