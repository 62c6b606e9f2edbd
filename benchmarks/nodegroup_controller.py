"""The node-group controller in a large cluster where nothing has to be done.

The cluster is the embedded one in virtual time, which advances only while all tasks are waiting. The controller has
created all nodes itself; pods of 60 shapes run on them. The counts are the requests that a real API server would
receive. Watches that are renewed are no part of a reconcile, and are not counted.

The setup takes a while, so it runs only when the first figure is requested.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, partial
from statistics import median
from typing import Final

from benchmarks.controlling import resident
from benchmarks.figures import Count, Suite
from benchmarks.nodegroups import pod_spec
from ocf.cluster import Verb
from ocf.controllers.nodegroup import NodeGroupController, node_definition, node_group_definition
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.nodegroups import InstanceType, Offering
from ocf.objects import Manifest, ObjectKey, Quantity
from ocf.testing import LoopClock
from ocf.testing.virtual_time import VirtualLoop
from ocf_server import EmbeddedCluster

__all__ = ["small_suite", "suite"]

_SIZE: Final = 1_000
_SMALL: Final = 10
_PODS: Final = 30
_SHAPES: Final = 60
_TYPE: Final = InstanceType(
    "large",
    {"cpu": Quantity.parse(16), "memory": Quantity.parse("64Gi"), "pods": Quantity.parse(110)},
    offerings=(Offering("fra", 0.4),),
)
_GROUP: Final = ObjectKey("autoscaling.ocf.dev/v1alpha1", "NodeGroup", "workers", "default")
_PERIOD: Final = timedelta(minutes=1)
_LIMIT: Final = 2_000
_REPEATED: Final = 5


class _Converged:
    """A cluster with a group of nodes, and a controller that has nothing left to do.

    Attributes:
        grown: How many bytes of memory the controller took, caches included.
    """

    def __init__(self, size: int) -> None:
        self._clock = LoopClock()
        # Nothing is garbage here, and looking for it after each write would be most of what setting up costs.
        self._cluster = EmbeddedCluster(now=self._clock.now, collect=False)
        self._cloud = SimulatedProvider([_TYPE], self._clock)
        self._size = size
        self.grown = 0

    @classmethod
    async def bring_up(cls, size: int) -> "_Converged":
        """Create a group, let the controller create its nodes, and start pods on them."""
        made = cls(size)
        for definition in (node_group_definition(), node_definition()):
            await made._cluster.create(definition, field_manager="benchmark")
        spec = {"minNodes": size, "maxNodes": size, "datacenterID": "fra", "offeringIDs": [_TYPE.name]}
        await made._cluster.create(
            {
                "apiVersion": _GROUP.api_version,
                "kind": _GROUP.kind,
                "metadata": {"name": _GROUP.name, "namespace": _GROUP.namespace},
                "spec": spec,
            },
            field_manager="benchmark",
        )
        made._start()
        for _ in range(20):
            await asyncio.sleep(30)
            await made._cloud.register_nodes(made._cluster)
        await made._stop()
        status = (await made._cluster.get(_GROUP))["status"]
        assert status["readyNodes"] == size, status
        await made._add_pods()
        before = resident()
        made._start()
        await made.reconciles(2)
        made.grown = resident() - before
        return made

    def _start(self) -> None:
        options = NodeGroupControllerOptions(idle_period=_PERIOD)
        self._controller = NodeGroupController(self._cluster, self._cloud, clock=self._clock, options=options)
        self._running = asyncio.create_task(self._controller.run())

    async def _stop(self) -> None:
        self._controller.stop()
        await self._running

    async def _add_pods(self) -> None:
        names = sorted(machine.name for machine in await self._cloud.list())
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "1", "controller": True}
        for number in range(_PODS * self._size):
            shape = number % _SHAPES
            # No pod is bound to a zone.
            spec = {
                **pod_spec(shape - shape % 5 if shape % 5 == 3 else shape, 50),
                "nodeName": names[number * 7 % self._size],
            }
            labels = {"app": f"app-{shape}"}
            metadata: Manifest = {
                "name": f"pod-{number:06}",
                "namespace": "default",
                "labels": labels,
                "ownerReferences": [owner],
            }
            await self._cluster.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, field_manager="benchmark"
            )

    async def reconciles(self, number: int = 1) -> None:
        """Advance by periods, in each of which there is one reconcile."""
        await asyncio.sleep(number * _PERIOD.total_seconds())

    async def milliseconds(self) -> int:
        """Return how long a reconcile takes: the middle of several, in time of the processor."""
        taken = []
        for _ in range(_REPEATED):
            start = time.process_time()
            await self.reconciles()
            taken.append(time.process_time() - start)
        return round(median(taken) * 1000)

    async def requests(self) -> int:
        """Return how many requests one reconcile sends."""
        self._cluster.requests.clear()
        await self.reconciles()
        return sum(each.verb is not Verb.WATCH for each in self._cluster.requests)

    async def close(self) -> None:
        """Stop the controller."""
        await self._stop()


@contextmanager
def _suite(size: int) -> Iterator[Suite]:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        started: list[_Converged] = []

        @cache
        def converged() -> _Converged:
            made = runner.run(_Converged.bring_up(size))
            started.append(made)
            return made

        whole = f"{size:,} nodes with {_PODS * size:,} pods"
        yield [
            Count(
                name="nodegroup-controller.reconcile",
                what=f"milliseconds of a reconcile of {whole}, where nothing has to be done",
                value=lambda: runner.run(converged().milliseconds()),
                limit=_LIMIT,
            ),
            Count(
                name="nodegroup-controller.requests",
                what="its requests to the API server",
                value=lambda: runner.run(converged().requests()),
                limit=0,
            ),
            Count(
                name="nodegroup-controller.memory",
                what="MiB of memory of the controller, caches included",
                value=lambda: converged().grown // 2**20,
            ),
        ]
        for made in started:
            runner.run(made.close())


suite = partial(_suite, _SIZE)
"""Give the figures."""
small_suite = partial(_suite, _SMALL)
"""Give them over few nodes, for a run that only shows that everything works."""
