"""Fake workload controllers for the embedded cluster, which runs none, so that workloads become ready.

They create no pods. They only write the status of every Deployment, StatefulSet and DaemonSet as if all its pods were
running. Use them in demos, and in tests that do not test the rollout itself.
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
    """Report all workloads as rolled out, once.

    Args:
        cluster: The cluster.

    Returns:
        Whether any of them was not.
    """
    changed = [
        await _report(cluster, workload) for kind in _COUNTS for workload in (await cluster.list(_API, kind)).items
    ]
    return any(changed)


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
    with suppress(NotFoundError, ConflictError):  # its next event has the new state
        await cluster.patch(
            ObjectKey.of(workload),
            {"status": wanted},
            PatchOptions(patch_type=PatchType.MERGE, field_manager=_MANAGER, subresource=Subresource.STATUS),
        )
    return True
