"""`HpaController`: autoscalers from a watch, one round of each per sync period, several side by side."""

import asyncio
import logging
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster, EventType, WatchEvent
from ocf.cluster.cache import CachedCluster
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.controllers.hpa.metrics import Monitor
from ocf.controllers.hpa.modes import BUILT_IN, OWN, Mode
from ocf.controllers.hpa.reconciler import Reconciler, ReconcilerDeps, Report
from ocf.controllers.hpa.settings import check_settings
from ocf.controllers.hpa.snapshot import DerivedScaleGetter, SnapshotReader, SubresourceScaleGetter
from ocf.controllers.metrics_client import MetricsClient, PathReader, RESTMapper
from ocf.errors import ApiError, ConfigError, ForbiddenError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.workqueue import FixedDelay, QueueMetrics, WorkQueue, work

__all__ = ["ControllerOptions", "HpaController"]

_log: Final = logging.getLogger(__name__)

_NAME: Final = "horizontalpodautoscaler"
_PODS: Final = ("v1", "Pod")
_MAX_READ_AGE: Final = timedelta(seconds=5)
_RETRY: Final = timedelta(seconds=1)
_STUCK: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """How the controller is set.

    Args:
        mode: What it runs.
        settings: What the flags of the built-in controller set.
        take_over: With `Mode.REPLACE`: run also what somebody else ran, unless that one writes on.
        report: With `Mode.DRY_RUN`: takes what would be done, next to what is.

    Raises:
        ConfigError: If a period is not positive, or something is taken over that nobody else can have run.
    """

    mode: Mode = Mode.OWN_KIND
    settings: Settings = field(default_factory=Settings)
    take_over: bool = False
    report: Report | None = None

    def __post_init__(self) -> None:
        check_settings(self.settings)
        if self.take_over and self.mode is not Mode.REPLACE:
            raise ConfigError(f"only in mode replace is there something to take over, not in mode {self.mode}")


class HpaController:
    """The controller, for as long as `run` runs; it begins without any memory, as the built-in one does.

    Args:
        cluster: The cluster; refuses writes where we may not write.
        metrics: Who measures.
        options: How it is set.
        clock: Tells the instants of rounds.
        events: Takes events; None for nobody.
        monitor: Counts; None counts for nobody.
        queue_metrics: Counts what the queue does; None counts nothing.
        reader: The API server, where the cluster is one: kinds are then found in whatever version they are named.

    Example:
        >>> from ocf.embedded import EmbeddedCluster
        >>> from ocf.testing.fake_metrics import FakeMetricsClient
        >>> from ocf.testing import run_in_virtual_time
        >>> async def main() -> str:
        ...     options = ControllerOptions(mode=Mode.REPLACE)
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
        options: ControllerOptions,
        clock: Clock | None = None,
        events: Recorder | None = None,
        monitor: Monitor | None = None,
        queue_metrics: QueueMetrics | None = None,
        reader: PathReader | None = None,
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._options = options
        self._clock = clock or SystemClock()
        self._events = events
        self._monitor = monitor or Monitor()
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
        limit = _STUCK.total_seconds()
        return f"a reconcile has been running for {longest:.0f} s, more than {limit:.0f} s" if longest > limit else ""

    def stop(self) -> None:
        """Start no more reconciles; `run` returns when the running ones have ended."""
        self._queue.close()
        if self._starting is not None:
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
        # Who wrote the status counts for autoscalers, and for nothing else.
        autoscalers = await stack.enter_async_context(CachedCluster(self._cluster))
        others = await stack.enter_async_context(CachedCluster(self._cluster, keeps_manager=lambda _: False))
        self._caches = (autoscalers, others)
        kinds = None if self._reader is None else RESTMapper(self._reader)
        scales = DerivedScaleGetter(others, SubresourceScaleGetter(self._cluster, self._reader, kinds=kinds))
        observer = SnapshotReader(
            others,
            self._metrics,
            scales=scales,
            settings=settings,
            clock=self._clock,
            max_age=min(_MAX_READ_AGE, settings.sync_period),
        )
        await stack.enter_async_context(observer)
        deps = ReconcilerDeps(
            cluster=autoscalers,
            targets=others,
            snapshots=observer,
            clock=self._clock,
            monitor=self._monitor,
            mode=self._options.mode,
            settings=settings,
            events=self._events,
            kinds=kinds,
            take_over=self._options.take_over,
            report=self._options.report,
        )
        reconciler = Reconciler(deps)
        await _wait_for_sync(others, _PODS)
        for kind in self._watched_kinds:
            await _wait_for_sync(autoscalers, kind)
            # Who names which target is known before the first round, not bit by bit.
            for autoscaler in (await autoscalers.list(*kind)).items:
                reconciler.target_index.put(autoscaler)
        return reconciler, autoscalers

    @property
    def _watched_kinds(self) -> tuple[tuple[str, str], ...]:
        """The kinds of autoscalers that are watched: in the mode of our own kind those of others are rivals."""
        return (OWN, BUILT_IN) if self._options.mode is Mode.OWN_KIND else (BUILT_IN,)

    async def _work(self, reconciler: Reconciler, cached: CachedCluster) -> None:
        workers = self._options.settings.workers
        _log.info("running %s in mode %s with %d workers", self._options.mode.watched[1], self._options.mode, workers)
        async with asyncio.TaskGroup() as tasks:
            followers = [tasks.create_task(self._watch(reconciler, cached, kind)) for kind in self._watched_kinds]
            self._working = True
            await work(self._queue, reconciler.reconcile, workers=workers, metrics=self._queue_metrics)
            for follower in followers:
                follower.cancel()

    async def _watch(self, reconciler: Reconciler, cached: CachedCluster, kind: tuple[str, str]) -> None:
        run = kind == self._options.mode.watched
        async with aclosing(cached.subscribe(*kind)) as events:
            async for event in events:
                if run:
                    self._handle_event(reconciler, event)
                elif event.type is EventType.DELETED:
                    reconciler.target_index.drop(event.object)
                else:
                    reconciler.target_index.put(event.object)

    def _handle_event(self, reconciler: Reconciler, event: WatchEvent) -> None:
        key = ObjectKey.of(event.object)
        if event.type is EventType.DELETED:
            reconciler.target_index.drop(event.object)
            reconciler.forget(key)
            self._generations.pop(key, None)
            self._queue.unschedule(key)
            self._queue.forget(key)
            return
        period = reconciler.track(event.object)
        if self._is_due_now(key, event.object):
            self._queue.add(key)
        else:
            # As in the controller, whatever is new waits for its period; what is queued already is not put off.
            self._queue.add_after(key, period)

    def _is_due_now(self, key: ObjectKey, autoscaler: Manifest) -> bool:
        """Tell whether an autoscaler is to be looked at now: from Kubernetes 1.37 on, if it is new or its spec is."""
        if not self._options.settings.features.observed_generation:
            return False
        generation = int(autoscaler["metadata"].get("generation") or 0)
        known, self._generations[key] = self._generations.get(key), generation
        return known != generation


async def _wait_for_sync(cached: CachedCluster, kind: tuple[str, str]) -> None:
    """Wait until a kind is held in memory, however long the cluster takes."""
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
