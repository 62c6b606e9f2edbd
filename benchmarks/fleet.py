"""A thousand components that are in sync: the cost of an idle operator.

Each has a separate owner and six resources: a Deployment and its autoscaler, a Service, a ConfigMap, a ServiceAccount
and a network policy. The cluster is the embedded one and is read through a cache. The counts are therefore the requests
that a real API server would receive, and the times are the operator's work.

The setup takes seconds, so it runs only when the first figure is requested.
"""

import asyncio
import gc
import itertools
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from benchmarks import autoscaler
from benchmarks.figures import Case, Count, Suite
from benchmarks.reconciling import ACTIVE, deployment_of, rolled_out
from benchmarks.timer import each_turn
from ocf import component
from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.cluster.cache import CachedCluster
from ocf.component import Component, Reason, Result, reconciling
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import BaseMutator, Handlers, Kind, StaticBuilder, deployment
from ocf_server import CustomKind, EmbeddedCluster

__all__ = ["component_of", "small_suite", "suite"]

_SIZE: Final = 1_000
_SMALL: Final = 20
_STATICS: Final[dict[str, tuple[str, Manifest]]] = {
    "Service": ("v1", {"spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}),
    "ConfigMap": ("v1", {"data": {"mode": "production", "greeting": "welcome"}}),
    "ServiceAccount": ("v1", {"automountServiceAccountToken": False}),
    "NetworkPolicy": ("networking.k8s.io/v1", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
}


class _Fleet:
    """Owners, each with a healthy component, and an operator that reads through a cache.

    Attributes:
        most: The most status writes of one reconcile during the setup.
    """

    def __init__(self, size: int) -> None:
        self._names = [f"shop-{number:04}" for number in range(size)]
        self._turns = itertools.cycle(self._names)
        # Nothing is garbage here, and looking for it after each write would be most of what setting up costs.
        self._cluster = EmbeddedCluster(
            kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=(autoscaler.NAMESPACE,), collect=False
        )
        self._cached = CachedCluster(self._cluster)
        self.most = 0
        self.cached_bytes = self.all_bytes = 0

    async def bring_up(self) -> None:
        """Create everything, play the controllers' part, and let the operator see it."""
        start = _resident()
        for name in self._names:
            owner = {
                "apiVersion": "example.com/v1",
                "kind": "Shop",
                "metadata": {"name": name, "namespace": autoscaler.NAMESPACE},
                "spec": {"version": "2.3.1"},
            }
            await self._cluster.create(owner, field_manager="benchmark")
            await self._up(name, self._cluster)
            await self._report(name)
            await self._up(name, self._cluster)
        before = _resident()
        for name in self._names:
            result = await self._reconcile(name, self._cached)
            assert result.condition.reason is Reason.HEALTHY, result.condition.message
        self.cached_bytes = _resident() - before
        self.all_bytes = _resident() - start

    async def _up(self, name: str, cluster: Cluster) -> None:
        self._cluster.requests.clear()
        await self._reconcile(name, cluster)
        writes = [request for request in self._cluster.requests if request.subresource is Subresource.STATUS]
        self.most = max(self.most, len(writes))

    async def reconcile_next(self) -> Result:
        """Do what an operator does for an event, for one owner after another."""
        return await self._reconcile(next(self._turns), self._cached)

    async def idle(self) -> tuple[int, int]:
        """Reconcile all of them once, and return how many writes and reads that took."""
        self._cluster.requests.clear()
        for _ in self._names:
            await self.reconcile_next()
        return self._cluster.requests.writes, self._cluster.requests.reads

    async def rate(self) -> int:
        """Reconcile all of them once, and return how many that is per second."""
        start = time.process_time()
        for _ in self._names:
            await self.reconcile_next()
        return round(len(self._names) / (time.process_time() - start))

    async def close(self) -> None:
        """End the watches."""
        await self._cached.close()

    async def _reconcile(self, name: str, cluster: Cluster) -> Result:
        key = ObjectKey("example.com/v1", "Shop", name, autoscaler.NAMESPACE)
        async with reconciling(await cluster.get(key), cluster) as context:
            return await component_of(name).reconcile(context)

    async def _report(self, name: str) -> None:
        web = ObjectKey("apps/v1", "Deployment", name, autoscaler.NAMESPACE)
        scaler = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", name, autoscaler.NAMESPACE)
        for key, status in ((web, rolled_out(await self._cluster.get(web))), (scaler, ACTIVE)):
            await self._cluster.patch(
                key,
                {"status": status},
                PatchOptions(
                    patch_type=PatchType.MERGE, field_manager="kube-controller-manager", subresource=Subresource.STATUS
                ),
            )


def component_of(name: str) -> Component:
    """Return the component of an owner.

    Args:
        name: Name of the owner.
    """
    builder = component.Builder("web", condition_type="WebReady")
    builder.with_resource(deployment.Builder(deployment_of(name)).build()).with_resource(autoscaler.resource(name))
    for kind, (api_version, content) in _STATICS.items():
        metadata = {"name": name, "namespace": autoscaler.NAMESPACE}
        base: Manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}
        declared: Kind[Any, BaseMutator] = Kind(api_version, kind, f"V1{kind}", BaseMutator)
        builder.with_resource(StaticBuilder(base, declared, Handlers()).build())
    return builder.build()


def _resident() -> int:
    """Return how many bytes of memory the process holds; where the system does not say, how many it ever held."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextmanager
def _suite(size: int) -> Iterator[Suite]:
    with asyncio.Runner() as runner:

        @cache
        def fleet() -> _Fleet:
            made = _Fleet(size)
            runner.run(made.bring_up())
            return made

        @cache
        def idle() -> tuple[int, int]:
            return runner.run(fleet().idle())

        def measure(calls: int) -> int:
            return each_turn(runner, fleet().reconcile_next)(calls)

        def count(name: str, what: str, value: Any, limit: int | None = None) -> Count:
            return Count(name=f"fleet.{name}", what=what, value=value, limit=limit)

        yield [
            count("writes", f"writes of reconciles of {size} components in sync", lambda: idle()[0], 0),
            count("reads", "their reads, with a cache", lambda: idle()[1], 0),
            count("status", "the most status writes of a reconcile, while they come up", lambda: fleet().most, 1),
            count("rate", "components reconciled per second", lambda: runner.run(fleet().rate())),
            count("cache", "KiB of memory per component, in the cache", lambda: fleet().cached_bytes // size // 1024),
            count(
                "memory", "MiB of memory that all of it takes, the cluster included", lambda: fleet().all_bytes // 2**20
            ),
            Case(name="fleet.reconcile", what="reading an owner, building its component, reconciling", measure=measure),
        ]
        if fleet.cache_info().currsize:
            runner.run(fleet().close())


suite = partial(_suite, _SIZE)
"""Give the cases."""
small_suite = partial(_suite, _SMALL)
"""Give them over few components, for a run that only shows that everything works."""
