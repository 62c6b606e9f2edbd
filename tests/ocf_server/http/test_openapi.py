"""OpenAPI of custom kinds, compared with documents of a real API server."""

import gzip
import json
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from ocf_server import EmbeddedCluster
from ocf_server.http.openapi_custom import for_version_two
from ocf_server.http.server import HttpServer
from tests.ocf_server.http.test_exchanges import differing

Client = Callable[..., Awaitable[Any]]
Kubectl = Callable[..., Awaitable[Any]]
RECORDED: Final = json.loads(gzip.decompress((Path(__file__).parent / "recorded" / "openapi.json.gz").read_bytes()))
FREE: Final = "x-kubernetes-preserve-unknown-fields"
PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
DELETE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def comparable(document: Any) -> Any:
    """Return a document without the groups that have a DeleteOptions: those of the whole server."""
    document["components"]["schemas"][DELETE].pop("x-kubernetes-group-version-kind")
    return document


@pytest.mark.parametrize("version", [pytest.param(version, id=version) for version in RECORDED["documents"]])
async def test_documents_of_custom_kinds_equal_those_of_a_real_api_server(
    version: str, ask: Client, cluster: EmbeddedCluster
) -> None:
    for definition in RECORDED["definitions"]:
        await cluster.create(definition, field_manager="test")
    found = await ask("GET", f"/openapi/v3/apis/recorded.example.com/{version}")
    wanted = comparable(json.loads(json.dumps(RECORDED["documents"][version])))
    assert not list(differing(wanted, comparable(found.json), ""))


async def test_version_two_of_custom_kinds_equals_that_of_a_real_api_server(
    ask: Client, cluster: EmbeddedCluster
) -> None:
    for definition in RECORDED["definitions"]:
        await cluster.create(definition, field_manager="test")
    found = (await ask("GET", "/openapi/v2")).json["definitions"]
    wanted = RECORDED["version_two"]
    assert not list(differing(wanted, {name: found.get(name) for name in wanted}, ""))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "array", "nullable": True, "items": {"type": "string"}}, {}, id="nullable"),
        pytest.param(
            {"required": ["a", "b"], "properties": {"a": {"nullable": True}, "b": {"type": "string"}}},
            {"required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}},
            id="required, but nullable",
        ),
        pytest.param(
            {"required": ["a"], "additionalProperties": {"type": "string", "nullable": True}},
            {"required": [], "additionalProperties": {}},
            id="nullable entries",
        ),
        pytest.param({"type": "array", FREE: True, "items": {}}, {FREE: True}, id="unknown fields in a list"),
        pytest.param({"type": "object", "not": {"required": ["a"]}, "default": {}}, {"type": "object"}, id="not"),
    ],
)
def test_version_two_leaves_out_what_it_does_not_support(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert for_version_two(schema) == expected


def message(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message of protobuf."""
    found: dict[int, list[Any]] = {}
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(data):
        tag = varint()
        if tag & 7 == 2:
            size = varint()
            found.setdefault(tag >> 3, []).append(data[position : position + size])
            position += size
        elif tag & 7 == 1:
            found.setdefault(tag >> 3, []).append(data[position : position + 8])
            position += 8
        else:
            found.setdefault(tag >> 3, []).append(varint())
    return found


@pytest.mark.parametrize("accept", ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", PROTOBUF])
async def test_version_two_is_also_written_as_protobuf(
    accept: str, server: HttpServer, cluster: EmbeddedCluster
) -> None:
    for definition in RECORDED["definitions"]:
        await cluster.create(definition, field_manager="test")
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{server.url}/openapi/v2", headers={"Accept": accept}) as response:
            assert (response.status, response.headers["Content-Type"]) == (200, PROTOBUF)
            document = message(await response.read())
        both = {"Accept": f"application/json, {accept}"}
        async with session.get(f"{server.url}/openapi/v2", headers=both) as response:
            same = await response.json()
    named = [message(entry) for entry in message(document[9][0])[1]]
    schemas = {entry[1][0].decode(): message(entry[2][0]) for entry in named}
    assert (document[1], set(schemas)) == ([b"2.0"], set(same["definitions"]))
    shop = schemas["com.example.recorded.v1.Shop"]
    properties = {entry[1][0].decode(): message(entry[2][0]) for entry in map(message, message(shop[25][0])[1])}
    fields = [message(entry) for entry in message(properties["spec"][25][0])[1]]
    size = next(message(entry[2][0]) for entry in fields if entry[1] == [b"size"])
    assert (shop[4], set(properties)) == ([b"A shop."], {"apiVersion", "kind", "metadata", "spec", "status"})
    assert (properties["spec"][19], size[2], size[9]) == ([b"size"], [b"int32"], [struct.pack("<d", 1)])
    port = schemas["io.k8s.api.core.v1.ContainerPort"]
    parts = {entry[1][0].decode(): message(entry[2][0]) for entry in map(message, message(port[25][0])[1])}
    assert message(parts["protocol"][5][0])[2] == [b'"TCP"\n']
    assert message(shop[31][0])[1] == [b"x-kubernetes-group-version-kind"]


async def test_kubectl_explains_a_custom_kind(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    for definition in RECORDED["definitions"]:
        await cluster.create(definition, field_manager="test")
    version = "--api-version=recorded.example.com/v1"
    shown = (await kubectl("explain", "shops.spec", version)).out
    assert "What it sells." in shown
    assert "ports" in shown
    shown = (await kubectl("explain", "shops", version)).out
    assert "Standard object's metadata" in shown
    assert "APIVersion defines the versioned schema" in shown


async def test_operations_without_parameters_have_no_empty_list_of_them(ask: Client) -> None:
    """A Go client that reads a document and writes it again loses an empty list."""
    paths = (await ask("GET", "/openapi/v3/apis/apps/v1")).json["paths"]
    lists = [
        operation["parameters"] for path in paths.values() for operation in path.values() if "parameters" in operation
    ]
    assert lists
    assert all(lists)
