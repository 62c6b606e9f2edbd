"""The operators, disturbed at each write and each request to a server: the same end, nothing made twice, nothing left.

Public reports: https://github.com/crossplane/crossplane-runtime/issues/340 (killed while it creates).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession

from ocf.cluster import Cluster, Request, Verb
from ocf.objects import Manifest, ObjectKey
from ocf.testing import OwnerEnv, VirtualClock, crash_at_each_write, run_in_virtual_time, serving_http_stub
from ocf.testing.http_stub import HttpStub
from ocf.testing.simulated_process import Disturbance, SimulatedProcess
from ocf_server import EmbeddedCluster
from tests.operators.instances.instances import SESSION
from tests.operators.instances.operator import panels
from tests.operators.instances.world import KINDS, FakeServers, Panels
from tests.operators.world import World
from tests.requirements import Sampled

USUAL: Final = (Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER)
OTHERS: Final = (Disturbance.LOST_REPLY, Disturbance.REJECTED)
VERBS: Final = {"PUT": Verb.APPLY, "DELETE": Verb.DELETE}


@dataclass
class Lives:
    """Worlds that begin alike, each with servers of its own.

    Args:
        prepare: What is in the cluster before.
        begin: What happens before the operators, which were idle, are disturbed.
    """

    stub: HttpStub
    servers: FakeServers
    prepare: Callable[[Panels], Awaitable[None]]
    begin: Callable[[Panels], Awaitable[Any]]
    clock: VirtualClock = field(default_factory=VirtualClock)
    ends: dict[int, tuple[EmbeddedCluster, dict[tuple[str, str, str], Manifest]]] = field(default_factory=dict)
    made: list[Counter[tuple[str, str, str]]] = field(default_factory=list)
    _first: tuple[EmbeddedCluster, dict[tuple[str, str, str], Manifest]] | None = None

    async def make(self) -> EmbeddedCluster:
        """Return a cluster in its first state, and set the servers to theirs."""
        if self._first is None:
            self._first = await self._at_rest()
        cluster, things = self._first[0].clone(), deepcopy(self._first[1])
        self.servers.things, self.servers.created = things, Counter()
        self.made.append(self.servers.created)
        self.ends[id(cluster)] = cluster, things
        await self.begin(Panels(World(cluster), self.servers, self.stub))
        return cluster

    async def reconcile(self, cluster: Cluster) -> timedelta | None:
        """Reconcile all owners once, as a process does that remembers nothing; return the delay if one waits."""

        async def disturbed(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
            if not isinstance(cluster, SimulatedProcess) or request.method not in VERBS:
                return await handler(request)
            _, kind, uid = request.url.path.split("/")
            call = Request(VERBS[request.method], "external", kind, "", f"{uid}@{request.url.host}")
            return await cluster.call(call, lambda: handler(request))

        delays = []
        connector = self.stub.session.connector
        async with ClientSession(connector=connector, connector_owner=False, middlewares=[disturbed]) as session:
            for operator in panels():
                for owner in (await cluster.list(*operator.owner_kind)).items:
                    env: OwnerEnv[Any, Cluster] = OwnerEnv(operator, ObjectKey.of(owner), cluster, self.clock)
                    env.values[SESSION] = session
                    delay = await env.reconcile()
                    delays += [delay] if delay is not None and not await is_ready(cluster, env.key) else []
        return min(delays, default=None)

    async def _at_rest(self) -> tuple[EmbeddedCluster, dict[tuple[str, str, str], Manifest]]:
        cluster = EmbeddedCluster(namespaces=["town"], now=self.clock.now)
        for kind in KINDS:
            await cluster.apply(kind.definition(), field_manager="user")
        world = Panels(World(cluster), self.servers, self.stub)
        await world.server("eu", region="eu")
        await world.server("us", region="us")
        await self.prepare(world)
        before = ""
        while before != cluster.resource_version:
            before = cluster.resource_version
            await self.reconcile(cluster)
            self.clock.advance(timedelta(seconds=1))
        return cluster, self.servers.things


async def is_ready(cluster: Cluster, key: ObjectKey) -> bool:
    """Return whether an owner is as it should be: ready, or gone."""
    found = [one for one in (await cluster.list(*key[:2])).items if ObjectKey.of(one) == key]
    conditions = [one for live in found for one in live["status"]["conditions"] if one["type"] == "Ready"]
    is_ending = any("deletionTimestamp" in one["metadata"] for one in found)
    return not found or (not is_ending and all(one["status"] == "True" for one in conditions))


async def empty(_: Panels) -> None:
    """Prepare servers with nothing in them."""


async def filled(world: Panels) -> None:
    await world.make("Folder", "news", uid="news")
    await world.make("Folder", "old", uid="old")
    await world.board("all", folder="news")


async def fill(world: Panels) -> None:
    await world.make("Source", "db", uid="db", url="db:1")
    await world.make("Folder", "news", uid="news")
    await world.board("all", folder="news")


async def unlabel(world: Panels) -> None:
    await world.change("Dashboard", "all", instances={"matchLabels": {"region": "eu"}})


async def move(world: Panels) -> None:
    await world.change("Dashboard", "all", folder="old", uid="moved")


async def delete_a_dashboard(world: Panels) -> None:
    await world.world.cluster.delete(world.key("Dashboard", "all"))


async def delete_an_instance(world: Panels) -> None:
    await world.world.cluster.delete(world.key("Instance", "us"))


HOSTS: Final = ("eu", "us")
FOLDERS: Final = {(host, "folders", uid) for host in HOSTS for uid in ("news", "old")}
FILLED: Final = {
    (host, *one) for host in HOSTS for one in (("sources", "db"), ("folders", "news"), ("dashboards", "all"))
}


@pytest.mark.promise("external-once")
@pytest.mark.parametrize(
    ("prepare", "begin", "end"),
    [
        pytest.param(empty, fill, FILLED, id="things are made"),
        pytest.param(filled, unlabel, {*FOLDERS, ("eu", "dashboards", "all")}, id="an instance is not selected"),
        pytest.param(filled, move, {*FOLDERS, *((host, "dashboards", "moved") for host in HOSTS)}, id="one moves"),
        pytest.param(filled, delete_a_dashboard, FOLDERS, id="a dashboard is deleted"),
        pytest.param(
            filled,
            delete_an_instance,
            {("eu", "folders", "news"), ("eu", "folders", "old"), ("eu", "dashboards", "all")},
            id="an instance is deleted",
        ),
    ],
)
@pytest.mark.matrix
def test_the_end_is_the_same_whichever_write_or_request_is_disturbed(
    prepare: Callable[[Panels], Awaitable[None]],
    begin: Callable[[Panels], Awaitable[Any]],
    end: set[tuple[str, str, str]],
    sampled: Sampled,
) -> None:
    chosen = [*USUAL, *(one for one, _ in sampled([(one, begin) for one in OTHERS]))]

    async def run() -> None:
        servers = FakeServers()
        async with serving_http_stub(servers.app) as stub:
            lives = Lives(stub, servers, prepare, begin)
            report = await crash_at_each_write(
                lives.make,
                lives.reconcile,
                clock=lives.clock,
                external=lambda cluster: lives.ends[id(cluster)][1],
                disturbances=chosen,
                max_reconciles=40,
            )
            report.assert_same()
            assert len({str(one.write) for one in report.rows if one.write.api_version == "external"}) >= 1
            assert all({*things} == end for _, things in lives.ends.values())
            assert max([0, *(count for made in lives.made for count in made.values())]) <= 1

    run_in_virtual_time(run())
