"""Small requests that would cost a server gigabytes, minutes or a traceback, on the embedded server and on a real one.

Each is answered with the error of a real API server, and the server goes on. Reports of such requests:

* copies that double: https://github.com/kubernetes/kubernetes/pull/73713, https://github.com/BrightbeamAI/chap/issues/54
* many operations: https://github.com/kubernetes/kubernetes/pull/74000
* positions far behind the end of a list: https://github.com/evanphx/json-patch/pull/70
* aliases of YAML: https://github.com/kubernetes/kubernetes/issues/83253
* long integers: https://github.com/python/cpython/issues/95778, https://github.com/Liquid4All/ifstruct/pull/3
"""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.objects.document_limits import MAX_DEPTH
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.http import serving
from tests.ocf_server.http.conftest import Client

if TYPE_CHECKING:
    from tests.ocf_server.http.conftest import Either

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
YAML: Final = "application/yaml"
JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
INAPPLICABLE: Final = "the server rejected our request due to an error in our request"
UNREADABLE: Final = "the object provided is unrecognized (must be of type ConfigMap): "
NOT_JSON: Final = f"{UNREADABLE}couldn't get version/kind; json parse error: "
HUGE: Final = "9" * 5000
OVERFLOW: Final = f"json: cannot unmarshal number {HUGE} into Go"
DOUBLED: Final = [{"op": "copy", "from": "/data/a", "path": "/data/a/-"}] * 40
LAUGHS: Final = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
"""Lists of ten aliases each: the last one stands for 10**8 values."""


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


