"""What a process sees of a kind that is sharded, with an API server that selects and one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, Literal

import pytest

from ocf.cluster import ListOptions, WatchOptions
from ocf.cluster.protocol import EventType, SelectionChangedError
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.shards import slot_of
from ocf.runtime.sharding import Sharding
from ocf.runtime.sharding.sharded_objects import ShardedObjects
from ocf.runtime.sharding.slots import Slots
from ocf.testing import VirtualClock, run_in_virtual_time
from ocf_server import EmbeddedCluster

KIND: Final = ("v1", "ConfigMap")
LEASE: Final = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default")
NAMESPACES: Final = ("acorn", "birch", "cedar", "dates", "elms", "firs")
TOTAL: Final = 4


def holding(*held: int, by: Literal["uid", "namespace"] = "namespace") -> Slots:
    clock = VirtualClock()
    clock.advance(timedelta(seconds=1))
    slots = Slots(Sharding(by=by, slots=TOTAL), LEASE, "one", clock)
    slots.extend(timedelta(hours=1))
    slots.add(*held)
    return slots


def named(namespace: str, name: str = "one") -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def run(work: Callable[[EmbeddedCluster], Awaitable[None]], *, gate: bool) -> None:
    async def on_stage() -> None:
        cluster = EmbeddedCluster(namespaces=NAMESPACES, feature_gates={"ShardedListAndWatch": gate})
        for namespace in NAMESPACES:
            await cluster.create(named(namespace), field_manager="me")
        cluster.requests.clear()
        await work(cluster)

    run_in_virtual_time(on_stage())


async def list_for_cache(sharded: ShardedObjects, limit: int = 0, token: str = "") -> str:
    """List as an informer does; return the version, or the token of the next page."""
    with requests_for(Purpose.CACHE):
        page = await sharded.list(*KIND, ListOptions(limit=limit, continue_token=token))
    return page.continue_token or page.resource_version


def in_slots(*slots: int) -> list[str]:
    return [name for name in NAMESPACES if slot_of(name, TOTAL) in slots]


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("held", [(), (0,), (1, 3), (0, 1, 2, 3)])
def test_a_list_has_the_objects_of_the_slots_on_all_of_its_pages(held: tuple[int, ...], *, gate: bool) -> None:
    async def work(cluster: EmbeddedCluster) -> None:
        sharded, found, token = ShardedObjects(cluster, KIND, holding(*held)), list[str](), ""
        while True:
            page = await sharded.list(*KIND, ListOptions(limit=2, continue_token=token))
            found += [item["metadata"]["namespace"] for item in page.items]
            token = page.continue_token
            if not token:
                break
        assert found == in_slots(*held)
        whole = await sharded.list("v1", "Namespace")
        assert {*NAMESPACES} <= {item["metadata"]["name"] for item in whole.items}

    run(work, gate=gate)


@pytest.mark.parametrize("gate", [False, True])
def test_a_watch_has_the_events_of_the_slots_until_they_change(*, gate: bool) -> None:
    async def work(cluster: EmbeddedCluster) -> None:
        slots = holding(0, 1)
        sharded = ShardedObjects(cluster, KIND, slots)
        version = await list_for_cache(sharded)
        seen: list[str] = []

        async def watch() -> None:
            async for event in sharded.watch(*KIND, WatchOptions(resource_version=version)):
                seen.extend([event.object["metadata"]["namespace"]] if event.type is not EventType.BOOKMARK else [])

        watching = asyncio.create_task(watch())
        for namespace in NAMESPACES:
            await cluster.create(named(namespace, "two"), field_manager="me")
        await asyncio.sleep(1)
        assert seen == in_slots(0, 1)
        slots.add(2)
        with pytest.raises(SelectionChangedError):
            await watching
        # A watch from a list of before the change would miss what has come.
        with pytest.raises(SelectionChangedError):
            await watch()
        await list_for_cache(sharded)
        slots.lose(0)
        with pytest.raises(SelectionChangedError):
            await watch()

    run(work, gate=gate)


@pytest.mark.parametrize("gate", [False, True])
def test_the_cache_shows_what_is_in_slots_that_were_held_from_the_begin_of_the_last_list_on(*, gate: bool) -> None:
    """An object that is absent from it may only be in a slot that was taken later, or is held for the second time."""

    async def work(cluster: EmbeddedCluster) -> None:
        slots = holding(0)
        sharded = ShardedObjects(cluster, KIND, slots)

        def shown() -> list[int]:
            return [slot for slot in range(TOTAL) for name in in_slots(slot)[:1] if sharded.shows("", name)]

        assert shown() == []
        await list_for_cache(sharded)
        assert shown() == [0]
        slots.add(1)
        assert shown() == [0]
        # What is read beside the cache does not count.
        await sharded.list(*KIND)
        assert shown() == [0]
        token = await list_for_cache(sharded, limit=2)
        slots.add(2)
        assert shown() == [0]
        await sharded.list(*KIND)
        while (token := await list_for_cache(sharded, limit=2, token=token)) and not token.isdigit():
            pass
        assert shown() == [0, 1]
        slots.lose(0)
        slots.add(0)
        assert shown() == [1]
        await list_for_cache(sharded)
        assert shown() == [0, 1, 2]
        slots.extend(timedelta(0))
        assert shown() == []

    run(work, gate=gate)


def test_events_of_others_move_the_version_on() -> None:
    """Without the gate: a watch that falls behind has to list all objects again."""

    async def work(cluster: EmbeddedCluster) -> None:
        sharded = ShardedObjects(cluster, KIND, holding(0))
        version = await list_for_cache(sharded)
        watch = sharded.watch(*KIND, WatchOptions(resource_version=version))
        (other, *_) = in_slots(1, 2, 3)
        made = await cluster.create(named(other, "two"), field_manager="me")
        event = await anext(watch)
        assert event.type is EventType.BOOKMARK
        assert event.object["metadata"] == {"resourceVersion": made["metadata"]["resourceVersion"]}
        await watch.aclose()

    run(work, gate=False)


def test_a_process_without_slots_watches_nothing() -> None:
    async def work(cluster: EmbeddedCluster) -> None:
        slots = holding()
        sharded = ShardedObjects(cluster, KIND, slots)
        version = await list_for_cache(sharded)
        watching = asyncio.create_task(anext(sharded.watch(*KIND, WatchOptions(resource_version=version))))
        await asyncio.sleep(60)
        assert [str(request.verb) for request in cluster.requests] == ["list"]
        slots.add(0)
        with pytest.raises(SelectionChangedError):
            await watching

    run(work, gate=True)


def test_cluster_scoped_objects_cannot_be_divided_by_namespace() -> None:
    async def work(cluster: EmbeddedCluster) -> None:
        kind = ("v1", "Namespace")
        with pytest.raises(ConfigError, match="cluster-scoped: shard by uid"):
            await ShardedObjects(cluster, kind, holding(*range(TOTAL))).list(*kind)
        assert (await ShardedObjects(cluster, kind, holding(*range(TOTAL), by="uid")).list(*kind)).items

    run(work, gate=False)
