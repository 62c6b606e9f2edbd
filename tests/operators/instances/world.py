"""Two servers over HTTP, whose things can be looked at and edited as in their own UI, and the operators beside them."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import ClientSession, encode_basic_auth, web

from ocf.objects import Manifest, ObjectKey
from ocf.testing import LoopClock, run_in_virtual_time, serving_http_stub
from ocf.testing.http_stub import HttpStub
from ocf_server import EmbeddedCluster
from tests.operators.instances.model import API_VERSION, Dashboard, Folder, Instance, Source
from tests.operators.instances.operator import panels
from tests.operators.world import World
from tests.support import eventually

__all__ = ["BOARD", "KINDS", "FakeServers", "Panels", "in_virtual_time"]

KINDS: Final = (Instance, Folder, Source, Dashboard)
BOARD: Final = '{"panels": [1]}'
_PASSWORD: Final = "sesame"


@dataclass
class FakeServers:
    """The things of all servers, by host, kind and uid, with what each was asked for.

    Attributes:
        pages: Texts at URLs of hosts that are no servers, by host and path.
        created: How often each thing was made.
        log: Each change, and each dashboard that was refused for its folder.
        logins: The passwords of hosts; others accept `sesame`.
    """

    things: dict[tuple[str, str, str], Manifest] = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    created: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    logins: dict[str, str] = field(default_factory=dict)

    @property
    def app(self) -> web.Application:
        """The API."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/pages/{name}", self._page),
                web.get("/{kind}/{uid}", self._get),
                web.put("/{kind}/{uid}", self._put),
                web.delete("/{kind}/{uid}", self._delete),
            ]
        )
        return app

    def at(self, host: str, kind: str) -> dict[str, Manifest]:
        """Return the things of a kind in a server, by uid."""
        return {uid: one for (where, what, uid), one in self.things.items() if (where, what) == (host, kind)}

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "1"}) if self._knows(request) else web.Response(status=401)

    async def _page(self, request: web.Request) -> web.Response:
        found = self.pages.get(f"{request.host}{request.path}")
        return web.json_response(found) if found is not None else web.Response(status=404)

    async def _get(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return web.Response(status=401)
        found = self.things.get(_place(request))
        shown = None if found is None else {name: one for name, one in found.items() if name != "password"}
        return web.json_response(shown) if shown is not None else web.Response(status=404)

    async def _put(self, request: web.Request) -> web.Response:
        place, body = _place(request), await request.json()
        if not self._knows(request):
            return web.Response(status=401)
        if body.get("folder") and body["folder"] not in self.at(place[0], "folders"):
            self.log.append(f"refused {'/'.join(place)}")
            return web.Response(status=412)
        self.created[place] += place not in self.things
        self.things[place] = body
        self.log.append(f"PUT {'/'.join(place)}")
        return web.json_response({name: one for name, one in body.items() if name != "password"})

    async def _delete(self, request: web.Request) -> web.Response:
        place = _place(request)
        if not self._knows(request):
            return web.Response(status=401)
        boards = self.at(place[0], "dashboards").values() if place[1] == "folders" else ()
        if any(one["folder"] == place[2] for one in boards):
            return web.Response(status=409)
        if self.things.pop(place, None) is not None:
            self.log.append(f"DELETE {'/'.join(place)}")
        return web.json_response({})

    def _knows(self, request: web.Request) -> bool:
        password = self.logins.get(request.host, _PASSWORD)
        return request.headers.get("Authorization") == encode_basic_auth("admin", password)


def _place(request: web.Request) -> tuple[str, str, str]:
    return request.host, request.match_info["kind"], request.match_info["uid"]


@dataclass
class Panels:
    """The operators in a cluster, the servers, and what users do.

    Args:
        home: The namespace in which things are made if no other one is given.
    """

    world: World
    servers: FakeServers
    stub: HttpStub
    home: str = "town"

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[None]:
        """Run the operators as a process of their own."""

        @asynccontextmanager
        async def connect() -> AsyncIterator[ClientSession]:
            yield self.stub.session

        async with self.world.operating(*panels(connect)):
            yield

    def key(self, kind: str, name: str, namespace: str = "") -> ObjectKey:
        """Return the key of an object of ours."""
        return ObjectKey(API_VERSION, kind, name, namespace or self.home)

    async def make(self, kind: str, name: str, namespace: str = "", **spec: Any) -> Manifest:
        """Create an object of ours, by default one that is in all instances of its namespace."""
        titled = {"title": name} if kind in (Folder.kind, Source.kind) else {}
        placed: Manifest = {"instances": {}} if kind != Instance.kind else {}
        return await self.world.create(self.key(kind, name, namespace), spec={**placed, **titled, **spec})

    async def board(self, name: str, namespace: str = "", **spec: Any) -> Manifest:
        """Create a dashboard, by default with inline content."""
        content = {} if {"configMap", "url"} & {*spec} else {"inline": BOARD}
        return await self.make("Dashboard", name, namespace, **{"uid": name, **content, **spec})

    async def server(self, host: str, namespace: str = "", **labels: str) -> None:
        """Create an instance for an external server."""
        entries = {"url": f"http://{host}", "user": "admin", "password": _PASSWORD}
        where = namespace or self.home
        await self.world.create(ObjectKey("v1", "Secret", host, where), stringData=entries)
        spec = {"external": {"secretName": host}}
        await self.world.create(self.key("Instance", host, where), spec=spec, metadata={"labels": labels})

    async def label(self, instance: str, namespace: str = "", **labels: str | None) -> None:
        """Change the labels of an instance."""
        await self.world.edit(self.key("Instance", instance, namespace), {"metadata": {"labels": labels}})

    async def change(self, kind: str, name: str, namespace: str = "", **spec: Any) -> None:
        """Change the spec of an object of ours."""
        await self.world.edit(self.key(kind, name, namespace), {"spec": spec})

    async def condition(self, kind: str, name: str, type_: str = "Ready") -> tuple[str, str, str]:
        """Return status, reason and message of a condition; empty if it has none."""
        live = await self.world.found(self.key(kind, name))
        found = {one["type"]: one for one in (live.get("status") or {}).get("conditions") or ()}.get(type_, {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def password(self, instance: str) -> str:
        """Return the password of a server that the operator has deployed."""
        stored = await self.world.found(ObjectKey("v1", "Secret", f"{instance}-login", self.home))
        return b64decode(stored["data"]["password"]).decode()

    def boards(self) -> dict[str, list[str]]:
        """Return the dashboards by server."""
        hosts = sorted({host for host, kind, _ in self.servers.things if kind == "dashboards"})
        return {host: sorted(self.servers.at(host, "dashboards")) for host in hosts}

    async def until(self, things: dict[str, list[str]], host: str) -> None:
        """Wait until a server has exactly these things, by kind."""

        async def found() -> dict[str, list[str]]:
            kinds = {kind for where, kind, _ in self.servers.things if where == host}
            return {kind: sorted(self.servers.at(host, kind)) for kind in kinds}

        await eventually(found, lambda seen: seen == things)

    async def gone(self, kind: str, name: str) -> bool:
        """Return whether an object of ours does not exist."""
        return not await self.world.found(self.key(kind, name))


def in_virtual_time(scene: Callable[[Panels], Awaitable[None]], *, operates: bool = True) -> None:
    """Play a scene in virtual time, with the servers eu and us as instances of a town."""

    async def play() -> None:
        clock, servers = LoopClock(), FakeServers()
        cluster = EmbeddedCluster(namespaces=["town", "village"], now=clock.now)
        for kind in KINDS:
            await cluster.apply(kind.definition(), field_manager="user")
        async with serving_http_stub(servers.app) as stub:
            world = Panels(World(cluster, clock=clock), servers, stub)
            await world.server("eu", region="eu")
            await world.server("us", region="us")
            if not operates:
                await scene(world)
                return
            async with world.operating():
                await scene(world)

    run_in_virtual_time(play())
