"""A whole cluster: real API server, scheduler and controllers, kwok as the kubelet, and the node-group controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType
from ocf.cluster.cache import CachedCluster
from ocf.concepts import SystemClock
from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.options import ControllerOptions
from ocf.controllers.nodegroup.process import ProcessOptions, controller_runner
from ocf.controllers.nodegroup.providers.kwok import KwokProvider
from ocf.nodegroups import InstanceType, Offering
from ocf.objects import Manifest, ObjectKey, Quantity
from ocf.testing import RecordingCluster
from ocf.testing.envtest import ControllerName, ControlPlane, Programs
from ocf.testing.plugin import RunKwok, RunScheduler
from tests.controllers.nodegroup.conftest import API

TIMEOUT: Final = 300.0  # seconds; a busy machine may take that long for what usually takes a few
SMALL: Final = InstanceType(
    "small",
    {"cpu": Quantity.parse(2), "memory": Quantity.parse("8Gi"), "pods": Quantity.parse(110)},
    offerings=(Offering("fra", 0.02),),
)
OPTIONS: Final = ControllerOptions(
    busy_period=timedelta(milliseconds=500), idle_period=timedelta(seconds=1), quiet_period=timedelta(milliseconds=100)
)
CONTROLLERS: Final = (
    ControllerName.DEPLOYMENT,
    ControllerName.REPLICA_SET,
    ControllerName.DISRUPTION,
    ControllerName.GARBAGE_COLLECTOR,
    ControllerName.NODE_LIFECYCLE,
)


class WholeCluster:
    """A cluster whose programs run, and one namespace of it."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.lowest_ready = 0

    def key(self, api_version: str, kind: str, name: str) -> ObjectKey:
        return ObjectKey(api_version, kind, name, self.namespace)

    async def create(self, api_version: str, kind: str, name: str, spec: Manifest) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
        await self.cluster.create(body, field_manager="user")

    async def deploy(self, name: str, *, replicas: int, cpu: str) -> None:
        container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "containers": [container],
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 1,
            },
        }
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": replicas, "selector": selector, "template": template}
        await self.create("apps/v1", "Deployment", name, spec)

    async def scale(self, name: str, replicas: int) -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        await self.cluster.patch(self.key("apps/v1", "Deployment", name), {"spec": {"replicas": replicas}}, options)

    async def ready(self, name: str) -> int:
        deployment = await self.cluster.get(self.key("apps/v1", "Deployment", name))
        return int((deployment.get("status") or {}).get("readyReplicas") or 0)

    async def nodes(self) -> list[Manifest]:
        return list((await self.cluster.list("v1", "Node")).items)

    async def group(self) -> Manifest:
        return await self.cluster.get(self.key(API, "NodeGroup", "workers"))

    async def machines(self) -> int:
        return len((await self.cluster.list(API, "VPSieNode", ListOptions(namespace=self.namespace))).items)

    async def until(self, what: str, check: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something holds."""
        try:
            async with asyncio.timeout(TIMEOUT):
                while not await check():  # noqa: ASYNC110 (of several kinds, and of a real server)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            status = (await self.group()).get("status")
            pytest.fail(f"not reached: {what}; {len(await self.nodes())} nodes, status {status}")


@pytest.fixture(scope="module")
def whole_plane(envtest_programs: Programs) -> Iterator[ControlPlane]:
    """Give a control plane of its own: its scheduler and controllers act in every namespace."""
    with ControlPlane(envtest_programs) as plane:
        plane.install_crds(node_group_definition(), node_definition())
        yield plane


@pytest.fixture
async def whole(
    whole_plane: ControlPlane,
    envtest_scheduler: RunScheduler,  # noqa: ARG001 (skips without its program)
    envtest_kwok: RunKwok,  # noqa: ARG001 (likewise)
) -> AsyncIterator[WholeCluster]:
    with ExitStack() as stack:
        stack.enter_context(whole_plane.controllers(*CONTROLLERS))
        stack.enter_context(whole_plane.scheduler({"podMaxBackoffSeconds": 1, "podInitialBackoffSeconds": 1}))
        stack.enter_context(whole_plane.kwok())
        namespace = stack.enter_context(whole_plane.namespace("nodes-"))
        async with await whole_plane.cluster() as cluster:
            yield WholeCluster(cluster, namespace)


@asynccontextmanager
async def controller_of(whole: WholeCluster) -> AsyncIterator[None]:
    """Run the controller for the length of a block; it stops as in production."""
    stopped = asyncio.Event()

    def provider(cluster: Cluster) -> KwokProvider:
        return KwokProvider(cluster, [SMALL])

    runner = controller_runner(whole.cluster, provider, ProcessOptions(controller=OPTIONS), stopped=stopped)
    task = asyncio.create_task(runner.run())
    try:
        yield
    finally:
        stopped.set()
        await task


async def test_a_spike_adds_nodes_and_its_end_removes_them(whole: WholeCluster) -> None:
    """Pods wait for nodes, run on them, and are evicted within their disruption budget when the load falls."""
    policy = {"underutilizedFor": "1s", "drainTimeout": "5m"}
    spec: dict[str, Any] = {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small"]}
    await whole.create(API, "NodeGroup", "workers", {**spec, "scaleDownCooldown": "0s", "scaleDownPolicy": policy})
    await whole.create(
        "policy/v1", "PodDisruptionBudget", "web", {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    )
    async with controller_of(whole):
        await whole.deploy("giant", replicas=1, cpu="64")
        await whole.deploy("web", replicas=6, cpu="900m")

        async def all_run() -> bool:
            return await whole.ready("web") == 6

        await whole.until("six pods run", all_run)
        assert len(await whole.nodes()) == 3
        assert await whole.ready("giant") == 0

    # Another process goes on: what steers scaling is in the status.
    await whole.scale("web", 3)
    async with controller_of(whole):

        async def two_are_left() -> bool:
            assert await whole.ready("web") >= 2
            return len(await whole.nodes()) == 2 and await whole.ready("web") == 3

        await whole.until("three pods run on two nodes", two_are_left)

        async def settled() -> bool:
            status = (await whole.group())["status"]
            return (status["currentNodes"], status["readyNodes"]) == (2, 2) and await whole.machines() == 2

        await whole.until("the status shows it", settled)
        await assert_silence(whole)
        await whole.cluster.delete(whole.key("apps/v1", "Deployment", "web"))

        async def none_is_left() -> bool:
            return not await whole.nodes() and await whole.machines() == 0

        await whole.until("no node is left", none_is_left)


async def assert_silence(whole: WholeCluster) -> None:
    """Check that another process, which knows nothing of before, writes nothing in ten reconciles."""
    recorded = RecordingCluster(whole.cluster)
    async with CachedCluster(recorded) as cached:
        controller = NodeGroupController(cached, KwokProvider(cached, [SMALL]), clock=SystemClock(), options=OPTIONS)
        for _ in range(10):
            await controller.reconcile()
    assert recorded.writes == ()
