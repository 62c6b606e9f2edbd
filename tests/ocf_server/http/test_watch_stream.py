"""Watches over HTTP: framing, bookmarks, start and end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from ocf_server.http.server import HttpServer

PATH = "/api/v1/namespaces/shop/configmaps"


def config_map(name: str, **labels: str) -> Manifest:
    metadata = {"name": name, "namespace": "shop", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@asynccontextmanager
async def watching(server: HttpServer, query: str, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{server.url}{PATH}?watch=1&{query}", headers=headers) as response,
    ):
        assert response.status == 200
        yield response


async def until_waiting(cluster: EmbeddedCluster) -> None:
    """Wait until the watch has processed all events, and waits for more."""
    async with asyncio.timeout(600):
        while not cluster._registry.store._waiting:  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.01)


async def following(response: aiohttp.ClientResponse) -> tuple[str, Any]:
    event = json.loads(await asyncio.wait_for(response.content.readline(), 600))
    return event["type"], event["object"]


async def test_each_event_is_sent_on_a_line_as_it_happens(server: HttpServer, cluster: EmbeddedCluster) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    async with watching(server, "resourceVersion=0") as response:
        kind, found = await following(response)
        assert (kind, found["metadata"]["name"], found["kind"]) == ("ADDED", "a", "ConfigMap")
        await cluster.create(config_map("b"), field_manager="test")
        assert (await following(response))[1]["metadata"]["name"] == "b"


async def test_a_watch_of_negative_seconds_ends_at_once(server: HttpServer) -> None:
    async with watching(server, "timeoutSeconds=-1") as response:
        assert await response.read() == b""


async def test_initial_events_end_with_a_marked_bookmark(server: HttpServer, cluster: EmbeddedCluster) -> None:
    """A client can get the existing objects, a bookmark at their end, and then later changes in one watch."""
    await cluster.create(config_map("a"), field_manager="test")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with watching(server, query) as response:
        assert (await following(response))[0] == "ADDED"
        kind, bookmark = await following(response)
        assert kind == "BOOKMARK"
        assert bookmark["metadata"] == {
            "resourceVersion": cluster.resource_version,
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
        await cluster.create(config_map("b"), field_manager="test")
        assert (await following(response))[0] == "ADDED"


async def test_without_initial_events_only_later_changes_are_sent(server: HttpServer, cluster: EmbeddedCluster) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    async with watching(server, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan") as response:
        await cluster.create(config_map("b"), field_manager="test")
        assert (await following(response))[1]["metadata"]["name"] == "b"


async def test_bookmarks_are_sent_only_on_request() -> None:
    impatient = EmbeddedCluster(namespaces=["shop", "other"], bookmark_every=1)
    async with serving(impatient) as server:
        for wanted, expected in (("true", "BOOKMARK"), ("false", "ADDED")):
            start = impatient.resource_version
            async with watching(server, f"resourceVersion={start}&allowWatchBookmarks={wanted}") as response:
                elsewhere = {**config_map(f"a-{wanted}"), "metadata": {"name": f"a-{wanted}", "namespace": "other"}}
                await impatient.create(elsewhere, field_manager="test")
                # Lets the server handle this change separately from the next one.
                await until_waiting(impatient)
                await impatient.create(config_map(f"b-{wanted}"), field_manager="test")
                assert (await following(response))[0] == expected


async def test_a_watch_ends_after_its_timeout(server: HttpServer) -> None:
    async with watching(server, "timeoutSeconds=1") as response:
        assert await asyncio.wait_for(response.content.read(), 600) == b""


async def test_a_watch_ends_with_the_server(cluster: EmbeddedCluster) -> None:
    async with serving(cluster) as server:
        context = watching(server, "")
        response = await context.__aenter__()
    assert await asyncio.wait_for(response.content.read(), 600) == b""
    await context.__aexit__(None, None, None)


async def test_an_expired_version_ends_the_watch_with_an_error_event(
    server: HttpServer, cluster: EmbeddedCluster
) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    cluster.compact()
    async with watching(server, "resourceVersion=1") as response:
        kind, status = await following(response)
        assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
        assert await response.content.read() == b""


async def test_a_compaction_ends_a_watch_with_unread_changes(server: HttpServer, cluster: EmbeddedCluster) -> None:
    async with watching(server, f"resourceVersion={cluster.resource_version}") as response:
        await cluster.create(config_map("a"), field_manager="test")
        cluster.compact()
        kinds = [(await following(response))[0]]
        assert kinds == ["ERROR"]


async def test_a_compaction_does_not_end_a_watch_without_unread_changes(
    server: HttpServer, cluster: EmbeddedCluster
) -> None:
    async with watching(server, f"resourceVersion={cluster.resource_version}") as response:
        await cluster.create(config_map("a"), field_manager="test")
        assert (await following(response))[0] == "ADDED"
        await until_waiting(cluster)
        cluster.compact()
        await cluster.create(config_map("b"), field_manager="test")
        assert (await following(response))[0] == "ADDED"


async def test_an_object_that_starts_or_stops_matching_is_added_or_deleted(
    server: HttpServer, cluster: EmbeddedCluster
) -> None:
    async with watching(server, "labelSelector=tier%3Dfront") as response:
        await cluster.create(config_map("a"), field_manager="test")
        await cluster.update(config_map("a", tier="front"), field_manager="test")
        assert (await following(response))[0] == "ADDED"
        await cluster.update(config_map("a", tier="back"), field_manager="test")
        assert (await following(response))[0] == "DELETED"


async def test_a_table_describes_its_columns_once(server: HttpServer, cluster: EmbeddedCluster) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with watching(server, "resourceVersion=0", Accept=table) as response:
        headings = []
        for name in ("a", "b"):
            await cluster.create(config_map(name), field_manager="test")
            _, found = await following(response)
            columns = found["columnDefinitions"]
            headings.append(columns and [column["name"] for column in columns])
            assert found["rows"][0]["cells"][0] == name
    assert headings == [["Name", "Data", "Age"], None]


async def test_a_closed_connection_leaves_no_waiting_watch(server: HttpServer, cluster: EmbeddedCluster) -> None:
    """A watch stops waiting for changes when its client closes the connection."""
    waiting = cluster._registry.store._waiting
    async with watching(server, f"resourceVersion={cluster.resource_version}"):
        await until_waiting(cluster)
    async with asyncio.timeout(600):
        while waiting:  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("query", ["watch=true", "watch=1&limit=1"])
async def test_a_kind_that_is_not_served_cannot_be_watched(server: HttpServer, query: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/api/v1/nothings?{query}") as response:
        assert response.status == 404
