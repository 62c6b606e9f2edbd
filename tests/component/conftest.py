"""Fixtures: a cluster with an owner, and the two resources that most tests use.

Every test that takes `env` runs twice: on the embedded cluster, and on a real API server where there is one. What
only one of them can show is marked `embedded_only`, with the reason.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import pytest_asyncio

from ocf import component
from ocf.cluster import (
    ApplyCache,
    Cluster,
    DeleteOptions,
    ListOptions,
    PatchOptions,
    PatchType,
    Propagation,
    Subresource,
)
from ocf.component import Component, Finalizer, ReconcileContext, Result, finalize, reconciling
from ocf.component.reconcile_components import reconcile_each
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey, copy_json, load_document
from ocf.primitives import StaticBuilder, deployment, hpa
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator
from ocf.testing import RecordingCluster, VirtualClock
from ocf.testing.envtest import ControlPlane
from ocf_server import CustomKind, EmbeddedCluster
from tests import support
from tests.support import is_in

HERE: Final = Path(__file__).parent
StaticKind: TypeAlias = StaticBuilder[Any, BaseMutator]
_CONFIG_MAP: Kind[Any, BaseMutator] = Kind("v1", "ConfigMap", "V1ConfigMap", BaseMutator)
_CLUSTER_ROLE: Kind[Any, BaseMutator] = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "V1ClusterRole", BaseMutator, cluster_scoped=True
)


EnvCluster: TypeAlias = EmbeddedCluster | RecordingCluster
Server: TypeAlias = tuple[Cluster, str]
"""A cluster and a namespace of it."""

SHOP: Final = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "demo", "namespace": "shop"},
    "spec": {"size": 3},
}
DEFINITION: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, plural: shops}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
# Kinds of the objects that tests leave on a shared server.
USED: Final = (
    ("example.com/v1", "Shop"),
    ("apps/v1", "Deployment"),
    # Beside real controllers, one of these that no owner takes with it would keep its pods, or get new ones.
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deselect tests of the embedded server on a real one, and run all in the event loop of its client."""
    for item in items:
        if pytest_asyncio.is_async_test(item) and is_in(item, HERE):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
    items[:] = [item for item in items if not (_is_on_a_real_server(item) and item.get_closest_marker("embedded_only"))]


def _is_on_a_real_server(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "envtest" in getattr(item, "callspec", _NO_ROW).params.values()


class _NoRow:
    params: Final[dict[str, object]] = {}


_NO_ROW: Final = _NoRow()


class Env(support.Env[EnvCluster, VirtualClock]):
    """A cluster with an owner, and helpers to reconcile and change them."""

    web = ObjectKey("apps/v1", "Deployment", "web", "shop")
    hpa = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop")

    def __init__(self, cluster: EnvCluster, owner: ObjectKey, clock: VirtualClock) -> None:
        super().__init__(cluster, clock)
        self.owner = owner

    async def owner_manifest(self) -> Manifest:
        return await self.cluster.get(self.owner)

    async def reconcile(self, *components: Component) -> Result:
        """Reconcile as an operator does; return the result of the last component."""
        async with reconciling(await self.owner_manifest(), self.cluster, clock=self.clock) as context:
            return await self._each(context, components)

    def process(self, operator: str = "ocf") -> "Process":
        """Return another process, which reconciles the same owner as an operator of this name."""
        return Process(self, operator)

    async def _each(self, context: ReconcileContext, components: tuple[Component, ...]) -> Result:
        results = [await one.reconcile(context) for one in components]
        return results[-1]

    async def condition(self, name: str = "WebReady") -> Manifest:
        found: Manifest = (await self.read_conditions(self.owner))[name]
        return found

    async def exists(self, key: ObjectKey) -> bool:
        kept = await self.cluster.list(key.api_version, key.kind, ListOptions(namespace=key.namespace))
        return any(item["metadata"]["name"] == key.name for item in kept.items)

    async def create(self, key: ObjectKey, **content: Any) -> Manifest:
        """Create an object as another user does; `metadata` is merged into its own."""
        metadata = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
        metadata |= content.pop("metadata", {})
        manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, **content}
        return await self.cluster.create(manifest, field_manager="kubectl-edit")

    async def change(self, key: ObjectKey, **patch: Any) -> Manifest:
        """Change an object as another user does."""
        return await self.merge_patch(key, patch, by="kubectl-edit")

    async def other_owner(self) -> Manifest:
        """Create another owner, `Shop shop/other`, and return a controller reference to it."""
        other = await self.create(ObjectKey("example.com/v1", "Shop", "other", "shop"))
        named = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "other", "uid": other["metadata"]["uid"]}
        return named | {"controller": True}

    async def owners(self, key: ObjectKey) -> list[str]:
        """Return the names of an object's owners."""
        metadata = (await self.cluster.get(key))["metadata"]
        return [reference["name"] for reference in metadata.get("ownerReferences", [])]

    async def replicas(self) -> int:
        return await self.read_replicas(self.web)

    async def scale(self, replicas: int) -> None:
        """Set the replicas as the autoscaler does, through the Scale subresource."""
        await self.set_scale(self.web, replicas, by="kube-controller-manager")

    async def report(self, key: ObjectKey, status: Manifest) -> None:
        """Write a status as the kind's controller does."""
        live = await self.cluster.get(key)
        await self.cluster.update(
            {**live, "status": status}, field_manager="kube-controller-manager", subresource=Subresource.STATUS
        )

    async def run(self, replicas: int) -> None:
        """Report the Deployment as fully rolled out with a number of replicas."""
        generation = (await self.cluster.get(self.web))["metadata"]["generation"]
        counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), replicas)
        await self.report(self.web, {"observedGeneration": generation, **counts})


