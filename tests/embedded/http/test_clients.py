"""Kubernetes clients on the embedded cluster: the official Python client, its dynamic client, and ours."""

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.cache import CachedCluster
from ocf.cluster.client import ApiServerCluster
from ocf.embedded import EmbeddedCluster
from ocf.embedded.http import HttpServer, write_kubeconfig
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey

WEB = ObjectKey("apps/v1", "Deployment", "web", "shop")


def deployment(replicas: int) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def untyped(name: str) -> Any:
    """Import a module of the official client, which is imported late and has few types."""
    return import_module(f"kubernetes.{name}")


@pytest.fixture
def kubeconfig(server: HttpServer, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(server.kubeconfig(), path)
    return str(path)


async def test_the_official_client_reads_writes_and_watches(kubeconfig: str) -> None:
    """The client uses threads: typed calls, a watch after a list, a patch, the Scale, a delete."""

    def talk() -> list[tuple[str, str]]:
        client, config, watch = map(untyped, ("client", "config", "watch"))
        with config.new_client_from_config(kubeconfig) as api:
            apps = client.AppsV1Api(api)
            apps.create_namespaced_deployment("shop", deployment(2))
            listed = apps.list_namespaced_deployment("shop")
            assert [item.metadata.name for item in listed.items] == ["web"]
            apps.patch_namespaced_deployment("web", "shop", {"metadata": {"labels": {"tier": "front"}}})
            apps.patch_namespaced_deployment_scale("web", "shop", {"spec": {"replicas": 5}})
            assert apps.read_namespaced_deployment_scale("web", "shop").spec.replicas == 5
            apps.delete_namespaced_deployment("web", "shop")
            stream = watch.Watch().stream(
                apps.list_namespaced_deployment,
                "shop",
                resource_version=listed.metadata.resource_version,
                timeout_seconds=1,
            )
            return [(event["type"], event["object"].metadata.name) for event in stream]

    events = await asyncio.to_thread(talk)
    assert events == [("MODIFIED", "web"), ("MODIFIED", "web"), ("DELETED", "web")]


async def test_the_dynamic_client_finds_kinds_and_applies(kubeconfig: str, tmp_path: Path) -> None:
    """It finds a custom kind by discovery, and uses server-side apply."""

    def talk() -> Any:
        config, dynamic = map(untyped, ("config", "dynamic"))
        with config.new_client_from_config(kubeconfig) as api:
            known = dynamic.DynamicClient(api, cache_file=str(tmp_path / "cache"))
            shops = known.resources.get(api_version="example.com/v1", kind="Shop")
            shop = {
                "apiVersion": "example.com/v1",
                "kind": "Shop",
                "metadata": {"name": "corner", "namespace": "shop"},
                "spec": {"open": True},
            }
            shops.server_side_apply(body=shop, name="corner", namespace="shop", field_manager="us")
            return shops.get(name="corner", namespace="shop").to_dict()

    found = await asyncio.to_thread(talk)
    assert found["spec"] == {"open": True}
    assert found["metadata"]["managedFields"][0]["manager"] == "us"


async def test_our_client_works_as_with_a_real_api_server(kubeconfig: str, cluster: EmbeddedCluster) -> None:
    async with await ApiServerCluster.connect(kubeconfig) as client:
        await client.apply(deployment(3), field_manager="us")
        scale = {"spec": {"replicas": 5}}
        await client.patch(
            WEB, scale, PatchOptions(patch_type=PatchType.MERGE, field_manager="them", subresource=Subresource.SCALE)
        )
        with pytest.raises(ConflictError) as caught:
            await client.apply(deployment(3), field_manager="us")
        assert caught.value.causes[0].message == 'conflict with "them" with subresource "scale" using apps/v1'
        assert (await client.get(WEB))["spec"]["replicas"] == 5
        await client.delete(WEB)
        with pytest.raises(NotFoundError):
            await client.get(WEB)
        listed = await client.list("v1", "Namespace", ListOptions(limit=2))
        assert len(listed.items) == 2
        rest = await client.list("v1", "Namespace", ListOptions(limit=50, continue_token=listed.continue_token))
        assert {item["metadata"]["name"] for item in (*listed.items, *rest.items)} >= {"default", "shop"}
    assert cluster.requests.changes == 3


async def test_a_cache_gets_changes_over_http(kubeconfig: str, cluster: EmbeddedCluster) -> None:
    """Writes of another client arrive by the watch."""
    async with await ApiServerCluster.connect(kubeconfig) as client, CachedCluster(client) as cached:
        await cluster.create(deployment(1), field_manager="them")
        assert (await cached.get(WEB))["spec"]["replicas"] == 1
        changed = {"spec": {"replicas": 7}}
        await cluster.patch(WEB, changed, PatchOptions(patch_type=PatchType.MERGE, field_manager="them"))
        async with asyncio.timeout(600):
            while (await cached.get(WEB))["spec"]["replicas"] != 7:  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
