"""Lists and watches over HTTP share encodings, and always show the present state."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import Cluster, ListOptions, ObjectList, PatchOptions, PatchType
from ocf.cluster.interceptor import InterceptingCluster
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http import responses
from ocf_server.http.responses import JSON, PIECE, encode
from ocf_server.http.server import HttpServer
from tests.ocf_server.http.conftest import Client
from tests.ocf_server.http.test_watch_stream import PATH, config_map, following, watching

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@given(st.lists(st.sampled_from([0, 1, PIECE // 2, PIECE - 3, PIECE, 2 * PIECE]), max_size=6))
def test_the_pieces_of_a_list_are_its_json(sizes: list[int]) -> None:
    items = ["x" * size for size in sizes]
    pieces = asyncio.run(JSON.list({"kind": "List", "items": []}, map(encode, items)))
    assert json.loads(b"".join(pieces)) == {"kind": "List", "items": items}
    assert all(len(piece) <= PIECE + 3 * PIECE + 100 for piece in pieces)


def pod(name: str) -> Manifest:
    containers = [{"name": "web", "image": "web:1"}]
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


async def nothing(_: EmbeddedCluster) -> None:
    pass


async def update(cluster: EmbeddedCluster) -> None:
    patch = PatchOptions(patch_type=PatchType.MERGE, field_manager="test")
    await cluster.patch(ObjectKey("v1", "ConfigMap", "b", "shop"), {"data": {"new": "1"}}, patch)


async def delete(cluster: EmbeddedCluster) -> None:
    await cluster.delete(ObjectKey("v1", "ConfigMap", "b", "shop"))


async def recreate(cluster: EmbeddedCluster) -> None:
    await delete(cluster)
    await cluster.create({**config_map("b"), "data": {"again": "1"}}, field_manager="test")


@pytest.mark.parametrize("change", [nothing, update, delete, recreate])
@pytest.mark.parametrize("accept", ["application/json", "application/yaml", TABLE, METADATA])
async def test_a_repeated_list_shows_the_present_state(
    change: Callable[[EmbeddedCluster], Awaitable[None]], accept: str, cluster: EmbeddedCluster, ask: Client
) -> None:
    for name in "abc":
        await cluster.create(config_map(name), field_manager="test")
    first = await ask("GET", PATH, Accept=accept)
    await change(cluster)
    again = await ask("GET", PATH, Accept=accept)
    assert (again.text == first.text) is (change is nothing)
    if accept == "application/json":
        stored = await cluster.list("v1", "ConfigMap", ListOptions(namespace="shop"))
        head = {"apiVersion": "v1", "kind": "ConfigMap"}
        assert [{**head, **item} for item in again.json["items"]] == list(stored.items)
        assert "kind" not in again.json["items"][0]


def definition(*fields: str) -> Manifest:
    properties = {name: {"type": "string"} for name in fields}
    spec = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": spec}}
        for name in ("v1", "v2")
    ]
    names = {"plural": "parts", "singular": "part", "kind": "Part", "listKind": "PartList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "parts.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": versions},
    }


async def test_versions_and_schemas_have_encodings_of_their_own(cluster: EmbeddedCluster, ask: Client) -> None:
    """An encoding is for one API version, and for the schema that the kind has."""
    await cluster.apply(definition("a", "b"), field_manager="test")
    part = {"apiVersion": "example.org/v1", "kind": "Part", "metadata": {"name": "x", "namespace": "shop"}}
    await cluster.create({**part, "spec": {"a": "1", "b": "2"}}, field_manager="test")
    for version in ("v1", "v2", "v1"):
        found = (await ask("GET", f"/apis/example.org/{version}/namespaces/shop/parts")).json["items"]
        assert [(item["apiVersion"], item["spec"]) for item in found] == [
            (f"example.org/{version}", {"a": "1", "b": "2"})
        ]
    await cluster.apply(definition("a"), field_manager="test")
    found = (await ask("GET", "/apis/example.org/v1/namespaces/shop/parts")).json["items"]
    assert [item["spec"] for item in found] == [{"a": "1"}]


class Changing(InterceptingCluster):
    """A wrapper that changes the objects that it is given."""

    async def list(self, api_version: str, kind: str, options: ListOptions = ListOptions()) -> ObjectList:  # noqa: B008
        found = await super().list(api_version, kind, options)
        for item in found.items:
            item["data"] = {"by": "the wrapper"}
        return found


async def test_a_wrapper_may_change_what_it_is_given(server: HttpServer, cluster: EmbeddedCluster, ask: Client) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    before = (await ask("GET", PATH)).text

    def wrap(inner: Cluster) -> Cluster:
        return Changing(inner)

    server.wrap(wrap)
    assert (await ask("GET", PATH)).json["items"][0]["data"] == {"by": "the wrapper"}
    server.wrap(None)
    assert (await ask("GET", PATH)).text == before


async def test_an_event_is_encoded_once_for_all_watches(
    server: HttpServer, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[Any] = []

    def counting(value: Any) -> bytes:
        encoded.append(value)
        return encode(value)

    monkeypatch.setattr(responses, "encode", counting)
    start = f"resourceVersion={cluster.resource_version}"
    async with watching(server, start) as one, watching(server, start) as other, watching(server, start) as third:
        await cluster.create(config_map("a"), field_manager="test")
        await update_of(cluster, "a")
        await cluster.delete(ObjectKey("v1", "ConfigMap", "a", "shop"))
        streams = [[await following(watch) for _ in range(3)] for watch in (one, other, third)]
    assert [kind for kind, _ in streams[0]] == ["ADDED", "MODIFIED", "DELETED"]
    assert streams[0] == streams[1] == streams[2]
    assert [found["kind"] for _, found in streams[0]] == ["ConfigMap"] * 3
    assert len([value for value in encoded if "metadata" in value]) == 3


async def update_of(cluster: EmbeddedCluster, name: str) -> None:
    patch = PatchOptions(patch_type=PatchType.MERGE, field_manager="test")
    await cluster.patch(ObjectKey("v1", "ConfigMap", name, "shop"), {"data": {"new": "1"}}, patch)


async def test_other_tasks_run_between_the_pieces_of_a_list() -> None:
    taken: list[int] = []

    def item(number: int) -> bytes:
        taken.append(number)
        return b"1" * PIECE

    listing = asyncio.ensure_future(JSON.list({"items": []}, map(item, range(10))))
    turns = []
    while not listing.done():
        turns.append(len(taken))
        await asyncio.sleep(0)
    assert len(turns) > 5
    assert sorted(turns) == turns


async def test_a_list_of_many_pieces_arrives_whole(cluster: EmbeddedCluster, ask: Client) -> None:
    for number in range(4):
        await cluster.create({**config_map(f"a{number}"), "data": {"a": "x" * (PIECE - 1)}}, field_manager="test")
    reply = await ask("GET", PATH)
    assert [item["metadata"]["name"] for item in reply.json["items"]] == ["a0", "a1", "a2", "a3"]
    assert reply.headers["Content-Length"] == str(len(reply.text))