@pytest.mark.parametrize(
    ("kind", "body", "code", "message"),
    [
        pytest.param(JSON_PATCH, [add("/data", {"a": ["x"]}), *DOUBLED], 422, INAPPLICABLE, id="copies that double"),
        pytest.param(
            JSON_PATCH,
            [
                add("/data/a", "x" * 100_000),
                *({"op": "copy", "from": "/data/a", "path": f"/data/{n}"} for n in range(32)),
            ],
            422,
            INAPPLICABLE,
            id="copies of more than 3 MiB",
        ),
        pytest.param(
            JSON_PATCH,
            [
                add("/data/a", "x" * 100_000),
                *({"op": "copy", "from": "/data/a", "path": f"/data/{n}"} for n in range(31)),
            ],
            422,
            'ConfigMap "settings" is invalid: []: Too long: may not be more than 1048576 bytes',
            id="copies of less than 3 MiB, of a value that is too long",
        ),
        pytest.param(
            JSON_PATCH,
            [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001,
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
            id="too many operations",
        ),
        pytest.param(
            JSON_PATCH,
            [add("/metadata/finalizers", []), add(f"/metadata/finalizers/{HUGE}", "x")],
            422,
            INAPPLICABLE,
            id="a position of thousands of digits",
        ),
        pytest.param(
            JSON_PATCH,
            [add("/metadata/finalizers", []), add("/metadata/finalizers/\u0661", "x")],
            422,
            INAPPLICABLE,
            id="a position in other digits",
        ),
        pytest.param(
            JSON_PATCH,
            [{"op": ["add"]}],
            400,
            "error decoding patch: json: cannot unmarshal array into Go struct field jsonPatchOp.op of type string",
            id="a list as operation",
        ),
        pytest.param(
            JSON_PATCH,
            [{"op": "add", "path": 5, "value": 1}],
            400,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
            id="a number as path",
        ),
        pytest.param(
            JSON_PATCH,
            ["add"],
            400,
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
            id="a text in place of an operation",
        ),
        pytest.param(JSON_PATCH, [None], 422, INAPPLICABLE, id="null in place of an operation"),
        pytest.param(JSON_PATCH, [{"op": "remove", "path": ""}], 422, INAPPLICABLE, id="removing the whole object"),
        pytest.param(
            JSON_PATCH, [{"op": "replace", "path": "", "value": 5}], 422, INAPPLICABLE, id="only a number left"
        ),
        pytest.param(
            JSON_PATCH, [{"op": "copy", "from": "", "path": "/data"}], 422, INAPPLICABLE, id="the object in itself"
        ),
        pytest.param(
            MERGE,
            f'{{"metadata": {{"generation": {HUGE}}}}}',
            400,
            f"error decoding patch: {OVERFLOW} value of type float64",
            id="a merge patch with a long integer",
        ),
        pytest.param(
            MERGE,
            '{"metadata": {"generation": 1e400}}',
            400,
            "error decoding patch: json: cannot unmarshal number 1e400 into Go value of type float64",
            id="a merge patch with a number that is not finite",
        ),
        pytest.param(
            STRATEGIC,
            f'{{"metadata": {{"generation": {HUGE}}}}}',
            400,
            f"{OVERFLOW} value of type float64",
            id="a strategic merge patch with a long integer",
        ),
        pytest.param(
            JSON_PATCH,
            f'[{{"op": "add", "path": "/metadata/generation", "value": {HUGE}}}]',
            400,
            f"error decoding patch: {OVERFLOW} struct field jsonPatchOp.value of type float64",
            id="a JSON patch with a long integer",
        ),
        pytest.param(STRATEGIC, "{", 400, "unexpected end of JSON input", id="half of a strategic merge patch"),
        pytest.param(MERGE, "{", 400, "error decoding patch: unexpected end of JSON input", id="half of a merge patch"),
    ],
)
async def test_a_patch_is_rejected_as_by_a_real_server(
    either: Either, kind: str, body: Any, code: int, message: str
) -> None:
    settings = {"metadata": {"name": "settings"}, "data": {"a": "1"}}
    assert (await either.ask("POST", f"{either.path}/configmaps", settings)).status == 201
    reply = await either.ask("PATCH", f"{either.path}/configmaps/settings", body, kind=kind)

    assert (reply.status, reply.json["message"]) == (code, message)
    assert (await either.ask("GET", f"{either.path}/configmaps/settings")).json["data"] == {"a": "1"}


async def test_the_most_operations_are_accepted(either: Either) -> None:
    assert (await either.ask("POST", f"{either.path}/configmaps", {"metadata": {"name": "settings"}})).status == 201
    operations = [add("/data", {"a": "1"}), *[{"op": "test", "path": "/data/a", "value": "1"}] * 9_999]
    reply = await either.ask("PATCH", f"{either.path}/configmaps/settings", operations, kind=JSON_PATCH)
    assert (reply.status, reply.json["data"]) == (200, {"a": "1"})


ZIPPED: Final = gzip.compress(b'{"metadata": {"name": "settings"}}', mtime=0)


@pytest.mark.parametrize(
    ("body", "encoding", "message"),
    [
        pytest.param(
            ZIPPED,
            "gzip",
            f"{NOT_JSON}invalid character '\\x1f' looking for beginning of value ({ZIPPED[:30].hex()} ...)",
            id="a compressed body",
        ),
        pytest.param(
            b"\xef\xbb\xbf{}",
            "identity",
            f"{NOT_JSON}invalid character 'ï' looking for beginning of value (efbbbf7b7d)",
            id="a byte order mark",
        ),
        pytest.param(
            "{}".encode("utf-16"),
            "identity",
            f"{NOT_JSON}invalid character 'ÿ' looking for beginning of value (fffe7b007d00)",
            id="UTF-16",
        ),
        pytest.param(
            b"\x00",
            "identity",
            f"{NOT_JSON}invalid character '\\x00' looking for beginning of value (00)",
            id="a zero byte",
        ),
        pytest.param(
            '{"metadata": {"name": "a", "generation": 99999999999999999999}}',
            "identity",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number '
            "99999999999999999999 into Go struct field ObjectMeta.metadata.generation of type int64",
            id="an integer of more than 64 bits",
        ),
    ],
)
async def test_an_object_is_rejected_as_by_a_real_server(
    either: Either, body: Any, encoding: str, message: str
) -> None:
    reply = await either.ask("POST", f"{either.path}/configmaps", body, Content_Encoding=encoding)
    assert (reply.status, reply.json["message"]) == (400, message)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(JSON, f'{{"metadata": {{"name": "a", "generation": {HUGE}}}}}', id="a long integer"),
        pytest.param(JSON, "[" * 100_000, id="many open lists"),
        pytest.param(JSON, f'{{"x": {"[" * 20_000}{"]" * 20_000}}}', id="a deep value"),
        pytest.param(YAML, f"metadata: {{name: a}}\na0: &a0 [x, x]\n{LAUGHS}", id="aliases of aliases"),
        pytest.param(PROTOBUF, b"k8s\x00" + b"\xff" * 20, id="protobuf with an endless number"),
    ],
)
async def test_a_body_that_cannot_be_read_is_a_bad_request(either: Either, kind: str, body: Any) -> None:
    reply = await either.ask("POST", f"{either.path}/configmaps", body, kind=kind)
    assert (reply.status, reply.json["reason"]) == (400, "BadRequest")


