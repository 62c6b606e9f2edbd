"""`HpaController`: watch autoscalers, and reconcile each of them once per sync period, several in parallel."""

import asyncio
import logging
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster, WatchEvent
from ocf.cluster.cache import CachedCluster
from ocf.cluster.protocol import EventType
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.hpa.modes import BUILT_IN, OWN, Mode
from ocf.controllers.hpa.reconciler import Reconciler, ReconcilerDeps, ReportDryRun
from ocf.controllers.hpa.snapshot import DerivedScaleGetter, SnapshotReader, SubresourceScaleGetter
from ocf.controllers.hpa.snapshot.pods import PodIndex
from ocf.controllers.hpa.take_over import Policy
from ocf.controllers.metrics_client import MetricsClient, RESTMapper
from ocf.controllers.metrics_client.retry import PathReader
from ocf.errors import ApiError, ConfigError, ForbiddenError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.sharding.slots import SlotLostError, Slots
from ocf.runtime.workqueue import FixedDelay, WorkQueue, work
from ocf.runtime.workqueue.metrics import QueueMetrics

__all__ = ["HpaController", "HpaControllerOptions"]

_log: Final = logging.getLogger(__name__)

_NAME: Final = "horizontalpodautoscaler"
_PODS: Final = ("v1", "Pod")
_RETRY: Final = timedelta(seconds=1)
# A sync waits for a Scale and for metrics, if need be twice; five times the limit of one response is a hang.
_STUCK: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaControllerOptions:
    """The settings of the controller.

    Args:
        mode: Which autoscalers it runs.
        settings: The settings that the built-in controller has as flags.
        take_over: With `Mode.REPLACE`: also run autoscalers that another controller ran before.
        take_over_delay: With `Mode.REPLACE`: how long an autoscaler is claimed before it is run. An HPA controller that
            still runs removes the claim within its sync period, so this must be longer. Zero only leaves an autoscaler
            to a controller that writes its status later.
        request_timeout: How long to wait for each response of a metrics API, or for a Scale. A later one counts as
            missing. One worker waits; a shorter time keeps more of them free while an API does not respond. By default
            it is that of the API server, which then ends the request itself, as the built-in controller sees it.
        report: With `Mode.DRY_RUN`: receives what would be done, next to what was done.
        sharding: Whether the replicas divide the autoscalers by namespace, so that all of them are at work.

    Raises:
        ConfigError: If the delay is negative, the timeout is not positive, `take_over` is set in another mode, or a dry
            run is sharded.
    """

    mode: Mode = Mode.OWN_KIND
    settings: Settings = field(default_factory=Settings)
    take_over: bool = False
    take_over_delay: timedelta = timedelta(seconds=30)
    request_timeout: timedelta = timedelta(minutes=1)
    report: ReportDryRun | None = None
    sharding: bool = False

    def __post_init__(self) -> None:
        if self.take_over and self.mode is not Mode.REPLACE:
            raise ConfigError(f"taking over is only possible in mode {Mode.REPLACE}, not in mode {self.mode}")
        if self.sharding and not self.mode.writes:
            raise ConfigError(f"sharding needs a mode that writes, not mode {self.mode}, which has no lease")
        if self.take_over_delay < timedelta(0):
            seconds = self.take_over_delay.total_seconds()
            raise ConfigError(f"take_over_delay must be at least 0 s, got {seconds:g} s")
        if self.request_timeout <= timedelta(0):
            seconds = self.request_timeout.total_seconds()
            raise ConfigError(f"request_timeout must be more than 0 s, got {seconds:g} s")

    @property
    def claims(self) -> Policy:
        """The rules of claims. Without a delay no other controller is expected, and a new autoscaler runs at once."""
        return Policy(self.take_over, self.take_over_delay, proven=not self.take_over_delay)


