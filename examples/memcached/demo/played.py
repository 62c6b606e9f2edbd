"""Simulated clients, pods and HPA controller, which the embedded cluster does not have.

The HPA algorithm is that of Kubernetes, `ocf.autoscaling.algorithm`; only its loop is simulated, with a period of 15
seconds on a clock that the demo advances.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from ocf.autoscaling.algorithm import History, Sample, Settings, Snapshot, decide
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import NotFoundError
from ocf.objects import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from examples.memcached.demo.nodes import Nodes
    from ocf.autoscaling.algorithm import HpaEvent
    from ocf.cluster import Cluster
    from ocf.objects import Manifest, ObjectKey
    from ocf.testing import VirtualClock

__all__ = ["CONTROLLERS", "PERIOD", "READY_AFTER", "Played"]

CONTROLLERS: Final = "kube-controller-manager"
"""Field manager of the simulated controllers."""

PERIOD: Final = timedelta(seconds=15)
READY_AFTER: Final = timedelta(seconds=30)
"""How long a pod takes to become ready."""

_WINDOW: Final = timedelta(seconds=30)
_MOST: Final = 300
"""Maximum cpu usage of a pod, in millicores."""


class Played:
    """Pods of one cache, their clients, and their autoscaler's controller.

    Args:
        cluster: The cluster that the cache is in.
        clock: Clock of the demo.
        deployment: The Deployment that owns the pods.
        autoscaler: Its autoscaler, which may not exist.

    Attributes:
        load: Total cpu demand of all clients, in millicores.
        nodes: Nodes that the pods need; None starts pods without.
    """

    def __init__(self, cluster: Cluster, clock: VirtualClock, deployment: ObjectKey, autoscaler: ObjectKey) -> None:
        self.load = 0
        self.nodes: Nodes | None = None
        self._cluster = cluster
        self._clock = clock
        self._deployment = deployment
        self._autoscaler = autoscaler
        self._started: list[datetime | None] = []
        self._history = History()

    @property
    def ready(self) -> int:
        """Number of ready pods."""
        return len(self._serving())

    @property
    def used(self) -> int:
        """Cpu usage of a ready pod, in millicores."""
        return min(_MOST, self.load // self.ready) if self.ready else 0

    async def sync(self) -> Sequence[HpaEvent]:
        """Run the Deployment's controller, then the HPA controller; return the events of the latter."""
        await self.roll_out()
        autoscaler = await self._found(self._autoscaler)
        if autoscaler is None:
            self._history = History()
            return ()
        return await self._scale(autoscaler)

    async def roll_out(self) -> None:
        """Start and stop pods, and write the status, as the Deployment's controller would."""
        live = await self._found(self._deployment)
        if live is None:
            return
        wanted = live["spec"]["replicas"]
        if self.nodes is None:
            self._started = [*self._started, *[self._clock.now()] * wanted][:wanted]
        else:
            self._started = await self.nodes.sync(wanted, live)
        counts = dict.fromkeys(("replicas", "updatedReplicas"), wanted) | dict.fromkeys(
            ("readyReplicas", "availableReplicas"), self.ready
        )
        status = {"observedGeneration": live["metadata"]["generation"], **counts}
        if status.items() <= live.get("status", {}).items():
            return
        await self._patch(self._deployment, {"status": status}, Subresource.STATUS)

    async def _scale(self, autoscaler: Manifest) -> Sequence[HpaEvent]:
        scale = await self._cluster.get(self._deployment, subresource=Subresource.SCALE)
        deployment = await self._cluster.get(self._deployment)
        now = self._clock.now()
        usage = {self._pod_name(number): Sample(self.used, now, _WINDOW) for number in self._serving()}
        seen = Snapshot.of(autoscaler, scale=scale, pods=self._pods(deployment), metric_values=[usage])
        decision = decide(seen, self._history, settings=Settings(), now=now)
        self._history = decision.history
        if decision.rescale:
            await self._patch(self._deployment, {"spec": {"replicas": decision.desired}}, Subresource.SCALE)
        if decision.status_changed:
            await self._patch(self._autoscaler, {"status": decision.status.to_manifest()}, Subresource.STATUS)
        return decision.events

    def _serving(self) -> list[int]:
        now = self._clock.now()
        return [n for n, started in enumerate(self._started) if started is not None and now - started >= READY_AFTER]

    def _pod_name(self, number: int) -> str:
        return f"{self._deployment.name}-{number}"

    def _pods(self, deployment: Manifest) -> list[Manifest]:
        template = deployment["spec"]["template"]
        return [
            {
                "metadata": {
                    **template["metadata"],
                    "name": self._pod_name(number),
                    "namespace": self._deployment.namespace,
                },
                "spec": template["spec"],
                "status": self._pod_status(number, started),
            }
            for number, started in enumerate(self._started)
        ]

    def _pod_status(self, number: int, started: datetime | None) -> Manifest:
        if started is None:
            return {"phase": "Pending"}
        ready = number in self._serving()
        since = started + READY_AFTER if ready else started
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": format_time(since)}
        return {"phase": "Running", "startTime": format_time(started), "conditions": [condition]}

    async def _found(self, key: ObjectKey) -> Manifest | None:
        try:
            return await self._cluster.get(key)
        except NotFoundError:
            return None

    async def _patch(self, key: ObjectKey, change: Manifest, part: Subresource) -> None:
        await self._cluster.patch(
            key, change, PatchOptions(patch_type=PatchType.MERGE, field_manager=CONTROLLERS, subresource=part)
        )