async def test_aliases_of_an_apply_are_counted(either: Either) -> None:
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\na0: &a0 [x, x]\n{LAUGHS}"
    reply = await either.ask("PATCH", f"{either.path}/configmaps/a?fieldManager=me", body, kind=APPLY)
    assert (reply.status, reply.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        pytest.param(b'{"metadata": {"name": "a"}, "data": {"k": "\xffx"}}', "\ufffdx", id="a byte that is not UTF-8"),
        pytest.param(
            b'{"metadata": {"name": "a"}, "data": {"k": "\xe2\x82x"}}', "\ufffd\ufffdx", id="half of a character"
        ),
        pytest.param(
            b'{"metadata": {"name": "a"}, "data": {"k": "\\ud800x"}}', "\ufffdx", id="half of a surrogate pair"
        ),
        pytest.param(
            b'{"metadata": {"name": "a"}, "data": {"k": "\\ud83d\\ude00"}}', "\U0001f600", id="a surrogate pair"
        ),
    ],
)
async def test_what_is_not_a_character_is_replaced(either: Either, body: bytes, stored: str) -> None:
    reply = await either.ask("POST", f"{either.path}/configmaps", body)
    assert (reply.status, reply.json["data"]) == (201, {"k": stored})


async def test_a_number_of_a_custom_object_is_finite(ask: Client) -> None:
    """The message is that of a real API server."""
    body = '{"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a"}, "spec": {"size": 1e400}}'
    reply = await ask("POST", "/apis/example.com/v1/namespaces/shop/shops", body)
    message = (
        'Shop in version "v1" cannot be handled as a Shop: json: cannot unmarshal number 1e400 into Go value of type '
    )
    assert (reply.status, reply.json["message"]) == (400, f"{message}float64")


async def test_operations_cannot_nest_values_deeper_than_a_body_can(ask: Client) -> None:
    shops = "/apis/example.com/v1/namespaces/shop/shops"
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a"}, "spec": {"x": {}}}
    assert (await ask("POST", shops, shop)).status == 201
    moves = [
        {"op": "copy", "from": "/spec/x", "path": "/spec/y"},
        add("/spec/x", {}),
        {"op": "move", "from": "/spec/y", "path": "/spec/x/a"},
    ]
    fits = await ask("PATCH", f"{shops}/a", moves * (MAX_DEPTH - 10), kind=JSON_PATCH)
    assert fits.status == 200
    reply = await ask("PATCH", f"{shops}/a", moves * 2000, kind=JSON_PATCH)
    assert (reply.status, reply.json["message"]) == (422, INAPPLICABLE)
    assert (await ask("GET", f"{shops}/a")).json["spec"] == fits.json["spec"]


