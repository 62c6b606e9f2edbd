"""`shardSelector` in lists and watches: the answers are those of kube-apiserver 1.36 with `ShardedListAndWatch`.

The tables hold for both servers: the embedded one, and a real one with the feature gate on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest

from ocf.cluster import Cluster, ListOptions, WatchOptions
from ocf.cluster.client import ApiServerCluster, RestConfig
from ocf.cluster.protocol import EventType
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf_server import EmbeddedCluster
from ocf_server.http import serving

UID: Final = "object.metadata.uid"
HOME: Final = "object.metadata.namespace"
FIRST, HALF, END = "0x0000000000000000", "0x8000000000000000", "0x10000000000000000"
NAMESPACES: Final = ("alpha", "beta", "delta", "gamma")
LOWER: Final = ["beta", "delta", "gamma"]
"""The namespaces whose hash is in the first half."""


def part(field: str = HOME, start: str = FIRST, end: str = HALF) -> str:
    return f"shardRange({field}, '{start}', '{end}')"


VALID: Final = [
    pytest.param(part(UID, FIRST, END), part(UID, FIRST, END), [*NAMESPACES], id="all uids"),
    pytest.param(part(), part(), LOWER, id="half of the namespaces"),
    pytest.param(part(HOME, HALF, END), part(HOME, HALF, END), ["alpha"], id="the other half"),
    pytest.param(
        f"{part()} || {part(HOME, HALF, END)}", f"{part()} || {part(HOME, HALF, END)}", [*NAMESPACES], id="both"
    ),
    pytest.param(part().replace(" ", ""), part(), LOWER, id="without spaces"),
    pytest.param(f" {part()} ", part(), LOWER, id="surrounded by spaces"),
    pytest.param(part().replace("'", '"'), part(), LOWER, id="double quotes"),
    pytest.param(f"({part()} || {part()})", f"{part()} || {part()}", LOWER, id="in parentheses"),
    pytest.param(f"{part()} || {part(end=END)}", f"{part()} || {part(end=END)}", [*NAMESPACES], id="overlapping"),
    pytest.param(f"object.{part()}", part(), LOWER, id="as a method, whose target counts for nothing"),
]
ONLY: Final = "; only shardRange() and || are allowed"
CALL: Final = "; expected shardRange() call or || operator"
INVALID: Final = [
    pytest.param(
        "  ", "empty shard selector is not allowed; omit the parameter for unfiltered lists", id="only spaces"
    ),
    pytest.param(
        part(start="0x0"),
        f'hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "{FIRST}"?)',
        id="too few digits",
    ),
    pytest.param(
        part(start="0x000000000000000A"),
        'hexStart: invalid hex character "A" in "0x000000000000000A"',
        id="upper case",
    ),
    pytest.param(part(start="0" * 16), f"hexStart must have '0x' prefix, got \"{'0' * 16}\"", id="no prefix"),
    pytest.param(part(start="0x"), "hexStart: hex value is required after '0x'", id="no digits"),
    pytest.param(
        part(start="0x" + "0" * 18),
        f'hexStart: hex value too long (18 chars, max 17): "{"0" * 18}"',
        id="too many digits",
    ),
    pytest.param(
        part(end="0x20000000000000000"),
        "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\"",
        id="beyond the last hash",
    ),
    pytest.param(part(start=HALF, end=FIRST), f"shard range start {HALF} must be less than end {FIRST}", id="reversed"),
    pytest.param(
        part(start=HALF, end=HALF), f"shard range start {HALF} must be less than end {HALF}", id="empty range"
    ),
    pytest.param(
        f"{part()} || {part(UID, HALF, END)}",
        f'all shard ranges must use the same field, got "{HOME}" and "{UID}"',
        id="two fields",
    ),
    pytest.param(
        part("object.metadata.name"),
        f'unsupported field path "object.metadata.name"; supported: {UID}, {HOME}',
        id="another field",
    ),
    pytest.param(
        part("f(object)"),
        "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 1",
        id="a call as the field",
    ),
    pytest.param(
        part("'object.metadata.uid'"),
        "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 5",
        id="a text as the field",
    ),
    pytest.param(f"shardRange({HOME}, '{FIRST}')", "shardRange() requires exactly 3 arguments, got 2", id="no end"),
    pytest.param("foo()", f'unsupported function "foo"{ONLY}', id="another function"),
    pytest.param(f"{part()} && {part()}", f'unsupported function "_&&_"{ONLY}', id="and"),
    pytest.param(f"!{part()}", f'unsupported function "!_"{ONLY}', id="not"),
    pytest.param(f"true ? {part()} : {part()}", f'unsupported function "_?_:_"{ONLY}', id="a condition"),
    pytest.param("has(object.metadata)", f'unsupported function "has"{ONLY}', id="a macro"),
    pytest.param("true", f"unexpected expression kind 5{CALL}", id="a literal"),
    pytest.param("[1]", f"unexpected expression kind 4{CALL}", id="a list"),
    pytest.param("{'a': 1}", f"unexpected expression kind 6{CALL}", id="a map"),
    pytest.param("A{a: 1}", f"unexpected expression kind 8{CALL}", id="a message"),
    pytest.param(f"{HOME} || {part()}", f"unexpected expression kind 7{CALL}", id="a field in place of a call"),
    pytest.param(f"shardRange({HOME}, 1, '{HALF}')", "hexStart must be a string literal, got int64", id="a number"),
    pytest.param(f"shardRange({HOME}, 1u, '{HALF}')", "hexStart must be a string literal, got uint64", id="unsigned"),
    pytest.param(f"shardRange({HOME}, b'0x', '{HALF}')", "hexStart must be a string literal, got []uint8", id="bytes"),
    pytest.param(
        f"shardRange({HOME}, a, '{HALF}')",
        "hexStart must be a string literal (e.g. '0xff'), got expression kind 3",
        id="a variable",
    ),
    pytest.param(part("object.?metadata.uid"), "CEL parse error: unsupported syntax '.?'", id="an optional field"),
]


def made(namespace: str, name: str = "one", kind: str = "ConfigMap") -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


async def prepare(cluster: Cluster) -> None:
    for namespace in NAMESPACES:
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await cluster.create(home, field_manager="me")
        for kind in ("ConfigMap", "Secret"):
            await cluster.create(made(namespace, kind=kind), field_manager="me")


@pytest.fixture
async def embedded() -> AsyncIterator[ApiServerCluster]:
    """The embedded server with sharded lists, over HTTP."""
    cluster = EmbeddedCluster(feature_gates={"ShardedListAndWatch": True})
    await prepare(cluster)
    async with serving(cluster) as server, ApiServerCluster(RestConfig(host=server.url)) as client:
        yield client


async def homes(cluster: Cluster, selector: str) -> tuple[list[str], str]:
    """Return the namespaces of what a selector selects, and the selector of the answer."""
    options = ListOptions(shard_selector=selector, field_selector="metadata.name=one")
    found = await cluster.list("v1", "ConfigMap", options)
    return [item["metadata"]["namespace"] for item in found.items], found.shard_selector


async def refusal(cluster: Cluster, selector: str) -> tuple[int, str, str]:
    """Return how a list is refused, and require that a watch is refused in the same way."""
    with pytest.raises(ServerError) as listing:
        await cluster.list("v1", "ConfigMap", ListOptions(shard_selector=selector))
    options = WatchOptions(resource_version="", shard_selector=selector, timeout=1)
    with pytest.raises(ServerError) as watching:
        async for _ in cluster.watch("v1", "ConfigMap", options):
            pass
    assert watching.value.args == listing.value.args
    return listing.value.code, listing.value.reason, listing.value.message


class TestEmbedded:
    @pytest.mark.parametrize(("selector", "answered", "expected"), VALID)
    async def test_selects(self, embedded: Cluster, selector: str, answered: str, expected: list[str]) -> None:
        assert await homes(embedded, selector) == (expected, answered)

    @pytest.mark.parametrize(("selector", "problem"), INVALID)
    async def test_refuses(self, embedded: Cluster, selector: str, problem: str) -> None:
        assert await refusal(embedded, selector) == (500, "", f"invalid shard selector: {problem}")

    async def test_pages(self, embedded: Cluster) -> None:
        assert await pages(embedded) == PAGES

    async def test_watches(self, embedded: Cluster) -> None:
        assert await events(embedded) == EVENTS

    async def test_without_the_gate_the_parameter_is_ignored(self) -> None:
        cluster = EmbeddedCluster()
        await prepare(cluster)
        for selector in (part(), "nonsense"):
            assert await homes(cluster, selector) == ([*NAMESPACES], "")


async def pages(cluster: Cluster) -> list[tuple[list[str], int | None]]:
    """Return the pages of a sharded list: what each has, and how many objects the server counts after it."""
    found: list[tuple[list[str], int | None]] = []
    token = ""
    while token or not found:
        options = ListOptions(shard_selector=part(), limit=2, continue_token=token)
        page = await cluster.list("v1", "Secret", options)
        found.append(([item["metadata"]["namespace"] for item in page.items], page.remaining_item_count))
        token = page.continue_token
    return found


async def events(cluster: Cluster) -> list[tuple[EventType, str]]:
    """Return the events of a sharded watch, while the same happens to objects in all namespaces."""
    options = WatchOptions(
        resource_version=(await cluster.list("v1", "ConfigMap")).resource_version, shard_selector=part(), timeout=60
    )
    for namespace in NAMESPACES:
        changed = made(namespace, "changed")
        await cluster.create(changed, field_manager="me")
        await cluster.update(changed | {"data": {"a": "b"}}, field_manager="me")
        await cluster.delete(ObjectKey.of(changed))
    found: list[tuple[EventType, str]] = []
    async for event in cluster.watch("v1", "ConfigMap", options):
        if event.type is not EventType.BOOKMARK:
            found.append((event.type, event.object["metadata"]["namespace"]))
        if len(found) == len(EVENTS):
            break
    return found


# A server counts all objects after a page, whatever the shard selector makes of them.
PAGES: Final[list[tuple[list[str], int | None]]] = [(["beta", "delta"], 2), (["gamma"], None)]
EVENTS: Final = [
    (kind, namespace) for namespace in LOWER for kind in (EventType.ADDED, EventType.MODIFIED, EventType.DELETED)
]


async def test_the_tables_are_those_of_a_real_server(envtest_programs: Programs) -> None:
    async with (
        ControlPlane(envtest_programs, feature_gates={"ShardedListAndWatch": True}) as plane,
        await plane.cluster() as cluster,
    ):
        await prepare(cluster)
        for row in VALID:
            selector, answered, expected = row.values
            assert await homes(cluster, str(selector)) == (expected, answered), row.id
        for row in INVALID:
            selector, problem = row.values
            assert await refusal(cluster, str(selector)) == (500, "", f"invalid shard selector: {problem}"), row.id
        assert await pages(cluster) == PAGES
        assert await events(cluster) == EVENTS