class Process:
    """One of several processes that reconcile the same owner, each with what it remembers itself.

    Args:
        env: The environment.
        operator: Name of its operator.

    Attributes:
        cluster: Its way to the cluster, which records its requests.
    """

    def __init__(self, env: Env, operator: str) -> None:
        self._env = env
        self.operator = operator
        self.cluster = RecordingCluster(env.cluster, apply_cache=ApplyCache())

    @property
    def writes(self) -> int:
        """Number of its writes so far."""
        return len(self.cluster.writes)

    async def reconcile(
        self, *components: Component, finalizer: Finalizer | None = None, owner: ObjectKey | None = None
    ) -> tuple[Result | Exception, ...]:
        """Reconcile as an operator does, finalizer first."""
        live = await self._env.cluster.get(owner or self._env.owner)
        async with reconciling(live, self.cluster, operator=self.operator, clock=self._env.clock) as context:
            if await finalize(context, *components, finalizer=finalizer) is not None:
                return ()
            return await reconcile_each(context, *components)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 1, 31, 12, 0, tzinfo=UTC))


@pytest.fixture(scope="session")
def shop_plane(envtest_plane: ControlPlane) -> ControlPlane:
    """A real API server with the kind Shop and its namespace."""
    envtest_plane.install_crds(load_document(DEFINITION))
    envtest_plane.kubectl("create", "namespace", "shop")
    return envtest_plane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shop_server(shop_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """One client for all tests, which saves a handshake per test."""
    async with await shop_plane.cluster() as server:
        yield server


@pytest.fixture(params=["embedded", "real"])
def server(request: pytest.FixtureRequest) -> Server:
    """Return a cluster and a namespace; requested outside of the event loop, which the client needs."""
    if request.param == "embedded":
        return EmbeddedCluster(namespaces=("town",)), "town"
    return request.getfixturevalue("shop_server"), request.getfixturevalue("envtest").namespace


@pytest.fixture(params=["embedded", "envtest"])
def new_env(request: pytest.FixtureRequest) -> Callable[[], Awaitable[Env]]:
    """Return a function that makes a cluster with an owner, `Shop shop/demo`."""
    if request.param == "embedded":
        return _embedded_world
    server: Cluster = request.getfixturevalue("shop_server")

    async def make() -> Env:
        await _emptied(server)
        return await _world(RecordingCluster(server, apply_cache=ApplyCache()), _clock())

    return make


def _clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 1, 31, 12, 0, tzinfo=UTC))


