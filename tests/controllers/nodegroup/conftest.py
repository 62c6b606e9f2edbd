"""An environment in virtual time: an embedded cluster, a simulated cloud, a scheduler, and the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, DeleteOptions, ListOptions, Request, Subresource
from ocf.cluster.interceptor import is_write
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.controllers.nodegroup.metrics import NodeGroupMonitor
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import NotFoundError
from ocf.nodegroups import ClusterSnapshot, InstanceType, MachineRequest, Offering, Provider, fits
from ocf.objects import Manifest, ObjectKey, Quantity
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster
from tests import support

API: Final = "autoscaling.ocf.dev/v1alpha1"
GROUP: Final = ObjectKey(API, "NodeGroup", "workers", "default")
TICK: Final = timedelta(seconds=30)

SMALL: Final = InstanceType(
    "small",
    {"cpu": Quantity.parse(2), "memory": Quantity.parse("8Gi"), "pods": Quantity.parse(110)},
    offerings=(Offering("fra", 0.02),),
)
LARGE: Final = InstanceType(
    "large",
    {"cpu": Quantity.parse(8), "memory": Quantity.parse("32Gi"), "pods": Quantity.parse(110)},
    offerings=(Offering("fra", 0.09),),
)


@cache
def definitions() -> tuple[Manifest, Manifest]:
    """Return the definitions of node groups and of their nodes, which follow from models."""
    return node_group_definition(), node_definition()


class Events(NullRecorder):
    """Keeps all events."""

    def __init__(self) -> None:
        self.all: list[Event] = []

    def happened(self, event: Event) -> None:
        self.all.append(event)

    def reasons(self) -> list[str]:
        return [each.reason for each in self.all]


@dataclass
class Cloud:
    """What is wrong in the cloud; names of requests are not known before, so that requests are counted."""

    broken: bool = False
    requests: list[MachineRequest] = field(default_factory=list)

    def fails(self, request: MachineRequest) -> bool:
        self.requests.append(request)
        return self.broken


class Env(support.Env[EmbeddedCluster, VirtualClock]):
    """A cluster with a cloud; the controller is made anew by `restart`."""

    def __init__(
        self,
        types: Iterable[InstanceType] = (SMALL, LARGE),
        *,
        cloud: type[SimulatedProvider] = SimulatedProvider,
        **settings: Any,
    ) -> None:
        clock = VirtualClock()
        super().__init__(EmbeddedCluster(now=clock.now, namespaces=("shop",)), clock)
        self.cloud = Cloud()
        self.provider = cloud(types, clock, fails=self.cloud.fails, **settings)
        self.events = Events()
        self.monitor = NodeGroupMonitor()
        self.dead: set[str] = set()
        self.restart()

    def restart(
        self,
        cluster: Cluster | None = None,
        options: NodeGroupControllerOptions | None = None,
        provider: Provider | None = None,
    ) -> None:
        """Replace the controller by a new process."""
        self.controller = NodeGroupController(
            cluster or self.cluster,
            provider or self.provider,
            clock=self.clock,
            events=self.events,
            monitor=self.monitor,
            options=options,
        )

    async def set_up(self, **spec: Any) -> None:
        for definition in definitions():
            await self.cluster.create(definition, field_manager="admin")
        await self.add_group(**spec)

    async def add_group(self, name: str = "workers", **spec: Any) -> None:
        settings = {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small", "large"], **spec}
        metadata = {"name": name, "namespace": "default"}
        manifest = {"apiVersion": API, "kind": "NodeGroup", "metadata": metadata, "spec": settings}
        await self.cluster.create(manifest, field_manager="user")

    async def tick(self, times: int = 1, by: timedelta = TICK) -> None:
        """Let the controller and all others act, and time pass."""
        for _ in range(times):
            await self.controller.reconcile()
            await self.others()
            self.clock.advance(by)

    async def others(self) -> None:
        """Act as kubelets, the scheduler, and the garbage collector of pods."""
        await self.provider.register_nodes(self.cluster)
        await self._stop_pods()
        await self.schedule()

    async def _stop_pods(self) -> None:
        nodes = {each["metadata"]["name"] for each in await self.objects("Node")}
        for pod in await self.objects("Pod"):
            node = pod["spec"].get("nodeName", "")
            lost = node not in {"", *nodes}
            # The kubelet of a dead node stops no pods; they end when the Node is deleted.
            if lost or ("deletionTimestamp" in pod["metadata"] and node not in self.dead):
                await self.cluster.delete(ObjectKey.of(pod), DeleteOptions(grace_period_seconds=0))
                if "owner" in pod["metadata"].get("labels", {}):
                    await self._replace(pod)

    async def _replace(self, pod: Manifest) -> None:
        name, _, number = pod["metadata"]["name"].rpartition("-")
        fresh = f"{name}-{int(number) + 100}"
        await self.add_pod(fresh, cpu=pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    async def schedule(self) -> None:
        """Bind each pending pod to the first node that it fits."""
        pods = await self.objects("Pod")
        if all(each["spec"].get("nodeName") for each in pods):
            return
        snapshot = ClusterSnapshot.of(nodes=await self.objects("Node"), pods=pods)
        for key in sorted(each.key for each in snapshot.pods.values() if not each.node_name):
            pod = snapshot.pods[key]
            found = next((n for n in sorted(snapshot.nodes) if fits(pod, n, snapshot) is None), "")
            if not found:
                continue
            target = {"apiVersion": "v1", "kind": "Node", "name": found}
            namespace, name = key.split("/")
            metadata = {"name": name, "namespace": namespace}
            binding = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "target": target}
            await self.cluster.create(binding, field_manager="scheduler", subresource=Subresource.BINDING)
            ready = {"type": "Ready", "status": "True"}
            key_of_pod = ObjectKey("v1", "Pod", name, namespace)
            await self.patch_status(key_of_pod, {"phase": "Running", "conditions": [ready]}, by="kubelet")
            snapshot = snapshot.place(pod, found)

    async def add_pod(self, name: str = "web-0", *, cpu: str = "1", **spec: Any) -> None:
        """Create a pod with a controller that replaces it."""
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
        metadata = {
            "name": name,
            "namespace": "shop",
            "labels": {"app": "web", "owner": "web"},
            "ownerReferences": [owner],
        }
        container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], **spec},
        }
        await self.cluster.create(manifest, field_manager="user")

    async def remove_pods(self, *names: str) -> None:
        for pod in await self.objects("Pod"):
            if pod["metadata"]["name"] in names or not names:
                await self.cluster.delete(ObjectKey.of(pod), DeleteOptions(grace_period_seconds=0))

    async def kill_node(self, name: str) -> None:
        """Let a node stop answering: its pods stay, and it is not ready."""
        self.dead.add(name)
        unknown = {"type": "Ready", "status": "Unknown"}
        await self.patch_status(
            ObjectKey("v1", "Node", name), {"conditions": [unknown]}, by="node-lifecycle-controller"
        )

    async def add_budget(self, allowed: int) -> None:
        metadata = {"name": "web", "namespace": "shop"}
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        await self.cluster.create(
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec},
            field_manager="user",
        )
        await self.allow(allowed)

    async def allow(self, allowed: int) -> None:
        key = ObjectKey("policy/v1", "PodDisruptionBudget", "web", "shop")
        status = {"disruptionsAllowed": allowed, "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1}
        await self.patch_status(key, {**status, "expectedPods": 1}, by="disruption-controller")

    async def objects(self, kind: str) -> tuple[Manifest, ...]:
        api = {"Node": "v1", "Pod": "v1"}.get(kind, API)
        return (await self.cluster.list(api, kind, ListOptions())).items

    async def nodes(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in await self.objects("Node"))

    async def phases(self) -> list[str]:
        return sorted((each.get("status") or {}).get("phase", "Pending") for each in await self.objects("VPSieNode"))

    async def status(self) -> Manifest:
        return await self.read_status(GROUP)

    async def machines(self) -> int:
        return len(self.provider.machines())

    async def waiting(self) -> list[str]:
        return [each["metadata"]["name"] for each in await self.objects("Pod") if not each["spec"].get("nodeName")]

    async def gone(self, key: ObjectKey) -> bool:
        try:
            await self.cluster.get(key)
        except NotFoundError:
            return True
        return False

    def writes(self) -> list[Request]:
        return [each for each in self.cluster.requests if is_write(each)]

    def value(self, name: str, **labels: str) -> float:
        own = {"namespace": "default", "nodegroup": "workers", **labels}
        return self.monitor.registry.get_sample_value(f"ocf_nodegroup_{name}", own) or 0


Scenario = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture
def env() -> Env:
    return Env()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)