# Values that decoders, patches and validation have to expect everywhere.
LITERALS: Final = st.sampled_from(
    [
        "null",
        "true",
        "-0",
        "1e400",
        "1e-400",
        HUGE,
        "NaN",
        '""',
        '"\\ud800"',
        '"\\u0000"',
        "[]",
        "{}",
        "[[[]]]",
        '{"": null}',
    ]
)
NAMES: Final = st.sampled_from(
    ["", "apiVersion", "kind", "metadata", "name", "labels", "managedFields", "data", "spec", "op", "path", "from"]
) | st.sampled_from(
    [
        "value",
        "replicas",
        "$patch",
        "items",
        "$setElementOrder/data",
        "preconditions",
        "resourceVersion",
        "generateName",
    ]
)
TEXTS: Final = st.sampled_from(
    ['"add"', '"copy"', '"/metadata/name"', '"/data/a"', '"/spec/-"', '"a"', '"v1"', '"ConfigMap"']
)


def documents() -> st.SearchStrategy[str]:
    def members(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.lists(st.tuples(NAMES, inner), max_size=4)
        objects = pairs.map(
            lambda found: "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in found) + "}"
        )
        return objects | st.lists(inner, max_size=3).map(lambda found: f"[{', '.join(found)}]")

    return st.recursive(LITERALS | TEXTS, members, max_leaves=8)


BODIES: Final = (
    documents().map(str.encode) | st.binary(max_size=30) | st.binary(max_size=20).map(lambda tail: b"k8s\x00" + tail)
)
METHODS: Final = st.sampled_from(["GET", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE"])
KINDS: Final = st.sampled_from([JSON, YAML, PROTOBUF, JSON_PATCH, MERGE, STRATEGIC, APPLY, "", "text/plain"])
PATHS: Final = st.sampled_from(
    [
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/configmaps/a",
        "/api/v1/namespaces/shop/pods/a/eviction",
        "/api/v1/namespaces/shop/serviceaccounts/a/token",
        "/apis/apps/v1/namespaces/shop/deployments/a",
        "/apis/apps/v1/namespaces/shop/deployments/a/scale",
        "/apis/example.com/v1/namespaces/shop/shops",
        "/apis/example.com/v1/namespaces/shop/shops/a",
        "/apis/example.com/v1/namespaces/shop/shops/a/status",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    ]
)
QUERIES: Final = st.sampled_from(
    ["", "?fieldManager=me", f"?limit={HUGE}", "?continue=e30", "?dryRun=All", "?labelSelector=%ff("]
)
REQUESTS: Final = st.tuples(METHODS, PATHS, QUERIES, BODIES, KINDS)


@given(st.lists(REQUESTS, min_size=1, max_size=12))
def test_no_request_is_an_internal_error(requests: list[tuple[str, str, str, bytes, str]]) -> None:
    """A server answers each request with its own status, and the next one as well."""

    async def answered() -> None:
        import aiohttp

        cluster = EMPTY.clone()
        async with serving(cluster) as server, aiohttp.ClientSession() as session:
            ask = Client(server.url, session)
            for method, path, query, body, kind in requests:
                reply = await ask(method, f"{path}{query}", body, kind=kind, Accept="application/json")
                shown = f"{method} {path}{query} {kind} {body!r}: {reply.text}"
                # A real API server answers some strategic merge patches with 500, too, with the text of the problem.
                assert "the log of the server" not in reply.text, shown
            assert (await ask("GET", "/api/v1/namespaces/shop/configmaps")).status == 200

    asyncio.run(answered())


def prepared() -> EmbeddedCluster:
    async def prepare() -> EmbeddedCluster:
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
        for api_version, kind in (("v1", "ConfigMap"), ("example.com/v1", "Shop"), ("v1", "ServiceAccount")):
            manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "shop"}}
            await cluster.create(manifest, field_manager="user")
        return cluster

    return asyncio.run(prepare())


EMPTY: Final = prepared()
