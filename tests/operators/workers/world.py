"""Schedulers behind a fake HTTP API, and a cluster with the operators beside the controllers of Kubernetes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientSession, web

from ocf.cluster import ListOptions
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Operator
from ocf.testing import LoopClock, run_in_virtual_time, serving_http_stub
from ocf_server import ControllerSettings, EmbeddedCluster
from tests.operators.workers.clusters import clusters
from tests.operators.workers.groups import groups
from tests.operators.workers.model import ComputeCluster, ComputeRun, GroupScaler, WorkerGroup
from tests.operators.workers.runs import runs
from tests.operators.workers.scalers import scalers
from tests.operators.workers.scheduler import Connect
from tests.operators.world import World as BaseWorld

if TYPE_CHECKING:
    from ocf.testing.http_stub import HttpStub

__all__ = ["KINDS", "SETTINGS", "FakeSchedulers", "World", "in_virtual_time", "operators", "unconnected"]

KINDS: Final = (ComputeCluster, WorkerGroup, ComputeRun, GroupScaler)
SETTINGS: Final = ControllerSettings(
    names=("deployment-controller", "replicaset-controller"),
    ready_after=timedelta(seconds=2),
)


def operators(connect: Connect) -> list[Operator[Any]]:
    """Return the operators of one process."""
    return [runs(), clusters(), groups(connect), scalers(connect)]


def unconnected() -> AbstractAsyncContextManager[ClientSession]:
    """Open no session, for operators whose lifespan is not opened."""
    raise AssertionError("no lifespan is opened here")


@dataclass
class FakeSchedulers:
    """The schedulers, with a log of what they were asked.

    Args:
        wanted: How many workers each scheduler wants, by the name of its cluster.
        questions: The workers among which each question asked to choose.
        chosen: Who was chosen, question by question.
        retired: How often each worker was asked to retire.
        answer: Replaces the answer of each question.
        delay: How many seconds an answer takes.
        same: Whether the first of the workers is chosen always; otherwise each question has another answer, as the
            load of workers has.
    """

    wanted: dict[str, int] = field(default_factory=dict)
    questions: list[list[str]] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    retired: Counter[str] = field(default_factory=Counter)
    polls: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    answer: Any = None
    delay: float = 0
    same: bool = False

    def app(self) -> web.Application:
        made = web.Application()
        made.add_routes(
            [
                web.post("/choose", self._choose),
                web.post("/retire", self._retire),
                web.get("/desired", self._desired),
            ]
        )
        return made

    def choose(self, workers: list[str]) -> str:
        self.questions.append(workers)
        self.chosen.append(workers[0 if self.same else len(self.chosen) % len(workers)])
        return self.chosen[-1]

    def forget(self) -> None:
        """Forget what was asked so far."""
        for log in (self.questions, self.chosen, self.retired, self.polls):
            log.clear()

    async def _choose(self, request: web.Request) -> web.Response:
        found = self.choose((await request.json())["workers"])
        return await self._answer(found)

    async def _retire(self, request: web.Request) -> web.Response:
        self.retired.update((await request.json())["workers"])
        return await self._answer([])

    async def _desired(self, request: web.Request) -> web.Response:
        cluster = request.host.partition(".")[0].removesuffix("-scheduler")
        self.polls[cluster].append(asyncio.get_running_loop().time())
        return await self._answer(self.wanted.get(cluster, 0))

    async def _answer(self, found: object) -> web.Response:
        await asyncio.sleep(self.delay)
        return web.json_response(found if self.answer is None else self.answer)


@dataclass
class World(BaseWorld):
    """A cluster with the operators of workers in a namespace.

    Args:
        home: The namespace of all owners.
        stub: The API of the schedulers.
    """

    home: str = "town"
    schedulers: FakeSchedulers = field(default_factory=FakeSchedulers)
    stub: HttpStub | None = None

    def process(self) -> AbstractAsyncContextManager[None]:
        """Run the operators in a process of their own, which starts here and ends with the block."""
        assert self.stub is not None
        session: ClientSession = self.stub.session
        return self.operating(*operators(lambda: nullcontext(session)))

    def host(self, cluster: str = "main") -> str:
        return f"{cluster}-scheduler.{self.home}"

    def key(self, kind: str, name: str) -> ObjectKey:
        version = {"Pod": "v1", "Service": "v1", "Deployment": "apps/v1"}.get(kind, WorkerGroup.api_version)
        return ObjectKey(version, kind, name, self.home)

    async def cluster_of(self, name: str = "main", **groups: int) -> None:
        """Create a cluster with these groups."""
        await self.create(self.key("ComputeCluster", name), spec={"image": "compute:1", "groups": groups})

    async def scaler_of(self, group: str = "main-a", **spec: int) -> None:
        """Create a scaler of a group."""
        await self.create(self.key("GroupScaler", group), spec={"group": group, "maximum": 9, **spec})

    async def run(self) -> None:
        """Create a run with a cluster of two workers."""
        spec = {"cluster": {"image": "compute:1", "groups": {"a": 2}}, "image": "job:1"}
        await self.create(self.key("ComputeRun", "night"), spec=spec)

    async def scale(self, replicas: int | None, group: str = "main-a") -> None:
        await self.edit(self.key("WorkerGroup", group), {"spec": {"replicas": replicas}})

    async def regroup(self, name: str = "main", **groups: int | None) -> None:
        """Change the groups of a cluster; None removes one."""
        await self.edit(self.key("ComputeCluster", name), {"spec": {"groups": groups}})

    async def names(self, kind: str = "Deployment") -> list[str]:
        """Return the names of the objects of a kind, the schedulers aside."""
        api_version = self.key(kind, "any").api_version
        found = await self.cluster.list(api_version, kind, ListOptions(namespace=self.home))
        return [one["metadata"]["name"] for one in found.items if not one["metadata"]["name"].endswith("-scheduler")]

    async def status(self, kind: str, name: str) -> Manifest:
        live: Manifest = await self.cluster.get(self.key(kind, name))
        return dict(live.get("status") or {})

    async def conditions(self, kind: str, name: str) -> dict[str, Manifest]:
        return {one["type"]: one for one in (await self.status(kind, name)).get("conditions") or ()}

    async def reasons(self, kind: str, name: str) -> dict[str, str]:
        """Return the reason of each condition."""
        return {name: one["reason"] for name, one in (await self.conditions(kind, name)).items()}


Scene = Callable[[World], Awaitable[None]]


def in_virtual_time(scene: Scene, *, operated: bool = True) -> None:
    """Play a scene on an embedded cluster, with the operators or without.

    Args:
        operated: Whether the operators run; otherwise the scene starts and ends their processes.
    """

    async def play() -> None:
        clock = LoopClock()
        cluster = EmbeddedCluster(namespaces=["town"], now=clock.now)
        for kind in KINDS:
            await cluster.apply(kind.definition(), field_manager="user")
        world = World(cluster, clock=clock)
        async with (
            serving_http_stub(world.schedulers.app()) as world.stub,
            cluster.controllers(SETTINGS).running(),
            world.process() if operated else nullcontext(),
        ):
            await scene(world)

    run_in_virtual_time(play())
