"""Values are computed once per version of an object, from a cache and from any other cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ocf.cluster import Cluster, InterceptingCluster, Request, Verb
from ocf.cluster.cache import CachedCluster, Projection
from ocf.cluster.cache.serialization import CacheEntry
from ocf.component.dry_run_cluster import DryRunCluster
from ocf.component.pause_guard import PauseGuard
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster


def settings(name: str, value: str = "1", namespace: str = "shop") -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


class Computed:
    """A projection that records for which objects it computes a value."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.projection = Projection("v1", "ConfigMap", self.compute)

    def compute(self, manifest: Manifest) -> str:
        self.names.append(manifest["metadata"]["name"])
        return f"{manifest['metadata']['name']}={manifest['data']['value']}"


@asynccontextmanager
async def opened(*, cached: bool) -> AsyncIterator[Cluster]:
    cluster = EmbeddedCluster(namespaces=("shop", "bank"))
    for each in (settings("b"), settings("a"), settings("z", namespace="bank")):
        await cluster.create(each, field_manager="user")
    if not cached:
        yield cluster
        return
    async with CachedCluster(cluster) as found:
        yield found


CLUSTERS = pytest.mark.parametrize("cached", [pytest.param(True, id="cache"), pytest.param(False, id="no cache")])


@CLUSTERS
async def test_values_are_ordered_by_namespace_and_name(cached: bool) -> None:
    async with opened(cached=cached) as cluster:
        assert await Computed().projection.read(cluster) == ("z=1", "a=1", "b=1")


@CLUSTERS
async def test_a_second_read_computes_nothing(cached: bool) -> None:
    found = Computed()
    async with opened(cached=cached) as cluster:
        first = await found.projection.read(cluster)
        found.names.clear()
        assert await found.projection.read(cluster) is first
        assert found.names == []


@CLUSTERS
async def test_only_what_has_changed_is_computed_again(cached: bool) -> None:
    found = Computed()
    async with opened(cached=cached) as cluster:
        await found.projection.read(cluster)
        found.names.clear()
        await cluster.apply(settings("a", "2"), field_manager="user", force=True)
        await cluster.create(settings("c"), field_manager="user")
        assert await found.projection.read(cluster) == ("z=1", "a=2", "b=1", "c=1")
        assert found.names == ["a", "c"]


@CLUSTERS
async def test_deleted_objects_have_no_value(cached: bool) -> None:
    found = Computed()
    async with opened(cached=cached) as cluster:
        await found.projection.read(cluster)
        await cluster.delete(ObjectKey("v1", "ConfigMap", "a", "shop"))
        assert await found.projection.read(cluster) == ("z=1", "b=1")


async def test_an_object_that_is_created_again_is_computed_again() -> None:
    found = Computed()
    async with opened(cached=True) as cluster:
        await found.projection.read(cluster)
        await cluster.delete(ObjectKey("v1", "ConfigMap", "a", "shop"))
        await cluster.create(settings("a", "3"), field_manager="user")
        assert await found.projection.read(cluster) == ("z=1", "a=3", "b=1")


async def test_a_read_through_the_cache_sends_no_request() -> None:
    cluster = EmbeddedCluster(namespaces=("shop",))
    await cluster.create(settings("a"), field_manager="user")
    found = Computed()
    async with CachedCluster(cluster) as cached:
        await found.projection.read(cached)
        cluster.requests.clear()
        await found.projection.read(cached)
        assert cluster.requests.reads == 0


class Opaque(InterceptingCluster):
    """A wrapper that sees each request."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.requests: list[Verb] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        self.requests.append(request.verb)
        return await send()


def guarded(cluster: Cluster) -> Cluster:
    return PauseGuard(cluster, lambda: None)


Wrap = Callable[[Cluster], Cluster]
TRANSPARENT = pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(guarded, id="of a reconcile"),
        pytest.param(DryRunCluster, id="of a dry run"),
        pytest.param(lambda cluster: DryRunCluster(guarded(cluster)), id="one in another"),
    ],
)


@TRANSPARENT
@CLUSTERS
async def test_wrappers_pass_on_what_is_read(wrap: Wrap, unpacked: list[str], cached: bool) -> None:
    found = Computed()
    async with opened(cached=cached) as cluster:
        first = await found.projection.read(wrap(cluster))
        assert first == ("z=1", "a=1", "b=1")
        unpacked.clear()
        assert await found.projection.read(wrap(cluster)) is first
        await cluster.apply(settings("a", "2"), field_manager="user", force=True)
        assert await found.projection.read(wrap(cluster)) == ("z=1", "a=2", "b=1")
        assert unpacked == (["a"] if cached else [])


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of objects that were unpacked for a projection, as it happens."""
    found: list[str] = []
    unpack = CacheEntry.unpack

    def counted(entry: CacheEntry) -> Manifest:
        manifest = unpack(entry)
        found.append(manifest["metadata"]["name"])
        return manifest

    monkeypatch.setattr(CacheEntry, "unpack", counted)
    return found


@CLUSTERS
async def test_a_wrapper_that_sees_all_requests_sees_the_list(cached: bool) -> None:
    found = Computed()
    async with opened(cached=cached) as cluster:
        opaque = Opaque(cluster)
        first = await found.projection.read(guarded(opaque))
        assert await found.projection.read(guarded(opaque)) is first
        assert opaque.requests == [Verb.LIST] * 2
        assert len(found.names) == len(first)


async def test_a_value_is_computed_once_whichever_way_its_object_is_read() -> None:
    found = Computed()
    async with opened(cached=True) as cluster:
        for each in (cluster, Opaque(cluster), guarded(cluster), Opaque(cluster)):
            assert await found.projection.read(each) == ("z=1", "a=1", "b=1")
        assert len(found.names) == 3


@CLUSTERS
async def test_what_a_dry_run_would_have_deleted_has_no_value(cached: bool) -> None:
    found = Computed()
    async with opened(cached=cached) as cluster:
        dry = DryRunCluster(cluster)
        await found.projection.read(dry)
        await dry.delete(ObjectKey("v1", "ConfigMap", "a", "shop"))
        assert await found.projection.read(dry) == ("z=1", "b=1")
        assert await found.projection.read(cluster) == ("z=1", "a=1", "b=1")


@CLUSTERS
async def test_there_is_no_value_once_there_is_no_object(cached: bool) -> None:
    found = Computed()
    async with opened(cached=cached) as cluster:
        await found.projection.read(cluster)
        for name, namespace in (("a", "shop"), ("b", "shop"), ("z", "bank")):
            await cluster.delete(ObjectKey("v1", "ConfigMap", name, namespace))
        assert await found.projection.read(cluster) == ()


async def test_values_of_one_cluster_are_not_those_of_another_one() -> None:
    """Embedded clusters that get the same requests assign the same uids and versions."""
    computed = Computed()
    found = []
    for value in ("1", "2"):
        cluster = EmbeddedCluster(namespaces=("shop",))
        await cluster.create(settings("a", value), field_manager="user")
        found.append(await computed.projection.read(cluster))
    assert found == [("a=1",), ("a=2",)]
