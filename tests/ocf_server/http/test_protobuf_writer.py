"""Encoding of protobuf responses, compared with the bytes of a real API server."""

import base64
import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects import Manifest
from ocf_server.http.media import Encoding, Media
from ocf_server.http.protobuf import MAGIC, message_fields, message_of, read_protobuf
from ocf_server.http.protobuf_writer import write_item, write_protobuf
from ocf_server.http.responses import serializer_of

Fields: TypeAlias = list[tuple[int, Any]]

FILE: Final = Path(__file__).parent / "recorded" / "protobuf.jsonl.gz"
TYPE: Final = {"1": ["apiVersion", "s"], "2": ["kind", "s"]}
PARTS: Final = {
    "Q": {"1": ["string", "s"]},
    "R": {"1": ["raw", "s"]},
    "T": {"1": ["seconds", "i"], "2": ["nanos", "i"]},
    "X": {"1": ["type", "i"], "2": ["intVal", "i"], "3": ["strVal", "s"]},
}


def varint(data: bytes, start: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[start]
        start, value, shift = start + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, start


def wire(data: bytes) -> Iterator[tuple[int, Any]]:
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        if tag & 7 == 0:
            value, position = varint(data, position)
            yield tag >> 3, value
        else:
            size, position = (8, position) if tag & 7 == 1 else varint(data, position)
            yield tag >> 3, data[position : position + size]
            position += size


def fields_of(kind: str) -> dict[str, list[str]] | None:
    code, _, name = kind.partition("#")
    return dict(message_fields(name)) if name else PARTS.get("T" if code == "U" else code)


def canonical(data: bytes, declared: dict[str, list[str]]) -> Fields:
    """Return the fields of a message in order, without those that have the zero value, as Go's `omitempty`."""
    found: Fields = []
    for number, value in wire(data):
        kind = declared[str(number)][1] if str(number) in declared else f"unknown field {number}"
        if kind.startswith("{}"):
            key, item = (dict(wire(value)).get(each, b"") for each in (1, 2))
            inner = fields_of(kind[2:])
            found.append((number, (key, canonical(item, inner) if inner else item)))
            continue
        inner = fields_of(kind.removeprefix("[]"))
        shown = canonical(value, inner) if inner else json.loads(value) if is_json(value) else value
        if shown or kind.startswith("[]"):
            found.append((number, shown))
    return sorted(found, key=lambda pair: (pair[0], repr(pair[1]) if is_map(declared, pair[0]) else ""))


def is_json(value: Any) -> bool:
    return isinstance(value, bytes) and value.startswith(b"{") and value.endswith(b"}")


def is_map(declared: dict[str, list[str]], number: int) -> bool:
    return str(number) in declared and declared[str(number)][1].startswith("{}")


def document(encoded: bytes, manifest: Manifest) -> Fields:
    """Return the fields of an object or a list, and its type."""
    assert encoded.startswith(MAGIC)
    parts = dict(wire(encoded[len(MAGIC) :]))
    assert (parts[3], parts[4]) == (b"", b"")
    kind, api_version = manifest["kind"], manifest.get("apiVersion", "")
    name = message_of(api_version, kind)
    if name is None:
        item = message_of(api_version, kind.removesuffix("List"))
        declared = {"1": ["metadata", "#meta.v1.ListMeta"], "2": ["items", f"[]#{item}"]}
    else:
        declared = dict(message_fields(name))
    return [(1, canonical(parts[1], TYPE)), (2, canonical(parts[2], declared))]


@cache
def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]


def test_every_document_has_the_fields_of_a_real_api_server() -> None:
    different = {}
    for each in recorded():
        wanted = document(base64.b64decode(each["protobuf"]), each["json"])
        found = document(serializer_of(Media(Encoding.PROTOBUF)).document(each["json"]), each["json"])
        if found != wanted:
            different[each["path"]] = (found, wanted)
    assert not different
    assert len(recorded()) > 150


def test_a_decoded_object_is_the_encoded_one() -> None:
    different = {}
    for each in recorded():
        manifest = each["json"]
        if message_of(manifest.get("apiVersion", ""), manifest["kind"]) and "metadata" in manifest:
            found = read_protobuf(write_protobuf(manifest))
            if found != without_null(manifest):
                different[each["path"]] = (found, manifest)
    assert not different


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


@given(st.integers(-(2**63), 2**63 - 1), st.text(), st.binary(), st.booleans())
def test_every_scalar_is_decoded_as_it_was(number: int, text: str, data: bytes, switch: bool) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"generation": number, "labels": {text: text}},
        "immutable": switch,
        "data": {"key": base64.b64encode(data).decode()},
    }
    assert read_protobuf(write_protobuf(secret)) == secret


@pytest.mark.parametrize("port", [pytest.param(-1, id="negative"), pytest.param(80, id="number"), "http", ""])
def test_a_port_is_a_number_or_a_name(port: int | str) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"targetPort": port}]}}
    assert read_protobuf(write_protobuf(service)) == service


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"additionalProperties": False}, id="no additional properties"),
        pytest.param({"additionalProperties": {"type": "string"}}, id="schema of additional properties"),
        pytest.param({"items": {"type": "string", "default": 3}}, id="schema of items"),
        pytest.param({"items": [{"type": "string"}, {"maximum": 1.5}]}, id="schemas of items"),
        pytest.param({"dependencies": {"a": ["b"], "c": {"type": "string"}}}, id="dependencies"),
    ],
)
def test_unions_in_schemas_are_decoded_as_they_were(schema: Manifest) -> None:
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition = {**head, "spec": {"versions": versions}}
    assert read_protobuf(write_protobuf(definition)) == definition


def test_a_kind_without_protobuf_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"Shop of example\.com/v1 has no protobuf encoding"):
        write_item("example.com/v1", "Shop", {})
