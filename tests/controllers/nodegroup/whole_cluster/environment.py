"""A cluster whose programs run, one namespace of it, and what users and machines do in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource
from ocf.controllers.hpa.manifests import NAME as HPA
from ocf.controllers.nodegroup.manifests import NAME as NODE_GROUPS
from ocf.nodegroups import InstanceType, Offering
from ocf.objects import Manifest, ObjectKey, Quantity, format_time
from ocf.testing.envtest import ControlPlane
from tests import support
from tests.controllers.change_history import Recorder
from tests.controllers.nodegroup.whole_cluster.audit import AuditLog
from tests.controllers.nodegroup.whole_cluster.history import API, KINDS, OURS, is_serving, lines, violations
from tests.controllers.nodegroup.whole_cluster.kwok_stages import FAILED, NEVER_BOOTS
from tests.controllers.nodegroup.whole_cluster.shifted_clock import ShiftedClock

__all__ = ["HPA_USER", "NODE_GROUP_USER", "SYSTEM", "TYPES", "Environment"]

SYSTEM: Final = "ocf-system"
HPA_USER: Final = f"system:serviceaccount:{SYSTEM}:{HPA}"
NODE_GROUP_USER: Final = f"system:serviceaccount:{SYSTEM}:{NODE_GROUPS}"

TIMEOUT: Final = 300.0  # seconds; a busy machine may take that long for what usually takes a few
CAPACITY: Final = {"cpu": Quantity.parse(2), "memory": Quantity.parse("8Gi"), "pods": Quantity.parse(110)}
TYPES: Final = tuple(
    InstanceType(name, CAPACITY, offerings=(Offering("fra", price),))
    for name, price in (("small", 0.02), (NEVER_BOOTS, 0.01))
)
_SHOWN: Final = 300  # changes
IDLE: Final = 20  # reconciles


class Environment(support.Env[Cluster, ShiftedClock]):
    """A cluster whose programs run, and one namespace of it.

    Args:
        plane: The control plane.
        cluster: A client of an administrator.
        clock: The clock of our controllers.
        namespace: The namespace.
        audit: The audit log of the API server.
    """

    def __init__(
        self, plane: ControlPlane, cluster: Cluster, clock: ShiftedClock, *, namespace: str, audit: AuditLog
    ) -> None:
        super().__init__(cluster, clock)
        self.plane = plane
        self.namespace = namespace
        self.audit = audit
        self.recorder = Recorder(cluster, KINDS)
        self.failed_nodes: list[str] = []

    # --- What users do. ---

    def key(self, api_version: str, kind: str, name: str) -> ObjectKey:
        return ObjectKey(api_version, kind, name, self.namespace)

    async def create(self, api_version: str, kind: str, name: str, spec: Manifest) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
        await self.cluster.create(body, field_manager="user")

    async def add_group(self, **spec: Any) -> None:
        settings = {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small"]}
        await self.create(API, "NodeGroup", "workers", {**settings, "scaleDownCooldown": "0s", **spec})

    async def add_node(self, name: str) -> None:
        """Create a Node of no group, with room for everything."""
        size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": size}}
        await self.cluster.create(body, field_manager="user")

    async def deploy(self, name: str, *, replicas: int | None, cpu: str) -> None:
        """Create a Deployment; without replicas, an autoscaler sets them."""
        container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
        lost = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        pod = {
            "containers": [container],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1} for key in lost
            ],
        }
        template = {"metadata": {"labels": {"app": name}}, "spec": pod}
        selector = {"matchLabels": {"app": name}}
        spec = {"selector": selector, "template": template, **({} if replicas is None else {"replicas": replicas})}
        await self.create("apps/v1", "Deployment", name, spec)

    async def add_budget(self, name: str, least: int) -> None:
        spec = {"minAvailable": least, "selector": {"matchLabels": {"app": name}}}
        await self.create("policy/v1", "PodDisruptionBudget", name, spec)

    async def autoscale(self, name: str, *, least: int, most: int, cpu: int) -> None:
        """Create an autoscaler that wants each pod to use a percentage of its cpu request."""
        resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": cpu}}
        at_once = {"type": "Percent", "value": 900, "periodSeconds": 1}
        behavior = {
            "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [at_once]},
            "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [at_once]},
        }
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [{"type": "Resource", "resource": resource}],
            "behavior": behavior,
        }
        await self.create("autoscaling/v2", "HorizontalPodAutoscaler", name, spec)

    async def change(self, api_version: str, kind: str, name: str, **spec: Any) -> None:
        await self.merge_patch(self.key(api_version, kind, name), {"spec": spec}, by="user")

    async def delete(self, api_version: str, kind: str, name: str) -> None:
        await self.cluster.delete(self.key(api_version, kind, name))

    # --- What machines do. ---

    async def fail_node(self, name: str) -> None:
        """Make a node not ready for good."""
        self.failed_nodes.append(name)
        key = ObjectKey("v1", "Node", name)
        await self.merge_patch(key, {"metadata": {"annotations": {FAILED: "true"}}}, by="kubelet")
        at = format_time(self.clock.real_now())
        ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "it failed"}
        condition = {**ready, "lastHeartbeatTime": at, "lastTransitionTime": at}
        options = PatchOptions(
            patch_type=PatchType.STRATEGIC_MERGE, field_manager="kubelet", subresource=Subresource.STATUS
        )
        await self.cluster.patch(key, {"status": {"conditions": [condition]}}, options)

    # --- What can be observed. ---

    async def objects(self, api_version: str, kind: str, **labels: str) -> list[Manifest]:
        """Return the objects of a kind in the namespace; those of the cluster for a kind without namespace."""
        namespace = "" if kind == "Node" else self.namespace
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        listed = await self.cluster.list(api_version, kind, ListOptions(namespace=namespace, label_selector=selector))
        return list(listed.items)

    async def ready(self, app: str) -> int:
        """Return the number of ready pods, but those that are being deleted."""
        return sum(map(is_serving, await self.objects("v1", "Pod", app=app)))

    async def nodes(self) -> list[str]:
        return [each["metadata"]["name"] for each in await self.objects("v1", "Node")]

    async def machines(self) -> dict[str, Manifest]:
        """Return the status of each VPSieNode by name."""
        found = await self.objects(API, "VPSieNode")
        return {each["metadata"]["name"]: each.get("status") or {} for each in found}

    async def pods_by_node(self, app: str) -> dict[str, list[str]]:
        """Return the names of the pods on each node, but those that are being deleted."""
        found: dict[str, list[str]] = {}
        for pod in await self.objects("v1", "Pod", app=app):
            if "deletionTimestamp" not in pod["metadata"] and "nodeName" in pod["spec"]:
                found.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
        return found

    async def group(self) -> Manifest:
        """Return the status of the node group."""
        return await self.read_status(self.key(API, "NodeGroup", "workers"))

    def evictions(self) -> list[int]:
        """Return the status codes of all evictions so far."""
        return [each.code for each in self.audit.writes(NODE_GROUP_USER) if each.resource == "pods/eviction"]

    async def until(self, what: str, check: Callable[[], Awaitable[Any]]) -> None:
        """Wait until something holds."""
        try:
            async with asyncio.timeout(TIMEOUT):
                while not await check():  # noqa: ASYNC110 (of several kinds, and of a real server)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail("\n".join([f"not reached: {what}", *lines(self.recorder.changes)[-_SHOWN:]]))

    # --- What must hold at the end. ---

    async def assert_idle(self, *reconciles: Callable[[], int], users: Sequence[str]) -> None:
        """Check that controllers are idle: they go on to reconcile, and write nothing.

        Args:
            *reconciles: Each returns how many reconciles one controller has completed.
            users: Our users in the audit log.
        """

        async def completed(number: int) -> None:
            targets = [count() + number for count in reconciles]

            async def are() -> bool:
                return all(count() >= target for count, target in zip(reconciles, targets, strict=True))

            await self.until(f"{number} more reconciles", are)

        async def is_idle() -> bool:
            before = await self._versions(), len(self.audit.writes(*users))
            await completed(3)
            return before == (await self._versions(), len(self.audit.writes(*users)))

        await self.until("three reconciles without a write", is_idle)
        before, written = await self._versions(), self.audit.writes(*users)
        await completed(IDLE)
        late = self.audit.writes(*users)[len(written) :]
        assert not late, late
        assert await self._versions() == before, "an object has changed"

    async def _versions(self) -> set[tuple[str, str]]:
        """Return the versions of the objects of our controllers; those of others may still change."""
        return {
            (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for kind in OURS
            for each in (await self.cluster.list(*kind, ListOptions())).items
        }

    async def assert_nothing_leaked(self) -> None:
        """Check that each Node has its VPSieNode, each VPSieNode its Node and group, and each Deployment its pods."""
        groups = {each["metadata"]["name"] for each in await self.objects(API, "NodeGroup")}
        objects = await self.objects(API, "VPSieNode")
        assert {each["spec"]["nodeGroupName"] for each in objects} <= groups
        assert sorted(await self.machines()) == sorted(await self.nodes())
        assert set(await self.pods_by_node("web")) <= set(await self.nodes())
        web = await self.cluster.get(self.key("apps/v1", "Deployment", "web"))
        assert await self.ready("web") == web["spec"]["replicas"] == web["status"]["readyReplicas"]

    async def assert_invariants(self) -> None:
        """Check the whole history, and the audit log: only evictions, and no request that the roles do not allow."""
        await self.recorder.complete()
        assert violations(self.recorder.changes, failed=self.failed_nodes) == []
        writes = self.audit.writes(NODE_GROUP_USER, HPA_USER)
        assert writes
        assert [each for each in writes if each.resource == "pods"] == []
        assert [each for each in writes if each.code in (401, 403)] == []
