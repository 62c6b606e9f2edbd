"""A real kube-scheduler beside a real API server, given the situations of `scheduler_cases`."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

from ocf.cluster import DeleteOptions
from ocf.cluster.client import ApiServerCluster
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.testing.envtest import ControlPlane
from scripts.scheduler_cases import NAMESPACES, Json

__all__ = ["RealScheduler"]

KINDS: Final = {
    "nodes": ("v1", "Node"),
    "volumes": ("v1", "PersistentVolume"),
    "claims": ("v1", "PersistentVolumeClaim"),
    "pods": ("v1", "Pod"),
}
# They would change objects, or demand others that no controller creates here.
WITHOUT: Final = "ServiceAccount,TaintNodesByCondition,RuntimeClass,StorageObjectInUseProtection,DefaultTolerationSeconds"
PATIENCE: Final = 20.0  # seconds for the scheduler to see everything that a situation consists of


class RealScheduler:
    """Compares the scheduler with recorded answers.

    Args:
        cluster: The cluster that the scheduler watches.
    """

    def __init__(self, cluster: ApiServerCluster) -> None:
        self._cluster = cluster
        self._classes: set[str] = set()

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator["RealScheduler"]:
        """Run API server and scheduler for the duration of a block."""
        async with (
            ControlPlane(server_arguments={"disable-admission-plugins": WITHOUT}) as plane,
            await plane.cluster() as cluster,
        ):
            for name, labels in NAMESPACES.items():
                manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
                await cluster.create(manifest, field_manager="recorder")
            with plane.scheduler({"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}):
                yield cls(cluster)

    async def check(self, case: Json, answers: list[Json]) -> None:
        """Give a situation to the scheduler.

        Args:
            case: The situation.
            answers: The expected answers.

        Raises:
            SystemExit: If the scheduler decides otherwise.
        """
        for manifest in case.get("classes", []):
            if manifest["metadata"]["name"] not in self._classes:
                self._classes.add(manifest["metadata"]["name"])
                await self._create("storage.k8s.io/v1", "StorageClass", manifest)
        made = [
            await self._create(*kind, manifest) for part, kind in KINDS.items() for manifest in case.get(part, [])
        ]
        for pod, answer in zip(case["pending"], answers, strict=True):
            key = await self._create("v1", "Pod", pod)
            await self._compare(key, answer, case)
            await self._delete(key)
        await asyncio.gather(*map(self._delete, reversed(made)))

    async def _create(self, version: str, kind: str, manifest: Json) -> ObjectKey:
        sent = json.loads(json.dumps({"apiVersion": version, "kind": kind, **manifest}))
        terminating = sent["metadata"].pop("deletionTimestamp", None)
        sent["metadata"].pop("deletionGracePeriodSeconds", None)
        if kind == "Pod":
            _complete(sent)
        key = ObjectKey.of(await self._cluster.create(sent, field_manager="recorder"))
        if kind == "Pod" and sent.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            await self._cluster.patch(key, {"status": sent["status"]}, subresource="status", field_manager="recorder")
        if terminating:
            await self._cluster.delete(key, DeleteOptions(grace_period_seconds=3600))
        return key

    async def _delete(self, key: ObjectKey) -> None:
        try:
            await self._cluster.delete(key, DeleteOptions(grace_period_seconds=0))
        except NotFoundError:
            return

    async def _compare(self, key: ObjectKey, answer: Json, case: Json) -> None:
        """Wait until the scheduler has decided as expected; it may decide early, before it has seen all objects."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not _equal(found := await self._cluster.get(key), answer):  # noqa: ASYNC110 (another process)
                    await asyncio.sleep(0.02)
        except TimeoutError:
            wanted = answer.get("message") or [name for name, reasons in answer["nodes"].items() if not reasons]
            seen = [found["spec"].get("nodeName"), found.get("status", {}).get("conditions")]
            raise SystemExit(f"{key.name}: expected {wanted}, the real scheduler gave {seen}\n{json.dumps(case)}") from None


def _equal(pod: Json, answer: Json) -> bool:
    message = answer.get("message")
    if message is None:
        return answer["nodes"].get(pod["spec"].get("nodeName")) == []
    conditions = pod.get("status", {}).get("conditions", [])
    # What follows is about preemption.
    return any(f"{each.get('message')} ".startswith(f"{message} ") for each in conditions if each["status"] == "False")


def _complete(pod: Json) -> None:
    """Make a stored pod one that can be created."""
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])):
        container["image"] = "app:1"
    for term in _terms(pod["spec"]):
        merged = {*term.get("matchLabelKeys", []), *term.get("mismatchLabelKeys", [])}
        expressions = term.get("labelSelector", {}).get("matchExpressions", [])
        if merged and expressions:
            term["labelSelector"]["matchExpressions"] = [each for each in expressions if each["key"] not in merged]


def _terms(spec: Json) -> Iterator[Json]:
    yield from spec.get("topologySpreadConstraints", [])
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity: dict[str, Any] = spec.get("affinity", {}).get(kind, {})
        yield from affinity.get("requiredDuringSchedulingIgnoredDuringExecution", [])
