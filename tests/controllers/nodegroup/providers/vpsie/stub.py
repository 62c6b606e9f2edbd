"""Stub of the VPSie API: one cluster, its sizes, groups and workers, with the odd answers that its clients handle."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from tests.support import serving_locally

__all__ = ["CLUSTER", "DATACENTER", "VPSieStub", "serving"]

CLUSTER: Final = "b2f0"
DATACENTER: Final = "fra"


@dataclass
class VPSieStub:
    """State of the stub; tests change it.

    Args:
        tokens: Tokens that are accepted, with their header.
        workers: Workers by host name, as the API lists them.
        sizes: Kubernetes sizes, as the API lists them.
        groups: Groups of workers.
        names_workers: Whether adding a worker answers with its name, instead of with `true`.
        listed_at_once: Whether an added worker is listed at once; otherwise after `boot()`.
        lost_answers: How many of the next writes are done but not answered.
        failures: Responses, status and body, of the next requests, each once, whatever they ask for.
        requests: All requests, as `METHOD path`.
    """

    tokens: set[str] = field(default_factory=lambda: {"fixed"})
    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sizes: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {"id": 12, "name": "small", "cpu": 2, "ram": 4096, "disk": 50, "price": 14.6},
            {"id": 13, "name": "large", "cpu": 8, "ram": 16384, "ssd": 200, "price": 58, "hourly_price": 0.08},
        ]
    )
    groups: list[dict[str, Any]] = field(default_factory=list)
    names_workers: bool = False
    listed_at_once: bool = True
    lost_answers: int = 0
    limit: int | None = None
    failures: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    issued: int = 0
    token_lifetime: str = "2026-01-01T01:00:00Z"
    _booting: list[dict[str, Any]] = field(default_factory=list)
    _added: int = 0

    def boot(self) -> None:
        """List the workers that were added but are not listed yet."""
        self.workers |= {worker["hostname"]: worker for worker in self._booting}
        self._booting.clear()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        self.requests.append(f"{request.method} {request.path}")
        if self.failures:
            status, body = self.failures.pop(0)
            return _respond(body, status)
        if request.path == "/auth/from/api":
            return await self._token(request)
        if self._presented(request) not in self.tokens:
            return _respond({"error": True, "message": "Unauthorized"}, 401)
        body = await request.json() if request.can_read_body else {}
        result = self._route(request.method, request.path, body)
        if self.lost_answers and request.method != "GET":
            self.lost_answers -= 1
            transport = request.transport
            assert transport is not None
            transport.close()
        return result

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        if (form.get("clientId"), form.get("clientSecret")) != ("id", "secret"):
            return _respond({"error": True, "code": 401, "message": "invalid client"}, 200)
        self.issued += 1
        token = f"issued-{self.issued}"
        self.tokens.add(token)
        return _respond({"accessToken": {"token": token, "expires": self.token_lifetime}})

    def _presented(self, request: web.Request) -> str:
        return request.headers.get("Vpsie-Auth") or request.headers.get("Authorization", "").removeprefix("Bearer ")

    def _route(self, method: str, path: str, body: dict[str, Any]) -> web.Response:  # noqa: PLR0911 (one per call)
        match method, path.strip("/").split("/"):
            case "POST", ["k8s", "offers"]:
                return _data(self.sizes if body["dcIdentifier"] == DATACENTER else [])
            case "GET", ["k8s", "cluster", "byId", cluster] if cluster == CLUSTER:
                manager = {"identifier": "m", "hostname": "manager-1", "role": "master"}
                return _data({"identifier": CLUSTER, "nodes": [manager, *self.workers.values()]})
            case "GET", ["k8s", "node", "groups", "byClusterId", cluster] if cluster == CLUSTER:
                return _data(self.groups)
            case "POST", ["k8s", "cluster", "add", "group"]:
                return self._add_group(body)
            case "POST", ["k8s", "cluster", "byId", cluster, "add", "slave", "group", group] if cluster == CLUSTER:
                return self._add_worker(int(group))
            case "DELETE", ["k8s", "cluster", "byId", cluster, "delete", "slave"] if cluster == CLUSTER:
                return self._delete_worker(body["identifier"])
            case _:
                return _respond({"error": True, "message": "not found"}, 404)

    def _add_group(self, body: dict[str, Any]) -> web.Response:
        if any(group["boxsize_id"] == body["KubeSizeID"] for group in self.groups):
            return _error("a group has same selected Size", 400)
        number = len(self.groups) + 1
        self.groups.append({"id": number, "group_name": body["groupName"], "boxsize_id": body["KubeSizeID"]})
        return _data({"groupId": f"uuid-{number}"})

    def _add_worker(self, group: int) -> web.Response:
        if not any(each["id"] == group for each in self.groups):
            return _respond({"error": True, "message": "group not found"}, 404)
        if self.limit is not None and len(self.workers) >= self.limit:
            return _respond(
                {"error": "x", "message": f"Worker nodes count exceeds the allowed limit {self.limit}"}, 500
            )
        self._added += 1
        name = f"Fra-kubernetes-{self._added:02}"
        worker = {"identifier": f"uuid-{name}", "hostname": name, "ip": f"10.0.0.{self._added}", "status": ""}
        self._booting.append(worker)
        if self.listed_at_once:
            self.boot()
        return _data({"identifier": worker["identifier"], "hostname": name} if self.names_workers else True)

    def _delete_worker(self, identifier: str) -> web.Response:
        for name, worker in self.workers.items():
            if worker["identifier"] == identifier:
                del self.workers[name]
                return _data(True)
        return _respond({"error": True, "message": "worker not found"}, 404)


@asynccontextmanager
async def serving(stub: VPSieStub) -> AsyncIterator[str]:
    """Serve a stub for the length of a block; yield its base URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", stub.answer)
    async with serving_locally(app) as address:
        yield address


def _data(data: object) -> web.Response:
    return _respond({"error": False, "data": data})


def _error(message: str, code: int) -> web.Response:
    """Answer an error as this API does: with status 200."""
    return _respond({"error": True, "code": code, "message": message})


def _respond(body: object, status: int = 200) -> web.Response:
    if isinstance(body, str):
        return web.Response(text=body, status=status)
    return web.Response(text=json.dumps(body), status=status, content_type="application/json")
