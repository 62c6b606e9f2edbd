"""Watches: events, expiry, and cleanup."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, WatchEvent, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.errors import ApiError, ExpiredError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.virtual_time import VirtualLoop
from ocf_server import EmbeddedCluster

Build = Callable[..., Manifest]


def maps(cluster: EmbeddedCluster, **options: Any) -> AsyncGenerator[WatchEvent, None]:
    options = {"namespace": "shop", "resource_version": cluster.resource_version, **options}
    return cluster.watch("v1", "ConfigMap", WatchOptions(**options))


async def take(watch: AsyncGenerator[WatchEvent, None], count: int) -> list[tuple[EventType, str]]:
    found = []
    async with aclosing(watch):
        for _ in range(count):
            event = await anext(watch)
            found.append((event.type, event.object["metadata"].get("name", "")))
    return found


async def relabel(cluster: EmbeddedCluster, name: str, value: str | None) -> Manifest:
    key = ObjectKey("v1", "ConfigMap", name, "shop")
    patch = {"metadata": {"labels": {"app": value}}}
    return await cluster.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))


async def test_changes_are_reported_in_order(cluster: EmbeddedCluster, config_map: Build) -> None:
    watch = maps(cluster)
    await cluster.create(config_map("a"), field_manager="test")
    await relabel(cluster, "a", "x")
    await cluster.delete(ObjectKey("v1", "ConfigMap", "a", "shop"))

    assert await take(watch, 3) == [(EventType.ADDED, "a"), (EventType.MODIFIED, "a"), (EventType.DELETED, "a")]


async def test_a_waiting_watch_gets_a_later_change(cluster: EmbeddedCluster, config_map: Build) -> None:
    task = asyncio.create_task(take(maps(cluster), 1))
    await asyncio.sleep(0)
    await cluster.create(config_map("a"), field_manager="test")

    assert await task == [(EventType.ADDED, "a")]


async def test_other_kinds_and_namespaces_are_not_reported(
    cluster: EmbeddedCluster, config_map: Build, deployment: Build
) -> None:
    watch = maps(cluster)
    await cluster.create(config_map("b", namespace="other"), field_manager="test")
    await cluster.create(deployment(), field_manager="test")
    await cluster.create(config_map("a"), field_manager="test")

    assert await take(watch, 1) == [(EventType.ADDED, "a")]


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_watch_without_a_version_starts_with_the_existing_objects(
    cluster: EmbeddedCluster, config_map: Build, version: str
) -> None:
    for name in ("b", "a"):
        await cluster.create(config_map(name), field_manager="test")
    watch = maps(cluster, resource_version=version)

    assert await take(watch, 2) == [(EventType.ADDED, "a"), (EventType.ADDED, "b")]


async def test_an_object_that_starts_or_stops_matching_is_added_or_deleted(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    watch = maps(cluster, label_selector="app=x")
    await relabel(cluster, "a", "x")
    last = await relabel(cluster, "a", "y")

    async with aclosing(watch):
        added, deleted = await anext(watch), await anext(watch)

    assert (added.type, deleted.type) == (EventType.ADDED, EventType.DELETED)
    assert deleted.object["metadata"]["labels"] == {"app": "x"}, "the last state that matched"
    assert deleted.object["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]


async def test_a_deleted_object_has_the_resource_version_of_its_deletion(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    stored = await cluster.create(config_map("a", data={"k": "v"}), field_manager="test")
    watch = maps(cluster)
    await cluster.delete(ObjectKey.of(stored))

    async with aclosing(watch):
        event = await anext(watch)

    assert event.object["data"] == {"k": "v"}
    assert event.object["metadata"]["resourceVersion"] == cluster.resource_version


async def test_a_watch_from_the_version_of_a_list_reports_all_later_changes(
    cluster: EmbeddedCluster, config_map: Build
) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    page = await cluster.list("v1", "ConfigMap", ListOptions(namespace="shop"))
    await cluster.create(config_map("b"), field_manager="test")

    assert await take(maps(cluster, resource_version=page.resource_version), 1) == [(EventType.ADDED, "b")]


async def test_a_version_older_than_the_history_is_expired(cluster: EmbeddedCluster, config_map: Build) -> None:
    version = cluster.resource_version
    await cluster.create(config_map("a"), field_manager="test")
    cluster.compact()

    with pytest.raises(ExpiredError) as caught:
        await take(maps(cluster, resource_version=version), 1)

    assert (caught.value.code, caught.value.reason) == (410, "Expired")


async def test_the_history_is_bounded(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), history=5)
    version = cluster.resource_version
    for number in range(6):
        await cluster.create(config_map(f"m{number}"), field_manager="test")

    with pytest.raises(ExpiredError):
        await take(maps(cluster, resource_version=version), 1)
    later = str(int(version) + 1)
    assert len(await take(maps(cluster, resource_version=later), 5)) == 5


async def test_a_watch_with_unread_changes_expires_at_a_compaction(cluster: EmbeddedCluster, config_map: Build) -> None:
    watch = maps(cluster)
    await cluster.create(config_map("a"), field_manager="test")
    assert (await anext(watch)).type is EventType.ADDED
    await cluster.create(config_map("b"), field_manager="test")
    cluster.compact()

    with pytest.raises(ExpiredError):
        await anext(watch)


async def test_a_bookmark_is_sent_after_changes_outside_the_scope(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop", "other"), bookmark_every=3)
    watch = maps(cluster)
    for number in range(3):
        await cluster.create(config_map(f"m{number}", namespace="other"), field_manager="test")

    async with aclosing(watch):
        event = await anext(watch)

    metadata = {"resourceVersion": cluster.resource_version}
    assert event == WatchEvent(EventType.BOOKMARK, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})


async def test_a_watch_can_start_from_a_bookmark(config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop", "other"), bookmark_every=1)
    watch = maps(cluster)
    await cluster.create(config_map("x", namespace="other"), field_manager="test")
    async with aclosing(watch):
        bookmark = await anext(watch)
    await cluster.create(config_map("a"), field_manager="test")

    version = bookmark.object["metadata"]["resourceVersion"]
    assert await take(maps(cluster, resource_version=version), 1) == [(EventType.ADDED, "a")]


@pytest.mark.parametrize("version", ["abc", "-1", "1.5"])
async def test_a_version_that_is_not_a_number_is_rejected(cluster: EmbeddedCluster, version: str) -> None:
    with pytest.raises(ServerError, match="resourceVersion"):
        await take(maps(cluster, resource_version=version), 1)


async def test_a_consumer_that_stops_leaves_no_waiting_watch(cluster: EmbeddedCluster, config_map: Build) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    async for _ in maps(cluster, resource_version="0"):
        break
    gc.collect()

    assert not cluster._registry.store._waiting


async def test_a_cancelled_consumer_leaves_no_waiting_watch(cluster: EmbeddedCluster) -> None:
    task = asyncio.create_task(take(maps(cluster), 1))
    await asyncio.sleep(0)
    assert len(cluster._registry.store._waiting) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not cluster._registry.store._waiting


async def test_a_watch_sleeps_while_other_kinds_change(deployment: Build, config_map: Build) -> None:
    cluster = EmbeddedCluster(namespaces=("shop",), history=3, bookmark_every=50)
    task = asyncio.create_task(take(maps(cluster), 1))
    await asyncio.sleep(0)
    (waiter,) = cluster._registry.store._waiting
    for number in range(5):
        await cluster.create(deployment(name=f"web-{number}"), field_manager="test")
        await asyncio.sleep(0)
    assert list(cluster._registry.store._waiting) == [waiter]

    await cluster.create(config_map("a"), field_manager="test")
    assert await task == [(EventType.ADDED, "a")], "changes that it slept through are not missing"


async def test_watches_do_not_share_event_objects(cluster: EmbeddedCluster, config_map: Build) -> None:
    first, second = maps(cluster), maps(cluster)
    await cluster.create(config_map("a", data={"k": "v"}), field_manager="test")
    async with aclosing(first), aclosing(second):
        (await anext(first)).object["data"]["k"] = "changed"

        assert (await anext(second)).object["data"] == {"k": "v"}


async def test_an_unknown_kind_cannot_be_watched(cluster: EmbeddedCluster) -> None:
    with pytest.raises(ApiError) as caught:
        await anext(cluster.watch("example.com/v9", "Nothing", WatchOptions(resource_version="")))

    assert caught.value.code == 404


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        pytest.param(10.0, [(8.0, EventType.BOOKMARK), (10.0, None)], id="two seconds before the end"),
        pytest.param(2.0, [(2.0, None)], id="not in a watch of two seconds"),
    ],
)
def test_a_timed_watch_ends_after_a_bookmark(seconds: float, wanted: list[tuple[float, EventType | None]]) -> None:
    async def watched() -> list[tuple[float, EventType | None]]:
        cluster = EmbeddedCluster(namespaces=["shop"])
        loop = asyncio.get_running_loop()
        found = [(round(loop.time(), 3), event.type) async for event in maps(cluster, timeout=seconds)]
        return [*found, (round(loop.time(), 3), None)]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(watched()) == wanted


def test_the_last_bookmark_has_the_version_of_all_changes(config_map: Build) -> None:
    """A client that goes on from it misses nothing and sees nothing twice."""

    async def watched() -> tuple[list[str], str]:
        cluster = EmbeddedCluster(namespaces=["shop", "other"])
        watch = maps(cluster, timeout=10.0)
        first = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(1)
        await cluster.create(config_map("a"), field_manager="test")
        await cluster.create(config_map("b", namespace="other"), field_manager="test")
        versions = [
            event.object["metadata"]["resourceVersion"] for event in (await first, *[one async for one in watch])
        ]
        return versions, cluster.resource_version

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        versions, newest = runner.run(watched())
    assert versions[-1] == newest
    assert int(versions[0]) < int(newest)


async def test_existing_objects_end_with_a_marked_bookmark(cluster: EmbeddedCluster, config_map: Build) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    async with aclosing(maps(cluster, resource_version="")) as watch:
        assert (await anext(watch)).type is EventType.ADDED
        bookmark = await anext(watch)
    assert bookmark.type is EventType.BOOKMARK
    assert bookmark.object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
