"""A gate that the real controller comes to in every round, and that a scenario opens.

The first thing that a round asks of the API server is the Scale of its target. The API server asks the gate, as one of
its authorizers, whether that is allowed, and the gate takes its time: until the scenario has changed what it wants to
change. So each round sees exactly one state of the world, however busy the machine is; and when the controller is there
again, its last round has ended.

A round is let through when it is not a whole number of seconds after one before it, so no window or period ends right
at a round. It is not held for longer than a period: the controller would begin the next one at once, without having
seen what came of this one.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from aiohttp import web

__all__ = ["CONTROLLER", "Gate"]

CONTROLLER: Final = "comparison-controller"
"""The user as which the controller comes."""

TARGET: Final = "web"
"""The name of the target in every namespace; others may be there, and are let through."""

_MARGIN: Final = 0.06  # seconds by which a round is off the edge of a window
_LONGEST_WINDOW: Final = 10  # seconds
_REST: Final = 0.4  # seconds that a controller needs to see what it has written
_ATTRIBUTES: Final = "request.resourceAttributes"
_CONDITIONS: Final = (
    f"request.user == '{CONTROLLER}'",
    "has(request.resourceAttributes)",
    f"{_ATTRIBUTES}.verb == 'get' && {_ATTRIBUTES}.subresource == 'scale' && {_ATTRIBUTES}.name == '{TARGET}'",
)


class _Queue:
    """The rounds of one namespace."""

    def __init__(self) -> None:
        self.arrived = 0
        self.let = 0
        self.times: list[datetime] = []
        self.hurried = False
        self.news = asyncio.Condition()
        self.closed = False


class Gate:
    """Holds the rounds of each namespace.

    Args:
        folder: Where what the API server needs is written.
        port: Where to listen.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self._queues: defaultdict[str, _Queue] = defaultdict(_Queue)

    @property
    def flags(self) -> dict[str, str | None]:
        """The flags of the API server."""
        connection = self._folder / "gate.kubeconfig"
        cluster = {"name": "gate", "cluster": {"server": f"http://127.0.0.1:{self._port}/"}}
        context = {"name": "gate", "context": {"cluster": "gate", "user": "gate"}}
        users = [{"name": "gate", "user": {}}]
        written = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "users": users, "contexts": [context]}
        connection.write_text(json.dumps({**written, "current-context": "gate"}))
        webhook = {
            "timeout": "30s",
            "authorizedTTL": "1ms",
            "unauthorizedTTL": "1ms",
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": "NoOpinion",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(connection)},
            "matchConditions": [{"expression": each} for each in _CONDITIONS],
        }
        authorizers = [{"type": "Webhook", "name": "gate", "webhook": webhook}, {"type": "RBAC", "name": "rbac"}]
        configuration = self._folder / "authorization.json"
        about = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
        configuration.write_text(json.dumps({**about, "authorizers": authorizers}))
        return {"authorization-mode": None, "authorization-config": str(configuration)}

    def arrivals(self, namespace: str) -> int:
        """Return how many rounds have come so far."""
        return self._queues[namespace].arrived

    async def arrival(self, namespace: str, number: int) -> None:
        """Wait until a round has come; then the one before has ended."""
        queue = self._queues[namespace]
        async with queue.news:
            await queue.news.wait_for(lambda: queue.arrived > number)

    async def release(self, namespace: str, number: int) -> datetime:
        """Let a round through, off every edge, and return when that was."""
        queue = self._queues[namespace]
        while _is_on_an_edge(queue.times):  # noqa: ASYNC110 (it is time itself that is waited for)
            await asyncio.sleep(_MARGIN / 4)
        async with queue.news:
            queue.let = number + 1
            queue.times.append(datetime.now(UTC))
            queue.news.notify_all()
        return queue.times[-1]

    def hurried(self, namespace: str) -> bool:
        """Tell whether a round began right after the one before."""
        return self._queues[namespace].hurried

    async def close(self, namespace: str) -> None:
        """Hold nobody in a namespace any longer."""
        queue = self._queues[namespace]
        async with queue.news:
            queue.closed = True
            queue.news.notify_all()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Self, None]:
        """Serve while a block runs; nobody is held after it."""
        app = web.Application()
        app.router.add_post("/", self._review)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self._port).start()
            yield self
        finally:
            for namespace in list(self._queues):
                await self.close(namespace)
            await runner.cleanup()

    async def _review(self, request: web.Request) -> web.Response:
        review: dict[str, Any] = await request.json()
        queue = self._queues[review["spec"]["resourceAttributes"]["namespace"]]
        async with queue.news:
            number = queue.arrived
            queue.arrived += 1
            queue.hurried |= bool(queue.times) and (datetime.now(UTC) - queue.times[-1]).total_seconds() < _REST
            queue.news.notify_all()
            await queue.news.wait_for(lambda: queue.closed or queue.let > number)
        return web.json_response({**review, "status": {"allowed": False}})


def _is_on_an_edge(times: list[datetime]) -> bool:
    """Tell whether now is about a whole number of seconds after one of some instants."""
    now = datetime.now(UTC)
    ages = [(now - each).total_seconds() for each in times]
    return any(age < _LONGEST_WINDOW and abs(age - round(age)) < _MARGIN for age in ages)
