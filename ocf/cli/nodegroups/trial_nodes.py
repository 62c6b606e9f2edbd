"""The cloud of a trial, whose nodes join as in a cluster: first not ready, and with the taint of such nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey, format_time

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.nodegroups import InstanceType, MachineRequest

__all__ = ["TrialCloud"]

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

    @property
    def joining(self) -> bool:
        """Whether a node has joined and is not ready."""
        return bool(self._joining)

    async def make_ready(self, cluster: Cluster) -> None:
        """Make the nodes ready that have joined."""
        joined, self._joining = self._joining, {}
        for name, taints in joined.items():
            try:
                await cluster.patch(ObjectKey("v1", "Node", name), {"spec": {"taints": taints or None}}, _merge())
                await self._set_ready(cluster, name, "True", "KubeletReady")
            except NotFoundError:
                continue

    async def _register(self, cluster: Cluster, request: MachineRequest) -> None:
        node = self.node_of(request)
        name, taints = node["metadata"]["name"], list(node["spec"].get("taints") or ())
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
