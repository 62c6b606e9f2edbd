"""`Manager`: operators of one process, from the first request to the last.

Everything that runs is in task groups, so nothing can end unnoticed: what must not end ends the process with it.
Probes are served from the beginning to the end; cache, event poster and workers live for one term as a leader, or once
where there is no election.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.cache import CachedCluster
from ocf.errors import ApiError, BuildError, LeaseLostError
from ocf.objects import ObjectKey
from ocf.runtime.events.poster import broadcasting_events
from ocf.runtime.events.recorders import multi_recorder, rewrite_events
from ocf.runtime.leader import lead
from ocf.runtime.monitoring.http_server import Endpoints, serving
from ocf.runtime.monitoring.metrics import PrometheusRecorder
from ocf.runtime.operator.controller import Controller, ControllerDeps
from ocf.runtime.operator.health import Health
from ocf.runtime.operator.options import ManagerOptions
from ocf.runtime.operator.state_metrics import StateMetrics
from ocf.runtime.operator.supervised_tasks import supervised_tasks
from ocf.runtime.workqueue import QueueMetrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ocf.cluster import Cluster, WatchEvent
    from ocf.runtime.admission import WebhookServer
    from ocf.runtime.operator.operator import Operator

__all__ = ["Manager"]

_log: Final = logging.getLogger(__name__)

# How often a watch whose task has died is looked after; one that only failed looks after itself.
_ROUND: Final = 10.0


class Manager:
    """Operators of one process; `run` runs them, `stop` ends that gently.

    Args:
        cluster: Where the objects live.
        operators: The operators, each with a name of its own.
        options: How they are run.

    Raises:
        BuildError: If there is no operator, two have the same name, or two have webhooks for the same kind.

    Attributes:
        health: What the probes ask.
        webhooks: The server of the webhooks; None before they are served, and where they are not.
        endpoints: Where probes and metrics are; None before they are served, and where they are not.
    """

    def __init__(self, cluster: Cluster, operators: Sequence[Operator[Any]], options: ManagerOptions) -> None:
        names = [operator.name for operator in operators]
        if not names or len(set(names)) < len(names):
            raise BuildError([f"operators of a process need names of their own, got {', '.join(names) or 'none'}"])
        self._cluster = cluster
        self._operators = tuple(operators)
        self._options = options
        self._admitted = options.admission.webhooks(operators) if options.admission is not None else None
        self._counts = _Counts(options) if options.metrics else None
        self._controllers: tuple[Controller, ...] = ()
        self._stop = asyncio.Event()
        self._working = asyncio.Event()
        self.health: Final = Health(options.clock, options.watch_failure_timeout)
        self.endpoints: Endpoints | None = None
        self.webhooks: WebhookServer | None = None

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers at work, in the order of the operators; none while another process leads."""
        return self._controllers

    @property
    def registry(self) -> CollectorRegistry | None:
        """Where the metrics are; None where nothing is counted."""
        return self._counts.registry if self._counts is not None else None

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    async def started(self) -> None:
        """Wait until the operators are at work."""
        await self._working.wait()

    def stop(self) -> None:
        """Finish what is under way, begin nothing, and give the lease back; `run` then returns."""
        self._stop.set()
        for controller in self._controllers:
            controller.queue.close()

    def tell(self, event: WatchEvent) -> None:
        """Take an event from a watch of somebody else's.

        Args:
            event: What happened.
        """
        for controller in self._controllers:
            controller.tell(event)

    async def run(self) -> None:
        """Work until `stop` is called, or until something ends that must not.

        Raises:
            ExceptionGroup: With what ended it.
            ConfigError: If endpoints or webhooks cannot be served, or a kind has more objects than may be held.
            ApiError: If the certificate of the webhooks cannot be had from the cluster.
            asyncio.CancelledError: If cancelled; passes are, too.
        """
        async with AsyncExitStack() as stack:
            await self._admit(stack)
            listen = self._options.listen
            if listen is not None:
                health, registry = self.health, self.registry
                served = serving(
                    registry=registry, live=health.live, ready=health.ready, host=listen.host, port=listen.port
                )
                self.endpoints = await stack.enter_async_context(served)
            await self._until_stopped()

    async def _admit(self, stack: AsyncExitStack) -> None:
        """Serve the webhooks; every process does, also one that does not lead."""
        admission = self._options.admission
        if admission is None:
            for operator in self._operators:
                if operator.webhooks:
                    _log.info("the webhooks of %s are not served here: there is no `admission`", operator.name)
        elif self._admitted is not None:
            self.webhooks = await stack.enter_async_context(admission.serving(self._cluster, self._admitted))
            self.health.webhooks = self.webhooks.problem

    async def _until_stopped(self) -> None:
        terms = asyncio.create_task(self._terms(), name="terms")
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait({terms, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._controllers or terms.done():
                await terms
        finally:
            # Who waits for a lease waits for ever.
            for task in (terms, stopping):
                task.cancel()
            await asyncio.gather(terms, stopping, return_exceptions=True)

    async def _terms(self) -> None:
        while not self._stop.is_set():
            try:
                async with self._leading() as cluster:
                    await self._term(cluster)
            except LeaseLostError as error:
                _log.warning("%s", error)

    @asynccontextmanager
    async def _leading(self) -> AsyncIterator[Cluster]:
        lease = self._options.lease
        if lease is None:
            yield self._cluster
            return
        async with lead(
            self._cluster,
            lease.name,
            namespace=lease.namespace,
            identity=lease.identity,
            clock=self._options.clock,
            timing=lease.timing,
            chance=self._options.random,
        ) as leadership:
            yield leadership.cluster

    async def _term(self, cluster: Cluster) -> None:
        """Work until the queues are closed."""
        async with AsyncExitStack() as stack:
            cache = await stack.enter_async_context(self._cache(cluster))
            self._controllers = tuple([await self._controller(each, cache, cluster, stack) for each in self._operators])
            stack.callback(self._end_term)
            self._look_at(cache)
            if self._stop.is_set():
                return
            async with supervised_tasks() as start, asyncio.TaskGroup() as tasks:
                start(self._look_after(cache), "watches")
                runs = [
                    tasks.create_task(each.run(farewell=self._options.shutdown_timeout), name=each.operator.name)
                    for each in self._controllers
                ]
                self._working.set()
                # A group takes a task that was cancelled for done; this does not.
                await asyncio.gather(*runs)

    async def _look_after(self, cache: CachedCluster) -> None:
        """Start tasks of the cache anew that somebody ended, and say which owners cannot be read, until cancelled.

        In steady state nobody else would start them.
        """
        told = ""
        while True:
            await asyncio.sleep(_ROUND)
            unread = self.health.owners()
            if unread and unread != told:
                _log.warning("%s", unread)
            told = unread
            for state in cache.informers:
                if state.problem:
                    try:
                        await cache.cache(state.api_version, state.kind, namespace=state.namespace)
                    except ApiError:
                        continue  # the cache goes on trying, and tells what is wrong

    def _end_term(self) -> None:
        self._controllers = ()
        self._working.clear()
        self._look_at(None)

    def _look_at(self, cache: CachedCluster | None) -> None:
        self.health.look_at(cache, self._controllers)
        if self._counts is not None:
            self._counts.state.look_at(cache)

    def _cache(self, cluster: Cluster) -> CachedCluster:
        return CachedCluster(
            cluster,
            uncached={kind for operator in self._operators for kind in operator.uncached},
            per_namespace=bool(self._options.namespaces),
            max_objects=self._options.max_objects,
            pace=self._options.cache_timing,
        )

    async def _controller(
        self, operator: Operator[Any], cache: CachedCluster, cluster: Cluster, stack: AsyncExitStack
    ) -> Controller:
        recorders = [*operator.recorders]
        forgetting = [operator.on_deleted] if operator.on_deleted is not None else []
        if self._counts is not None:
            counting = self._counts.recorder(operator.name)
            recorders.append(counting)
            forgetting.append(counting.remove_conditions_for)
        if self._options.events:
            poster = broadcasting_events(cluster, controller=operator.controller, clock=self._options.clock)
            posted = await stack.enter_async_context(poster)
            recorders.append(
                rewrite_events(posted, operator.event_formatter) if operator.event_formatter is not None else posted
            )
        means = ControllerDeps(
            clock=self._options.clock,
            recorder=multi_recorder(*recorders),
            forget=partial(_forget, forgetting),
            namespaces=tuple(self._options.namespaces),
            metrics=self._counts.queues if self._counts is not None else None,
            random=self._options.random,
        )
        return Controller(operator, cache, means)


class _Counts:
    """What the operators of a process count in: one set of metrics for all of them.

    Args:
        options: Names and registers them.
    """

    def __init__(self, options: ManagerOptions) -> None:
        self._first = PrometheusRecorder(options.metrics_prefix, controller="", registry=options.registry)
        self.registry: Final = self._first.registry
        self.queues: Final = QueueMetrics(self.registry)
        self.state: Final = StateMetrics(self.registry, options.lease.name if options.lease is not None else "")

    def recorder(self, name: str) -> PrometheusRecorder:
        """Return the recorder of an operator."""
        return self._first.for_controller(name)


def _forget(forgetting: Sequence[Callable[[ObjectKey], object]], owner: ObjectKey) -> None:
    """Tell all who keep something of an owner that it is gone."""
    for forget in forgetting:
        forget(owner)
