"""The controller of one operator: watch events add owners to a work queue, and workers reconcile them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.cache.serialization import unpack
from ocf.cluster.cache.subscriptions import CacheChange
from ocf.cluster.protocol import EventType, WatchEvent
from ocf.component.pause import find_pause, pause_path
from ocf.errors import ApiError, ConfigError
from ocf.objects import ObjectKey
from ocf.objects.paths import get_field
from ocf.objects.timestamps import parse_time
from ocf.runtime.operator.abandoned import AbandonedObjects
from ocf.runtime.operator.affected_owners import AffectedOwners
from ocf.runtime.operator.change_pacing import Pacer
from ocf.runtime.operator.declared_kinds import DeclaredKinds
from ocf.runtime.operator.departed_owners import DepartedOwners
from ocf.runtime.operator.observed_versions import Followed, ObservationIndex, ObservedVersions, RunningReconcile
from ocf.runtime.operator.predicates import is_urgent
from ocf.runtime.operator.reconciler import ReconcileHooks, reconcile_owner
from ocf.runtime.operator.recording_reads import RecordingReads
from ocf.runtime.operator.supervised_tasks import StartTask, supervised_tasks
from ocf.runtime.operator.unserved_kinds import UnservedKinds
from ocf.runtime.operator.unwatched_objects import unwatched_objects
from ocf.runtime.operator.watches import mapped
from ocf.runtime.sharding.slots import SlotLostError
from ocf.runtime.workqueue import Priority, WorkQueue, work
from ocf.runtime.workqueue.workers import retry_delay

if TYPE_CHECKING:
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.objects import Manifest
    from ocf.runtime.operator.controller_deps import ControllerDeps
    from ocf.runtime.operator.operator import Kind, Operator
    from ocf.runtime.operator.owners import Owners
    from ocf.runtime.operator.watches import Watch

__all__ = ["Controller"]

_log: Final = logging.getLogger(__name__)

_RECENT: Final = timedelta(minutes=1)  # what is older was not just created by a user
# How much the resync period varies, so that the operators of a cluster do not all resync at once.
_JITTER: Final = 0.1
# Seconds between two looks for kinds that no owner reads or writes any more; one that none has requested since the last
# look is released.
_RELEASE_PERIOD: Final = 300.0
# How long after its timeout a cancelled reconcile may take to end.
_CANCEL_GRACE: Final = timedelta(minutes=1)
_FOR_EVER: Final = timedelta(days=36_500)
_NOT_FOLLOWED: Final = frozenset({("events.k8s.io/v1", "Event"), ("v1", "Event")})


class Controller:
    """The controller of one operator; `run` runs it."""

    def __init__(self, operator: Operator[Any], cache: CachedCluster, owners: Owners, deps: ControllerDeps) -> None:
        self.operator: Final = operator
        self.queue: Final[WorkQueue[ObjectKey]] = deps.queue(operator.name, operator.rate_limiter)
        self._pacer: Final[Pacer[ObjectKey]] = Pacer(self.queue.add)
        # These are read for every change of the cache.
        self._owner_kind: Final = operator.owner_kind
        self._cache = cache
        self._owners: Final = owners
        self._deps = deps
        self._index = ObservationIndex()
        self._abandoned = AbandonedObjects(operator, cache, owners.cache, owners.holds, owners.unlisted)
        self._departed = DepartedOwners(cache, owners.cache)
        self._unserved: Final = UnservedKinds(operator, cache, self._enqueue_followers)
        self._runs: dict[ObjectKey, RunningReconcile] = {}
        """The running reconciles, by owner."""
        self._affected: Final = AffectedOwners(operator, owners, self._index, self._runs)
        self._following: dict[Followed, Callable[[], None]] = {}
        """What is watched, each with the function that ends the watching."""
        self._requested: set[Followed] = set()
        """What reconciles have requested lately."""
        self._paused: set[ObjectKey] = set()
        """Owners that were paused in their last reconcile."""
        self._pause_path: Final = pause_path(operator.pause_field)
        self._start: StartTask | None = None
        self.declared: Final = DeclaredKinds(operator, cache, owners.cache, deps.namespaces)

    @property
    def owners(self) -> int:
        """Number of known owners."""
        return len(self._index)

    @property
    def owner_cache(self) -> CachedCluster:
        """The cache of its owners: that of the process, or one of its own."""
        return self._owners.cache

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

    async def run(self) -> None:
        """Reconcile owners until `stop` is called."""
        async with supervised_tasks() as start:
            self._start = start
            self._cache.readers.append(self._affected.depend_on)
            if self.operator.resync is not None:
                start(self._resync(self.operator.resync), f"resync of {self.operator.name}")
            if self._owners.slots is not None:
                start(self._enqueue_gained(), f"{self.operator.name} takes owners")
            if self.operator.selects_by_server:
                start(self._release_unselected(), f"{self.operator.name} releases owners")
            start(self._release_unread(), f"{self.operator.name} releases kinds")
            start(self._abandoned.run(), f"{self.operator.name} releases objects")
            try:
                await self.declared.sync(
                    self._follow, self._follow_owners, self.queue.closing, timeout=self._deps.cache_sync_timeout
                )
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
                self._cache.readers.remove(self._affected.depend_on)
                self._pacer.close()
                # The cache may outlive the term.
                for scope, end in self._following.items():
                    end()
                    self._cache.release(*scope)
                self._following = {}

    def handle_event(self, event: WatchEvent) -> None:
        """Handle an event of a watch outside of the cache as a change of the cache."""
        self._handle_change(ObjectKey.of(event.object), CacheChange.of(event))

    def _handle_change(self, key: ObjectKey, change: CacheChange, *, of_owners: bool = True) -> None:
        """Enqueue the owners that a change affects, unless their last reconcile has seen the object's version.

        Those that the object before the change affects are among them: an owner reference or a label that was taken off
        must be seen by the owner that it named.
        """
        # Another cache than that of the owners shows those of other replicas, too.
        is_owner = of_owners and (key.api_version, key.kind) == self._owner_kind
        if is_owner and change.type is EventType.DELETED and not self._owners.shows(change.entry.uid, key.namespace):
            # It is in a slot that this process gives up or has just taken, and not deleted. What runs ends first.
            if key not in self._runs:
                self._forget(key)
            return
        if is_owner and change.type is EventType.DELETED:
            last = unpack(change.entry)
            paused = find_pause(last, self.operator.name, self._pause_path) is not None
            self._departed.ended(change.entry, paused=paused)
            self._abandoned.owner_ended(last)
        elif change.entry.version:
            self._abandoned.look_at(key, change)
        self._enqueue_all((*self._departed.owner(key), *self._affected.by(key, change)), key, change)

    def _enqueue_all(self, owners: Iterable[ObjectKey], key: ObjectKey, change: CacheChange) -> None:
        """Enqueue owners, unless they are paused, not selected, or their last reconcile has seen the change."""
        unseen = [owner for owner in dict.fromkeys(owners) if self._is_unseen(owner, key, change)]
        self._deps.note_change(unseen, key, change)
        # Most changes are own writes, of which nothing is unpacked.
        if unseen and change.type is EventType.ADDED and self._is_old(change.entry):
            for owner in unseen:
                self.queue.add(owner, priority=Priority.UNCHANGED)
        elif unseen:
            urgent = is_urgent(change)
            for owner in unseen:
                self._enqueue(owner, urgent=urgent, own=key == owner)

    def _is_unseen(self, owner: ObjectKey, key: ObjectKey, change: CacheChange) -> bool:
        """Return whether a change has to enqueue an owner; a running reconcile records it for its end."""
        run_state = self._runs.get(owner)
        known = run_state is not None or self._index.uid(owner) is not None or self._departed.knows(owner)
        if not self._owners.is_affected(owner, key, change, known=known):
            return False
        if owner in self._paused and key != owner:
            # The end of the pause is a change of the owner, and its reconcile reads all objects.
            return False
        if run_state is not None:
            # The versions that a running reconcile observes are complete only at its end.
            run_state.record(key, change)
            return False
        return not self._index.has_seen(owner, key, change.version)

    def _enqueue(self, owner: ObjectKey, *, urgent: bool, own: bool) -> None:
        """Enqueue an owner: at once for an urgent change of its own, or if it waits already."""
        if (urgent and own) or owner in self.queue:
            self.queue.add(owner)
        else:
            self._pacer.changed(owner, urgent=urgent)

    async def _reconcile_key(self, owner: ObjectKey) -> timedelta | None:
        """Reconcile an owner, unless it is one of another replica, or becomes one."""
        uid = self._index.uid(owner) or self._departed.uid(owner)
        try:
            async with self._owners.working(owner, uid):
                delay = await self._reconcile_once(owner)
        except SlotLostError:
            delay = None
        if not self._owners.has_left(owner, self._index.uid(owner) or self._departed.uid(owner) or uid):
            return delay
        self._forget(owner)
        return None

    async def _reconcile_once(self, owner: ObjectKey) -> timedelta | None:
        """Reconcile an owner; enqueue it again if events arrived meanwhile that the reconcile has not observed."""
        run_state = self._runs[owner] = RunningReconcile(ObservedVersions(owner))
        self._pacer.began(owner)
        failed, held = True, timedelta(0)
        try:
            with self._deps.folding(owner):
                delay = await self._reconcile(owner, run_state.observed)
        except Exception as error:
            held = retry_delay(error) or held
            raise
        else:
            failed = False
            return delay
        finally:
            del self._runs[owner]
            self._pacer.ended(owner, failed=failed, held=held.total_seconds())
            observed, unseen = run_state.observed, run_state.unseen()
            if owner in self._paused:
                unseen = {key: change for key, change in unseen.items() if key == owner}
            # No event is about an object that was created and deleted before the cache reports either.
            if any(self._cache.lacks(key) for key in observed.existing):
                self.queue.add(owner)
            for key, change in unseen.items():
                self._deps.note_change((owner,), key, change)
                self._enqueue(owner, urgent=is_urgent(change), own=key == owner)
            observed.end()

    async def _reconcile(self, owner: ObjectKey, observed: ObservedVersions) -> timedelta | None:
        def follow(api_version: str, kind: str, namespace: str) -> None:
            scope = (api_version, kind, namespace if self._deps.namespaces else "")
            observed.follow(scope)
            self._requested.add(scope)
            self._follow(*scope)

        def miss(api_version: str, kind: str, namespace: str) -> None:
            self._unserved.look_for((api_version, kind, namespace if self._deps.namespaces else ""), self._start)

        recording = partial(
            RecordingReads,
            follow=follow,
            miss=miss,
            namespaces=self._deps.namespaces,
            follows_owner=not self._owners.are_cached_apart,
        )
        found = await self._owners.find(owner, partial(recording, observed=observed))
        if found is None:
            if self._index.uid(owner) is not None or not self._departed.knows(owner):
                self._forget(owner)
            await self._departed.restore_references(owner)
            return None
        cluster, manifest, selected = found
        cluster = self._deps.recorded(owner, cluster, self._owners.cache, self._cache)
        if not selected and not self._has_to_release(owner, manifest):
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
                    selected=selected,
                    unobserved=recording(self._owners.routed(owner, direct=not selected), ObservedVersions(owner)),
                    pages=self._cache,
                    read_latest=partial(self._newer, owner, manifest["metadata"].get("resourceVersion")),
                    found=self._departed.manages,
                    unwatched=lambda: unwatched_objects(observed, self._cache, self.operator.resync),
                    orphans=partial(self._orphans, owner, manifest["metadata"].get("uid")),
                    wake=partial(self.queue.add, owner),
                    retry_by=partial(self.queue.add_after, owner),
                    values=self._deps.values,
                ),
            )
        finally:
            if selected:
                self._index.replace(observed)
        # After an owner that was created again under the name has taken over what it manages.
        await self._departed.restore_references(owner)
        return delay

    def _has_to_release(self, owner: ObjectKey, live: Manifest) -> bool:
        """Forget an owner that is not selected; return whether it has a finalizer of the operator."""
        self._departed.released(owner)
        if self._index.uid(owner) is not None:
            self._forget(owner)
        return bool(self.operator.finalizers.own_of(live))

    def _newer(self, owner: ObjectKey, version: str) -> Manifest | None:
        """Return an owner as the cache holds it, if it has changed; this does not count as a read of the reconcile."""
        found = self._owners.cache.entry(owner)
        return unpack(found) if found is not None and found.version != version else None

    def _orphans(self, owner: ObjectKey, uid: str) -> bool:
        """Return whether an owner was seen with the finalizer by which its delete orphans its objects."""
        found = self._owners.cache.entry(owner)
        return found is not None and found.uid == uid and found.orphaning

    def _forget(self, owner: ObjectKey) -> None:
        """Drop what is kept of an owner that is gone."""
        self._paused.discard(owner)
        self._index.forget(owner)
        self.queue.forget(owner)
        self._pacer.forget(owner)
        self._deps.forget(owner)

    def _follow_owners(self, api_version: str, kind: str, namespace: str) -> None:
        """Watch the owners, which have a cache of their own."""
        if self._start is not None:
            name = f"{self.operator.name} follows its owners {namespace}".rstrip()
            self._start(self._followed(api_version, kind, namespace, self._owners.cache), name)

    def _follow(self, api_version: str, kind: str, namespace: str) -> None:
        """Watch a kind from its first request on."""
        scope = (api_version, kind, namespace)
        if scope in self._following or self._start is None:
            return
        # Another operator of the process may declare what a wildcard of this one leaves out, or the reverse.
        unfollowed = (_NOT_FOLLOWED, self.operator.uncached_kinds, self._cache.uncached)
        if any((api_version, kind) in kinds for kinds in unfollowed):
            return
        self._cache.retain(*scope)
        name = f"{self.operator.name} follows {kind} {namespace}".rstrip()
        self._following[scope] = self._start(self._followed(*scope, self._cache), name)
        for watch in self.operator.kind_watches:
            if (watch.api_version, watch.kind) == scope[:2] and not watch.maps_at_once:
                self._start(self._mapped(watch, scope), f"{self.operator.name} maps {kind} {namespace}".rstrip())

    async def _mapped(self, watch: Watch, scope: Followed) -> None:
        """Handle the changes of a kind for a watch whose function waits, until cancelled; it delays nothing else."""
        api_version, kind, namespace = scope
        # The task that follows the kind reports why it cannot be watched.
        with suppress(ApiError, ConfigError):
            await self._cache.wait_for_sync(api_version, kind, namespace=namespace)
            async for change in self._cache.changes(api_version, kind, namespace=namespace):
                key = ObjectKey(api_version, kind, change.name[1], change.name[0])
                self._enqueue_all(await self._owners_at(watch, key, change), key, change)
        await asyncio.get_running_loop().create_future()

    async def _owners_at(self, watch: Watch, key: ObjectKey, change: CacheChange) -> Iterable[ObjectKey]:
        """Return the owners to which a watch maps a change; if it needs no reconcile, those of one state only."""
        event = change.event()
        events = [event]
        if event.old is not None and self._affected.is_needless(key, change):
            events = [WatchEvent(event.type, state) for state in (event.old, event.object)]
        found = []
        for one in events:
            reads = RecordingReads(self._owners.watching, ObservedVersions(key), namespaces=self._deps.namespaces)
            names = await mapped(watch, one, reads, name=self.operator.name, timeout=self.operator.reconcile_timeout)
            found.append([*self._affected.named(names)])
        return found[0] if len(found) == 1 else [one for one in chain(*found) if (one in found[0]) != (one in found[1])]

    async def _release_unread(self) -> None:
        """Stop to watch what no owner reads or writes any more, unless it is declared, until cancelled.

        Not at once: an owner that reads a kind in every other reconcile would list it in every other reconcile.
        """
        while True:
            await asyncio.sleep(_RELEASE_PERIOD)
            running = (scope for run_state in self._runs.values() for scope in run_state.observed.followed)
            used = self._index.followed | self._requested | {*self.declared.scopes, *running}
            self._requested = set()
            self._unserved.release(used)
            self._cache.release_unread()
            for scope in self._following.keys() - used:
                self._following.pop(scope)()
                self._cache.release(*scope)

    async def _followed(self, api_version: str, kind: str, namespace: str, cache: CachedCluster) -> None:
        """Handle the changes of a kind until cancelled."""
        scope = (api_version, kind, namespace)
        try:
            await self._listed(api_version, kind, namespace, cache)
            changes = cache.changes(
                api_version, kind, namespace=namespace, on_served=partial(self._enqueue_followers, scope)
            )
            async for change in changes:
                home, name = change.name
                key = ObjectKey(api_version, kind, name, home)
                self._handle_change_safely(key, change, of_owners=cache is self._owners.cache)
        except (ApiError, ConfigError) as error:
            if (api_version, kind) == self._owner_kind and cache is self._owners.cache:
                raise
            if isinstance(error, ConfigError) and (api_version, kind, namespace) in self.declared.scopes:
                raise
            # The kind has no watch; components that wait for such an object requeue themselves. What an owner made the
            # operator read may have too many objects for the cache, which fails the owners that need it.
            _log.warning("%s: %s %s cannot be watched: %s", self.operator.name, api_version, kind, error)
            await asyncio.get_running_loop().create_future()

    async def _listed(self, api_version: str, kind: str, namespace: str, cache: CachedCluster) -> None:
        """Wait until a kind is in the cache; if that failed at first, reconcile the owners that need it.

        The API server answered their requests, or did not serve the kind; no event is about what was deleted before.
        """
        try:
            await cache.cache(api_version, kind, namespace=namespace)
        except ConfigError:
            raise
        except Exception:  # noqa: BLE001 (a list may fail in any way; the cache logs it, and repeats the list)
            if any(one.unwatched for one in cache.informers_of(api_version, kind)):
                self._enqueue_followers((api_version, kind, namespace), ended=True)
            await cache.wait_for_sync(api_version, kind, namespace=namespace)
            self._enqueue_followers((api_version, kind, namespace))

    def _enqueue_followers(self, scope: Followed, *, failed: bool = False, ended: bool = False) -> None:
        """Enqueue the owners that have requested something, in their last reconcile or in one that runs.

        They may have failed because the API server did not serve the kind, for so long that they are retried seldom;
        with `failed`, only such ones are enqueued, and with `ended` those of which no reconcile runs.
        """
        running = [owner for owner, run_state in self._runs.items() if scope in run_state.observed.followed]
        for owner in dict.fromkeys((*self._index.followers(scope), *running)):
            if (self.queue.failures(owner) or not failed) and (owner not in self._runs or not ended):
                self.queue.add(owner)

    def _handle_change_safely(self, key: ObjectKey, change: CacheChange, *, of_owners: bool) -> None:
        try:
            self._handle_change(key, change, of_owners=of_owners)
        except Exception:  # noqa: BLE001 (an error in a mapping function must not end the watch)
            _log.exception("%s: an event of %s was not handled", self.operator.name, key)

    async def _resync(self, period: timedelta) -> None:
        """Enqueue all owners once per period, with lower priority than events."""
        while True:
            spread = 1 + _JITTER * (2 * self._deps.random() - 1)
            await asyncio.sleep(period.total_seconds() * spread)
            for namespace in await self.declared.owner_namespaces():
                for owner in await self._owners.known(namespace):
                    self.queue.add(owner, priority=Priority.UNCHANGED)

    async def _enqueue_gained(self) -> None:
        """Enqueue the owners of each slot that this process takes; the cache may have held them all the time."""
        if self._owners.slots is None:
            return
        async for gained in self._owners.slots.gained():
            self._abandoned.look_again()
            for namespace in await self.declared.owner_namespaces():
                for owner in await self._owners.known(namespace):
                    if self._owners.are_in(gained, owner):
                        self.queue.add(owner, priority=Priority.UNCHANGED)

    async def _release_unselected(self) -> None:
        """Enqueue what has a finalizer of the operator and is not selected, at the start and once per resync."""
        async for _ in self._owners.looks_for_unselected(self.operator.resync or _FOR_EVER):
            for namespace in await self.declared.namespaces_of(*self._owner_kind):
                for owner in await self._owners.unselected(namespace):
                    self.queue.add(owner, priority=Priority.UNCHANGED)

    def _is_old(self, entry: CacheEntry) -> bool:
        """Return whether an object is older than a change that a user could be waiting for."""
        try:
            made: datetime = parse_time(str(get_field(unpack(entry), ("metadata", "creationTimestamp"))))
        except ValueError:
            return False
        return self._deps.clock.now() - made > _RECENT
