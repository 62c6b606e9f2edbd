"""Fake workload controllers for the embedded cluster, which runs none, so that workloads become ready.

They create no pods. They only write the status of every Deployment, StatefulSet and DaemonSet as if all its pods were
running, and `roll_out` that of claims and load balancers as well. Use them in demos, and in tests that do not test the
rollout itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.errors import ConflictError, ExpiredError, NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["fake_workload_controllers", "roll_out", "rolled_out"]

_API: Final = "apps/v1"
_MANAGER: Final = "ocf-fake-rollouts"
_COUNTS: Final = {
    "Deployment": ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    "StatefulSet": ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas"),
    "DaemonSet": ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady"),
}
_NODES: Final = 1
_ADDRESS: Final = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
"""An address for documentation (RFC 5737)."""
_PROVISIONED: Final = {"PersistentVolumeClaim": "v1", "Service": "v1", "Ingress": "networking.k8s.io/v1"}
"""Kinds that a controller of the storage or the network makes ready."""


def rolled_out(workload: Manifest) -> Manifest:
    """Return the status of a workload whose pods are all running.

    Args:
        workload: A Deployment, StatefulSet or DaemonSet as read from the cluster.

    Example:
        >>> live = {"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 3}}
        >>> rolled_out(live)["readyReplicas"], rolled_out(live)["observedGeneration"]
        (3, 2)
    """
    kind = workload["kind"]
    pods = _NODES if kind == "DaemonSet" else workload["spec"].get("replicas", 1)
    return {"observedGeneration": workload["metadata"]["generation"], **dict.fromkeys(_COUNTS[kind], pods)}


@asynccontextmanager
async def fake_workload_controllers(cluster: Cluster) -> AsyncIterator[None]:
    """Report every workload as rolled out while the block runs.

    Args:
        cluster: The cluster; workloads that already exist are reported, too.

    Example:
        >>> from ocf_server import EmbeddedCluster
        >>> async def ready() -> int:
        ...     cluster = EmbeddedCluster()
        ...     container = {"name": "web", "image": "web:1"}
        ...     template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
        ...     spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        ...     web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        ...     web["metadata"]["namespace"] = "default"
        ...     await cluster.create(web, field_manager="me")
        ...     async with fake_workload_controllers(cluster):
        ...         while not (await cluster.get(ObjectKey.of(web)))["status"].get("readyReplicas"):
        ...             await asyncio.sleep(0)
        ...     return (await cluster.get(ObjectKey.of(web)))["status"]["readyReplicas"]
        >>> asyncio.run(ready())
        2
    """
    tasks = [asyncio.create_task(_report_kind(cluster, kind)) for kind in _COUNTS]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


async def roll_out(cluster: Cluster) -> bool:
    """Report all workloads as rolled out, claims as bound, and load balancers as provisioned, once.

    An Ingress and a Service of type `LoadBalancer` without an address get 192.0.2.1.

    Args:
        cluster: The cluster.

    Returns:
        Whether any of them was not.
    """
    changed = [
        await _report(cluster, workload) for kind in _COUNTS for workload in (await cluster.list(_API, kind)).items
    ]
    for kind, api_version in _PROVISIONED.items():
        for live in (await cluster.list(api_version, kind)).items:
            status = _provisioned(live)
            changed.append(status is not None and await _write(cluster, live, status))
    return any(changed)


def _provisioned(live: Manifest) -> Manifest | None:
    """Return the status that an object gets from the storage or the network; None if it needs none."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    if live["kind"] == "PersistentVolumeClaim":
        capacity = (spec.get("resources") or {}).get("requests") or {}
        bound = {"phase": "Bound", "accessModes": spec.get("accessModes") or [], "capacity": capacity}
        return None if status.get("phase") == "Bound" else bound
    wants_address = live["kind"] == "Ingress" or spec.get("type") == "LoadBalancer"
    return _ADDRESS if wants_address and not (status.get("loadBalancer") or {}).get("ingress") else None


async def _report_kind(cluster: Cluster, kind: str) -> None:
    while True:
        page = await cluster.list(_API, kind)
        for workload in page.items:
            await _report(cluster, workload)
        with suppress(ExpiredError):
            async for event in cluster.watch(_API, kind, WatchOptions(resource_version=page.resource_version)):
                if event.type in {EventType.ADDED, EventType.MODIFIED}:
                    await _report(cluster, event.object)


async def _report(cluster: Cluster, workload: Manifest) -> bool:
    """Report a workload as rolled out; return whether it was not."""
    wanted, status = rolled_out(workload), workload.get("status", {})
    if all(status.get(name, 0) == value for name, value in wanted.items()):  # counts of zero are not stored
        return False
    return await _write(cluster, workload, wanted)


async def _write(cluster: Cluster, live: Manifest, status: Manifest) -> bool:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=_MANAGER, subresource=Subresource.STATUS)
    with suppress(NotFoundError, ConflictError):  # its next event has the new state
        await cluster.patch(ObjectKey.of(live), {"status": status}, options)
    return True
