"""The loop of one operator: what is told becomes keys in a queue, and workers make passes of them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import EventType, ListOptions
from ocf.errors import ApiError, NotFoundError
from ocf.objects import ObjectKey, get_field, split_api_version
from ocf.objects.owner_references import controller_of
from ocf.objects.timestamps import parse_time
from ocf.runtime.operator.observed_versions import ObservationIndex, ObservedVersions, RecordingReads
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.runtime.operator.supervised_tasks import StartTask, supervised_tasks
from ocf.runtime.workqueue import WorkQueue, work

if TYPE_CHECKING:
    from ocf.cluster import WatchEvent
    from ocf.cluster.cache import CachedCluster
    from ocf.concepts import Clock, Recorder
    from ocf.objects import Manifest
    from ocf.runtime.operator.operator import Kind, Operator
    from ocf.runtime.workqueue import QueueMetrics

__all__ = ["Controller", "ControllerDeps"]

_log: Final = logging.getLogger(__name__)

# What is older is none of somebody's who waits for it.
_FRESH: Final = timedelta(minutes=1)
# How much a resync varies, so that not all operators of a cluster work at once.
_JITTER: Final = 0.1
# How long after its limit a pass that was cancelled may take to end.
_OVERTIME: Final = timedelta(minutes=1)
_NOT_FOLLOWED: Final = frozenset({("events.k8s.io/v1", "Event"), ("v1", "Event")})


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDeps:
    """What a controller works with.

    Args:
        clock: Tells the instants of passes.
        recorder: Is told what passes do.
        forget: Is told the owners that are gone.
        namespaces: Where the controller works; empty for everywhere.
        metrics: What the queue counts in; None counts nothing.
        shutdown_timeout: How long running reconciles may go on after `stop`.
        random: Draws a number from 0 up to 1.
    """

    clock: Clock
    recorder: Recorder
    forget: Callable[[ObjectKey], object]
    namespaces: tuple[str, ...] = ()
    metrics: QueueMetrics | None = None
    shutdown_timeout: timedelta = timedelta(0)
    random: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class _RunningReconcile:
    """A pass that is under way.

    Args:
        sight: What it has seen so far.
        told: What was told of its owner meanwhile: objects and their versions.
    """

    sight: ObservedVersions
    told: dict[ObjectKey, str] = field(default_factory=dict)


class Controller:
    """Runs one operator on a cache; `run` does it.

    Args:
        operator: The operator.
        cache: Where the objects are read from, and written through.
        means: What it works with.

    Attributes:
        operator: The operator.
        queue: The owners that are to be worked on.
    """

    def __init__(self, operator: Operator[Any], cache: CachedCluster, means: ControllerDeps) -> None:
        self.operator: Final = operator
        self.queue: Final[WorkQueue[ObjectKey]] = WorkQueue(
            operator.name, delays=operator.rate_limiter, metrics=means.metrics
        )
        self._cache = cache
        self._means = means
        self._group_kind_of_owner = (split_api_version(operator.owner.api_version)[0], operator.owner.kind)
        self._sights = ObservationIndex()
        self._flights: dict[ObjectKey, _RunningReconcile] = {}
        """The passes that are under way."""
        self._following: set[tuple[str, str, str]] = set()
        self._start: StartTask | None = None

    @property
    def owners(self) -> int:
        """How many owners are known."""
        return len(self._sights)

    @property
    def following(self) -> tuple[Kind, ...]:
        """The kinds whose changes are followed."""
        return tuple(sorted({(api_version, kind) for api_version, kind, _ in self._following}))

    @property
    def overdue(self) -> tuple[ObjectKey, ...]:
        """Owners whose pass goes on although it should have ended, and was cancelled."""
        longest = (self.operator.reconcile_timeout + _OVERTIME).total_seconds()
        late = sum(seconds > longest for seconds in self.queue.durations)
        return self.queue.running[:late]

    def stop(self) -> None:
        """Start no more reconciles; `run` returns once the running ones have ended."""
        self.queue.close()

    def live(self) -> str:
        """Return which reconciles do not end; empty if all do."""
        return "; ".join(f"the pass over {key} does not end" for key in self.overdue)

    def ready(self) -> str:
        """Return that the owners are not read yet; empty if they are."""
        states = [each for each in self._cache.informers if (each.api_version, each.kind) == self.operator.owner_kind]
        if any(each.synced for each in states):
            return ""
        unknown = ": the cluster does not know it" if any(each.missing for each in states) else ""
        return f"{' '.join(self.operator.owner_kind)} is not read yet{unknown}"

    async def run(self) -> None:
        """Reconcile owners until `stop` is called."""
        async with supervised_tasks() as start:
            self._start = start
            watched = [(watch.api_version, watch.kind) for watch in self.operator.watches]
            for kind in (self.operator.owner_kind, *self.operator.owns, *watched):
                for namespace in self._means.namespaces or ("",):
                    self._follow(*kind, namespace)
            if self.operator.resync is not None:
                start(self._resync(self.operator.resync), f"resync of {self.operator.name}")
            try:
                await work(
                    self.queue,
                    self._handle,
                    workers=self.operator.workers,
                    limit=self.operator.reconcile_timeout + _OVERTIME / 2,
                    farewell=self._means.shutdown_timeout,
                    metrics=self._means.metrics,
                )
            finally:
                self._start = None

    def tell(self, event: WatchEvent) -> None:
        """Take an event, and have those owners worked on to which it is news.

        Args:
            event: What happened, from whatever watch.
        """
        key = ObjectKey.of(event.object)
        deleted = event.type is EventType.DELETED
        version = "" if deleted else str(event.object["metadata"].get("resourceVersion") or "")
        background = event.type is EventType.ADDED and self._is_old(event.object)
        for owner in dict.fromkeys(self._concerned(key, event.object)):
            flight = self._flights.get(owner)
            if flight is not None:
                # What the pass will have seen is known when it is over.
                flight.told[key] = version
            elif not self._sights.has_seen(owner, key, version):
                self.queue.add(owner, background=background)

    async def _handle(self, owner: ObjectKey) -> timedelta | None:
        """Make a pass over an owner."""
        flight = self._flights[owner] = _RunningReconcile(ObservedVersions(owner))
        try:
            return await self._pass(owner, flight.sight)
        finally:
            del self._flights[owner]
            if not all(flight.sight.has_seen(key, version) for key, version in flight.told.items()):
                self.queue.add(owner)
            flight.sight.end()

    async def _pass(self, owner: ObjectKey, sight: ObservedVersions) -> timedelta | None:
        cluster = RecordingReads(self._cache, sight, self._touch)
        try:
            manifest = await cluster.get(owner)
        except NotFoundError:
            self._sights.forget(owner)
            self._means.forget(owner)
            return None
        try:
            return await reconcile_owner(
                self.operator, manifest, cluster, clock=self._means.clock, recorder=self._means.recorder
            )
        finally:
            self._sights.replace(sight)

    def _concerned(self, key: ObjectKey, live: Manifest) -> Iterable[ObjectKey]:
        """Yield the owners that an object concerns."""
        if (key.api_version, key.kind) == self.operator.owner_kind:
            yield key
        controller = controller_of(live)
        if controller is not None and (controller.group, controller.kind) == self._group_kind_of_owner:
            yield self._owner(key.namespace, controller.name)
        yield from self._sights.dependents(key)
        yield from (owner for owner, flight in self._flights.items() if key in flight.sight.asked)
        for watch in self.operator.watches:
            if (watch.api_version, watch.kind) == (key.api_version, key.kind):
                for namespace, name in watch.owners(live):
                    yield self._owner(namespace, name)

    def _owner(self, namespace: str, name: str) -> ObjectKey:
        return ObjectKey(self.operator.owner.api_version, self.operator.owner.kind, name, namespace)

    def _touch(self, api_version: str, kind: str, namespace: str) -> None:
        """Follow a kind from the first request about it on."""
        self._follow(api_version, kind, namespace if self._means.namespaces else "")

    def _follow(self, api_version: str, kind: str, namespace: str) -> None:
        scope = (api_version, kind, namespace)
        unfollowed = (api_version, kind) in {*self.operator.uncached, *_NOT_FOLLOWED}
        if scope in self._following or unfollowed or self._start is None:
            return
        self._following.add(scope)
        self._start(self._followed(*scope), f"{self.operator.name} follows {kind} {namespace}".rstrip())

    async def _followed(self, api_version: str, kind: str, namespace: str) -> None:
        """Take every event of a kind, for as long as the cache tells them."""
        try:
            async for event in self._cache.subscribe(api_version, kind, namespace=namespace):
                self._tell_safely(event)
        except ApiError as error:
            if (api_version, kind) == self.operator.owner_kind:
                raise
            # The cluster has no watch of the kind; who waits for such an object asks for another pass.
            _log.warning("%s: %s %s cannot be followed: %s", self.operator.name, api_version, kind, error)
            await asyncio.get_running_loop().create_future()

    def _tell_safely(self, event: WatchEvent) -> None:
        try:
            self.tell(event)
        except Exception:  # noqa: BLE001 (an author's mapping that fails must not make the operator deaf)
            _log.exception("%s: an event of %s was not understood", self.operator.name, ObjectKey.of(event.object))

    async def _resync(self, period: timedelta) -> None:
        """Look at all owners now and then, behind everything that is news."""
        while True:
            spread = 1 + _JITTER * (2 * self._means.random() - 1)
            await asyncio.sleep(period.total_seconds() * spread)
            for namespace in self._means.namespaces or ("",):
                try:
                    owners = await self._cache.list(*self.operator.owner_kind, ListOptions(namespace=namespace))
                except ApiError as error:
                    _log.warning("%s: resync left out: %s", self.operator.name, error)
                    continue
                for owner in owners.items:
                    self.queue.add(ObjectKey.of(owner), background=True)

    def _is_old(self, live: Manifest) -> bool:
        """Tell whether an object was there before somebody could wait for what comes of it."""
        try:
            made: datetime = parse_time(str(get_field(live, ("metadata", "creationTimestamp"))))
        except ValueError:
            return False
        return self._means.clock.now() - made > _FRESH