async def _embedded_world() -> Env:
    clock = _clock()
    kinds = [CustomKind("example.com", "v1", "Shop")]
    return await _world(EmbeddedCluster(kinds=kinds, namespaces=("shop",), now=clock.now), clock)


async def _world(cluster: EnvCluster, clock: VirtualClock) -> Env:
    await cluster.create(SHOP, field_manager="user")
    cluster.requests.clear()
    return Env(cluster, ObjectKey.of(SHOP), clock)


async def _emptied(server: Cluster) -> None:
    """Delete the objects of the previous test."""
    for api_version, kind in USED:
        namespace = "" if kind == "ClusterRole" else "shop"
        for live in (await server.list(api_version, kind, ListOptions(namespace=namespace))).items:
            name = live["metadata"]["name"]
            if name.startswith(("system:", "kube-", "extension-")) or name in {
                "admin",
                "edit",
                "view",
                "cluster-admin",
            }:
                continue
            with suppress(NotFoundError):
                if live["metadata"].get("finalizers"):
                    released = {"metadata": {"finalizers": None}}
                    await server.patch(
                        ObjectKey.of(live), released, PatchOptions(patch_type=PatchType.MERGE, field_manager="cleaner")
                    )
                # By default the API server would wait for a garbage collector to orphan the pods of a Job.
                await server.delete(ObjectKey.of(live), DeleteOptions(propagation=Propagation.BACKGROUND))


@pytest_asyncio.fixture(loop_scope="session")
async def env(new_env: Callable[[], Awaitable[Env]]) -> Env:
    return await new_env()


@pytest.fixture
def web_base() -> Manifest:
    """A Deployment without replicas."""
    return {
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
                            "image": "web:1",
                            "ports": [{"containerPort": 80}],
                            "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
                            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        }
                    ]
                },
            },
        },
    }


@pytest.fixture
def hpa_base() -> Manifest:
    """An autoscaler of that Deployment, in a spelling that the server normalises."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 10,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": "rps"},
                        "target": {"type": "AverageValue", "averageValue": "1000m"},
                    },
                }
            ],
        },
    }


@pytest.fixture
def config_map() -> Callable[..., StaticKind]:
    """Make the builder of a static resource, `ConfigMap shop/<name>`."""

    def build(name: str = "settings", **data: str) -> StaticKind:
        metadata = {"name": name, "namespace": "shop"}
        base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"a": "1"}}
        return StaticBuilder(base, _CONFIG_MAP, Handlers())

    return build


def _role(**content: Any) -> StaticKind:
    base = {"apiVersion": _CLUSTER_ROLE.api_version, "kind": "ClusterRole", "metadata": {"name": "viewer"}, **content}
    return StaticBuilder(base, _CLUSTER_ROLE, Handlers())


@pytest.fixture
def cluster_role() -> StaticKind:
    """The builder of a cluster-scoped resource, `ClusterRole viewer`."""
    return _role(rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])


@pytest.fixture
def bare_role() -> StaticKind:
    """The same without rules."""
    return _role()


@pytest.fixture
def web(web_base: Manifest) -> deployment.Resource:
    return deployment.Builder(web_base).build()


@pytest.fixture
def web_hpa(hpa_base: Manifest) -> hpa.Resource:
    return hpa.Builder(hpa_base).build()


@pytest.fixture
def fixed_web(web_base: Manifest) -> deployment.Resource:
    """The Deployment with 4 replicas."""
    base = copy_json(web_base)
    base["spec"]["replicas"] = 4
    return deployment.Builder(base).build()


@pytest.fixture
def scaled(web: deployment.Resource, web_hpa: hpa.Resource) -> Callable[..., Component]:
    """Build the component of both; `suspended=True` suspends it."""

    def build(*, suspended: bool = False) -> Component:
        return (
            component.Builder("web", condition_type="WebReady")
            .with_resource(web)
            .with_resource(web_hpa)
            .suspend(suspended)
            .build()
        )

    return build
