"""Without a change, a reconcile through a cache sends no read and no write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from ocf import component
from ocf.cluster import Cluster, PatchOptions, PatchType, Request, Subresource
from ocf.cluster.cache import CachedCluster
from ocf.component import Component, reconciling
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, hpa
from ocf.testing import VirtualClock
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from tests.cluster.cache.conftest import Env

SHOP = ObjectKey("example.com/v1", "Shop", "demo", "shop")
WEB = ObjectKey("apps/v1", "Deployment", "web", "shop")


def web_component(*, suspended: bool = False, image: str = "web:1") -> Component:
    """A Deployment and its autoscaler, in a spelling that the server normalizes and defaults."""
    web: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": image,
                            "ports": [{"containerPort": 80}],
                            "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
                        }
                    ]
                },
            },
        },
    }
    scaler: Manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "1000m"}},
                }
            ],
        },
    }
    return (
        component.Builder("web", condition_type="WebReady")
        .with_resource(deployment.Builder(web).build())
        .with_resource(hpa.Builder(scaler).build())
        .suspend(suspended)
        .build()
    )


async def owned_cluster() -> EmbeddedCluster:
    cluster = EmbeddedCluster(
        kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=("shop",), now=VirtualClock().now
    )
    owner = {
        "apiVersion": SHOP.api_version,
        "kind": SHOP.kind,
        "metadata": {"name": SHOP.name, "namespace": SHOP.namespace},
        "spec": {},
    }
    await cluster.create(owner, field_manager="user")
    return cluster


async def reconcile(cluster: Cluster, built: Component) -> None:
    """Reconcile once, as an operator does: the owner is read from the same cluster."""
    async with reconciling(await cluster.get(SHOP), cluster, clock=VirtualClock()) as context:
        await built.reconcile(context)


async def asked(cluster: EmbeddedCluster, build: Callable[[], Component], cached: Cluster) -> list[Request]:
    cluster.requests.clear()
    for _ in range(100):
        await reconcile(cached, build())
    return list(cluster.requests)


@pytest.mark.promise("no-read")
async def test_a_hundred_reconciles_read_and_write_nothing(env: Env) -> None:
    cluster = await owned_cluster()
    async with CachedCluster(cluster, timing=env.timing) as cached:
        for _ in range(2):
            await reconcile(cached, web_component())

        assert await asked(cluster, web_component, cached) == []
        await env.settle()
        assert await asked(cluster, web_component, cached) == []


async def test_a_hundred_reconciles_with_reduced_managed_fields_read_and_write_nothing(env: Env) -> None:
    """A reconcile does not read the managedFields entries that are not cached."""
    cluster = await owned_cluster()
    async with CachedCluster(
        cluster,
        timing=env.timing,
        keeps_manager=lambda name: name.startswith("ocf/Shop/"),
        ignored_fields=["spec.replicas"],
    ) as cached:
        await reconcile(cached, web_component())
        await cluster.patch(
            WEB,
            {"spec": {"replicas": 5}},
            PatchOptions(
                patch_type=PatchType.MERGE, field_manager="kube-controller-manager", subresource=Subresource.SCALE
            ),
        )
        await env.settle()
        await reconcile(cached, web_component())

        assert await asked(cluster, web_component, cached) == []
        assert (await cluster.get(WEB))["spec"]["replicas"] == 5


async def test_a_suspended_component_reads_and_writes_nothing_too(env: Env) -> None:
    cluster = await owned_cluster()
    async with CachedCluster(cluster, timing=env.timing) as cached:
        for _ in range(3):
            await reconcile(cached, web_component())
        for _ in range(3):
            await reconcile(cached, web_component(suspended=True))
            await env.settle()

        assert await asked(cluster, lambda: web_component(suspended=True), cached) == []


async def test_the_result_is_the_same_as_without_a_cache(env: Env) -> None:
    """Rollout, suspension, resumption and a change lead to the same objects with and without a cache."""
    clusters = [await owned_cluster(), await owned_cluster()]
    async with CachedCluster(clusters[1], timing=env.timing) as cached:
        steps = [web_component(), web_component(suspended=True), web_component(), web_component(image="web:2")]
        for through in (clusters[0], cached):
            for built in steps:
                for _ in range(2):
                    await reconcile(through, built)

    plain, through_cache = [await cluster.list("apps/v1", "Deployment") for cluster in clusters]
    assert _comparable(plain.items) == _comparable(through_cache.items)
    assert clusters[0].requests.writes == clusters[1].requests.writes


def _comparable(items: tuple[Manifest, ...]) -> list[Manifest]:
    return [
        {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "resourceVersion"}}
        for item in items
    ]
