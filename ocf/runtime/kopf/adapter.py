"""Adapter that runs operators of `ocf` in a kopf process.

kopf runs the process, watches the owners and serves the liveness probe; the operators reconcile. The adapter uses only
handlers that store nothing in the cluster: `on.startup`, `on.cleanup`, `on.probe`, and `on.event`, which keeps neither
progress nor the last handled configuration, and adds no finalizer. It changes none of kopf's settings, which belong to
all handlers of the process; kopf posts no events about handlers of `on.event`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final

try:
    import kopf
except ImportError as error:  # pragma: no cover (the development environment has it)
    raise ImportError("ocf.runtime.kopf needs kopf: install ocf[kopf]", name="kopf") from error

from ocf.cluster import Cluster, WatchEvent
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.protocol import EventType
from ocf.objects.manifest import split_api_version
from ocf.runtime.operator import ManagerOptions, Operator
from ocf.runtime.operator.manager import Manager

__all__ = ["attach"]

_log: Final = logging.getLogger(__name__)


def attach(
    *operators: Operator[Any],
    options: ManagerOptions | None = None,
    registry: kopf.OperatorRegistry | None = None,
    connect: Callable[[], Awaitable[ApiServerCluster]] | None = None,
) -> None:
    """Register operators with kopf, in a module that `kopf run` loads.

    kopf starts and stops the operators, passes them the events of its own watch of the owners, and its liveness probe
    fails when theirs does. If the operators end unexpectedly, kopf stops with their error. No setting of kopf is
    changed, so other handlers of the process work as without the operators. Peering does not pause the operators; use
    `ManagerOptions.lease`.

    The operators need the privileges of `Operator.policy_rules` and `ManagerOptions.policy_rules`, and kopf those of
    `ocf.runtime.rbac.kopf_rules`.

    Args:
        operators: The operators; their names must differ.
        options: Options of the manager. Their namespaces apply, not those of kopf's command line.
        registry: Registry of kopf's handlers; kopf's default registry by default.
        connect: Connects to the cluster; by default with the kubeconfig or the pod's service account.

    Example:
        >>> from ocf.runtime.operator import Operator, OwnerType
        >>> registry = kopf.OperatorRegistry()
        >>> shops = Operator(name="shops", owner=OwnerType("example.com/v1", "Shop"), components=lambda shop: ())
        >>> attach(shops, registry=registry)
    """
    into = registry if registry is not None else kopf.get_default_registry()
    inside = _Handlers(operators, options or ManagerOptions(), connect or _connect)
    kopf.on.startup(registry=into, id="ocf")(inside.begin)
    kopf.on.cleanup(registry=into, id="ocf", errors=kopf.ErrorsMode.PERMANENT)(inside.end)
    kopf.on.probe(registry=into, id="ocf")(inside.probe)
    for operator in operators:
        group, version = split_api_version(operator.owner.api_version)
        watch = kopf.on.event(group=group, version=version, kind=operator.owner.kind, registry=into, id=operator.name)
        watch(inside.handle_event)


class _Handlers:
    """kopf's handlers, which run the operators in its process."""

    def __init__(
        self,
        operators: tuple[Operator[Any], ...],
        options: ManagerOptions,
        connect: Callable[[], Awaitable[ApiServerCluster]],
    ) -> None:
        self._operators = operators
        self._options = options
        self._connect = connect
        self._process: Manager | None = None
        self._running: asyncio.Task[None] | None = None

    async def begin(self, **_: object) -> None:
        """Start the operators."""
        cluster = await self._connect()
        self._process = Manager(cluster, self._operators, self._options)
        self._running = asyncio.create_task(_run(self._process, cluster), name="ocf")
        self._running.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._process is not None and not self._process.stopping:
            error = None if task.cancelled() else task.exception()
            _log.error("the operators ended unexpectedly, so kopf stops", exc_info=error)
            signal.raise_signal(signal.SIGTERM)

    async def end(self, **_: object) -> None:
        """Wait for running reconciles; raise the error that the operators ended with."""
        if self._process is not None and self._running is not None:
            self._process.stop()
            await self._running

    async def handle_event(self, *, event: Any, **_: object) -> None:
        """Handle an event of kopf's watch of the owners; listed objects have no event type."""
        if self._process is not None:
            self._process.handle_event(WatchEvent(EventType(event["type"] or EventType.ADDED), dict(event["object"])))

    async def probe(self, **_: object) -> str:
        """Fail if `/healthz` fails."""
        if self._process is None or self._running is None or self._running.done():
            raise kopf.PermanentError("the operators are not running")
        problems = [problem for check in self._process.health.live.values() if (problem := check())]
        if problems:
            raise kopf.PermanentError("; ".join(problems))
        return "ok"


async def _run(process: Manager, cluster: ApiServerCluster | Cluster) -> None:
    async with AsyncExitStack() as stack:
        close = getattr(cluster, "close", None)
        if close is not None:
            stack.push_async_callback(close)
        await process.run()


async def _connect() -> ApiServerCluster:
    return await ApiServerCluster.connect()
