"""Environment of the demo: an API server, the running operator, and the simulated pods and controllers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from examples.memcached.conditions import conditions
from examples.memcached.demo.played import CONTROLLERS, PERIOD, Played
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from examples.memcached.reporting import observe
from ocf.cluster import ListOptions, PatchOptions, PatchType, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Url
from ocf.runtime.operator import ManagerOptions, WebhookOptions, running
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

if TYPE_CHECKING:
    from ocf.autoscaling.algorithm import HpaEvent
    from ocf.cluster import Cluster

__all__ = ["AUTOSCALER", "BUDGET", "CACHE", "DEPLOYMENT", "SERVICE", "Stage", "staged"]

_NAME: Final = "sessions"
_NAMESPACE: Final = "default"
CACHE: Final = ObjectKey("memcached.c5c3.io/v1alpha1", "Memcached", _NAME, _NAMESPACE)
DEPLOYMENT: Final = ObjectKey("apps/v1", "Deployment", _NAME, _NAMESPACE)
AUTOSCALER: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", _NAME, _NAMESPACE)
BUDGET: Final = ObjectKey("policy/v1", "PodDisruptionBudget", _NAME, _NAMESPACE)
SERVICE: Final = ObjectKey("v1", "Service", _NAME, _NAMESPACE)

_USER: Final = "kubectl"
_HOST: Final = "127.0.0.1"
_TIMEOUT: Final = 60.0
"""Timeout of every wait, in seconds; the operator usually needs some hundredths of a second."""


@dataclass
class Stage:
    """Environment of the demo.

    Args:
        cluster: The API server, over HTTP.
        world: Simulated pods, clients and HPA controller.
        embedded: The embedded cluster behind the API server, which records its requests.
        clock: A clock that advances only when the demo advances it.
        counts: All replica counts of the Deployment, in order.
    """

    cluster: Cluster
    world: Played
    embedded: EmbeddedCluster
    clock: VirtualClock
    counts: list[int] = field(default_factory=list)

    async def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it does not exist."""
        try:
            return await self.cluster.get(key)
        except NotFoundError:
            return None

    async def apply(self, manifest: Manifest) -> None:
        """Apply an object, as a user does."""
        await self.cluster.apply(manifest, field_manager=_USER)

    async def change(self, key: ObjectKey, **spec: object) -> None:
        """Change the spec of an object, as a user does."""
        await self.cluster.patch(key, {"spec": spec}, PatchOptions(patch_type=PatchType.MERGE, field_manager=_USER))

    async def replicas(self) -> int:
        """Return the replica count in the spec of the Deployment."""
        return int((await self.cluster.get(DEPLOYMENT))["spec"]["replicas"])

    async def conditions(self) -> list[Manifest]:
        """Return the conditions of the cache."""
        found: list[Manifest] = ((await self.cluster.get(CACHE)).get("status") or {}).get("conditions") or []
        return found

    async def true_conditions(self) -> list[str]:
        """Return the types of the conditions with status True."""
        return [one["type"] for one in await self.conditions() if one["status"] == "True"]

    async def events(self) -> list[Manifest]:
        """Return the events about the cache, in the order of their resource versions."""
        found = await self.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=CACHE.namespace))
        own = [event for event in found.items if event["regarding"]["kind"] == CACHE.kind]
        return sorted(own, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def writes_of_operator(self) -> int:
        """Return the number of writes of the operator among the requests that are kept."""
        others = {_USER, CONTROLLERS}
        return sum(not one.verb.is_read and one.field_manager not in others for one in self.embedded.requests)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition of the objects in the cluster holds; it is looked at again after each change."""
        seen = ""
        async with asyncio.timeout(_TIMEOUT):
            while True:
                before, seen = seen, self.embedded.resource_version
                if seen != before and await holds():
                    return
                await asyncio.sleep(0.005)

    async def in_sync(self) -> None:
        """Wait until the conditions of the cache match the objects in the cluster."""
        await self.until(self._is_in_sync)

    async def _is_in_sync(self) -> bool:
        owner = await self.cluster.get(CACHE)
        seen = conditions(await observe(Memcached.model_validate(owner), self.cluster))
        reported = {one["type"]: one for one in await self.conditions()}
        generation = owner["metadata"]["generation"]
        return reported.keys() == seen.keys() and all(
            (reported[name]["status"], reported[name]["reason"], reported[name]["message"]) == sentence
            and reported[name]["observedGeneration"] == generation
            for name, sentence in seen.items()
        )

    async def sync(self) -> tuple[HpaEvent, ...]:
        """Advance the clock by one HPA period (15 seconds); return the events of the HPA controller."""
        self.clock.advance(PERIOD)
        events = await self.world.sync()
        await self.in_sync()
        return tuple(events)

    async def rollout(self) -> None:
        """Advance the clock by a minute, in which pods start and stop."""
        for _ in range(4):
            await self.sync()


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """Start the API server and the operator."""
    clock = VirtualClock()
    embedded = EmbeddedCluster(now=clock.now)
    await embedded.create(Memcached.definition(), field_manager=_USER)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(embedded))
        kubeconfig = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "kubeconfig"
        write_kubeconfig(server.kubeconfig(), kubeconfig)
        cluster = await stack.enter_async_context(await ApiServerCluster.connect(kubeconfig))
        operator = memcached_operator
        admission = WebhookOptions(
            address=Url(f"https://{_HOST}"), namespace="default", host=_HOST, port=0, register=True
        )
        options = ManagerOptions(listen=None, admission=admission, clock=clock)
        process = await stack.enter_async_context(running(cluster, operator, options=options))
        await process.started()
        stage = Stage(cluster, Played(cluster, clock, DEPLOYMENT, AUTOSCALER), embedded, clock)
        counting = asyncio.create_task(_count(stage))
        stack.callback(counting.cancel)
        yield stage


async def _count(stage: Stage) -> None:
    """Record every replica count of the Deployment."""
    version = stage.embedded.resource_version
    async for event in stage.embedded.watch(
        DEPLOYMENT.api_version, DEPLOYMENT.kind, WatchOptions(resource_version=version)
    ):
        count = event.object.get("spec", {}).get("replicas")
        if count is not None and stage.counts[-1:] != [count]:
            stage.counts.append(count)