class HpaController:
    """The controller: a `Runnable` that starts without any state, as the built-in controller does.

    Args:
        cluster: The cluster; it rejects writes once the lease is lost.
        metrics: The client of the metrics APIs.
        options: The settings.
        clock: Gives the time of each reconcile.
        events: The event recorder; None records no events.
        monitor: The metrics of the controller; None keeps them private.
        queue_metrics: The metrics of the work queue; None counts nothing.
        reader: The API server, if the cluster is one: a kind is then found whatever version a reference names.
        shards: The slots of namespaces whose autoscalers this process reconciles; None for all.

    Example:
        >>> from ocf_server import EmbeddedCluster
        >>> from ocf.testing.fake_metrics import FakeMetricsClient
        >>> from ocf.testing import run_in_virtual_time
        >>> async def main() -> str:
        ...     options = HpaControllerOptions(mode=Mode.REPLACE)
        ...     controller = HpaController(EmbeddedCluster(), FakeMetricsClient(), options=options)
        ...     running = asyncio.create_task(controller.run())
        ...     await asyncio.sleep(60)
        ...     controller.stop()
        ...     await running
        ...     return "stopped"
        >>> run_in_virtual_time(main())
        'stopped'
    """

    def __init__(  # noqa: PLR0913 (what it works with, each with a default)
        self,
        cluster: Cluster,
        metrics: MetricsClient,
        *,
        options: HpaControllerOptions,
        clock: Clock | None = None,
        events: Recorder | None = None,
        monitor: HpaMonitor | None = None,
        queue_metrics: QueueMetrics | None = None,
        reader: PathReader | None = None,
        shards: Slots | None = None,
    ) -> None:
        self._shards = shards
        self._cluster = cluster
        self._metrics = metrics
        self._options = options
        self._clock = clock or SystemClock()
        self._events = events
        self._monitor = monitor or HpaMonitor()
        self._queue_metrics = queue_metrics
        self._reader = reader
        delays = FixedDelay(options.settings.sync_period)
        self._queue: WorkQueue[ObjectKey] = WorkQueue(_NAME, delays=delays, metrics=queue_metrics)
        self._generations: dict[ObjectKey, int] = {}
        self._caches: tuple[CachedCluster, ...] = ()
        self._working = False
        self._reconciler: Reconciler | None = None
        self._starting: asyncio.Timeout | None = None

    @property
    def reconciler(self) -> Reconciler | None:
        """The reconciler, with the state of all autoscalers; None while `run` does not run."""
        return self._reconciler

    @property
    def working(self) -> bool:
        """Whether the caches are in sync, and autoscalers are reconciled."""
        return self._working

    def ready(self) -> str:
        """Return why autoscalers are not reconciled, or which caches are stale; empty if all is well."""
        if not self._working:
            return "autoscalers and pods are not read yet"
        return "; ".join(str(problem) for cache in self._caches for problem in cache.problems)

    def live(self) -> str:
        """Return that a reconcile does not end; empty if all do."""
        longest = max(self._queue.durations, default=0.0)
        limit = _STUCK * self._options.request_timeout.total_seconds()
        return f"a reconcile has been running for {longest:.0f} s, more than {limit:.0f} s" if longest > limit else ""

    def stop(self) -> None:
        """Start no more reconciles; `run` returns when the running ones have ended."""
        self._queue.close()
        if self._starting is not None:
            # Ends the wait for caches that may never be in sync, such as those of a server that is down.
            self._starting.reschedule(asyncio.get_running_loop().time())
            self._starting = None

    async def run(self) -> None:
        """Reconcile autoscalers until stopped or cancelled.

        Raises:
            ConfigError: If a kind that has to be read does not exist, or may not be read.
        """
        try:
            async with AsyncExitStack() as stack:
                started = await self._start(stack)
                if started is not None:
                    self._reconciler, cached = started
                    await self._work(self._reconciler, cached)
        finally:
            self._working, self._reconciler = False, None
            # The next leader, another process, has these gauges from now on; both would be added up.
            self._monitor.forget_all()

    async def _start(self, stack: AsyncExitStack) -> tuple[Reconciler, CachedCluster] | None:
        """Fill the caches; return None if `stop` is called before they are in sync."""
        if self._queue.closed:
            return None
        starting = asyncio.timeout(None)
        try:
            async with starting:
                self._starting = starting
                return await self._prepare(stack)
        except TimeoutError:
            if not starting.expired():
                raise
            return None
        finally:
            self._starting = None

    async def _prepare(self, stack: AsyncExitStack) -> tuple[Reconciler, CachedCluster]:
        settings = self._options.settings
        # The field manager of the last status write is needed for autoscalers, and for no other kind.
        autoscalers = await stack.enter_async_context(CachedCluster(self._cluster))
        others = await stack.enter_async_context(CachedCluster(self._cluster, keeps_manager=lambda _: False))
        self._caches = (autoscalers, others)
        kinds = None if self._reader is None else RESTMapper(self._reader)
        scales = DerivedScaleGetter(others, SubresourceScaleGetter(self._cluster, self._reader, kinds=kinds))
        observer = SnapshotReader(
            others,
            self._metrics,
            scales=scales,
            pods=PodIndex(others),
            settings=settings,
            clock=self._clock,
            request_timeout=self._options.request_timeout,
        )
        await stack.enter_async_context(observer)
        deps = ReconcilerDeps(
            cluster=autoscalers,
            leases=self._cluster,
            targets=others,
            snapshots=observer,
            clock=self._clock,
            monitor=self._monitor,
            mode=self._options.mode,
            settings=settings,
            events=self._events,
            kinds=kinds,
            take_over=self._options.claims,
            report=self._options.report,
        )
        reconciler = Reconciler(deps)
        await _wait_for_sync(others, _PODS)
        for kind in self._watched_kinds:
            await _wait_for_sync(autoscalers, kind)
            # The first reconcile needs the complete index of targets.
            for autoscaler in (await autoscalers.list(*kind)).items:
                if kind == self._options.mode.watched and self._holds(ObjectKey.of(autoscaler)):
                    reconciler.track(autoscaler)
                else:
                    reconciler.target_index.put(autoscaler)
        return reconciler, autoscalers

    @property
    def _watched_kinds(self) -> tuple[tuple[str, str], ...]:
        """The kinds of autoscalers that are watched; in mode own-kind, the built-in kind may conflict."""
        return (OWN, BUILT_IN) if self._options.mode is Mode.OWN_KIND else (BUILT_IN,)

    async def _work(self, reconciler: Reconciler, cached: CachedCluster) -> None:
        workers = self._options.settings.workers
        _log.info("running %s in mode %s with %d workers", self._options.mode.watched[1], self._options.mode, workers)
        async with asyncio.TaskGroup() as tasks:
            followers = [tasks.create_task(self._watch(reconciler, cached, kind)) for kind in self._watched_kinds]
            if self._shards is not None:
                followers.append(tasks.create_task(self._take_up(reconciler, cached, self._shards)))
            self._working = True
            reconcile = partial(self._reconcile, reconciler)
            await work(self._queue, reconcile, workers=workers, metrics=self._queue_metrics)
            for follower in followers:
                follower.cancel()

    def _holds(self, key: ObjectKey) -> bool:
        """Return whether reconciles of an autoscaler may begin in this process."""
        return self._shards is None or self._shards.accepts("", key.namespace)

    async def _reconcile(self, reconciler: Reconciler, key: ObjectKey) -> timedelta | None:
        """Reconcile an autoscaler, unless it is one of another replica, or becomes one."""
        if self._shards is None:
            return await reconciler.reconcile(key)
        with suppress(SlotLostError):
            async with self._shards.working(self._shards.slot_of("", key.namespace)):
                return await reconciler.reconcile(key)
        # The other replica starts without a history as well, and has the gauges from now on.
        reconciler.forget(key)
        return None

    async def _take_up(self, reconciler: Reconciler, cached: CachedCluster, shards: Slots) -> None:
        """Reconcile the autoscalers of each slot that this process takes, until cancelled.

        They are spread over the sync period, by namespace, since those of a namespace share the reads of its metrics:
        after the end of a replica there may be thousands.
        """
        async for slots in shards.gained():
            found = (await cached.list(*self._options.mode.watched)).items
            taken = [one for one in found if shards.slot_of("", ObjectKey.of(one).namespace) in slots]
            homes = sorted({ObjectKey.of(one).namespace for one in taken})
            place = {home: number / len(homes) for number, home in enumerate(homes)}
            for autoscaler in taken:
                key = ObjectKey.of(autoscaler)
                self._queue.add_after(key, reconciler.track(autoscaler) * place[key.namespace])

    async def _watch(self, reconciler: Reconciler, cached: CachedCluster, kind: tuple[str, str]) -> None:
        run = kind == self._options.mode.watched
        async with aclosing(cached.subscribe(*kind)) as events:
            async for event in events:
                if run:
                    self._handle_event(reconciler, event)
                else:
                    self._handle_other(reconciler, event)

    def _handle_other(self, reconciler: Reconciler, event: WatchEvent) -> None:
        """Record an autoscaler that another controller runs; where it gives up a target, run ours at once."""
        # By the old object: one that now names another target has given up the former one.
        before = reconciler.target_index.users_of(event.old or event.object)
        if event.type is EventType.DELETED:
            reconciler.target_index.drop(event.object)
        else:
            reconciler.target_index.put(event.object)
        if before == reconciler.target_index.users_of(event.old or event.object):
            return
        api_version, kind = self._options.mode.watched
        namespace = str(event.object["metadata"].get("namespace") or "")
        for user in before:
            if user.kind == kind:
                self._queue.add(ObjectKey(api_version, kind, user.name, namespace))

    def _handle_event(self, reconciler: Reconciler, event: WatchEvent) -> None:
        key = ObjectKey.of(event.object)
        if event.type is EventType.DELETED:
            reconciler.target_index.drop(event.object)
            reconciler.forget(key)
            self._generations.pop(key, None)
            # Its name may be used again, and the new autoscaler starts with a period of its own.
            self._queue.unschedule(key)
            self._queue.forget(key)
            return
        if not self._holds(key):
            reconciler.target_index.put(event.object)
            return
        period = reconciler.track(event.object)
        if self._is_due_now(key, event.object):
            self._queue.add(key)
        else:
            # As in the built-in controller: a new autoscaler waits for its period, and a queued one is not delayed.
            self._queue.add_after(key, period)

    def _is_due_now(self, key: ObjectKey, autoscaler: Manifest) -> bool:
        """Return whether to reconcile an autoscaler now: since Kubernetes 1.37, if it or its spec is new."""
        if not self._options.settings.features.observed_generation:
            return False
        generation = int(autoscaler["metadata"].get("generation") or 0)
        known, self._generations[key] = self._generations.get(key), generation
        return known != generation


async def _wait_for_sync(cached: CachedCluster, kind: tuple[str, str]) -> None:
    """Wait until the cache of a kind is in sync, without a time limit."""
    while True:
        try:
            await cached.cache(*kind)
        except (ForbiddenError, NotFoundError) as error:
            remedy = "ocf hpa-controller manifests prints what has to be applied first"
            raise ConfigError(f"{kind[1]} ({kind[0]}) cannot be read: {error.message}; {remedy}") from error
        except ApiError as error:
            _log.warning("%s cannot be read yet: %s", kind[1], error.message)
            await asyncio.sleep(_RETRY.total_seconds())
        else:
            return
