"""Systems that say how much there is to do, workloads, and the operator beside an HPA controller."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from aiohttp import ClientSession, web

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster, ListOptions, Request, Subresource, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.concepts import SystemClock
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.errors import ApiError, ForbiddenError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Operator
from ocf.testing import InterceptingCluster, LoopClock, run_in_virtual_time, serving_http_stub
from ocf.testing.http_stub import HttpStub
from ocf_server import ControllerSettings, EmbeddedCluster
from tests.operators import world
from tests.operators.scaler.model import Scaler
from tests.operators.scaler.operator import Serve, scalers

__all__ = ["HPA", "MAIN", "WEB", "Refusing", "World", "deployment", "in_virtual_time", "queue", "systems"]

NAMESPACE: Final = "town"
WEB: Final = ObjectKey("apps/v1", "Deployment", "web", NAMESPACE)
MAIN: Final = ObjectKey(Scaler.api_version, Scaler.kind, "main", NAMESPACE)
HPA: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "main", NAMESPACE)
SETTINGS: Final = ControllerSettings(names=("deployment-controller", "replicaset-controller"))


def queue(name: str = "mail", **spec: Any) -> Manifest:
    """Return a trigger: one replica for ten messages."""
    return {"name": name, "queue": {"url": f"http://queues/{name}", "perReplica": 10, **spec}}


def deployment(key: ObjectKey = WEB, replicas: int = 0) -> Manifest:
    labels = {"app": key.name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    metadata = {"name": key.name, "namespace": key.namespace}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, "spec": spec}


def systems(amounts: dict[str, float]) -> web.Application:
    """Return a server of queues and of measurements, by the names of queues and queries."""

    async def length(request: web.Request) -> web.Response:
        return web.json_response({"length": amounts[request.match_info["name"]]})

    async def query(request: web.Request) -> web.Response:
        values = [{"metric": {}, "value": [0, str(amounts[request.query["query"]])]}]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": values}})

    app = web.Application()
    app.add_routes([web.get("/{name}", length), web.get("/api/v1/query", query)])
    return app


@dataclass
class World(world.World):
    """A cluster with scalers.

    Args:
        amounts: How much there is to do, by the names of queues and queries.
        stub: The server of them.
        api: The metrics API of the operator that runs.
        most: How many HPAs a target had at once.
        home: The namespace of the scalers.
    """

    amounts: dict[str, float] = field(default_factory=lambda: {"mail": 0.0})
    stub: HttpStub | None = None
    api: HttpStub | None = None
    most: int = 0
    home: str = NAMESPACE

    @property
    def session(self) -> ClientSession:
        assert self.stub is not None
        return self.stub.session

    def operator(self, serve: Serve | None = None, **options: Any) -> Operator[Scaler]:
        """Return the operator, whose metrics API is that of the world unless another one is given."""
        return scalers(
            serve or self._serve,
            open_session=lambda: nullcontext(self.session),
            clock=self.clock or SystemClock(),
            **options,
        )

    @asynccontextmanager
    async def _serve(self, app: web.Application) -> AsyncIterator[None]:
        async with serving_http_stub(app) as self.api:
            yield
        self.api = None

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        """Ask the metrics API, as the API server passes a query on."""
        del most_bytes  # only the interface has it
        if self.api is None:
            raise ApiError("no endpoints available", code=503)
        async with self.api.session.get(f"http://api{path}", params=list(query)) as answer:
            body: Manifest = await answer.json()
            if answer.status >= 400:
                error = NotFoundError if answer.status == 404 else ServerError
                raise error(body["message"], code=answer.status, reason=body["reason"])
            return body

    @asynccontextmanager
    async def autoscaling(self, settings: Settings | None = None) -> AsyncIterator[None]:
        """Run the HPA controller of `ocf`."""
        options = HpaControllerOptions(mode=Mode.REPLACE, take_over_delay=timedelta(0), settings=settings or Settings())
        controller = HpaController(self.cluster, RESTMetricsClient(self), options=options, clock=self.clock)
        task = asyncio.create_task(controller.run())
        try:
            yield
        finally:
            controller.stop()
            await task

    async def scaler(self, name: str = "main", *triggers: Manifest, **spec: Any) -> ObjectKey:
        """Create a scaler of the Deployment `web`, by the queue `mail` unless other triggers are given."""
        key = MAIN._replace(name=name, namespace=self.home)
        wanted = {"target": {"name": "web"}, "triggers": list(triggers) or [queue()], "maxReplicas": 4, **spec}
        await self.create(key, spec=wanted)
        return key

    @property
    def refused(self) -> set[str]:
        """The kinds that the operator cannot write."""
        assert isinstance(self.account, Refusing)
        return self.account.kinds

    def before_scaling(self, happens: Callable[[], Awaitable[None]]) -> None:
        """Let something happen before the next write of a Scale by the operator reaches the API server."""
        assert isinstance(self.account, Refusing)
        self.account.before_scaling = happens

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch the HPAs, and check at the end that no target had two at once but those that a test has made itself."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
        assert self.most <= 1, self.most

    async def _watch(self) -> None:
        targets: dict[str, str] = {}
        async for event in self.cluster.watch(*HPA[:2], WatchOptions(resource_version="")):
            if event.type is EventType.BOOKMARK:
                continue
            targets.pop(event.object["metadata"]["name"], None)
            if event.type is not EventType.DELETED:
                targets[event.object["metadata"]["name"]] = event.object["spec"]["scaleTargetRef"]["name"]
            self.most = max([self.most, *Counter(targets.values()).values()])

    async def change(self, key: ObjectKey = MAIN, **spec: Any) -> None:
        await self.edit(key, {"spec": spec})

    async def replicas(self, key: ObjectKey = WEB) -> int:
        return int((await self.cluster.get(key, subresource=Subresource.SCALE))["spec"].get("replicas", 0))

    async def conditions(self, key: ObjectKey = MAIN) -> dict[str, tuple[str, str]]:
        """Return status and reason of the conditions of a scaler."""
        found = ((await self.cluster.get(key)).get("status") or {}).get("conditions") or ()
        return {one["type"]: (one["status"], one["reason"]) for one in found}

    async def message(self, condition: str, key: ObjectKey = MAIN) -> str:
        found = (await self.cluster.get(key))["status"]["conditions"]
        return next(str(one["message"]) for one in found if one["type"] == condition)

    async def autoscalers(self) -> list[str]:
        found = await self.cluster.list(*HPA[:2], ListOptions(namespace=self.home))
        return [one["metadata"]["name"] for one in found.items]

    def asked(self, host: str = "queues") -> int:
        """Return how often a host was asked."""
        assert self.stub is not None
        return sum(one.host == host for one in self.stub.requests)


class Refusing(InterceptingCluster):
    """The cluster of the operator, which may refuse writes of kinds, and let something happen before one of a Scale."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.kinds: set[str] = set()
        self.before_scaling: Callable[[], Awaitable[None]] | None = None

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if not request.verb.is_read and request.kind in self.kinds:
            raise ForbiddenError(f"{request.kind} is forbidden", code=403, reason="Forbidden")
        if self.before_scaling is not None and not request.verb.is_read and request.subresource is Subresource.SCALE:
            happens, self.before_scaling = self.before_scaling, None
            await happens()
        return await send()


def in_virtual_time(
    scene: Callable[[World], Awaitable[None]],
    *,
    autoscaling: bool = True,
    operating: bool = True,
    replicas: int = 0,
) -> None:
    """Play a scene with a Deployment, beside an HPA controller; at no time are there two HPAs of a target.

    Args:
        autoscaling: Whether the HPA controller runs.
        operating: Whether the operator runs all the time.
        replicas: Those of the Deployment at the start.
    """

    async def play() -> None:
        clock = LoopClock()
        cluster = EmbeddedCluster(namespaces=[NAMESPACE], now=clock.now)
        await cluster.apply(Scaler.definition(), field_manager="admin")
        await cluster.create(deployment(replicas=replicas), field_manager="user")
        made = World(cluster, clock=clock, account=Refusing(cluster))
        async with AsyncExitStack() as stack:
            made.stub = await stack.enter_async_context(serving_http_stub(systems(made.amounts)))
            await stack.enter_async_context(cluster.controllers(SETTINGS).running())
            await stack.enter_async_context(made.watching())
            if operating:
                await stack.enter_async_context(made.operating(made.operator()))
            if autoscaling:
                await stack.enter_async_context(made.autoscaling())
            await scene(made)

    run_in_virtual_time(play())
