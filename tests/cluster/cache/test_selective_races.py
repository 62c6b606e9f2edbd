"""What happens at one moment hides no object: a label that goes while the watch is down, a cache that is closed.

An operator believes its cache: a list that lacks objects makes it prune, and a read that finds nothing makes it create,
https://github.com/kubevirt/hyperconverged-cluster-operator/pull/1813.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from ocf.cluster import DeleteOptions, InterceptingCluster, ListOptions, PatchOptions, PatchType
from ocf.cluster.cache import CachedCluster, CacheTiming, Selection
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS, Subresource
from ocf.errors import NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.virtual_time import run_in_virtual_time
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from ocf.cluster.protocol import ObjectList, WatchEvent, WatchOptions

T = TypeVar("T")
KIND: Final[tuple[str, str]] = ("v1", "ConfigMap")
LABELLED: Final = Selection(label_selector="ours=yes")
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="us")


class Connection(InterceptingCluster):
    """A connection over which each request takes a tenth of a second each way."""

    def __init__(self, server: EmbeddedCluster) -> None:
        super().__init__(server)
        self.reads = 0
        self.is_down = False
        self.loses_answers = False

    async def _send(self, answer: Callable[[], Awaitable[T]]) -> T:
        await asyncio.sleep(0.1)
        if self.is_down:
            raise ServerError("no route to host")
        found = await answer()
        await asyncio.sleep(0.1)
        return found

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        self.reads += 1
        return await self._send(lambda: self._inner.get(key, subresource=subresource))

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        self.reads += 1
        return await self._send(lambda: self._inner.list(api_version, kind, options))

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        async for event in self._inner.watch(api_version, kind, options):
            if self.is_down:
                raise ServerError("connection lost")
            yield event

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        found = await self._send(lambda: self._inner.patch(key, patch, options))
        if self.loses_answers:
            raise ServerError("no answer")
        return found


class World:
    """An API server, and a cache of its ConfigMaps."""

    def __init__(self, selection: Selection | None) -> None:
        self.server = EmbeddedCluster(namespaces=("town",), bookmark_every=1)
        self.connection = Connection(self.server)
        timing = CacheTiming(
            sleep=asyncio.sleep, monotonic=asyncio.get_running_loop().time, random=lambda: 0.0, idle_timeout=20.0
        )
        selections: dict[tuple[str, str], Selection] = {} if selection is None else {KIND: selection}
        self.cached = CachedCluster(self.connection, timing=timing, selections=selections)

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(*KIND, name, "town")

    async def write(self, name: str, *, ours: bool, note: str = "") -> None:
        """Write an object as another client, with the label of the selection or without it."""
        labels = {"ours": "yes"} if ours else {}
        metadata = {"name": name, "namespace": "town", "labels": labels, "annotations": {"note": note}}
        await self.server.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="them", force=True
        )

    async def names(self) -> list[str]:
        return [one["metadata"]["name"] for one in (await self.cached.list(*KIND)).items]

    async def lose_an_answer(self, name: str) -> None:
        """Patch an object through the cache, without an answer: the next read of it goes to the API server."""
        self.connection.loses_answers = True
        with suppress(ServerError):
            await self.cached.patch(self.key(name), {"metadata": {"annotations": {"note": "ours"}}}, MERGE)


def play(selection: Selection | None, play: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        world = World(selection)
        await play(world)
        await world.cached.close()
        await asyncio.sleep(100)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_in_virtual_time(whole())


def test_an_object_that_lost_its_label_during_an_outage_is_read_before_the_next_list() -> None:
    async def story(world: World) -> None:
        await world.write("x", ours=True)
        await world.cached.cache(*KIND)
        await asyncio.sleep(1)
        world.connection.is_down = True
        await world.write("x", ours=False)
        await asyncio.sleep(3)
        world.connection.is_down = False
        assert (await world.cached.get(world.key("x")))["metadata"]["name"] == "x"

    play(Selection(label_selector="ours=yes", metadata_only=True), story)


def test_an_object_that_loses_its_label_during_a_list_is_in_it() -> None:
    async def story(world: World) -> None:
        for name in "xy":
            await world.write(name, ours=True)
        await world.cached.cache(*KIND)
        await asyncio.sleep(1)
        await world.server.delete(world.key("y"), DeleteOptions())
        await asyncio.sleep(1)
        listing = asyncio.create_task(world.names())
        await asyncio.sleep(0.05)
        await world.write("x", ours=False)
        assert (await listing, await world.names()) == (["x"], ["x"])

    play(LABELLED, story)


@pytest.mark.parametrize("end", ["close", "release"])
@pytest.mark.parametrize("selection", [None, LABELLED], ids=["all", "by a label"])
def test_a_list_during_which_the_cache_ends_has_all_objects(selection: Selection | None, end: str) -> None:
    async def story(world: World) -> None:
        for number in range(4):
            await world.write(f"n{number}", ours=True)
        world.cached.retain(*KIND)
        await world.cached.cache(*KIND)
        await asyncio.sleep(1)
        await world.lose_an_answer("n1")
        listing = asyncio.create_task(world.names())
        await asyncio.sleep(0.05)
        if end == "close":
            await world.cached.close()
        else:
            world.cached.release(*KIND)
        assert await listing == ["n0", "n1", "n2", "n3"]

    play(selection, story)


@pytest.mark.parametrize("end", ["close", "release"])
@pytest.mark.parametrize("steps", range(8))
def test_the_watch_of_an_object_that_is_selected_while_the_cache_ends_ends_too(end: str, steps: int) -> None:
    async def story(world: World) -> None:
        await world.write("x", ours=False)
        world.cached.retain(*KIND)
        await world.cached.cache(*KIND)
        await world.cached.get(world.key("x"))
        await asyncio.sleep(1)
        await world.write("x", ours=True)
        for _ in range(steps):
            await asyncio.sleep(0)
        if end == "release":
            world.cached.release(*KIND)
            await asyncio.sleep(100)
            assert not [task for task in asyncio.all_tasks() if "watch" in task.get_name()]

    play(LABELLED, story)


def test_a_look_for_what_was_deleted_that_fails_sends_nothing_afterwards() -> None:
    async def story(world: World) -> None:
        for number in range(40):
            await world.write(f"n{number}", ours=True)
        await world.cached.cache(*KIND)
        await asyncio.sleep(1)
        for number in range(40):
            await world.server.delete(world.key(f"n{number}"), DeleteOptions())
        await asyncio.sleep(1)
        world.connection.is_down = True
        with pytest.raises(ServerError):
            await world.names()
        before = world.connection.reads
        await world.cached.close()
        await asyncio.sleep(10)
        assert world.connection.reads == before

    play(LABELLED, story)


def test_a_deleted_object_is_not_found() -> None:
    async def story(world: World) -> None:
        await world.write("x", ours=True)
        await world.cached.cache(*KIND)
        await world.server.delete(world.key("x"), DeleteOptions())
        await asyncio.sleep(1)
        with pytest.raises(NotFoundError):
            await world.cached.get(world.key("x"))
        assert await world.names() == []

    play(LABELLED, story)
