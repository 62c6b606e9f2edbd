"""Responses in protobuf: which requests get them, and what they contain."""

import asyncio
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio

from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http.media import Encoding, Media
from ocf_server.http.protobuf import MAGIC, read_protobuf
from ocf_server.http.responses import serializer_of
from ocf_server.http.server import HttpServer
from tests.ocf_server.http.test_protobuf_writer import document
from tests.ocf_server.http.test_watch_stream import config_map

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
JSON: Final = "application/json"
YAML = "application/yaml"
STREAM: Final = f"{PROTOBUF};stream=watch"
METADATA: Final = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE: Final = f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"
MAPS: Final = "/api/v1/namespaces/shop/configmaps"
SHOPS: Final = "/apis/example.com/v1/namespaces/shop/shops"
WATCH: Final = "?watch=1&resourceVersion=0&timeoutSeconds=1"


@dataclass
class Reader:
    """Reads the bytes of responses."""

    session: aiohttp.ClientSession

    async def __call__(self, path: str, accept: str, method: str = "GET", body: Any = None) -> tuple[int, str, bytes]:
        async with self.session.request(method, path, headers={"Accept": accept}, json=body) as response:
            return response.status, response.headers["Content-Type"], await response.read()


@pytest_asyncio.fixture
async def read(server: HttpServer, cluster: EmbeddedCluster) -> AsyncIterator[Reader]:
    await cluster.create(config_map("a"), field_manager="test")
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a", "namespace": "shop"}}
    await cluster.create(shop, field_manager="test")
    async with aiohttp.ClientSession(server.url) as session:
        yield Reader(session)


@pytest.mark.parametrize(
    ("path", "accept", "status", "content_type"),
    [
        pytest.param(f"{MAPS}/a", PROTOBUF, 200, PROTOBUF, id="object"),
        pytest.param(f"{MAPS}/a", f"{PROTOBUF}, */*", 200, PROTOBUF, id="protobuf before anything"),
        pytest.param(f"{MAPS}/a", f"{JSON},{PROTOBUF}", 200, JSON, id="JSON before protobuf"),
        pytest.param(f"{MAPS}/a", f"{PROTOBUF};q=0.5,{YAML}", 200, YAML, id="YAML preferred"),
        pytest.param(f"{MAPS}/a", f"*/*, {YAML}", 200, YAML, id="a wildcard after what is specific"),
        pytest.param(f"{MAPS}/a", f"*/*, {YAML};q=0.5", 200, YAML, id="a wildcard of a higher weight"),
        pytest.param(f"{MAPS}/a", f"application/*, {YAML}", 200, YAML, id="a wildcard for the subtype"),
        pytest.param(f"{MAPS}/a", f"text/html, */*;q=0.8, {PROTOBUF};q=0.1", 200, PROTOBUF, id="as browsers do"),
        pytest.param(f"{MAPS}/a", f"{JSON};q=0.1, {YAML};q=0.2, */*", 200, JSON, id="weights behind a wildcard"),
        pytest.param(f"{MAPS}/a", f"{YAML};q=0, */*", 200, JSON, id="a weight of 0 before a wildcard"),
        pytest.param(f"{MAPS}/a", f"{JSON};q=0", 200, JSON, id="a weight of 0"),
        pytest.param(f"{MAPS}/a", STREAM, 200, PROTOBUF, id="object, asked for as a stream"),
        pytest.param(f"{MAPS}/a", METADATA, 200, PROTOBUF, id="metadata of an object"),
        pytest.param(f"{MAPS}/a", METADATA_LIST, 406, JSON, id="object as metadata of a list"),
        pytest.param(f"{MAPS}/a", TABLE, 406, JSON, id="table"),
        pytest.param(f"{MAPS}/a", f"{TABLE},{PROTOBUF}", 200, PROTOBUF, id="table or object"),
        pytest.param(MAPS, PROTOBUF, 200, PROTOBUF, id="list"),
        pytest.param(MAPS, METADATA_LIST, 200, PROTOBUF, id="metadata of a list"),
        pytest.param(MAPS, METADATA, 406, JSON, id="list as metadata of an object"),
        pytest.param(MAPS, f"{TABLE},{JSON}", 200, JSON, id="table or JSON"),
        pytest.param(f"{MAPS}/none", PROTOBUF, 404, PROTOBUF, id="error"),
        pytest.param(f"{MAPS}/none", METADATA, 404, JSON, id="error for metadata"),
        pytest.param("/api/v1/namespaces/shop/bogus", PROTOBUF, 404, PROTOBUF, id="unknown resource"),
        pytest.param(f"{MAPS}{WATCH}", PROTOBUF, 200, STREAM, id="watch"),
        pytest.param(f"{MAPS}{WATCH}", METADATA, 200, STREAM, id="watch of metadata"),
        pytest.param(f"{MAPS}{WATCH}", f"application/yaml,{PROTOBUF}", 200, STREAM, id="watch, YAML preferred"),
        pytest.param(f"{SHOPS}/a", PROTOBUF, 406, PROTOBUF, id="object of a custom kind"),
        pytest.param(f"{SHOPS}/a", f"{PROTOBUF}, */*", 200, JSON, id="object of a custom kind, or anything"),
        pytest.param(f"{SHOPS}/a", METADATA, 200, PROTOBUF, id="metadata of a custom kind"),
        pytest.param(SHOPS, METADATA_LIST, 200, PROTOBUF, id="metadata of a list of a custom kind"),
        pytest.param(f"{SHOPS}{WATCH}", METADATA, 200, STREAM, id="watch of metadata of a custom kind"),
        pytest.param(f"{SHOPS}{WATCH}", PROTOBUF, 406, PROTOBUF, id="watch of a custom kind"),
        pytest.param("/api", PROTOBUF, 200, PROTOBUF, id="versions"),
        pytest.param("/apis", f"{PROTOBUF}, */*", 200, PROTOBUF, id="groups"),
        pytest.param("/apis/apps/v1", PROTOBUF, 200, PROTOBUF, id="resources"),
        pytest.param("/version", PROTOBUF, 406, PROTOBUF, id="version"),
    ],
)
async def test_protobuf_is_negotiated(read: Reader, path: str, accept: str, status: int, content_type: str) -> None:
    async with read.session.get(path, headers={"Accept": accept}) as response:
        assert (response.status, response.headers["Content-Type"]) == (status, content_type)


