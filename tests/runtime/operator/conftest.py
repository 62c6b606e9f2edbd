"""An operator of shops, on the embedded cluster, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Final

import pytest
from pydantic import ConfigDict

from ocf import component
from ocf.cluster import Cluster, Request, Verb, WatchEvent, WatchOptions
from ocf.cluster.cache import CacheTiming
from ocf.cluster.protocol import EventType
from ocf.component import Component, ReconcileContext
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, service
from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, ReconcileOutcome, running
from ocf.runtime.operator.manager import Manager
from ocf.testing import InterceptingCluster, LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests import support

NAMESPACE: Final = "town"
SECOND: Final = timedelta(seconds=1)


class ShopSpec(CamelModel):
    motto: str = "open"
    guide: str = ""


class ShopStatus(OwnerStatus):
    model_config = ConfigDict(extra="allow")

    visits: int = 0


class Shop(CustomResource[ShopSpec, ShopStatus], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


DEFINITION: Final = Shop.definition()
SHOPS: Final = OwnerType.of(Shop)


def key_of(name: str = "corner") -> ObjectKey:
    return ObjectKey("example.com/v1", "Shop", name, NAMESPACE)


def settings_of(name: str = "corner") -> ObjectKey:
    return ObjectKey("v1", "ConfigMap", f"{name}-settings", NAMESPACE)


def shop(name: str = "corner", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


def components_of(owner: Shop, *, motto: str = "") -> Component:
    """Return a component of two objects, both made from the shop."""
    name = owner.metadata.name
    settings = {"metadata": {"name": f"{name}-settings"}, "data": {"motto": motto or owner.spec.motto}}
    front = {"metadata": {"name": f"{name}-front"}, "spec": {"ports": [{"name": "http", "port": 80}]}}
    return (
        component.Builder("web", owner=owner.key, condition_type="WebReady")
        .with_resource(configmap.Builder(settings))
        .with_resource(service.Builder(front))
        .build()
    )


class _SilenceError(Exception):
    """A connection that is lost without an error."""


class Gateway(InterceptingCluster):
    """The way to the cluster: it counts, and does what a test wants to requests."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.requests: list[Request] = []
        self.events: Counter[str] = Counter()
        """How many events of each kind the watches have had."""
        self.looks: list[tuple[float, str, str]] = []
        """When the cluster was asked which kinds, whether it serves them."""
        self.meddle: Callable[[Request], Awaitable[None]] | None = None
        self.after: Callable[[Request], Awaitable[None]] | None = None
        self._cuts: set[asyncio.Future[Exception | None]] = set()
        self._watched: Counter[str] = Counter()

    async def is_namespaced(self, api_version: str, kind: str) -> bool:
        self.looks.append((now(), api_version, kind))
        return await super().is_namespaced(api_version, kind)

    @property
    def watched(self) -> set[str]:
        """The kinds with an open watch."""
        return set(self._watched.elements())

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report events until `cut` is called, or nothing any more once `silence` is."""
        events = super().watch(api_version, kind, options)
        cut: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._cuts.add(cut)
        self._watched[kind] += 1
        try:
            while True:
                event: asyncio.Future[Any] = asyncio.ensure_future(anext(events))
                try:
                    await asyncio.wait({event, cut}, return_when=asyncio.FIRST_COMPLETED)
                    if not cut.done():
                        if isinstance(event.exception(), StopAsyncIteration):
                            return
                        self.events[kind] += event.result().type is not EventType.BOOKMARK
                        yield event.result()
                        continue
                finally:
                    if cut.done() or not event.done():
                        event.cancel()
                        await asyncio.gather(event, return_exceptions=True)
                end = cut.result()
                if end is None:
                    return
                if isinstance(end, _SilenceError):
                    await asyncio.get_running_loop().create_future()
                raise end
        finally:
            self._cuts.discard(cut)
            self._watched[kind] -= 1
            await events.aclose()

    def cut(self, error: Exception | None = None) -> int:
        """End all watches that are open, by an error or cleanly; return how many."""
        still_open = [cut for cut in self._cuts if not cut.done()]
        for cut in still_open:
            cut.set_result(error)
        return len(still_open)

    def redirect(self, cluster: Cluster) -> None:
        """Lead to another cluster from now on."""
        self._inner = cluster
        self.cut(ServerError("connection lost"))

    def silence(self) -> int:
        """Let all watches that are open tell nothing any more; return how many."""
        return self.cut(_SilenceError())

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        self.requests.append(request)
        if self.meddle is not None:
            await self.meddle(request)
        answer = await send()
        if self.after is not None:
            await self.after(request)
        return answer

    @property
    def writes(self) -> list[tuple[Verb, str]]:
        """Verb and kind of every write."""
        return [(request.verb, request.kind) for request in self.requests if not request.verb.is_read]


@dataclass
class Env(support.Env[EmbeddedCluster, LoopClock]):
    """A cluster, the operator's gateway to it, and the operator's reconciles."""

    cluster: EmbeddedCluster
    gateway: Gateway
    clock: LoopClock
    passes: list[tuple[str, float]] = field(default_factory=list)
    outcomes: list[ReconcileOutcome] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    before: Callable[[Shop, ReconcileContext], Awaitable[object]] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def times(self) -> list[float]:
        """When passes began."""
        return [at for _, at in self.passes]

    async def components(self, owner: Shop, context: ReconcileContext) -> Component:
        name = owner.metadata.name
        self.passes.append((name, now()))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.before is not None:
                await self.before(owner, context)
        finally:
            self.at_once -= 1
        return components_of(owner)

    def report(self, context: ReconcileContext, owner: Shop, outcome: ReconcileOutcome) -> None:
        self.outcomes.append(outcome)
        context.status["motto"] = owner.spec.motto

    def operator(self, **changed: Any) -> Operator[Shop]:
        given: dict[str, Any] = {
            "name": "shops",
            "owner": SHOPS,
            "components": self.components,
            "rate_limiter": ExponentialBackoff(SECOND, 64 * SECOND, jitter=0),
            "resync": None,
        }
        return Operator(**{**given, **self.settings, **changed})

    def options(self, **changed: Any) -> ManagerOptions:
        given: dict[str, Any] = {
            "listen": None,
            "clock": self.clock,
            "random": lambda: 0.5,
            "cache_timing": CacheTiming(idle_timeout=1e9, relist_every=1e9, monotonic=now, random=lambda: 0.0),
        }
        return ManagerOptions(**{**given, **changed})

    @asynccontextmanager
    async def operating(self, *, options: dict[str, Any] | None = None, **changed: Any) -> AsyncIterator[Manager]:
        given = self.options(**(options or {}))
        async with running(self.gateway, self.operator(**changed), options=given) as process:
            await asyncio.sleep(5)
            yield process

    async def edit(self, key: ObjectKey, patch: Manifest) -> Manifest:
        return await self.merge_patch(key, patch, by="kubectl")

    async def create(self, manifest: Manifest) -> Manifest:
        return await self.cluster.create(manifest, field_manager="kubectl")

    def forget(self) -> None:
        """Forget what happened so far."""
        self.passes.clear()
        self.gateway.events.clear()
        self.gateway.requests.clear()
        self.gateway.looks.clear()


def now() -> float:
    return asyncio.get_running_loop().time()


@cache
def _first_cluster() -> EmbeddedCluster:
    return EmbeddedCluster(namespaces=[NAMESPACE], now=LoopClock().now)


async def new_cluster() -> EmbeddedCluster:
    """Return a cluster in which shops are defined, and whose clock is that of the running loop."""
    return await support.defined(_first_cluster(), DEFINITION)


RunTest = Callable[[Callable[[Env], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def run_test() -> RunTest:
    """Run a test with a new environment, in virtual time."""

    def run(test: Callable[[Env], Coroutine[Any, Any, None]]) -> None:
        async def on_stage() -> None:
            cluster = await new_cluster()
            await test(Env(cluster, Gateway(cluster), LoopClock()))

        run_in_virtual_time(on_stage())

    return run
