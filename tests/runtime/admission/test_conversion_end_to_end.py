"""A conversion webhook called by an API server, embedded and real: what clients of each version see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.errors import ApiError, NotFoundError, ServerError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import SecretCertificates, Url, Webhooks, serving, with_conversion
from ocf_server import EmbeddedCluster
from ocf_server.http import serving as serving_cluster
from ocf_server.http import write_kubeconfig
from tests.runtime.crds.shop_versions import SHOPS
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.testing.envtest.fixtures import Envtest

T = TypeVar("T")

HOST: Final = "127.0.0.1"


class Shops:
    """Shops in a namespace of a cluster with their conversion webhook; each test has a group of its own."""

    def __init__(self, cluster: ApiServerCluster, namespace: str) -> None:
        self.cluster, self.namespace, self.group = cluster, namespace, f"{namespace}.example.com"

    def shop(self, version: str, name: str, **spec: Any) -> Manifest:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": f"{self.group}/{version}", "kind": "Shop", "metadata": metadata, "spec": spec}

    async def create(self, version: str, name: str, **spec: Any) -> Manifest:
        return await self.cluster.create(self.shop(version, name, **spec), field_manager="user")

    async def get(self, version: str, name: str) -> Manifest:
        return await self.cluster.get(ObjectKey(f"{self.group}/{version}", "Shop", name, self.namespace))

    async def patch(self, version: str, name: str, **spec: Any) -> Manifest:
        key = ObjectKey(f"{self.group}/{version}", "Shop", name, self.namespace)
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        return await self.cluster.patch(key, {"spec": spec}, options)


async def until_accepted(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Repeat a call until the server knows the kind and its webhook; a real one takes a moment."""
    return await eventually(call, lambda _: True, ignore=(NotFoundError, TooManyRequestsError, ServerError))


@asynccontextmanager
async def converting(cluster: ApiServerCluster, namespace: str) -> AsyncIterator[Shops]:
    """Serve the conversion webhook; its CA gets into the definition like into webhook configurations."""
    shops = Shops(cluster, namespace)
    resource = replace(SHOPS, group=shops.group)
    webhooks = Webhooks("versioned-shops", conversions=[resource])
    certificates = SecretCertificates(cluster, webhooks, Url(f"https://{HOST}"), namespace=namespace)
    async with serving(webhooks, certificates=certificates, host=HOST, port=0) as server:
        definition = with_conversion(resource, Url(server.url))
        await cluster.apply(definition, field_manager="setup")
        try:
            await server.refresh()
            assert server.problem() == ""
            await until_accepted(lambda: shops.create("v1", "first", address="a, b"))
            yield shops
        finally:
            await cluster.delete(ObjectKey.of(definition))


@asynccontextmanager
async def connected(kubeconfig: Path, namespace: str) -> AsyncIterator[Shops]:
    async with await ApiServerCluster.connect(kubeconfig) as cluster, converting(cluster, namespace) as found:
        yield found


@pytest.fixture(params=["embedded", "real"])
async def shops(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shops]:
    if request.param == "real":
        envtest: Envtest = request.getfixturevalue("envtest")
        async with connected(envtest.kubeconfig, envtest.namespace) as found:
            yield found
        return
    async with serving_cluster(EmbeddedCluster()) as served:
        write_kubeconfig(served.kubeconfig(), tmp_path / "kubeconfig")
        async with connected(tmp_path / "kubeconfig", "default") as found:
            yield found


FULL: Final = {
    "place": {"street": "a", "city": "b", "floor": 3},
    "memoryMi": 1536,
    "color": None,
    "ports": [{"name": "x", "number": 1, "tls": True}],
}


async def test_clients_of_all_versions_share_objects_without_loss(shops: Shops) -> None:
    """A client of an old version changes what it knows, and loses nothing of what it does not know."""
    stored = await shops.create("v3", "full", **FULL)
    assert stored["spec"] == FULL

    old = await shops.get("v1", "full")
    assert old["spec"] == {"address": "a, b", "memoryGi": 1}
    assert old["metadata"]["uid"] == stored["metadata"]["uid"]
    assert (await shops.get("v2", "full"))["spec"]["ports"] == {"x": 1}

    changed = await shops.patch("v1", "full", address="c, b")
    assert changed["spec"]["address"] == "c, b"
    assert (await shops.get("v3", "full"))["spec"] == {**FULL, "place": {"street": "c", "city": "b", "floor": 3}}
    assert "annotations" not in (await shops.get("v3", "full"))["metadata"]

    whole = await shops.get("v1", "full")
    updated = await shops.cluster.update({**whole, "spec": {**whole["spec"], "motto": "yes"}}, field_manager="user")
    assert updated["spec"]["motto"] == "yes"
    await shops.patch("v3", "full", memoryMi=2048)
    assert (await shops.get("v1", "full"))["spec"] == {"address": "c, b", "memoryGi": 2, "motto": "yes"}

    items = (await shops.cluster.list(f"{shops.group}/v1", "Shop", ListOptions(namespace=shops.namespace))).items
    assert {item["metadata"]["name"]: item["spec"]["address"] for item in items} == {"first": "a, b", "full": "c, b"}
    watch = shops.cluster.watch(
        f"{shops.group}/v2", "Shop", WatchOptions(namespace=shops.namespace, resource_version="0")
    )
    seen = [(await anext(watch)).object for _ in range(2)]
    await watch.aclose()
    assert {item["metadata"]["name"]: item["spec"]["street"] for item in seen} == {"first": "a", "full": "c"}

    applied = await shops.cluster.apply(shops.shop("v1", "full", memoryGi=3), field_manager="applier", force=True)
    assert applied["spec"]["memoryGi"] == 3
    assert (await shops.get("v3", "full"))["spec"]["memoryMi"] == 3072


async def test_a_failure_reaches_the_client_with_object_and_field(shops: Shops) -> None:
    with pytest.raises(ApiError) as caught:
        await shops.create("v2", "wrong", street="bad", city="b")
    assert caught.value.code == 500
    assert caught.value.message == (
        f"conversion webhook for {shops.group}/v2, Kind=Shop failed: "
        f"Shop {shops.namespace}/wrong in v2: spec.street: is not a street"
    )
    with pytest.raises(ApiError) as caught:
        await shops.create("v2", "wrong", street="bug", city="b")
    assert "v2_to_v3 failed: KeyError, see the operator's log" in caught.value.message
    assert "a value of the object" not in caught.value.message