@pytest.mark.parametrize(
    "path", ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", MAPS, f"{MAPS}/a", f"{MAPS}/none"]
)
async def test_a_response_is_the_same_in_protobuf_and_in_json(read: Reader, path: str) -> None:
    encoded = (await read(path, PROTOBUF))[2]
    async with read.session.get(path) as response:
        shown = await response.json()
    assert document(encoded, shown) == document(serializer_of(Media(Encoding.PROTOBUF)).document(shown), shown)


async def test_a_list_of_many_pieces_is_whole(read: Reader, cluster: EmbeddedCluster) -> None:
    for number in range(4):
        await cluster.create({**config_map(f"b{number}"), "data": {"a": "x" * 200_000}}, field_manager="test")
    encoded = (await read(MAPS, PROTOBUF))[2]
    async with read.session.get(MAPS) as response:
        names = [item["metadata"]["name"] for item in (await response.json())["items"]]
    items = [value for number, value in document(encoded, {"kind": "ConfigMapList", "apiVersion": "v1"})[1][1]]
    assert len(items[1:]) == len(names) == 5


async def test_created_objects_and_reviews_are_returned_in_protobuf(read: Reader) -> None:
    status, _, encoded = await read(MAPS, PROTOBUF, "POST", {"metadata": {"name": "b"}, "data": {"x": "y"}})
    assert (status, read_protobuf(encoded)["data"]) == (201, {"x": "y"})
    path, spec = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"resourceAttributes": {"verb": "get"}}
    status, _, encoded = await read(path, PROTOBUF, "POST", {"spec": spec})
    assert (status, read_protobuf(encoded)["status"]["allowed"]) == (201, True)


async def test_a_deleted_collection_is_returned_in_protobuf(read: Reader) -> None:
    encoded = (await read(MAPS, PROTOBUF, "DELETE"))[2]
    assert len(document(encoded, {"kind": "ConfigMapList", "apiVersion": "v1"})[1][1]) == 2


async def test_a_scale_of_a_deployment_is_returned_in_protobuf(read: Reader, cluster: EmbeddedCluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
    await cluster.create({**head, "spec": spec}, field_manager="test")
    encoded = (await read("/apis/apps/v1/namespaces/shop/deployments/web/scale", PROTOBUF))[2]
    found = read_protobuf(encoded)
    assert (found["kind"], found["spec"]) == ("Scale", {"replicas": 3})


async def event(response: aiohttp.ClientResponse) -> tuple[str, Manifest]:
    """Read one event: its length, its type, and the object with its envelope."""
    (size,) = struct.unpack(">I", await response.content.readexactly(4))
    frame = await response.content.readexactly(size)
    kind, _, encoded = frame.partition(MAGIC)
    return kind[2 : 2 + kind[1]].decode(), read_protobuf(MAGIC + encoded)


async def test_events_of_a_watch_are_the_changes(read: Reader, cluster: EmbeddedCluster) -> None:
    path = f"{MAPS}?watch=1&resourceVersion={cluster.resource_version}"
    async with asyncio.timeout(600), read.session.get(path, headers={"Accept": PROTOBUF}) as response:
        await cluster.create({**config_map("b"), "data": {"colour": "red"}}, field_manager="test")
        await cluster.delete(ObjectKey("v1", "ConfigMap", "b", "shop"))
        added, deleted = [await event(response) for _ in range(2)]
    assert (added[0], deleted[0]) == ("ADDED", "DELETED")
    assert (added[1]["kind"], added[1]["metadata"]["name"], added[1]["data"]) == ("ConfigMap", "b", {"colour": "red"})


async def test_the_end_of_initial_events_is_a_bookmark(read: Reader) -> None:
    options = "watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    async with asyncio.timeout(600), read.session.get(f"{MAPS}?{options}", headers={"Accept": PROTOBUF}) as response:
        first, second = [await event(response) for _ in range(2)]
    assert (first[0], second[0]) == ("ADDED", "BOOKMARK")
    assert second[1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_an_error_of_a_watch_is_a_status(read: Reader, cluster: EmbeddedCluster) -> None:
    cluster.compact()
    path = f"{MAPS}?watch=1&resourceVersion=1"
    async with asyncio.timeout(600), read.session.get(path, headers={"Accept": PROTOBUF}) as response:
        kind, status = await event(response)
    assert (kind, status["kind"], status["code"], status["reason"]) == ("ERROR", "Status", 410, "Expired")
