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
from ocf.cluster.cache.selective import MOST_SINGLE
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS, Subresource
from ocf.errors import ForbiddenError, NotFoundError, ServerError
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


class Restricted(Connection):
    """A connection of a role that may list and watch in one namespace, and elsewhere reads by name, at first."""

    reads_elsewhere = True

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        if not self.reads_elsewhere and key.namespace != "town":
            raise ForbiddenError(f"cannot get {key}", code=403, reason="Forbidden")
        return await super().get(key, subresource=subresource)

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        if options.namespace != "town":
            raise ForbiddenError(f'cannot list in "{options.namespace}"', code=403, reason="Forbidden")
        return await super().list(api_version, kind, options)


@pytest.mark.parametrize("others", [1, MOST_SINGLE + 2], ids=["one", "more than are watched alone"])
def test_reads_elsewhere_break_no_list_of_a_role_with_rights_in_the_selected_namespace(others: int) -> None:
    """What is read elsewhere is in the lists as it is now, until it is gone or may not be read.

    Publicly reported of caches that list more than a role allows:
    https://github.com/kubernetes-sigs/controller-runtime/issues/3178.
    """

    async def work() -> None:
        server = EmbeddedCluster(namespaces=("town", "village"))
        connection = Restricted(server)
        timing = CacheTiming(sleep=asyncio.sleep, monotonic=asyncio.get_running_loop().time, random=lambda: 0.0)

        async def make(namespace: str, name: str) -> ObjectKey:
            metadata = {"name": name, "namespace": namespace, "labels": {"ours": "yes"}}
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            return ObjectKey.of(await server.create(made, field_manager="them"))

        await make("town", "own")
        elsewhere = [await make("village", f"other-{number}") for number in range(others)]
        selections: dict[tuple[str, str], Selection] = {KIND: Selection(namespaces=["town"])}
        async with CachedCluster(connection, timing=timing, selections=selections) as cached:
            for key in elsewhere:
                await cached.get(key)

            async def listed(label_selector: str = "", **more: Any) -> set[str]:
                found = (await cached.list(*KIND, ListOptions(label_selector=label_selector, **more))).items
                return {one["metadata"]["name"] for one in found}

            names = {key.name for key in elsewhere}
            for selector in ("", "ours=yes"):
                assert await listed(selector) == {"own"} | names
            assert await listed(label_selector="ours=no") == set()
            assert await listed(field_selector="metadata.name=own") == {"own"}
            assert await listed(namespace="town") == {"own"}
            await server.delete(elsewhere[0], DeleteOptions())
            assert await listed() == {"own"} | names - {"other-0"}
            connection.reads_elsewhere = False
            assert await listed() == {"own"}

    run_in_virtual_time(work())


@pytest.mark.parametrize("selection", [LABELLED, Selection(by_name=True)], ids=["by a label", "by name"])
def test_a_subscription_keeps_no_state_of_what_is_not_watched_any_more(selection: Selection) -> None:
    """Publicly reported of watches: memory grows, https://github.com/kubernetes/kubernetes/issues/102874."""

    async def story(world: World) -> None:
        await world.cached.cache(*KIND)
        informer = world.cached._informers.covering(*KIND, "")
        assert informer is not None
        subscription = informer.subscribe("")
        seen: list[tuple[str, str]] = []

        async def follow() -> None:
            async for change in subscription.changes():
                seen.append((change.type.value, change.name[1]))  # noqa: PERF401 (they are read while it runs)

        following = asyncio.create_task(follow())
        for number in range(60):
            await world.write(f"n{number}", ours=False)
        for number in range(60):
            await world.cached.get(world.key(f"n{number}"))
        await asyncio.sleep(1)
        assert len(subscription._last_sent) >= MOST_SINGLE
        needed = {world.key("n1")}
        world.cached.readers.append(lambda key, _: key in needed)
        for _ in range(3):
            world.cached.release_unread()
            await asyncio.sleep(1)
        assert {name for _, name in subscription._last_sent} == {"n1"}
        assert not [kind for kind, _ in seen if kind == "DELETED"]
        seen.clear()
        await world.write("n1", ours=False, note="changed")
        await world.cached.get(world.key("n2"))
        await asyncio.sleep(1)
        assert seen == [("MODIFIED", "n1"), ("ADDED", "n2")]
        # Lists of the API server end once nothing needs what is beyond the number of single watches.
        before = world.connection.reads
        if not selection.by_name:
            await world.names()
            assert world.connection.reads == before
        informer.unsubscribe(subscription)
        following.cancel()

    play(selection, story)
