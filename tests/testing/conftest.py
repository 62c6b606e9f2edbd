"""A small operator: a shop with a Deployment and its autoscaler."""

from collections.abc import Callable

import pytest

from ocf import component
from ocf.cluster import Cluster
from ocf.component import Component, Result, reconciling
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, hpa
from ocf.testing import VirtualClock
from ocf_server import CustomKind, EmbeddedCluster


class Operator:
    """An operator under test: the initial state of its cluster, and one reconcile."""

    shop = ObjectKey("example.com/v1", "Shop", "demo", "shop")
    web = ObjectKey("apps/v1", "Deployment", "web", "shop")

    def __init__(self, subject: Component, clock: VirtualClock) -> None:
        self.subject = subject
        self.clock = clock

    async def new_cluster(self) -> EmbeddedCluster:
        kinds = [CustomKind("example.com", "v1", "Shop")]
        cluster = EmbeddedCluster(kinds=kinds, namespaces=["shop"], now=self.clock.now)
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "demo", "namespace": "shop"}}
        await cluster.create({**shop, "spec": {}}, field_manager="user")
        return cluster

    async def reconcile(self, cluster: Cluster) -> Result:
        async with reconciling(await cluster.get(self.shop), cluster, clock=self.clock) as context:
            return await self.subject.reconcile(context)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def web_base() -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }


@pytest.fixture
def hpa_base() -> Manifest:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 10,
        },
    }


@pytest.fixture
def subject(web_base: Manifest, hpa_base: Manifest) -> Component:
    return (
        component.Builder("web", condition_type="WebReady")
        .with_resource(deployment.Builder(web_base).build())
        .with_resource(hpa.Builder(hpa_base).build())
        .build()
    )


@pytest.fixture
def operator(subject: Component, clock: VirtualClock) -> Operator:
    return Operator(subject, clock)


@pytest.fixture
async def cluster(operator: Operator) -> EmbeddedCluster:
    return await operator.new_cluster()


@pytest.fixture
def settings() -> Callable[..., Manifest]:
    """Make a ConfigMap; its data are the keywords."""

    def make(name: str = "settings", **data: str) -> Manifest:
        metadata = {"name": name, "namespace": "shop"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    return make
