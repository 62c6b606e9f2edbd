"""An HTTP server that replays answers of a real API server and records the requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest
from aiohttp import web

from ocf.cluster.client import ApiServerCluster, RestConfig
from tests.support import serving_locally

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]
DISCOVERY: dict[str, list[dict[str, Any]]] = {
    "/api/v1": [
        {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "verbs": _ALL},
        {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace", "verbs": _ALL},
    ],
    "/apis/apps/v1": [
        {"name": "deployments", "singularName": "deployment", "namespaced": True, "kind": "Deployment", "verbs": _ALL},
        {
            "name": "deployments/scale",
            "singularName": "",
            "namespaced": True,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        },
        {"name": "deployments/status", "singularName": "", "namespaced": True, "kind": "Deployment", "verbs": ["get"]},
    ],
    "/apis/rbac.authorization.k8s.io/v1": [
        {"name": "clusterroles", "singularName": "clusterrole", "namespaced": False, "kind": "ClusterRole"},
    ],
}


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    """Answers requests from a table; a path that is not in it gets the 404 of a real API server."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    table: dict[tuple[str, str], Handler] = field(default_factory=dict)

    def handle(self, method: str, path: str, handler: Handler) -> None:
        self.table[method, path] = handler

    def answer(
        self, method: str, path: str, body: Any, *, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        async def handler(_: web.Request) -> web.StreamResponse:
            text = body if isinstance(body, str) else json.dumps(body)
            kind = "text/plain" if isinstance(body, str) else "application/json"
            return web.Response(status=status, text=text, content_type=kind, headers=headers)

        self.handle(method, path, handler)

    def asked(self, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.path == path]

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    async def respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path, _, _ = request.raw_path.partition("?")
        self.seen.append(
            Seen(
                request.method,
                path,
                dict(request.query),
                {name.lower(): value for name, value in request.headers.items()},
                json.loads(body) if body else None,
            )
        )
        handler = self.table.get((request.method, path))
        return await handler(request) if handler else web.Response(status=404, text="404 page not found\n")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    for path, resources in DISCOVERY.items():
        server.answer("GET", path, {"kind": "APIResourceList", "apiVersion": "v1", "resources": resources})
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", server.respond)
    async with serving_locally(app) as server.url:
        yield server


@pytest.fixture
def config(server: Server) -> RestConfig:
    """Settings of a connection to the server."""
    return RestConfig(host=server.url, bearer_token="s3cr3t")


@pytest.fixture
async def cluster(config: RestConfig) -> AsyncIterator[ApiServerCluster]:
    async with ApiServerCluster(config) as cluster:
        yield cluster
