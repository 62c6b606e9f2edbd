"""Simulated nodes: pods as objects, their scheduler and kubelets, and a cloud whose nodes belong to a node group.

The node-group controller is the real one, `ocf.controllers.nodegroup`, reconciled once per period of the demo.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import DeleteOptions, ListOptions, PatchOptions, PatchType, Subresource
from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import NotFoundError
from ocf.nodegroups import ClusterSnapshot, InstanceType, Offering, fits
from ocf.objects import Manifest, ObjectKey, Quantity, parse_time
from ocf.objects.conditions import is_condition_true
from ocf.objects.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ocf.cluster import Cluster
    from ocf.testing import VirtualClock

__all__ = ["GROUP", "Nodes"]

GROUP: Final[Manifest] = {
    "apiVersion": "autoscaling.ocf.dev/v1alpha1",
    "kind": "NodeGroup",
    "metadata": {"name": "workers", "namespace": "default"},
    "spec": {
        "minNodes": 0,
        "maxNodes": 5,
        "datacenterID": "fra",
        "offeringIDs": ["small"],
        "scaleDownCooldown": "2m",
        "scaleDownPolicy": {"underutilizedFor": "3m"},
    },
}
"""The node group, as a user writes it."""

_FIXED: Final = "fixed"
_MACHINES: Final = "kubelet"
_SIZE: Final = {"cpu": Quantity.parse("450m"), "memory": Quantity.parse("4Gi"), "pods": Quantity.parse(110)}
_SMALL: Final = InstanceType("small", _SIZE, offerings=(Offering("fra", 0.02),))
_BOOT_TIME: Final = timedelta(seconds=40)


class Nodes:
    """Nodes, and the pods of a Deployment on them: one node that is there from the start, the others in a group.

    Each node has room for four pods that request 100m of cpu.

    Args:
        cluster: The cluster.
        clock: Clock of the demo.
        deployment: The Deployment that owns the pods.
        budget: Their PodDisruptionBudget.
        ready_after: How long a pod takes to become ready.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: VirtualClock,
        deployment: ObjectKey,
        budget: ObjectKey,
        *,
        ready_after: timedelta,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._deployment = deployment
        self._budget = budget
        self._ready_after = ready_after
        self._cloud = SimulatedProvider([_SMALL], clock, boot_time=_BOOT_TIME)
        self._controller = NodeGroupController(cluster, self._cloud, clock=clock)
        self._numbers = 0

    async def add_fixed_node(self) -> None:
        """Create the node that is in no group."""
        ready = {"type": "Ready", "status": "True"}
        size = {name: str(amount) for name, amount in _SIZE.items()}
        status = {"allocatable": size, "capacity": size, "conditions": [ready]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _FIXED}, "status": status}
        await self._cluster.create(node, field_manager=_MACHINES)
        await self._set_status(ObjectKey("v1", "Node", _FIXED), status)

    async def sync(self, wanted: int, deployment: Manifest) -> list[datetime | None]:
        """Let all controllers act once.

        Args:
            wanted: The number of pods.
            deployment: The Deployment.

        Returns:
            When each pod was started; None for a pod that waits for a node.
        """
        await self._end_pods()
        await self._replicate(wanted, deployment)
        await self._cloud.register_nodes(self._cluster)
        await self._schedule()
        await self._make_ready()
        await self._count_disruptions()
        await self._controller.reconcile()
        return [_started(pod) for pod in await self._pods()]

    async def waiting(self) -> int:
        """Return the number of pods that wait for a node."""
        return sum(_started(pod) is None for pod in await self._pods())

    async def count(self) -> tuple[int, int]:
        """Return how many nodes there are, and how many machines are booting."""
        nodes, machines = await self._objects("Node"), await self._cloud.list()
        return len(nodes), len({each.name for each in machines} - {each["metadata"]["name"] for each in nodes})

    async def decision(self) -> str:
        """Return the last decision about the group."""
        status: Manifest = (await self._cluster.get(ObjectKey.of(GROUP))).get("status") or {}
        return str(status.get("lastDecision", ""))

    async def _pods(self) -> list[Manifest]:
        """Return the pods of the Deployment, but those that are being deleted, oldest first."""
        found = [pod for pod in await self._objects("Pod") if "deletionTimestamp" not in pod["metadata"]]
        return sorted(found, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    async def _end_pods(self) -> None:
        """Stop pods that were evicted, as kubelets do."""
        for pod in await self._objects("Pod"):
            if "deletionTimestamp" in pod["metadata"]:
                await self._cluster.delete(ObjectKey.of(pod), DeleteOptions(grace_period_seconds=0))

    async def _replicate(self, wanted: int, deployment: Manifest) -> None:
        """Create pods, or delete those that share a node with most others, as a ReplicaSet's controller does."""
        pods = await self._pods()
        for _ in range(wanted - len(pods)):
            await self._create_pod(deployment)
        neighbours = Counter(pod["spec"].get("nodeName", "") for pod in pods)
        ranked = sorted(pods, key=lambda pod: _rank(pod, neighbours), reverse=True)
        for pod in ranked[: max(0, len(pods) - wanted)]:
            await self._cluster.delete(ObjectKey.of(pod), DeleteOptions(grace_period_seconds=0))

    async def _create_pod(self, deployment: Manifest) -> None:
        key, template = self._deployment, deployment["spec"]["template"]
        owner = {"apiVersion": key.api_version, "kind": key.kind, "name": key.name, "controller": True}
        metadata = {
            **template["metadata"],
            "name": f"{key.name}-{self._numbers}",
            "namespace": key.namespace,
            "ownerReferences": [{**owner, "uid": deployment["metadata"]["uid"]}],
        }
        self._numbers += 1
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        await self._cluster.create(pod, field_manager=_MACHINES)

    async def _schedule(self) -> None:
        """Bind each pod to the first node that it fits, and start it."""
        snapshot = ClusterSnapshot.of(nodes=await self._objects("Node"), pods=await self._objects("Pod"))
        for pod in await self._pods():
            key = ObjectKey.of(pod)
            seen = snapshot.pods[f"{key.namespace}/{key.name}"]
            place = next((node for node in sorted(snapshot.nodes) if fits(seen, node, snapshot) is None), "")
            if seen.node_name or not place:
                continue
            target = {"apiVersion": "v1", "kind": "Node", "name": place}
            metadata = {"name": key.name, "namespace": key.namespace}
            binding = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "target": target}
            await self._cluster.create(binding, field_manager=_MACHINES, subresource=Subresource.BINDING)
            await self._set_status(key, {"phase": "Running", "startTime": format_time(self._clock.now())})
            snapshot = snapshot.place(seen, place)

    async def _make_ready(self) -> None:
        """Report pods as ready some time after their start, as kubelets do."""
        for pod in await self._pods():
            at = _started(pod)
            if at is not None and self._clock.now() - at >= self._ready_after and not _is_ready(pod):
                condition = {"type": "Ready", "status": "True"}
                await self._set_status(ObjectKey.of(pod), {"conditions": [condition]})

    async def _count_disruptions(self) -> None:
        """Report how many pods may be evicted, as the disruption controller does."""
        try:
            budget = await self._cluster.get(self._budget)
        except NotFoundError:
            return
        healthy = sum(map(_is_ready, await self._pods()))
        least = int(budget["spec"]["minAvailable"])
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "currentHealthy": healthy,
            "desiredHealthy": least,
            "expectedPods": healthy,
            "disruptionsAllowed": max(0, healthy - least),
        }
        await self._set_status(self._budget, status)

    async def _objects(self, kind: str) -> Sequence[Manifest]:
        return (await self._cluster.list("v1", kind, ListOptions())).items

    async def _set_status(self, key: ObjectKey, status: dict[str, Any]) -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=_MACHINES, subresource=Subresource.STATUS)
        await self._cluster.patch(key, {"status": status}, options)


def _started(pod: Manifest) -> datetime | None:
    at = (pod.get("status") or {}).get("startTime")
    return parse_time(at) if at else None


def _is_ready(pod: Manifest) -> bool:
    return is_condition_true((pod.get("status") or {}).get("conditions"), "Ready")


def _rank(pod: Manifest, neighbours: Counter[str]) -> tuple[bool, int, str]:
    """Return the order in which pods are deleted, last first: waiting pods, then those with most neighbours."""
    node = pod["spec"].get("nodeName", "")
    return not node, neighbours[node], str(pod["metadata"]["name"])
