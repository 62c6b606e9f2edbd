"""The cloud of a trial, whose nodes join as in a cluster: first not ready, and with the taint of such nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey, format_time

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.nodegroups import InstanceType, Machine, MachineRequest

__all__ = ["TrialCloud"]

# How long a node that has joined is not ready.
_UNREADY: Final = timedelta(seconds=1)
_MANAGER: Final = "kubelet"
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TrialCloud(SimulatedProvider):
    """A cloud whose nodes are ready a moment after they have joined.

    In that time pods that tolerate all taints, such as those of most DaemonSets for networks and storage, are bound
    before any other pod, as in a cluster.
    """

    def __init__(self, types: Sequence[InstanceType], clock: Clock, **settings: Any) -> None:
        super().__init__(types, clock, **settings)
        self._now = clock.now
        self._joining: dict[str, list[dict[str, Any]]] = {}
        self._changed = asyncio.Event()

    async def create(self, request: MachineRequest) -> Machine:
        """Create a machine; as `Provider`."""
        self._changed.set()
        return await super().create(request)

    async def run(self, cluster: Cluster) -> None:
        """Join nodes and make them ready, and delete those of machines that are gone, until it is cancelled."""
        while True:
            await self.register_nodes(cluster)
            # Nothing is polled, so that a day of virtual time without changes costs nothing.
            await self._next_change()
            if self._joining:
                await asyncio.sleep(_UNREADY.total_seconds())
                await self._make_ready(cluster)

    async def _next_change(self) -> None:
        """Return when a machine is requested, boots or is deleted, or at once if a node waits to be ready."""
        now = self._now()
        boots = [each.boots_at - now for each in self._records.values() if each.boots_at is not None]
        delay = min((each for each in boots if each > timedelta(0)), default=None)
        if not self._joining:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if delay is None else delay.total_seconds()):
                    await self._changed.wait()
        self._changed.clear()

    def _delete(self, name: str) -> None:
        self._changed.set()
        super()._delete(name)

    async def _make_ready(self, cluster: Cluster) -> None:
        joined, self._joining = self._joining, {}
        for name, taints in joined.items():
            try:
                await cluster.patch(ObjectKey("v1", "Node", name), {"spec": {"taints": taints or None}}, _merge())
                await self._set_ready(cluster, name, "True", "KubeletReady")
            except NotFoundError:
                continue

    async def _register(self, cluster: Cluster, request: MachineRequest) -> None:
        node = self.node_of(request)
        name: str = node["metadata"]["name"]
        taints: list[Manifest] = node["spec"].get("taints") or []
        await cluster.create(
            {**node, "spec": {**node["spec"], "taints": [*taints, _NOT_READY]}}, field_manager=_MANAGER
        )
        await cluster.patch(ObjectKey.of(node), {"status": node["status"]}, _merge(Subresource.STATUS))
        await self._set_ready(cluster, name, "False", "KubeletNotReady")
        self._joining[name] = taints

    async def _set_ready(self, cluster: Cluster, name: str, status: str, reason: str) -> None:
        now = format_time(self._now())
        ready = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        await cluster.patch(
            ObjectKey("v1", "Node", name), {"status": {"conditions": [ready]}}, _merge(Subresource.STATUS)
        )


def _merge(subresource: Subresource | None = None) -> PatchOptions:
    return PatchOptions(field_manager=_MANAGER, patch_type=PatchType.MERGE, subresource=subresource)
