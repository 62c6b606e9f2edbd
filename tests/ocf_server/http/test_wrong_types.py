"""Requests with values of wrong types, and pointers of JSON patches, on the embedded server and on a real one.

* negative indexes: https://github.com/kubernetes/kubernetes/issues/120563,
  https://github.com/kubernetes/kubernetes/pull/105896
* leading zeros: https://github.com/Starcounter-Jack/JSON-Patch/pull/331
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from tests.ocf_server.http.conftest import Either

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
INAPPLICABLE: Final = "the server rejected our request due to an error in our request"
HEAD: Final = "couldn't get version/kind; json parse error: json: cannot unmarshal"
UNNAMED: Final = "the name of the object (a based on URL) was undeterminable: name must be provided"
CREATED: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "finalizers": ["x.io/a", "x.io/b", "x.io/c"]},
    "data": {"k": "1"},
}


def field(path: str, wanted: str, *, seen: str) -> str:
    return f"json: cannot unmarshal {seen} into Go struct field {path} of type {wanted}"


SET: Final = [
    # What is set, to which value, the problem of merge and JSON patches, of strategic merge patches, and of applies.
    pytest.param(
        "kind",
        [],
        f"{HEAD} array into Go struct field .kind of type string",
        "unrecognized type: string",
        id="kind, a list",
    ),
    pytest.param(
        "kind",
        3,
        f"{HEAD} number into Go struct field .kind of type string",
        "cannot convert int64 to string",
        id="kind, a number",
    ),
    pytest.param(
        "apiVersion",
        {},
        f"{HEAD} object into Go struct field .apiVersion of type string",
        "unrecognized type: string",
        id="apiVersion, an object",
    ),
    pytest.param(
        "metadata",
        [],
        field("ConfigMap.metadata", "v1.ObjectMeta", seen="array"),
        "cannot restore struct from: slice",
        id="metadata, a list",
    ),
    pytest.param(
        "metadata",
        3,
        field("ConfigMap.metadata", "v1.ObjectMeta", seen="number"),
        "cannot restore struct from: int64",
        id="metadata, a number",
    ),
    pytest.param(
        "metadata/name",
        [],
        field("ObjectMeta.metadata.name", "string", seen="array"),
        "unrecognized type: string",
        id="a name, a list",
    ),
    pytest.param(
        "metadata/name",
        3,
        field("ObjectMeta.metadata.name", "string", seen="number"),
        "cannot convert int64 to string",
        id="a name, a number",
    ),
    pytest.param(
        "metadata/namespace",
        True,
        field("ObjectMeta.metadata.namespace", "string", seen="bool"),
        "unrecognized type: string",
        id="a namespace, a boolean",
    ),
    pytest.param(
        "metadata/labels",
        3,
        field("ObjectMeta.metadata.labels", "map[string]string", seen="number"),
        "cannot restore map from int64",
        id="labels, a number",
    ),
    pytest.param(
        "metadata/labels",
        [],
        field("ObjectMeta.metadata.labels", "map[string]string", seen="array"),
        "cannot restore map from slice",
        id="labels, a list",
    ),
    pytest.param(
        "metadata/finalizers",
        "x",
        field("ObjectMeta.metadata.finalizers", "[]string", seen="string"),
        "cannot restore slice from string",
        id="finalizers, a text",
    ),
    pytest.param(
        "metadata/generation",
        1.5,
        field("ObjectMeta.metadata.generation", "int64", seen="number 1.5"),
        "cannot convert float64 to int64",
        id="a generation, a fraction",
    ),
    pytest.param(
        "data",
        [],
        field("ConfigMap.data", "map[string]string", seen="array"),
        "cannot restore map from slice",
        id="data, a list",
    ),
]


def nested(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split("/")):
        value = {name: value}
    found: dict[str, Any] = value
    return found


@pytest.mark.parametrize("kind", [MERGE, JSON_PATCH, STRATEGIC])
@pytest.mark.parametrize(("path", "value", "problem", "strategic"), SET)
async def test_a_patch_sets_a_value_of_a_wrong_type(  # noqa: PLR0917 (the columns of a table)
    either: Either, kind: str, path: str, value: Any, problem: str, strategic: str
) -> None:
    assert (await either.ask("POST", f"{either.path}/configmaps", CREATED)).status == 201
    body = [{"op": "add", "path": f"/{path}", "value": value}] if kind == JSON_PATCH else nested(path, value)
    reply = await either.ask("PATCH", f"{either.path}/configmaps/a", body, kind=kind)

    assert (reply.status, reply.json["reason"]) == (422, "Invalid")
    assert reply.json["message"].startswith(' "" is invalid: patch: Invalid value: "')
    assert reply.json["message"].endswith(f'": {strategic if kind == STRATEGIC else problem}')


@pytest.mark.parametrize(
    ("sent", "code", "problem"),
    [
        pytest.param({"metadata": []}, 500, ".metadata: expected map, got &{[]}", id="metadata, a list"),
        pytest.param({"metadata": 3}, 500, ".metadata: expected map, got &{3}", id="metadata, a number"),
        pytest.param(
            {"metadata": {"name": 3}},
            500,
            ".metadata.name: expected string, got &value.valueUnstructured{Value:3}",
            id="a name, a number",
        ),
        pytest.param(
            {"metadata": {"labels": []}}, 500, ".metadata.labels: expected map, got &{[]}", id="labels, a list"
        ),
        pytest.param(
            {"metadata": {"managedFields": 3}}, 500, ".metadata.managedFields: expected list, got &{3}", id="fields"
        ),
        pytest.param({"kind": []}, 400, "invalid object type: /v1, Kind=", id="kind, a list"),
        pytest.param({"apiVersion": 3}, 400, "invalid object type: /, Kind=ConfigMap", id="apiVersion, a number"),
        pytest.param({"data": 3}, 500, ".data: expected map, got &{3}", id="data, a number"),
    ],
)
async def test_an_apply_has_a_value_of_a_wrong_type(
    either: Either, sent: dict[str, Any], code: int, problem: str
) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **sent})
    reply = await either.ask("PATCH", f"{either.path}/configmaps/a?fieldManager=me", body, kind=APPLY)
    assert reply.status == code
    assert reply.json["message"].endswith(problem)


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize(
    ("metadata", "path", "wanted", "seen"),
    [
        pytest.param([], "ConfigMap.metadata", "v1.ObjectMeta", "array", id="a list"),
        pytest.param("x", "ConfigMap.metadata", "v1.ObjectMeta", "string", id="a text"),
        pytest.param({"name": []}, "ObjectMeta.metadata.name", "string", "array", id="a name, a list"),
        pytest.param(
            {"name": "a", "namespace": 3}, "ObjectMeta.metadata.namespace", "string", "number", id="a namespace"
        ),
    ],
)
async def test_an_object_has_metadata_of_a_wrong_type(  # noqa: PLR0917 (the columns of a table)
    either: Either, method: str, metadata: Any, path: str, wanted: str, seen: str
) -> None:
    place = f"{either.path}/configmaps{'/a' if method == 'PUT' else ''}"
    reply = await either.ask(method, place, {"metadata": metadata})
    problem = field(path, wanted, seen=seen)
    message = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {problem}'
    assert (reply.status, reply.json["message"]) == (400, message)


@pytest.mark.parametrize("version", ["x", "-1", "99999999999999999999"])
async def test_a_resource_version_is_no_number(either: Either, version: str) -> None:
    """It is ignored on creation, and an internal error of an update."""
    manifest = {"metadata": {"name": "a", "resourceVersion": version}}
    assert (await either.ask("POST", f"{either.path}/configmaps", manifest)).status == 201
    reply = await either.ask("PUT", f"{either.path}/configmaps/a", manifest)
    assert reply.status == 500
    assert reply.json["message"].startswith(f'strconv.ParseUint: parsing "{version}": ')


LIST: Final = "/metadata/finalizers"


@pytest.mark.parametrize(
    ("operation", "finalizers"),
    [
        pytest.param({"op": "replace", "path": f"{LIST}/-1", "value": "x.io/n"}, "abn", id="replace the last"),
        pytest.param({"op": "replace", "path": f"{LIST}/-3", "value": "x.io/n"}, "nbc", id="replace the first"),
        pytest.param({"op": "replace", "path": f"{LIST}/-4", "value": "x.io/n"}, None, id="replace before the first"),
        pytest.param({"op": "replace", "path": f"{LIST}/01", "value": "x.io/n"}, "anc", id="replace, a leading zero"),
        pytest.param({"op": "replace", "path": f"{LIST}/+1", "value": "x.io/n"}, "anc", id="replace, a sign"),
        pytest.param({"op": "replace", "path": f"{LIST}/-", "value": "x.io/n"}, None, id="replace behind the last"),
        pytest.param({"op": "add", "path": f"{LIST}/-1", "value": "x.io/n"}, "abcn", id="add, from the end"),
        pytest.param({"op": "add", "path": f"{LIST}/-4", "value": "x.io/n"}, "nabc", id="add at the start"),
        pytest.param({"op": "add", "path": f"{LIST}/-5", "value": "x.io/n"}, None, id="add before the start"),
        pytest.param({"op": "add", "path": f"{LIST}/-", "value": "x.io/n"}, "abcn", id="add at the end"),
        pytest.param({"op": "add", "path": f"{LIST}/3", "value": "x.io/n"}, "abcn", id="add behind the last"),
        pytest.param({"op": "add", "path": f"{LIST}/4", "value": "x.io/n"}, None, id="add behind the end"),
        pytest.param({"op": "add", "path": f"{LIST}/1_0", "value": "x.io/n"}, None, id="add, no index"),
        pytest.param({"op": "remove", "path": f"{LIST}/-0"}, "bc", id="remove, minus zero"),
        pytest.param({"op": "remove", "path": f"{LIST}/-"}, None, id="remove behind the last"),
        pytest.param({"op": "test", "path": f"{LIST}/-1", "value": "x.io/c"}, "abc", id="test the last"),
        pytest.param({"op": "test", "path": f"{LIST}/01", "value": "x.io/b"}, "abc", id="test, a leading zero"),
        pytest.param({"op": "copy", "from": f"{LIST}/-1", "path": f"{LIST}/0"}, "cabc", id="copy the last"),
        pytest.param({"op": "move", "from": f"{LIST}/-1", "path": f"{LIST}/0"}, "cab", id="move the last"),
        pytest.param({"op": "test", "path": "/data/none", "value": None}, "abc", id="test a missing member for null"),
        pytest.param({"op": "test", "path": "/data/none"}, "abc", id="test a missing member without a value"),
        pytest.param({"op": "test", "path": "/data/none", "value": "1"}, None, id="test a missing member"),
        pytest.param({"op": "test", "path": "/none/none", "value": None}, None, id="test in a missing member"),
        pytest.param({"op": "test", "path": "/data/k"}, None, id="test without a value"),
        pytest.param({"op": "add", "path": "/data/k"}, "abc", id="add without a value"),
        pytest.param({"op": "replace", "path": "/data/none"}, "abc", id="replace without a value"),
        pytest.param({"op": "add", "path": "", "value": {}}, None, id="add the whole object"),
        pytest.param({"op": "add", "path": "none", "value": {}}, None, id="a pointer without a slash"),
        pytest.param({"op": "remove", "path": "/metadata/namespace"}, "abc", id="remove the namespace"),
    ],
)
async def test_pointers_are_those_of_the_api_server(
    either: Either, operation: dict[str, Any], finalizers: str | None
) -> None:
    assert (await either.ask("POST", f"{either.path}/configmaps", CREATED)).status == 201
    reply = await either.ask("PATCH", f"{either.path}/configmaps/a?dryRun=All", [operation], kind=JSON_PATCH)
    if finalizers is None:
        assert (reply.status, reply.json["message"]) == (422, INAPPLICABLE)
    else:
        assert (reply.status, reply.json["metadata"]["finalizers"]) == (200, [f"x.io/{name}" for name in finalizers])
