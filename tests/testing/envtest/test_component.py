"""A component with a Deployment and its autoscaler sends no needless write to a real API server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from ocf import component
from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.component import Component, Result, reconciling
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, hpa
from ocf.testing import assert_quiet
from ocf.testing.plugin import Envtest

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster

GROUP = "component.envtest.example.com"


def custom_resource_definition() -> Manifest:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shops.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Shop", "plural": "shops"},
            "versions": [version],
        },
    }


def backend(namespace: str) -> Manifest:
    """Return a Deployment with many fields that a server defaults or normalizes."""
    container = {
        "name": "app",
        "image": "app:1",
        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
    }
    pod = {"containers": [container], "securityContext": {}, "volumes": [{"name": "x", "emptyDir": {}}]}
    template = {"metadata": {"labels": {"app": "b"}}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "backend", "namespace": namespace},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "b"}}, "template": template},
    }


def autoscaler(namespace: str) -> Manifest:
    target = {"type": "AverageValue", "averageValue": "1000m"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "backend", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "backend"},
            "minReplicas": 2,
            "maxReplicas": 10,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}],
        },
    }


@dataclass(frozen=True)
class Shop:
    """An owner and its component."""

    cluster: Cluster
    owner: ObjectKey

    def web(self, *, scaled: bool, suspended: bool) -> Component:
        builder = component.Builder("web", condition_type="WebReady")
        builder.with_resource(deployment.Builder(backend(self.owner.namespace)).build())
        if scaled:
            builder.with_resource(hpa.Builder(autoscaler(self.owner.namespace)).build())
        return builder.suspend(suspended).build()

    async def reconcile(self, cluster: Cluster, *, scaled: bool, suspended: bool) -> Result:
        async with reconciling(await cluster.get(self.owner), cluster) as context:
            return await self.web(scaled=scaled, suspended=suspended).reconcile(context)

    async def settle(self, *, scaled: bool = True, suspended: bool = False) -> int:
        """Reconcile until in sync, check that no write follows, and return the replicas."""
        there = partial(self.reconcile, scaled=scaled, suspended=suspended)
        for _ in range(2):  # the second reconcile reports the result of the first
            await there(self.cluster)
        await assert_quiet(self.cluster, there, resyncs=3)
        return await self.count()

    async def count(self) -> int:
        count: int = (await self.cluster.get(self.backend))["spec"]["replicas"]
        return count

    async def scale(self, count: int) -> None:
        """Scale as an autoscaler does."""
        await self.cluster.patch(
            self.backend,
            {"spec": {"replicas": count}},
            PatchOptions(
                patch_type=PatchType.MERGE, field_manager="kube-controller-manager", subresource=Subresource.SCALE
            ),
        )

    @property
    def backend(self) -> ObjectKey:
        return ObjectKey("apps/v1", "Deployment", "backend", self.owner.namespace)

    @property
    def autoscaler(self) -> ObjectKey:
        return ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "backend", self.owner.namespace)


@pytest.fixture
async def shop(envtest: Envtest, envtest_cluster: ApiServerCluster) -> Shop:
    await asyncio.to_thread(envtest.plane.install_crds, custom_resource_definition())
    manifest = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Shop",
        "metadata": {"name": "corner", "namespace": envtest.namespace},
    }
    await envtest_cluster.create(manifest, field_manager="user")
    return Shop(envtest_cluster, ObjectKey.of(manifest))


async def test_a_lifecycle_with_an_autoscaler_writes_only_what_changes(shop: Shop) -> None:
    """A fixed count, an autoscaler in addition, suspended and resumed twice, and the count taken back."""
    assert await shop.settle(scaled=False) == 4
    assert await shop.settle() == 4
    await shop.scale(6)
    assert await shop.settle() == 6
    assert await shop.settle(suspended=True) == 0
    with pytest.raises(NotFoundError):
        await shop.cluster.get(shop.autoscaler)
    assert await shop.settle() == 6
    await shop.scale(7)
    assert await shop.settle() == 7
    assert await shop.settle(suspended=True) == 0
    assert await shop.settle() == 7
    assert await shop.settle(scaled=False) == 4
