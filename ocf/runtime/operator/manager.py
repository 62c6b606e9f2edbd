"""`Manager`: the operators of one process, and all that they share.

Everything that runs is in task groups, so no task can end unnoticed: a task that must not end ends the process with
it. Probes are served from the start to the end of the process. Event broadcaster and workers live for one term as a
leader, or once without leader election; so do the caches, unless the process fills them while it waits for the lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster, WatchEvent
from ocf.cluster.cache import CachedCluster
from ocf.component.external.calls import ExternalCalls
from ocf.concepts import Recorder
from ocf.concepts.tracing import tracing_with
from ocf.errors import BuildError, ConfigError, leaf_errors
from ocf.objects import ObjectKey
from ocf.objects.managed_fields import field_manager
from ocf.runtime.admission.policies import policy_problems, registered_policies
from ocf.runtime.admission.webhook_configurations import Service
from ocf.runtime.events.poster import broadcasting_events
from ocf.runtime.events.recorders import FoldedEvents, multi_recorder, rewrite_events
from ocf.runtime.monitoring.http_server import Endpoints, serving
from ocf.runtime.monitoring.metrics import PrometheusRecorder
from ocf.runtime.operator.background import ENDED_EVENT, Background, happened_to_process, in_first_slot
from ocf.runtime.operator.controller import Controller
from ocf.runtime.operator.controller_deps import ControllerDeps
from ocf.runtime.operator.health import Health
from ocf.runtime.operator.leader_runner import LeaderRunner
from ocf.runtime.operator.operator import Kind, Operator
from ocf.runtime.operator.operator_caches import OperatorCaches, read_by_name, selection_problems, selections
from ocf.runtime.operator.options import ManagerOptions, membership
from ocf.runtime.operator.owners import Owners, SelectedObjects
from ocf.runtime.operator.state_metrics import StateMetrics
from ocf.runtime.operator.supervised_tasks import StartTask, supervised_tasks
from ocf.runtime.operator.uncached_kinds import UncachedKinds
from ocf.runtime.operator.webhook_options import serving_webhooks
from ocf.runtime.sharding.shard_metrics import ShardMetrics
from ocf.runtime.sharding.sharded_children import ShardedChildren
from ocf.runtime.sharding.sharded_objects import ShardedObjects
from ocf.runtime.workqueue.metrics import QueueMetrics

if TYPE_CHECKING:
    from ocf.cluster.cache.transform import NeedsContent
    from ocf.runtime.admission.server import WebhookServer
    from ocf.runtime.page.process import Page
    from ocf.runtime.sharding.membership import Membership

__all__ = ["Manager", "require_together"]

_log: Final = logging.getLogger(__name__)


class Manager:
    """The operators of one process: `run` runs them, `stop` stops them gracefully.

    Args:
        cluster: The cluster of the objects.
        operators: The operators; their names must differ.
        options: The settings of the process.
        page: A page that is served already, and outlives the operators; None serves the one of the options.

    Raises:
        BuildError: If there is no operator, two have the same name, two have webhooks of the same kind and name, or two
            set the same condition or the same finalizer of the same owners.

    Attributes:
        health: The checks of the probes.
        webhooks: The webhook server; None before it is started, and where webhooks are not served.
        endpoints: The address of probes and metrics; None before they are served, and where they are not.
        page: The page of owners and reconciles; None where it is not served.
    """

    def __init__(
        self,
        cluster: Cluster,
        operators: Sequence[Operator[Any]],
        options: ManagerOptions,
        *,
        page: Page | None = None,
    ) -> None:
        require_together(operators)
        self.page: Page | None = page
        self._serves_page = page is None
        if page is None and options.page is not None:
            # What it needs is loaded only where there is one.
            from ocf.runtime.page.process import Page

            self.page = Page(options.page, options.clock)
        if self.page is not None:
            cluster = self.page.counting(cluster)
        self._cluster = cluster
        self._operators = tuple(operators)
        self._options = options
        self._webhooks = options.admission.webhooks(operators) if options.admission is not None else None
        self._metrics = _ProcessMetrics(options) if options.metrics else None
        self._controllers: tuple[Controller, ...] = ()
        self._posted: dict[str, Recorder] = {}
        self._started = asyncio.Event()
        self._stop = asyncio.Event()
        self._shards: Membership | None = None
        if options.sharding is not None and options.lease is not None:
            self._shards = membership(cluster, options.lease, options.sharding, options.clock, options.random)
        self._runner = LeaderRunner(
            cluster if self._shards is None else self._shards.slots.fenced(cluster),
            self._open_term,
            lease=options.lease if self._shards is None else None,
            clock=options.clock,
            random=options.random,
            stopped=self._stop,
        )
        lease = self._runner.lost if options.lease is not None else None
        self.health: Final = Health(options.clock, options.watch_failure_timeout, lease)
        if self._shards is not None:
            self.health.set_shards(self._shards)
            if self._metrics is not None:
                ShardMetrics(self._metrics.registry, self._shards)
        self._background = Background(operators, cluster, partial(self._cache, cluster), options, self._stop)
        self._waiting: OperatorCaches | None = None
        """The caches that outlive a term; None if each term has its own."""
        if self._background.opens:
            self.health.expect("lifespan", "the lifespan has not opened yet")
        if self._webhooks is not None:
            self.health.expect("webhooks", "the webhooks are not served yet")
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
            Exception: The error of a lifespan.
            ConfigError: If a lifespan does not open in time, endpoints or webhooks cannot be served, or a declared kind
                has more objects than `max_objects`, or could not be read within `cache_sync_timeout`.
            ApiError: If the certificate of the webhooks cannot be read from the cluster, or stored in it.
            asyncio.CancelledError: If cancelled; running reconciles are cancelled, too.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(tracing_with(self._options.tracer))
            listen = self._options.listen
            if listen is not None:
                served = serving(
                    registry=self.registry,
                    live=self.health.live,
                    ready=self.health.ready,
                    notes=self.health.notes,
                    host=listen.host,
                    port=listen.port,
                )
                self.endpoints = await stack.enter_async_context(served)
            if self.page is not None and self._serves_page:
                await stack.enter_async_context(self.page.serving(self._cluster))
            if not await self._background.open(stack):
                return
            if self._background.opens:
                self.health.has_started("lifespan")
            await self._register_policies(stack)
            await self._serve_webhooks(stack)
            if self._shards is not None:
                await stack.enter_async_context(self._shards.joined())
            waits = self._options.lease is not None and self._options.warm_standby and self._shards is None
            if not (waits or self._background.runs_in_each_replica):
                await self._runner.run()
                return
            async with supervised_tasks() as start:
                self._background.start(start, on_leader=False)
                if waits:
                    await self._fill_caches(stack, start)
                await self._runner.run()

    @property
    def _uncached(self) -> UncachedKinds:
        uncached = [kind for operator in self._operators for kind in operator.uncached]
        return UncachedKinds(uncached, [kind for operator in self._operators for kind in operator.declared_kinds])

    async def _fill_caches(self, stack: AsyncExitStack, start: StartTask) -> None:
        """Fill the caches before the process leads, and keep them until the stack is closed."""
        opened = OperatorCaches.open(self._cluster, self._operators, self._cache)
        self._waiting = caches = await stack.enter_async_context(opened)
        declared = caches.declared(tuple(self._options.namespaces))
        self.health.set_waiting(caches.all, declared)
        if self._metrics is not None:
            self._metrics.state.set_waiting(caches.all)
        start(caches.fill(declared), "caches")

    async def _register_policies(self, stack: AsyncExitStack) -> None:
        """Apply the admission policies until the stack is closed, in a process that registers its webhooks itself."""
        admission = self._options.admission
        policies = [policy for operator in self._operators for policy in operator.policies]
        if policies and admission is not None and admission.register:
            names = field_manager(f"{self._operators[0].name}-policies")
            registered = registered_policies(
                self._cluster,
                policies,
                namespace=admission.secret_namespace,
                field_manager=names,
                shared=isinstance(admission.address, Service),
            )
            await stack.enter_async_context(registered)

    async def _serve_webhooks(self, stack: AsyncExitStack) -> None:
        """Serve the webhooks, whether the process leads or not."""
        admission = self._options.admission
        if admission is None:
            for operator in self._operators:
                if operator.serves_webhooks:
                    _log.info("the webhooks of %s are not served here: `admission` is not set", operator.name)
        elif self._webhooks is not None:
            cache = self._background.cache
            served = serving_webhooks(self._cluster, self._webhooks, admission, registry=self.registry, cache=cache)
            self.webhooks = await stack.enter_async_context(served)
            converted = {(resource.group, resource.kind) for resource in self._webhooks.conversions}
            self.health.set_webhooks(self.webhooks, converted)

    @asynccontextmanager
    async def _open_term(self, cluster: Cluster) -> AsyncIterator[_Term]:
        async with AsyncExitStack() as stack:
            if self._waiting is not None:
                caches = self._waiting.writing_to(cluster)
            else:
                slots = self._shards.slots if self._shards is not None else None
                opened = OperatorCaches.open(cluster, self._operators, self._cache, slots, self._options.namespaces)
                caches = await stack.enter_async_context(opened)
            self._background.begin_term(stack, caches.shared)
            self._controllers = tuple(
                [await self._controller(each, caches, cluster, stack) for each in self._operators]
            )
            # The controllers have ended by then: no call outlives them.
            external = cluster.apply_cache.shared(ExternalCalls)
            stack.push_async_callback(external.cancel)
            stack.callback(self._end_term)
            stack.callback(cluster.apply_cache.reserve_conditions, {})
            cluster.apply_cache.reserve_conditions(_declared_conditions(self._operators))
            self._set_caches(caches.all, external)
            await self._background.open_term(stack, self._posted)
            yield _Term(
                caches,
                self._controllers,
                self.health,
                self._started,
                announce=partial(self._announce, cluster),
                background=self._start_background,
            )

    def _start_background(self, start: StartTask) -> None:
        """Start the tasks that run in one replica only: the leader, or the one that holds the first slot."""
        begin = partial(self._background.start, on_leader=True)
        if self._shards is None:
            begin(start)
        else:
            start(in_first_slot(self._shards.slots, begin), "tasks of the first slot")

    async def _announce(self, cluster: Cluster, operator: str, problem: str) -> None:
        """Record why the process ends, in an event about its lease."""
        recorder = self._posted.get(operator)
        await happened_to_process(cluster, self._options.lease, recorder, ENDED_EVENT, problem, action="Start")

    def _end_term(self) -> None:
        self._posted.clear()
        self._controllers = ()
        self._started.clear()
        self._set_caches(())

    def _set_caches(self, caches: Sequence[CachedCluster], external: ExternalCalls | None = None) -> None:
        self.health.set_term(caches, self._controllers)
        if self.page is not None:
            self.page.view.set_term(caches, self._controllers)
        if self._metrics is not None:
            paused = {each.operator.name: partial(_paused, each) for each in self._controllers}
            self._metrics.state.set_term(caches, paused, external)

    def _cache(
        self,
        cluster: Cluster,
        needs_content: Mapping[Kind, NeedsContent] | None = None,
        per_namespace: bool = False,  # noqa: FBT001, FBT002 (of `OperatorCaches.open`)
    ) -> CachedCluster:
        # A selection of owners has only these, which are read in any case.
        of_owners = isinstance(cluster, SelectedObjects | ShardedObjects)
        return CachedCluster(
            cluster,
            uncached=() if of_owners else self._uncached,
            selections={} if of_owners else selections(self._operators),
            read_by_name={} if of_owners else read_by_name(self._operators),
            per_namespace=per_namespace or bool(self._options.namespaces),
            max_objects=self._options.max_objects,
            needs_content=needs_content,
            division=cluster if isinstance(cluster, ShardedChildren) else None,
            timing=self._options.cache_timing,
        )

    async def _controller(
        self, operator: Operator[Any], caches: OperatorCaches, cluster: Cluster, stack: AsyncExitStack
    ) -> Controller:
        recorders = [*operator.recorders]
        folding: FoldedEvents | None = None
        on_deleted = [operator.on_deleted] if operator.on_deleted is not None else []
        if self._metrics is not None:
            counting = self._metrics.recorder(operator.name)
            recorders.append(counting)
            on_deleted.append(counting.remove_conditions_for)
        if self._options.events:
            poster = broadcasting_events(cluster, controller=operator.controller, clock=self._options.clock)
            self._posted[operator.name] = posted = await stack.enter_async_context(poster)
            formatter = operator.event_formatter
            if operator.fold_events:
                folding = FoldedEvents(posted, formatter)
            recorders.append(folding or (posted if formatter is None else rewrite_events(posted, formatter)))
        folded = folding.reconciling if folding is not None else nullcontext
        timeline = self.page.recorder(operator.name, folded) if self.page is not None else None
        if timeline is not None:
            recorders.append(timeline)
        deps = ControllerDeps(
            clock=self._options.clock,
            recorder=multi_recorder(*recorders),
            forget=partial(_forget_owner, on_deleted),
            namespaces=tuple(self._options.namespaces),
            metrics=self._metrics.queues if self._metrics is not None else None,
            shutdown_timeout=self._options.shutdown_timeout,
            cache_sync_timeout=self._options.cache_sync_timeout,
            random=self._options.random,
            values=self._background.values(operator.name),
            folding=folded if timeline is None else timeline.reconciling,
            timeline=timeline,
        )
        sharded = caches.sharded.get(operator.name)
        owners = Owners(operator, caches.shared, caches.owners_of(operator), cluster, sharded)
        return Controller(operator, caches.shared, owners, deps)


class _Term:
    """The controllers of one term, as one `Runnable`."""

    def __init__(
        self,
        caches: OperatorCaches,
        controllers: Sequence[Controller],
        health: Health,
        started: asyncio.Event,
        *,
        announce: Callable[[str, str], Awaitable[None]],
        background: Callable[[StartTask], None],
    ) -> None:
        self._announce = announce
        self._background = background
        self._caches = caches
        self._controllers = controllers
        self._health = health
        self._started = started

    async def run(self) -> None:
        """Run the controllers until `stop` is called."""
        async with supervised_tasks() as start, asyncio.TaskGroup() as tasks:
            start(self._caches.revive(self._unread_logger()), "watches")
            self._background(start)
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

    def _unread_logger(self) -> Callable[[], None]:
        """Return a function that logs owners that cannot be read, unless it has logged the same before."""
        logged = ""

        def log() -> None:
            nonlocal logged
            unread = self._health.owners()
            if unread and unread != logged:
                _log.warning("%s", unread)
            logged = unread

        return log


def require_together(operators: Sequence[Operator[Any]]) -> None:
    """Check that operators can run in one process.

    Raises:
        BuildError: If there is no operator, two have the same name, or two set the same condition or the same finalizer
            of the same owners.
    """
    names = [operator.name for operator in operators]
    if not names or len(set(names)) < len(names):
        raise BuildError([f"the operators of a process need different names, got {', '.join(names) or 'no operator'}"])
    policies = policy_problems([policy for operator in operators for policy in operator.policies])
    shared = [*_shared_conditions(operators), *_shared_finalizers(operators), *policies]
    shared += selection_problems(operators)
    if shared:
        raise BuildError(shared)


def _shared_conditions(operators: Sequence[Operator[Any]]) -> list[str]:
    """Return a problem for each two operators that declare the same condition of the same owners."""
    return [
        f'"{one.name}" and "{other.name}" both set the condition "{name}" of each {one.owner.kind}: '
        "use different types, or each would overwrite the condition of the other one"
        for one, other in combinations(operators, 2)
        if one.owner_group_kind == other.owner_group_kind
        for name in sorted(one.declared_conditions & other.declared_conditions)
    ]


def _shared_finalizers(operators: Sequence[Operator[Any]]) -> list[str]:
    """Return a problem for each two operators of which one would remove the finalizer of the other one."""
    return [
        f'"{one.name}" and "{other.name}" both remove the finalizer "{name}" of each {one.owner.kind}: '
        "use different names, or one of them would release the owner before the other one has cleaned up"
        for one, other in combinations(operators, 2)
        if one.owner_group_kind == other.owner_group_kind
        for name in sorted({*one.finalizers.taken_from(other.finalizers), *other.finalizers.taken_from(one.finalizers)})
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
        lease = options.lease.name if options.lease is not None and options.sharding is None else ""
        self.state: Final = StateMetrics(self.registry, lease, options.clock)

    def recorder(self, name: str) -> PrometheusRecorder:
        """Return the recorder of an operator."""
        return self._first.for_controller(name)


def _paused(controller: Controller) -> int:
    return controller.paused


def _forget_owner(on_deleted: Sequence[Callable[[ObjectKey], object]], owner: ObjectKey) -> None:
    """Drop everything that is kept of a deleted owner."""
    for forget in on_deleted:
        forget(owner)
