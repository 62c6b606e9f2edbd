"""`NodeGroupController`: watch the cluster, and reconcile all node groups when it changes or time has passed."""

import asyncio
import logging
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from typing import Final

from ocf.cluster import Cluster, WatchEvent
from ocf.cluster.cache import CachedCluster
from ocf.cluster.protocol import EventType
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.concepts.backoff import ExponentialBackoff
from ocf.controllers.nodegroup.cluster_reader import KINDS
from ocf.controllers.nodegroup.metrics import NodeGroupMonitor
from ocf.controllers.nodegroup.objects import API_VERSION
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.reconciler import Reconciler
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.errors import ApiError, ConfigError, ForbiddenError, NotFoundError
from ocf.nodegroups import Provider
from ocf.objects import Manifest

__all__ = [
    "NodeGroupController",
]

_log: Final = logging.getLogger(__name__)
_RETRY: Final = timedelta(seconds=1)
_LONGEST_RETRY: Final = timedelta(minutes=2)
# A provider without names is asked for one machine after the other, each time within its timeout, which adds up.
_STUCK: Final = timedelta(minutes=10)
_OWN_TEXTS: Final = ("conditions", "lastDecision", "lastError")


class NodeGroupController:
    """The controller of node groups: a `Runnable` for a `LeaderRunner`, without any state of its own.

    Args:
        cluster: The cluster; it rejects writes once the lease is lost.
        provider: The provider of the machines.
        clock: Gives the time of each reconcile.
        events: The event recorder; None records no events.
        monitor: The metrics of the controller; None keeps them private.
        options: The settings.

    Example:
        >>> from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
        >>> from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
        >>> from ocf_server import EmbeddedCluster
        >>> from ocf.nodegroups import InstanceType, Offering
        >>> from ocf.objects import Quantity
        >>> from ocf.testing import VirtualClock
        >>> async def main() -> int:
        ...     clock = VirtualClock()
        ...     cluster = EmbeddedCluster(now=clock.now)
        ...     for definition in (node_group_definition(), node_definition()):
        ...         await cluster.create(definition, field_manager="admin")
        ...     group = {
        ...         "apiVersion": "autoscaling.ocf.dev/v1alpha1",
        ...         "kind": "NodeGroup",
        ...         "metadata": {"name": "workers", "namespace": "default"},
        ...         "spec": {"minNodes": 2, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small"]},
        ...     }
        ...     await cluster.create(group, field_manager="user")
        ...     capacity = {"cpu": Quantity.parse(2), "pods": Quantity.parse(110)}
        ...     small = InstanceType("small", capacity, offerings=(Offering("fra", 0.02),))
        ...     cloud = SimulatedProvider([small], clock)
        ...     controller = NodeGroupController(cluster, cloud, clock=clock)
        ...     for _ in range(2):
        ...         await controller.reconcile()
        ...     return len(await cloud.list())
        >>> asyncio.run(main())
        2
    """

    def __init__(
        self,
        cluster: Cluster,
        provider: Provider,
        *,
        clock: Clock | None = None,
        events: Recorder | None = None,
        monitor: NodeGroupMonitor | None = None,
        options: NodeGroupControllerOptions | None = None,
    ) -> None:
        self._cluster = cluster
        self._provider = provider
        self._clock = clock or SystemClock()
        self._options = options or NodeGroupControllerOptions()
        self._reporter = Reporter(monitor or NodeGroupMonitor(), None if self._options.dry_run else events)
        self._reconciler = self._make(cluster)
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._cached: CachedCluster | None = None
        self._working = False
        self._started: timedelta | None = None

    async def reconcile(self) -> timedelta:
        """Reconcile all node groups once.

        Returns:
            The time until the next reconcile, if nothing changes before.

        Raises:
            ApiError: If the cluster cannot be read.
        """
        return await self._reconciler.reconcile()

    def ready(self) -> str:
        """Return why node groups are not reconciled, or which caches are stale; empty if all is well."""
        if not self._working:
            return "nodes and pods are not read yet"
        return "; ".join(str(problem) for problem in self._cached.problems) if self._cached is not None else ""

    def live(self) -> str:
        """Return that a reconcile does not end; empty if all do."""
        if self._started is None:
            return ""
        running = self._clock.elapsed() - self._started
        if running <= _STUCK:
            return ""
        return f"a reconcile has been running for {running.total_seconds():.0f} s"

    def stop(self) -> None:
        """Start no more reconciles; `run` returns when the running one has ended."""
        self._stopping.set()
        self._changed.set()

    async def run(self) -> None:
        """Reconcile node groups until stopped or cancelled.

        Raises:
            ConfigError: If a kind that has to be read does not exist, or may not be read.
        """
        try:
            async with AsyncExitStack() as stack:
                cached = await stack.enter_async_context(CachedCluster(self._cluster, keeps_manager=lambda _: False))
                self._cached, self._reconciler = cached, self._make(cached)
                for kind in KINDS:
                    await self._wait_for_sync(cached, kind)
                async with asyncio.TaskGroup() as tasks:
                    watches = [tasks.create_task(self._watch(cached, kind)) for kind in KINDS]
                    await self._work()
                    for watch in watches:
                        watch.cancel()
        finally:
            self._working, self._cached = False, None
            # What the last term has read and suspected must not steer the next one.
            self._reconciler = self._make(self._cluster)
            # The next leader, another process, has these gauges from now on.
            self._reporter.monitor.set_sizes({})

    def _make(self, cluster: Cluster) -> Reconciler:
        return Reconciler(cluster, self._provider, clock=self._clock, reporter=self._reporter, options=self._options)

    async def _work(self) -> None:
        backoff, failures = ExponentialBackoff(_RETRY, _LONGEST_RETRY), 0
        while not self._stopping.is_set():
            self._changed.clear()
            self._working, self._started = True, self._clock.elapsed()
            try:
                delay = await self._reconciler.reconcile()
                failures = 0
            except ApiError as error:
                failures += 1
                delay = backoff.after(failures)
                _log.warning("the cluster cannot be read: %s", error)
            except Exception:  # noqa: BLE001 (logged; other groups and later reconciles go on)
                failures += 1
                delay = backoff.after(failures)
                _log.exception("the reconcile failed; the next one follows in %s", delay)
            finally:
                self._started = None
            await self._wait(delay)

    async def _wait(self, delay: timedelta) -> None:
        """Wait until something changes and then nothing for a while, or until the time has passed."""
        if await self._happens(delay):
            loop = asyncio.get_running_loop()
            # Pods mostly come in groups; a decision about the first of them would order its node alone. Karpenter
            # batches alike: one second of quiet, ten at most.
            until = loop.time() + self._options.longest_wait.total_seconds()
            while not self._stopping.is_set() and loop.time() < until:
                self._changed.clear()
                if not await self._happens(self._options.quiet_period):
                    return

    async def _happens(self, within: timedelta) -> bool:
        """Return whether something changes within a time."""
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _watch(self, cached: CachedCluster, kind: tuple[str, str]) -> None:
        async with aclosing(cached.subscribe(*kind)) as events:
            async for event in events:
                if _matters(event):
                    self._changed.set()

    async def _wait_for_sync(self, cached: CachedCluster, kind: tuple[str, str]) -> None:
        """Wait until the cache of a kind is in sync, without a time limit."""
        while not self._stopping.is_set():
            try:
                await cached.cache(*kind)
            except (ForbiddenError, NotFoundError) as error:
                remedy = "ocf nodegroups manifests prints what has to be applied first"
                raise ConfigError(f"{kind[1]} ({kind[0]}) cannot be read: {error.message}; {remedy}") from error
            except ApiError as error:
                _log.warning("%s cannot be read yet: %s", kind[1], error.message)
                await asyncio.sleep(_RETRY.total_seconds())
            else:
                return


def _matters(event: WatchEvent) -> bool:
    """Return whether an event may change a decision: heartbeats of nodes do not."""
    if event.type is not EventType.MODIFIED or event.old is None:
        return True
    return _relevant(event.object) != _relevant(event.old)


def _relevant(manifest: Manifest) -> Manifest:
    metadata = {
        key: value for key, value in manifest["metadata"].items() if key not in ("resourceVersion", "managedFields")
    }
    status = dict(manifest.get("status") or {})
    if manifest.get("kind") == "Node":
        status["conditions"] = [
            (each.get("type"), each.get("status")) for each in status.get("conditions") or () if isinstance(each, dict)
        ]
        # The kubelet changes the list with every image it pulls.
        status.pop("images", None)
    elif manifest.get("apiVersion") == API_VERSION:
        # The controller writes them. With a request id in each error, its writes would make it reconcile each second.
        for text in _OWN_TEXTS:
            status.pop(text, None)
    return {**manifest, "metadata": metadata, "status": status}
