"""`Manager`: the operators of one process, and all that they share.

Everything that runs is in task groups, so no task can end unnoticed: a task that must not end ends the process with
it. Probes are served from the start to the end of the process. Cache, event broadcaster and workers live for one term
as a leader, or once without leader election.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster, WatchEvent
from ocf.cluster.cache import CachedCluster
from ocf.concepts import Event, Recorder
from ocf.concepts.tracing import tracing_with
from ocf.errors import ApiError, BuildError, ConfigError, leaf_errors
from ocf.objects import ObjectKey
from ocf.runtime.events.poster import broadcasting_events
from ocf.runtime.events.recorders import multi_recorder, rewrite_events
from ocf.runtime.monitoring.http_server import Endpoints, serving
from ocf.runtime.monitoring.metrics import PrometheusRecorder
from ocf.runtime.operator.controller import Controller, ControllerDeps
from ocf.runtime.operator.health import Health
from ocf.runtime.operator.leader_runner import LeaderRunner
from ocf.runtime.operator.operator import Operator
from ocf.runtime.operator.options import ManagerOptions
from ocf.runtime.operator.state_metrics import StateMetrics
from ocf.runtime.operator.supervised_tasks import supervised_tasks
from ocf.runtime.operator.webhook_options import serving_webhooks
from ocf.runtime.workqueue.metrics import QueueMetrics

if TYPE_CHECKING:
    from ocf.runtime.admission.server import WebhookServer

__all__ = ["ENDED_EVENT", "Manager"]

ENDED_EVENT: Final = "OperatorEnded"
"""Reason of the event about an operator that ends its process."""

_log: Final = logging.getLogger(__name__)

# Seconds between two checks for watches whose task has died; a watch that only failed retries by itself.
_WATCH_CHECK_PERIOD: Final = 10.0


class Manager:
    """The operators of one process: `run` runs them, `stop` stops them gracefully.

    Args:
        cluster: The cluster of the objects.
        operators: The operators; their names must differ.
        options: The settings of the process.

    Raises:
        BuildError: If there is no operator, two have the same name, two have webhooks for the same kind, or two set the
            same condition of the same owners.

    Attributes:
        health: The checks of the probes.
        webhooks: The webhook server; None before it is started, and where webhooks are not served.
        endpoints: The address of probes and metrics; None before they are served, and where they are not.
    """

    def __init__(self, cluster: Cluster, operators: Sequence[Operator[Any]], options: ManagerOptions) -> None:
        names = [operator.name for operator in operators]
        if not names or len(set(names)) < len(names):
            raise BuildError(
                [f"the operators of a process need different names, got {', '.join(names) or 'no operator'}"]
            )
        shared = _shared_conditions(operators)
        if shared:
            raise BuildError(shared)
        self._cluster = cluster
        self._operators = tuple(operators)
        self._options = options
        self._webhooks = options.admission.webhooks(operators) if options.admission is not None else None
        self._metrics = _ProcessMetrics(options) if options.metrics else None
        self._controllers: tuple[Controller, ...] = ()
        self._posted: dict[str, Recorder] = {}
        self._started = asyncio.Event()
        self._runner = LeaderRunner(
            cluster, self._open_term, lease=options.lease, clock=options.clock, random=options.random
        )
        lease = self._runner.lost if options.lease is not None else None
        self.health: Final = Health(options.clock, options.watch_failure_timeout, lease)
        self.endpoints: Endpoints | None = None
        self.webhooks: WebhookServer | None = None

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The running controllers, in the order of the operators; none while another process leads."""
        return self._controllers

    @property
    def registry(self) -> CollectorRegistry | None:
        """The registry of the metrics; None if metrics are off."""
        return self._metrics.registry if self._metrics is not None else None

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._runner.stopping

    async def started(self) -> None:
        """Wait until the operators run."""
        await self._started.wait()

    def stop(self) -> None:
        """Start no more reconciles, let the running ones end, and release the lease; `run` then returns."""
        self._runner.stop()

    def handle_event(self, event: WatchEvent) -> None:
        """Handle an event from a watch outside of this process's cache."""
        for controller in self._controllers:
            controller.handle_event(event)

    async def run(self) -> None:
        """Run until `stop` is called, or until a task ends that must not.

        Raises:
            ExceptionGroup: With the errors that ended it.
            ConfigError: If endpoints or webhooks cannot be served, or a declared kind has more objects than
                `max_objects`, or could not be read within `cache_sync_timeout`.
            ApiError: If the certificate of the webhooks cannot be read from the cluster, or stored in it.
            asyncio.CancelledError: If cancelled; running reconciles are cancelled, too.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(tracing_with(self._options.tracer))
            await self._serve_webhooks(stack)
            listen = self._options.listen
            if listen is not None:
                health, registry = self.health, self.registry
                served = serving(
                    registry=registry, live=health.live, ready=health.ready, host=listen.host, port=listen.port
                )
                self.endpoints = await stack.enter_async_context(served)
            await self._runner.run()

    async def _serve_webhooks(self, stack: AsyncExitStack) -> None:
        """Serve the webhooks, whether the process leads or not."""
        admission = self._options.admission
        if admission is None:
            for operator in self._operators:
                if operator.serves_webhooks:
                    _log.info("the webhooks of %s are not served here: `admission` is not set", operator.name)
        elif self._webhooks is not None:
            served = serving_webhooks(self._cluster, self._webhooks, admission, registry=self.registry)
            self.webhooks = await stack.enter_async_context(served)
            converted = {(resource.group, resource.kind) for resource in self._webhooks.conversions}
            self.health.set_webhooks(self.webhooks, converted)

    @asynccontextmanager
    async def _open_term(self, cluster: Cluster) -> AsyncIterator[_Term]:
        async with AsyncExitStack() as stack:
            cache = await stack.enter_async_context(self._cache(cluster))
            self._controllers = tuple([await self._controller(each, cache, cluster, stack) for each in self._operators])
            stack.callback(self._end_term)
            stack.callback(cluster.apply_cache.reserve_conditions, {})
            cluster.apply_cache.reserve_conditions(_declared_conditions(self._operators))
            self._set_cache(cache)
            yield _Term(cache, self._controllers, self.health, self._started, announce=partial(self._announce, cluster))

    async def _announce(self, cluster: Cluster, operator: str, problem: str) -> None:
        """Record why the process ends, in an event about its lease: the one object of the process that is known."""
        lease, recorder = self._options.lease, self._posted.get(operator)
        if lease is None or recorder is None:
            return
        key = ObjectKey("coordination.k8s.io/v1", "Lease", lease.name, lease.namespace)
        uid = ""
        with suppress(ApiError):  # without it, only `kubectl describe` of the lease does not show the event
            uid = str((await cluster.get(key))["metadata"].get("uid") or "")
        event = Event(
            owner=key, owner_uid=uid, resource=key, reason=ENDED_EVENT, action="Start", note=problem, type="Warning"
        )
        recorder.happened(event)

    def _end_term(self) -> None:
        self._posted.clear()
        self._controllers = ()
        self._started.clear()
        self._set_cache(None)

    def _set_cache(self, cache: CachedCluster | None) -> None:
        self.health.set_term(cache, self._controllers)
        if self._metrics is not None:
            paused = {each.operator.name: partial(_paused, each) for each in self._controllers}
            self._metrics.state.set_term(cache, paused)

    def _cache(self, cluster: Cluster) -> CachedCluster:
        return CachedCluster(
            cluster,
            uncached={kind for operator in self._operators for kind in operator.uncached},
            per_namespace=bool(self._options.namespaces),
            max_objects=self._options.max_objects,
            timing=self._options.cache_timing,
        )

    async def _controller(
        self, operator: Operator[Any], cache: CachedCluster, cluster: Cluster, stack: AsyncExitStack
    ) -> Controller:
        recorders = [*operator.recorders]
        on_deleted = [operator.on_deleted] if operator.on_deleted is not None else []
        if self._metrics is not None:
            counting = self._metrics.recorder(operator.name)
            recorders.append(counting)
            on_deleted.append(counting.remove_conditions_for)
        if self._options.events:
            poster = broadcasting_events(cluster, controller=operator.controller, clock=self._options.clock)
            self._posted[operator.name] = posted = await stack.enter_async_context(poster)
            recorders.append(
                rewrite_events(posted, operator.event_formatter) if operator.event_formatter is not None else posted
            )
        deps = ControllerDeps(
            clock=self._options.clock,
            recorder=multi_recorder(*recorders),
            forget=partial(_forget_owner, on_deleted),
            namespaces=tuple(self._options.namespaces),
            metrics=self._metrics.queues if self._metrics is not None else None,
            shutdown_timeout=self._options.shutdown_timeout,
            cache_sync_timeout=self._options.cache_sync_timeout,
            random=self._options.random,
        )
        return Controller(operator, cache, deps)


class _Term:
    """The controllers of one term, as one `Runnable`."""

    def __init__(
        self,
        cache: CachedCluster,
        controllers: Sequence[Controller],
        health: Health,
        started: asyncio.Event,
        *,
        announce: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._announce = announce
        self._cache = cache
        self._controllers = controllers
        self._health = health
        self._started = started

    async def run(self) -> None:
        """Run the controllers until `stop` is called."""
        async with supervised_tasks() as start, asyncio.TaskGroup() as tasks:
            start(self._revive_watches(), "watches")
            runs = [tasks.create_task(self._run(each), name=each.operator.name) for each in self._controllers]
            self._started.set()
            # A task group takes a cancelled task for one that is done; this raises.
            await asyncio.gather(*runs)

    async def _run(self, controller: Controller) -> None:
        try:
            await controller.run()
        except* ConfigError as found:  # the text of another error may contain secrets
            for error in leaf_errors(found):
                await self._announce(controller.operator.name, str(error))
            raise

    def stop(self) -> None:
        """Stop every controller."""
        for controller in self._controllers:
            controller.stop()

    def ready(self) -> str:
        """Return which kinds of owners are not in sync."""
        return self._health.owners()

    def live(self) -> str:
        """Return which reconciles do not end."""
        return self._health.reconciles()

    async def _revive_watches(self) -> None:
        """Restart tasks of the cache that ended, and log owners that cannot be read, until cancelled.

        In steady state no request is made that would restart them.
        """
        logged = ""
        while True:
            await asyncio.sleep(_WATCH_CHECK_PERIOD)
            unread = self._health.owners()
            if unread and unread != logged:
                _log.warning("%s", unread)
            logged = unread
            for state in self._cache.failing:
                # The state of the watch has the problem, which may be any error, and belong to what one owner names.
                with suppress(Exception):
                    await self._cache.cache(state.api_version, state.kind, namespace=state.namespace)


def _shared_conditions(operators: Sequence[Operator[Any]]) -> list[str]:
    """Return a problem for each two operators that declare the same condition of the same owners."""
    return [
        f'"{one.name}" and "{other.name}" both set the condition "{name}" of each {one.owner.kind}: '
        "use different types, or each would overwrite the condition of the other one"
        for one, other in combinations(operators, 2)
        if one.owner_group_kind == other.owner_group_kind
        for name in sorted(one.declared_conditions & other.declared_conditions)
    ]


def _declared_conditions(operators: Sequence[Operator[Any]]) -> dict[tuple[str, str, str], str]:
    """Return which operator declares a condition of a kind of owners; a component of another one must not have it."""
    return {(*one.owner_group_kind, name): one.name for one in operators for name in one.declared_conditions}


class _ProcessMetrics:
    """The metrics of a process: one set for all of its operators."""

    def __init__(self, options: ManagerOptions) -> None:
        self._first = PrometheusRecorder(options.metrics_prefix, controller="", registry=options.registry)
        self.registry: Final = self._first.registry
        self.queues: Final = QueueMetrics(self.registry)
        self.state: Final = StateMetrics(self.registry, options.lease.name if options.lease is not None else "")

    def recorder(self, name: str) -> PrometheusRecorder:
        """Return the recorder of an operator."""
        return self._first.for_controller(name)


def _paused(controller: Controller) -> int:
    return controller.paused


def _forget_owner(on_deleted: Sequence[Callable[[ObjectKey], object]], owner: ObjectKey) -> None:
    """Drop everything that is kept of a deleted owner."""
    for forget in on_deleted:
        forget(owner)
