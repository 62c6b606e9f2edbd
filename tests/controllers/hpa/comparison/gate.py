"""`Gate`: an authorizer that holds each reconcile of the real controller until the scenario releases it.

A reconcile starts with a request for the Scale of its target. The API server asks the gate, as one of its authorizers,
and the gate does not respond before the scenario has made its changes. So each reconcile sees exactly one state of the
cluster, however slow the host is; and when the next request arrives, the last reconcile has ended.

A reconcile is released when it is not a whole number of seconds after an earlier one, so that no window or period ends
exactly at a reconcile. It is not held for longer than a period: the controller would then start the next reconcile at
once, without having read its own writes.
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

from tests.support import serving_locally

__all__ = ["CONTROLLER", "Gate"]

CONTROLLER: Final = "comparison-controller"
"""The user name of the controller."""

TARGET: Final = "web"
"""The name of the target in every namespace; requests for other targets are not held."""

_MARGIN: Final = 0.06  # seconds between a reconcile and the end of a window
_LONGEST_WINDOW: Final = 10  # seconds
_REST: Final = 0.4  # seconds until a controller has read its own writes
_ATTRIBUTES: Final = "request.resourceAttributes"
_CONDITIONS: Final = (
    f"request.user == '{CONTROLLER}'",
    "has(request.resourceAttributes)",
    f"{_ATTRIBUTES}.verb == 'get' && {_ATTRIBUTES}.subresource == 'scale' && {_ATTRIBUTES}.name == '{TARGET}'",
)


class _Queue:
    """The reconciles of one namespace."""

    def __init__(self) -> None:
        self.arrived = 0
        self.released = 0
        self.times: list[datetime] = []
        self.hurried = False
        self.twins = 0
        self.twin_is_held = False
        self.changed = asyncio.Condition()
        self.closed = False


class Gate:
    """Holds the reconciles of each namespace.

    Args:
        folder: The folder of the configuration files for the API server.
        port: The port to listen on.
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
        """Return how many reconciles have arrived so far."""
        return self._queues[namespace].arrived

    async def arrival(self, namespace: str, number: int) -> None:
        """Wait until a reconcile has arrived; then the one before has ended."""
        queue = self._queues[namespace]
        async with queue.changed:
            await queue.changed.wait_for(lambda: queue.arrived > number)

    async def release(self, namespace: str, number: int) -> datetime:
        """Release a reconcile, away from the end of every window, and return the time."""
        queue = self._queues[namespace]
        while _is_at_window_end(queue.times):  # noqa: ASYNC110 (the condition is the time itself)
            await asyncio.sleep(_MARGIN / 4)
        async with queue.changed:
            queue.released = number + 1
            queue.times.append(datetime.now(UTC))
            queue.changed.notify_all()
        return queue.times[-1]

    async def hold_twin(self, namespace: str) -> None:
        """Hold the reconciles of another autoscaler of the same target after its first one, until it is deleted.

        The scenario's own autoscaler must not exist yet: requests for the Scale do not name the autoscaler.
        """
        queue = self._queues[namespace]
        async with queue.changed:
            queue.twins = 2
            await queue.changed.wait_for(lambda: queue.twins == 0)

    async def reject_twin(self, namespace: str) -> None:
        """Reject the request that `hold_twin` holds, so that the reconcile ends without a decision."""
        queue = self._queues[namespace]
        async with queue.changed:
            queue.twin_is_held = False
            queue.changed.notify_all()

    def hurried(self, namespace: str) -> bool:
        """Return whether a reconcile started right after the one before."""
        return self._queues[namespace].hurried

    async def close(self, namespace: str) -> None:
        """Stop holding the reconciles of a namespace."""
        queue = self._queues[namespace]
        async with queue.changed:
            queue.closed, queue.twin_is_held = True, False
            queue.changed.notify_all()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Self, None]:
        """Serve while the block runs; afterwards no reconcile is held."""
        app = web.Application()
        app.router.add_post("/", self._review)
        async with serving_locally(app, port=self._port):
            try:
                yield self
            finally:
                for namespace in list(self._queues):
                    await self.close(namespace)

    async def _review(self, request: web.Request) -> web.Response:
        review: dict[str, Any] = await request.json()
        queue = self._queues[review["spec"]["resourceAttributes"]["namespace"]]
        async with queue.changed:
            if queue.twins:
                return web.json_response({**review, "status": await _review_twin(queue)})
            number = queue.arrived
            queue.arrived += 1
            queue.hurried |= bool(queue.times) and (datetime.now(UTC) - queue.times[-1]).total_seconds() < _REST
            queue.changed.notify_all()
            await queue.changed.wait_for(lambda: queue.closed or queue.released > number)
        return web.json_response({**review, "status": {"allowed": False}})


async def _review_twin(queue: _Queue) -> dict[str, bool]:
    """Return the answer for a twin: none for its first reconcile, and a rejection for the second one, in the end."""
    queue.twins -= 1
    if queue.twins:
        return {"allowed": False}
    queue.twin_is_held = True
    queue.changed.notify_all()
    await queue.changed.wait_for(lambda: not queue.twin_is_held)
    return {"allowed": False, "denied": True}


def _is_at_window_end(times: list[datetime]) -> bool:
    """Return whether now is about a whole number of seconds after one of these times."""
    now = datetime.now(UTC)
    ages = [(now - each).total_seconds() for each in times]
    return any(age < _LONGEST_WINDOW and abs(age - round(age)) < _MARGIN for age in ages)
