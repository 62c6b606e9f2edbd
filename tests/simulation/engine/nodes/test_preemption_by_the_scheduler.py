"""The real scheduler selects the pods of the table of preemptions, on the node of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ocf.cluster import ListOptions, Subresource
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import format_time
from tests.simulation.engine.nodes.test_preemption import NEW, ROOM, ROWS, Workload
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import RunScheduler

Verdict: TypeAlias = tuple[str, list[str]] | None
Row: TypeAlias = tuple[list[Workload], dict[str, list[Any]], tuple[str, list[str], int] | None]
BEGIN: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
# Nodes that are equally good are taken in an order of chance.
LEFT_OUT: Final = "then the oldest node"
QUICK: Final = {"podMaxBackoffSeconds": 1, "podInitialBackoffSeconds": 1}


@dataclass(frozen=True)
class Stage:
    """A namespace, and the nodes of its own, on which a row is played."""

    cluster: ApiServerCluster
    namespace: str

    async def create(self, api_version: str, kind: str, name: str, *, namespaced: bool = True, **content: Any) -> None:
        metadata = {
            "name": name,
            **({"namespace": self.namespace} if namespaced else {}),
            **content.pop("metadata", {}),
        }
        status = content.pop("status", None)
        made: Manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}
        made = await self.cluster.create(made, field_manager="test")
        if status is not None:
            whole = {**made, "status": {**(made.get("status") or {}), **status}}
            await self.cluster.update(whole, field_manager="test", subresource=Subresource.STATUS)

    async def node(self, name: str) -> None:
        """Create a node for as many pods of the smallest size as one of the table."""
        amounts = {"cpu": str(ROOM), "memory": "4Gi", "pods": "50"}
        status = {"capacity": amounts, "allocatable": amounts}
        metadata = {"labels": {"stage": self.namespace}}
        await self.create("v1", "Node", f"{self.namespace}-{name}", namespaced=False, metadata=metadata, status=status)

    async def workload(self, position: int, workload: Workload) -> None:
        """Create what the pods of a workload have in common: a priority, and a budget."""
        name = f"{self.namespace}-{position}"
        await self.create("scheduling.k8s.io/v1", "PriorityClass", name, namespaced=False, value=workload.priority)
        if workload.allowed is not None:
            spec = {"selector": {"matchLabels": {"workload": str(position)}}, "minAvailable": 0}
            await self.create("policy/v1", "PodDisruptionBudget", f"budget-{position}", spec=spec)

    async def budget(self, position: int, workload: Workload, leaving: Sequence[str]) -> None:
        """Set the status of a budget, as its controller does."""
        key = ObjectKey("policy/v1", "PodDisruptionBudget", f"budget-{position}", self.namespace)
        live = await self.cluster.get(key)
        status: Manifest = {"currentHealthy": 4, "desiredHealthy": 4, "expectedPods": 4, "observedGeneration": 1}
        status["disruptionsAllowed"] = workload.allowed
        status["disruptedPods"] = dict.fromkeys(leaving, format_time(datetime.now(UTC)))
        await self.cluster.update({**live, "status": status}, field_manager="test", subresource=Subresource.STATUS)

    async def pod(self, name: str, position: int, workload: Workload, **more: Any) -> None:
        """Create a pod, which ends at once when it is deleted."""
        requests = {"cpu": str(workload.size)}
        spec = {
            "priorityClassName": f"{self.namespace}-{position}",
            "nodeSelector": {"stage": self.namespace},
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "app", "image": "app:1", "resources": {"requests": requests}}],
            **more.pop("spec", {}),
        }
        await self.create("v1", "Pod", name, metadata={"labels": {"workload": str(position)}}, spec=spec, **more)

    async def pods(self) -> Mapping[str, Manifest]:
        found = await self.cluster.list("v1", "Pod", ListOptions(namespace=self.namespace))
        return {one["metadata"]["name"]: one for one in found.items}

    async def played(self, workloads: Sequence[Workload], nodes: Mapping[str, Sequence[Any]]) -> Verdict:
        """Return the node that the scheduler takes for a pod of the first workload, and the pods that it removes."""
        for position, workload in enumerate(workloads):
            await self.workload(position, workload)
        for name in nodes:
            await self.node(name)
        held = [(node, name_of(pod), pod) for node, pods in nodes.items() for pod in pods]
        for number, (node, name, pod) in enumerate(held):
            # The scheduler orders pods that began at the same time by chance.
            began = BEGIN + timedelta(seconds=100 * pod.started + number % 100)
            await self.pod(
                name,
                pod.workload,
                workloads[pod.workload],
                spec={"nodeName": f"{self.namespace}-{node}"},
                status={"phase": "Running", "startTime": format_time(began)},
            )
        for position, workload in enumerate(workloads):
            if workload.allowed is not None:
                leaving = [name for _, name, pod in held if pod.workload == position and pod.deleted]
                await self.budget(position, workload, leaving)
        await self.pod("new", NEW, workloads[NEW])
        found = await eventually(self.pods, lambda pods: is_decided(pods["new"]))
        node = found["new"]["spec"].get("nodeName")
        victims = sorted({name for _, name, _ in held} - found.keys())
        assert node or not victims
        return (node.removeprefix(f"{self.namespace}-"), victims) if node else None


def name_of(pod: Any) -> str:
    return str(pod.name).replace(" ", "-")


def is_decided(new: Manifest) -> bool:
    """Return whether the scheduler has bound a pod, or found no victims for it."""
    messages = " ".join(one.get("message") or "" for one in new["status"].get("conditions") or ())
    return bool(new["spec"].get("nodeName")) or "preemption: 0/" in messages


def rows() -> Iterator[tuple[str, Sequence[Workload], Mapping[str, Sequence[Any]], Verdict]]:
    for row in ROWS:
        if row.id != LEFT_OUT:
            workloads, nodes, expected = cast("Row", row.values)
            wanted = None if expected is None else (expected[0], sorted(one.replace(" ", "-") for one in expected[1]))
            yield str(row.id), workloads, nodes, wanted


async def test_the_scheduler_selects_the_pods_of_the_table(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster, envtest_scheduler: RunScheduler
) -> None:
    found: dict[str, Verdict] = {}
    with envtest_scheduler(QUICK):
        for name, workloads, nodes, _ in rows():
            with envtest_plane.namespace("preemption-") as namespace:
                stage = Stage(envtest_cluster, namespace)
                found[name] = await stage.played(workloads, nodes)
                for one in await stage.pods():
                    await envtest_cluster.delete(ObjectKey("v1", "Pod", one, namespace))
                for one in nodes:
                    await envtest_cluster.delete(ObjectKey("v1", "Node", f"{namespace}-{one}"))
    assert found == {name: expected for name, _, _, expected in rows()}
