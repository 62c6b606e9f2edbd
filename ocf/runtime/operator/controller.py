"""The controller of one operator: watch events add owners to a work queue, and workers reconcile them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import ListOptions
from ocf.cluster.cache.serialization import unpack
from ocf.cluster.cache.subscriptions import CacheChange
from ocf.cluster.protocol import EventType
from ocf.component.pause import find_pause, pause_path
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.objects.paths import get_field
from ocf.objects.timestamps import parse_time
from ocf.runtime.operator.abandoned import AbandonedObjects
from ocf.runtime.operator.departed_owners import DepartedOwners
from ocf.runtime.operator.observed_versions import Followed, ObservationIndex, ObservedVersions
from ocf.runtime.operator.reconciler import ReconcileHooks, reconcile_owner
from ocf.runtime.operator.recording_reads import RecordingReads
from ocf.runtime.operator.referred_owners import ReferredOwners
from ocf.runtime.operator.supervised_tasks import StartTask, supervised_tasks
from ocf.runtime.workqueue import WorkQueue, work

if TYPE_CHECKING:
    from ocf.cluster import WatchEvent
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.informer import InformerState
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.concepts import Clock, Recorder
    from ocf.objects import Manifest
    from ocf.runtime.operator.operator import Kind, Operator
    from ocf.runtime.workqueue.metrics import QueueMetrics

__all__ = ["Controller", "ControllerDeps"]

_log: Final = logging.getLogger(__name__)

# Objects older than this were not just created by a user.
_RECENT: Final = timedelta(minutes=1)
# How much the resync period varies, so that the operators of a cluster do not all resync at once.
_JITTER: Final = 0.1
# Seconds between two looks for kinds that no owner reads or writes any more; one that none has requested since the last
# look is released.
_RELEASE_PERIOD: Final = 300.0
# How long after its timeout a cancelled reconcile may take to end.
_CANCEL_GRACE: Final = timedelta(minutes=1)
# Delays between questions for the scope of a kind; those of the informers' lists.
_DISCOVERY_DELAYS: Final = ExponentialBackoff(timedelta(seconds=0.5), timedelta(seconds=45))
# In this time a kind that was installed since the last look is looked for again, at the longest delay, and listed.
_LIST_GRACE: Final = timedelta(minutes=1)
_NOT_SERVED: Final = "the API server does not serve it"
_ADVICE: Final = (
    "; install its CustomResourceDefinition before the operator, or name the kind in `late_kinds` if it may come later"
)
_NOT_FOLLOWED: Final = frozenset({("events.k8s.io/v1", "Event"), ("v1", "Event")})


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDeps:
    """Dependencies of a controller.

    Args:
        forget: Called with each deleted owner.
        namespaces: Namespaces that the controller watches; empty for all.
        metrics: Metrics of the queue; None collects none.
        shutdown_timeout: How long running reconciles may continue after `stop`.
        random: Returns a random number in [0, 1), for jitter.
    """

    clock: Clock
    recorder: Recorder
    forget: Callable[[ObjectKey], object]
    namespaces: tuple[str, ...] = ()
    metrics: QueueMetrics | None = None
    shutdown_timeout: timedelta = timedelta(0)
    cache_sync_timeout: timedelta = timedelta(minutes=2)
    random: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class _RunningReconcile:
    """A running reconcile."""

    observed: ObservedVersions
    event_versions: dict[ObjectKey, str] = field(default_factory=dict)


class Controller:
    """The controller of one operator; `run` runs it."""

    def __init__(self, operator: Operator[Any], cache: CachedCluster, deps: ControllerDeps) -> None:
        self.operator: Final = operator
        self.queue: Final[WorkQueue[ObjectKey]] = WorkQueue(
            operator.name, delays=operator.rate_limiter, metrics=deps.metrics
        )
        # These are read for every change of the cache.
        self._owner_kind: Final = operator.owner_kind
        self._cache = cache
        self._deps = deps
        self._index = ObservationIndex()
        self._abandoned = AbandonedObjects(operator, cache)
        self._departed = DepartedOwners(cache)
        self._referred: Final = ReferredOwners(operator, cache)
        self._runs: dict[ObjectKey, _RunningReconcile] = {}
        """The running reconciles, by owner."""
        self._following: dict[Followed, Callable[[], None]] = {}
        """What is watched, each with the function that ends the watching."""
        self._requested: set[Followed] = set()
        """What reconciles have requested lately."""
        self._paused: set[ObjectKey] = set()
        """Owners that were paused in their last reconcile."""
        self._pause_path: Final = pause_path(operator.pause_field)
        self._start: StartTask | None = None
        self._declared: dict[Kind, tuple[str, ...]] = {}
        """Declared kinds, and the namespaces in which each is watched, one empty text for all."""
        self._unknown: dict[Kind, ApiError] = {}
        """Kinds whose scope could not be found out yet."""

    @property
    def owners(self) -> int:
        """Number of known owners."""
        return len(self._index)

    @property
    def paused(self) -> int:
        """Number of paused owners."""
        return len(self._paused)

    @property
    def following(self) -> tuple[Kind, ...]:
        """The kinds that are watched."""
        return tuple(sorted({(api_version, kind) for api_version, kind, _ in self._following}))

    @property
    def overdue(self) -> tuple[ObjectKey, ...]:
        """Owners whose reconcile still runs although it timed out and was cancelled."""
        longest = (self.operator.reconcile_timeout + _CANCEL_GRACE).total_seconds()
        late = sum(seconds > longest for seconds in self.queue.durations)
        return self.queue.running[:late]

    def stop(self) -> None:
        """Start no more reconciles; `run` returns once the running ones have ended."""
        self.queue.close()

    def live(self) -> str:
        """Return which reconciles do not end; empty if all do."""
        return "; ".join(f"the reconcile of {key} does not end" for key in self.overdue)

    def declares(self, state: InformerState) -> bool:
        """Return whether an informer is one of those that the operator declares.

        What one owner makes the operator read, another kind or another namespace, does not count.
        """
        return state.namespace in self._declared.get((state.api_version, state.kind), ())

    def ready(self, *, without: Collection[tuple[str, str]] = ()) -> str:
        """Return which declared kinds are not in the cache yet, and why; empty if all are."""
        return "; ".join(
            f"{api_version} {kind} is not read yet{f': {why}' if why else ''}"
            for (api_version, kind), why in self._unread().items()
            if (split_api_version(api_version)[0], kind) not in without
        )

    async def run(self) -> None:
        """Reconcile owners until `stop` is called."""
        async with supervised_tasks() as start:
            self._start = start
            if self.operator.resync is not None:
                start(self._resync(self.operator.resync), f"resync of {self.operator.name}")
            start(self._release_unread(), f"{self.operator.name} releases kinds")
            start(self._abandoned.run(), f"{self.operator.name} releases objects")
            try:
                await self._sync()
                await work(
                    self.queue,
                    self._reconcile_key,
                    workers=self.operator.workers,
                    limit=self.operator.reconcile_timeout + _CANCEL_GRACE / 2,
                    shutdown_timeout=self._deps.shutdown_timeout,
                    metrics=self._deps.metrics,
                )
            finally:
                self._start = None

    async def _sync(self) -> None:
        """Follow the declared kinds, and wait until each was listed once, or `stop` is called.

        A reconcile that began before would take what it has not read yet for absent, and delete what is wanted. So the
        process ends after a while, as in controller-runtime, and another one may lead; the kubelet starts it again,
        and shows that it does not run. Only a kind that the author expects to be defined later has no end.
        """
        synced, closing = asyncio.create_task(self._read_declared()), asyncio.create_task(self.queue.closing())
        waiting: set[asyncio.Task[Any]] = {synced, closing}
        limit = timeout = self._deps.cache_sync_timeout
        served: set[Kind] = set()
        try:
            while True:
                await asyncio.wait(waiting, timeout=timeout.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
                if any(task.done() for task in waiting):
                    break
                unread = self._unread()
                missing = {kind for kind, why in unread.items() if why == _NOT_SERVED}
                timeout = limit
                if unread.keys() - (missing & {*self.operator.late_kinds}):
                    if found := await self._served_of(missing - served):
                        served |= found
                        timeout = _LIST_GRACE
                        continue
                    raise ConfigError(
                        f"{self.operator.name}: the caches did not sync within cache_sync_timeout, {limit}: "
                        f"{self.ready()}{_ADVICE if missing else ''}"
                    )
            if synced.done():
                synced.result()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _served_of(self, kinds: Collection[Kind]) -> set[Kind]:
        """Return which kinds the API server serves now; those of a failed request are not among them."""
        found: set[Kind] = set()
        for kind in sorted(kinds):
            with suppress(ApiError):
                await self._cache.is_namespaced(*kind)
                found.add(kind)
        return found

    async def _read_declared(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for kind in self.operator.declared_kinds:
                tasks.create_task(self._read(*kind))

    async def _read(self, api_version: str, kind: str) -> None:
        """Follow a declared kind, and wait until it was listed once."""
        namespaces = self._declared[api_version, kind] = await self._namespaces_of(api_version, kind)
        for namespace in namespaces:
            self._follow(api_version, kind, namespace)
        for namespace in namespaces:
            await self._cache.wait_for_sync(api_version, kind, namespace=namespace)

    async def _namespaces_of(self, api_version: str, kind: str) -> tuple[str, ...]:
        """Return the namespaces in which a kind is watched: those of the manager; one empty text for all.

        The objects of a cluster-scoped kind are in none of them, and are watched as if there was no restriction.
        """
        if not self._deps.namespaces:
            return ("",)
        failures = 0
        while True:
            try:
                namespaced = await self._cache.is_namespaced(api_version, kind)
            except ApiError as error:
                failures += 1
                self._unknown[api_version, kind] = error
                await asyncio.sleep(_DISCOVERY_DELAYS.after(failures).total_seconds())
            else:
                self._unknown.pop((api_version, kind), None)
                return self._deps.namespaces if namespaced else ("",)

    def _unread(self) -> dict[Kind, str]:
        """Return the declared kinds that are not in the cache, with the reason; empty while the first list goes on."""
        found: dict[Kind, str] = {}
        for kind in self.operator.declared_kinds:
            states, error = [*filter(self.declares, self._cache.informers_of(*kind))], self._unknown.get(kind)
            unread = [each for each in states if not each.synced]
            if error is not None:
                found[kind] = _NOT_SERVED if isinstance(error, NotFoundError) else str(error)
            elif unread or not states:
                missing = any(each.missing for each in unread)
                found[kind] = _NOT_SERVED if missing else "; ".join(filter(None, (each.problem for each in unread)))
        return found

    def handle_event(self, event: WatchEvent) -> None:
        """Handle an event of a watch outside of the cache as a change of the cache."""
        self._handle_change(ObjectKey.of(event.object), CacheChange.of(event))

    def _handle_change(self, key: ObjectKey, change: CacheChange) -> None:
        """Enqueue the owners that a change affects, unless their last reconcile has seen the object's version.

        Those that the object before the change affects are among them: an owner reference or a label that was taken off
        must be seen by the owner that it named.
        """
        deleted = change.type is EventType.DELETED
        if deleted and (key.api_version, key.kind) == self._owner_kind:
            last = unpack(change.entry)
            paused = find_pause(last, self.operator.name, self._pause_path) is not None
            self._departed.ended(change.entry, paused=paused)
            self._abandoned.owner_ended(last)
        version = "" if deleted else change.entry.version
        if version:
            self._abandoned.look_at(key, change.entry)
        for owner in dict.fromkeys(self._affected_owners(key, change)):
            run_state = self._runs.get(owner)
            if owner in self._paused and key != owner:
                # The end of the pause is a change of the owner, and its reconcile reads all objects.
                continue
            if run_state is not None:
                # The versions that a running reconcile observes are complete only at its end.
                run_state.event_versions[key] = version
            elif not self._index.has_seen(owner, key, version):
                self.queue.add(owner, background=change.type is EventType.ADDED and self._is_old(change.entry))

    async def _reconcile_key(self, owner: ObjectKey) -> timedelta | None:
        """Reconcile an owner; enqueue it again if events arrived meanwhile that the reconcile has not observed."""
        run_state = self._runs[owner] = _RunningReconcile(ObservedVersions(owner))
        try:
            return await self._reconcile(owner, run_state.observed)
        finally:
            del self._runs[owner]
            observed, events = run_state.observed, run_state.event_versions
            seen = all(observed.has_seen(key, version) for key, version in events.items())
            # There is no event about an object that was created and deleted before the cache reports either.
            if owner in self._paused:
                seen = owner not in events or observed.has_seen(owner, events[owner])
            if not seen or any(self._cache.lacks(key) for key in observed.existing):
                self.queue.add(owner)
            observed.end()

    async def _reconcile(self, owner: ObjectKey, observed: ObservedVersions) -> timedelta | None:
        def follow(api_version: str, kind: str, namespace: str) -> None:
            scope = (api_version, kind, namespace if self._deps.namespaces else "")
            observed.follow(scope)
            self._requested.add(scope)
            self._follow(*scope)

        cluster = RecordingReads(self._cache, observed, follow)
        try:
            manifest = await cluster.get(owner)
        except NotFoundError:
            if self._index.uid(owner) is not None or not self._departed.knows(owner):
                self._forget(owner)
            await self._departed.restore_references(owner)
            return None
        if self._index.uid(owner) not in {None, observed.uid}:
            # The owner was deleted, and created again under its name, before this reconcile.
            self._forget(owner)
        if find_pause(manifest, self.operator.name, self._pause_path) is None:
            self._paused.discard(owner)
        else:
            self._paused.add(owner)
        try:
            delay = await reconcile_owner(
                self.operator,
                manifest,
                cluster,
                clock=self._deps.clock,
                recorder=self._deps.recorder,
                hooks=ReconcileHooks(
                    unobserved=RecordingReads(self._cache, ObservedVersions(owner), follow),
                    read_latest=partial(self._newer, owner, manifest["metadata"].get("resourceVersion")),
                    found=self._departed.manages,
                ),
            )
        finally:
            self._index.replace(observed)
        # After an owner that was created again under the name has taken over what it manages.
        await self._departed.restore_references(owner)
        return delay

    def _newer(self, owner: ObjectKey, version: str) -> Manifest | None:
        """Return an owner as the cache holds it, if it has changed; this does not count as a read of the reconcile."""
        found = self._cache.entry(owner)
        return unpack(found) if found is not None and found.version != version else None

    def _forget(self, owner: ObjectKey) -> None:
        """Drop what is kept of an owner that is gone."""
        self._paused.discard(owner)
        self._index.forget(owner)
        self._deps.forget(owner)

    def _affected_owners(self, key: ObjectKey, change: CacheChange) -> Iterable[ObjectKey]:
        """Yield the owners that an object affects, or has affected before the change."""
        if (key.api_version, key.kind) == self._owner_kind:
            yield key
        yield from self._departed.owner(key)
        states = [state for state in (change.entry, change.old) if state is not None]
        for state in states:
            yield from self._referred.of(key, state)
        yield from self._index.dependents(key, states)
        yield from (owner for owner, run_state in self._runs.items() if run_state.observed.depends_on(key, states))

    def _follow(self, api_version: str, kind: str, namespace: str) -> None:
        """Watch a kind from its first request on."""
        scope = (api_version, kind, namespace)
        if scope in self._following or self._start is None:
            return
        if (api_version, kind) in {*self.operator.uncached, *_NOT_FOLLOWED}:
            return
        self._cache.retain(*scope)
        name = f"{self.operator.name} follows {kind} {namespace}".rstrip()
        self._following[scope] = self._start(self._followed(*scope), name)

    async def _release_unread(self) -> None:
        """Stop to watch what no owner reads or writes any more, unless it is declared, until cancelled.

        Not at once: an owner that reads a kind in every other reconcile would list it in every other reconcile.
        """
        while True:
            await asyncio.sleep(_RELEASE_PERIOD)
            declared = ((*kind, namespace) for kind, namespaces in self._declared.items() for namespace in namespaces)
            running = (scope for run_state in self._runs.values() for scope in run_state.observed.followed)
            used = self._index.followed | self._requested | {*declared, *running}
            self._requested = set()
            for scope in self._following.keys() - used:
                self._following.pop(scope)()
                self._cache.release(*scope)

    async def _followed(self, api_version: str, kind: str, namespace: str) -> None:
        """Handle the changes of a kind until cancelled."""
        scope = (api_version, kind, namespace)
        try:
            await self._listed(api_version, kind, namespace)
            changes = self._cache.changes(
                api_version, kind, namespace=namespace, on_served=lambda: self._enqueue_followers(scope)
            )
            async for change in changes:
                home, name = change.name
                self._handle_change_safely(ObjectKey(api_version, kind, name, home), change)
        except (ApiError, ConfigError) as error:
            if (api_version, kind) == self.operator.owner_kind:
                raise
            if isinstance(error, ConfigError) and namespace in self._declared.get((api_version, kind), ()):
                raise
            # The kind has no watch; components that wait for such an object requeue themselves. What an owner made the
            # operator read may have too many objects for the cache, which fails the owners that need it.
            _log.warning("%s: %s %s cannot be watched: %s", self.operator.name, api_version, kind, error)
            await asyncio.get_running_loop().create_future()

    async def _listed(self, api_version: str, kind: str, namespace: str) -> None:
        """Wait until a kind is in the cache; if that failed at first, reconcile the owners that need it.

        Their requests were answered by the API server, and no event is about what was deleted before the cache was
        there; or it did not serve the kind.
        """
        try:
            await self._cache.cache(api_version, kind, namespace=namespace)
        except ConfigError:
            raise
        except Exception:  # noqa: BLE001 (a list may fail in any way; the cache logs it, and repeats the list)
            await self._cache.wait_for_sync(api_version, kind, namespace=namespace)
            self._enqueue_followers((api_version, kind, namespace))

    def _enqueue_followers(self, scope: Followed) -> None:
        """Enqueue the owners that have requested something, in their last reconcile or in one that runs.

        They may have failed because the API server did not serve the kind, for so long that they are retried seldom.
        """
        running = [owner for owner, run_state in self._runs.items() if scope in run_state.observed.followed]
        for owner in dict.fromkeys((*self._index.followers(scope), *running)):
            self.queue.add(owner)

    def _handle_change_safely(self, key: ObjectKey, change: CacheChange) -> None:
        try:
            self._handle_change(key, change)
        except Exception:  # noqa: BLE001 (an error in a mapping function must not end the watch)
            _log.exception("%s: an event of %s was not handled", self.operator.name, key)

    async def _resync(self, period: timedelta) -> None:
        """Enqueue all owners once per period, with lower priority than events."""
        while True:
            spread = 1 + _JITTER * (2 * self._deps.random() - 1)
            await asyncio.sleep(period.total_seconds() * spread)
            for namespace in await self._namespaces_of(*self.operator.owner_kind):
                try:
                    owners = await self._cache.list(*self.operator.owner_kind, ListOptions(namespace=namespace))
                except ApiError as error:
                    _log.warning("%s: resync skipped: %s", self.operator.name, error)
                    continue
                for owner in owners.items:
                    self.queue.add(ObjectKey.of(owner), background=True)

    def _is_old(self, entry: CacheEntry) -> bool:
        """Return whether an object is older than a change that a user could be waiting for."""
        try:
            made: datetime = parse_time(str(get_field(unpack(entry), ("metadata", "creationTimestamp"))))
        except ValueError:
            return False
        return self._deps.clock.now() - made > _RECENT
