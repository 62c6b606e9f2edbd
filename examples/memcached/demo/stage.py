"""The stage: an API server, the operator at work on it, and what is played around it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from examples.memcached.conditions import conditions
from examples.memcached.definition import definition
from examples.memcached.demo.played import CONTROLLERS, ROUND, Played
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from examples.memcached.reporting import observe
from ocf.cluster import ListOptions, PatchOptions, PatchType, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.embedded import EmbeddedCluster
from ocf.embedded.http import serving, write_kubeconfig
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Url
from ocf.runtime.operator import ManagerOptions, WebhookOptions, running
from ocf.testing import VirtualClock

if TYPE_CHECKING:
    from ocf.autoscaling.algorithm import HpaEvent
    from ocf.cluster import Cluster

__all__ = ["AUTOSCALER", "CACHE", "DEPLOYMENT", "SERVICE", "Stage", "staged"]

_NAME: Final = "sessions"
_NAMESPACE: Final = "default"
CACHE: Final = ObjectKey("memcached.c5c3.io/v1alpha1", "Memcached", _NAME, _NAMESPACE)
DEPLOYMENT: Final = ObjectKey("apps/v1", "Deployment", _NAME, _NAMESPACE)
AUTOSCALER: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", _NAME, _NAMESPACE)
SERVICE: Final = ObjectKey("v1", "Service", _NAME, _NAMESPACE)

_USER: Final = "kubectl"
_HOST: Final = "127.0.0.1"
_PATIENCE: Final = 60.0
"""How many seconds the operator has for anything; it takes some hundredths of one."""


@dataclass
class Stage:
    """Everything there is.

    Args:
        cluster: The API server, over HTTP.
        world: Pods, clients and the HPA controller.
        embedded: What is behind the API server, for those who count its requests.
        clock: Stands still until it is moved.
        counts: How many replicas the Deployment has asked for, one after another.
    """

    cluster: Cluster
    world: Played
    embedded: EmbeddedCluster
    clock: VirtualClock
    counts: list[int] = field(default_factory=list)

    async def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if there is none."""
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
        """Tell how many replicas the Deployment asks for."""
        return int((await self.cluster.get(DEPLOYMENT))["spec"]["replicas"])

    async def conditions(self) -> list[Manifest]:
        """Return what the cache reports."""
        found: list[Manifest] = ((await self.cluster.get(CACHE)).get("status") or {}).get("conditions") or []
        return found

    async def true_ones(self) -> list[str]:
        """Return the types of the conditions that hold."""
        return [one["type"] for one in await self.conditions() if one["status"] == "True"]

    async def events(self) -> list[Manifest]:
        """Return the events on the cache, in the order in which they came."""
        found = await self.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=CACHE.namespace))
        told = [event for event in found.items if event["regarding"]["kind"] == CACHE.kind]
        return sorted(told, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def writes_of_operator(self) -> int:
        """Count what the operator has written so far."""
        others = {_USER, CONTROLLERS}
        return sum(not one.verb.is_read and one.field_manager not in others for one in self.embedded.requests)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for the operator: its work begins when an event reaches it, and nobody knows when that is."""
        async with asyncio.timeout(_PATIENCE):
            while not await holds():  # noqa: ASYNC110 (it is another process that could set an event)
                await asyncio.sleep(0.005)

    async def settle(self) -> None:
        """Wait until the cache reports what there is to be seen."""
        await self.until(self._reports_what_is)

    async def _reports_what_is(self) -> bool:
        owner = await self.cluster.get(CACHE)
        seen = conditions(await observe(Memcached.model_validate(owner), self.cluster))
        told = {one["type"]: one for one in await self.conditions()}
        generation = owner["metadata"]["generation"]
        return told.keys() == seen.keys() and all(
            (told[name]["status"], told[name]["reason"], told[name]["message"]) == sentence
            and told[name]["observedGeneration"] == generation
            for name, sentence in seen.items()
        )

    async def round(self) -> tuple[HpaEvent, ...]:
        """Let 15 seconds pass; return what the HPA controller tells."""
        self.clock.advance(ROUND)
        told = await self.world.round()
        await self.settle()
        return tuple(told)

    async def rollout(self) -> None:
        """Let a minute pass, in which pods start and stop."""
        for _ in range(4):
            await self.round()


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """Start the API server, and the operator on it."""
    clock = VirtualClock()
    embedded = EmbeddedCluster(now=clock.now)
    await embedded.create(definition(), field_manager=_USER)
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
    """Note every count that the Deployment has asked for."""
    version = stage.embedded.resource_version
    async for event in stage.embedded.watch(
        DEPLOYMENT.api_version, DEPLOYMENT.kind, WatchOptions(resource_version=version)
    ):
        count = event.object.get("spec", {}).get("replicas")
        if count is not None and stage.counts[-1:] != [count]:
            stage.counts.append(count)
