"""The objects of a kind of which not all are listed: those of a selection, and those that are read by name.

An object that is not selected looks as if it did not exist in the watch of the selection, and so does one whose label
was removed. An operator that believes this creates what exists, and never notices what happens to it. So a read by name
that finds nothing asks the API server, and what it finds is watched alone from then on, by its name.

Each object that is watched alone is a request that stays open, so there is a limit. Without a selection, one list of
the kind takes the place of them beyond it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from ocf.cluster.cache.existing_objects import existing_objects, read_each
from ocf.cluster.cache.informer_state import InformerState
from ocf.cluster.cache.keys import NamespacedName, WatchScope, namespaced_name
from ocf.cluster.cache.selection import Selection, one_object
from ocf.cluster.cache.subscriptions import OnServed, Relay, Subscription
from ocf.cluster.protocol import ListOptions, ObjectList
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.errors import ApiError, ForbiddenError, NotFoundError
from ocf.objects import ObjectKey
from ocf.objects.resource_versions import is_older

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.cache.informer import Informer
    from ocf.cluster.cache.informer_maker import InformerMaker
    from ocf.cluster.cache.list_filter import ListFilter
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.objects import Manifest

__all__ = ["BEYOND", "MOST_SINGLE", "SelectiveInformer"]

# Measured with Secrets of 4 KB over HTTP: a watch of one takes 31 KiB and 2 ms of CPU to open, so 50 cost as much CPU
# as a list of 1 000 (0.11 s), and a fifth of its memory (1.6 MiB; the list 8.9, of which only metadata is kept).
MOST_SINGLE: Final = 50
"""Objects of a kind that are watched alone."""
BEYOND: Final = f"the selection of the cache does not select them, and {MOST_SINGLE} such objects are watched alone"
"""Why no watch reports the changes of more of them."""
_UNLISTED: Final = f"the right to list all is missing, and {MOST_SINGLE} such objects are watched alone"
# Beyond, names that were not found are forgotten, and objects that may only be unselected are looked up.
_MOST_NAMES: Final = 1_000


class SelectiveInformer:
    """The informers of a kind in one namespace or in all: those of its selection, and those of single objects.

    Args:
        scope: The kind, and the namespace of the reads that it answers.
        is_own: Returns whether an object is one of those that the operator makes, of which there may be many. All of
            the kind are held once one was read or written; None for only those that are read or written by name.
    """

    def __init__(
        self,
        scope: WatchScope,
        selection: Selection,
        maker: InformerMaker,
        is_own: Callable[[CacheEntry], bool] | None = None,
    ) -> None:
        self.scope: Final = scope
        self._is_own = is_own
        self.selection: Final = selection
        self._maker = maker
        self._subscriptions: dict[Subscription, None] = {}
        self._bases: list[Informer] = []
        self._single: dict[NamespacedName, Informer] = {}
        self._read: set[NamespacedName] = set()
        """What of these was read since the last call of `release`."""
        self._absent: set[NamespacedName] = set()
        """Names that were not found in the cluster when they were read."""
        self._left: set[NamespacedName] = set()
        """Objects that the watch of the selection has shown as deleted: each may be unselected only."""
        self._looking: Final = asyncio.Lock()
        """Held while it is found out which of these exist."""
        self._task: asyncio.Task[None] | None = None
        self._departures = 0
        """Number of objects that the watch of the selection has shown as deleted so far."""
        self._needs_all = False
        """Whether the list of all was needed since the last call of `release`."""
        self._gave_up = False
        """Whether a list in place of single watches was forbidden: a role with `resourceNames` allows reads by name."""
        self._beyond: set[NamespacedName] = set()
        """Objects that exist, are not selected, and are not watched alone, because too many others are."""
        if not selection.by_name:
            homes = [home for home in selection.namespaces or ("",) if not home or scope.covers(home)]
            for home in homes:
                self._add_base(home or scope.namespace, selection)

    # State, as of one informer

    @property
    def all(self) -> list[Informer]:
        """All that list and watch."""
        return [*self._bases, *self._single.values()]

    @property
    def synced(self) -> bool:
        """Whether reads are answered from the cache."""
        return all(each.synced for each in self._bases)

    @property
    def reads_single(self) -> bool:
        """Whether reads by name are answered although all objects may not be listed."""
        return self.selection.by_name and any(
            not each.was_listed and isinstance(each.error, ForbiddenError) for each in self._bases
        )

    @property
    def missing(self) -> bool:
        """Whether the API server does not serve the kind, as of the last look."""
        return any(each.missing for each in self.all)

    @property
    def ended(self) -> bool:
        """Whether the cache will never answer."""
        return any(each.ended for each in self._bases)

    @property
    def error(self) -> Exception | None:
        """The error of the last attempt; None if all have succeeded."""
        return next((each.error for each in self.all if each.error is not None), None)

    @property
    def problem(self) -> str:
        """A message about a present error; empty if there is none."""
        return next((each.problem for each in self.all if each.problem), "")

    @property
    def state(self) -> InformerState:
        """A snapshot of the state of all; a problem of an object that is watched alone is none of the others'."""
        states = [each.state for each in self.all]
        bases = states[: len(self._bases)]
        return InformerState(
            api_version=self.scope.api_version,
            kind=self.scope.kind,
            namespace=self.scope.namespace,
            synced=self.synced,
            objects=sum(each.objects for each in states),
            resource_version=next((each.resource_version for each in states), ""),
            failures=max((each.failures for each in bases), default=0),
            problem=next((each.problem for each in bases if each.problem), ""),
            missing=self.missing,
            unwatched=next((each.unwatched for each in bases if each.unwatched), ""),
            single_problem=next((each.problem for each in states[len(bases) :] if each.problem), ""),
        )

    async def ready(self) -> bool:
        """Wait for the first lists of the selection, and return whether reads are answered from the cache."""
        for each in self.all:
            each.start()
        await asyncio.gather(*(each.ready() for each in self._bases))
        return self.synced

    async def listed(self) -> None:
        """Wait until all that is selected has been listed once, however often that fails before."""
        await asyncio.gather(*(each.listed() for each in self._bases))

    async def close(self) -> None:
        """Stop all informers, and wait until they have ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*(each.close() for each in self.all))
        self._close_subscriptions()

    # Reads

    def holder(self, name: NamespacedName) -> Informer | None:
        """Return the informer that holds an object, without a request; None if none does."""
        single = self._single.get(name)
        for base in self._covering(name[0]):
            if base.store.get(name) is not None or (self.selection.by_name and base.synced):
                return base
        return single

    async def find(self, name: NamespacedName) -> Informer | None:
        """Return the informer that answers a read by name; None if the read goes to the API server."""
        for base in self._covering(name[0]):
            if not (base.synced or await base.ready()):
                return None
            if base.store.is_stale(name):
                await base.read(name)
            if base.store.get(name) is not None or self.selection.by_name:
                # It may be one that was not found, which no event of the base has ended.
                self._end(name)
                self._note_read(name)
                return base
        wanted = name not in self._single and (self.selection.by_name or name in self._absent)
        if wanted and not self._watch_alone(name) and self.selection.by_name:
            return await self._all_of_kind(for_read=True)
        single = self._single.get(name)
        if single is not None:
            self._read.add(name)
        if single is None or not (single.synced or await single.ready()):
            return None
        entry = single.store.get(name)
        if self._is_own is not None and entry is not None and self._is_own(entry):
            whole = await self._all_of_kind()
            if whole is not None:
                return whole
        # One that has ended meanwhile has forgotten the object.
        return single if single.synced else None

    def may_hide(self, informer: Informer | None) -> bool:
        """Return whether what an informer does not find may exist: it is not selected, or nothing holds it."""
        return informer is None or (informer in self._bases and not self.selection.by_name)

    async def found_by(self, name: NamespacedName, sent: Awaitable[Manifest]) -> Manifest:
        """Wait for the answer to a read that went to the API server; what it finds is watched alone from now on."""
        try:
            found = await sent
        except NotFoundError:
            self._left.discard(name)
            self._beyond.discard(name)
            if len(self._absent) >= _MOST_NAMES:
                self._absent.pop()
            self._absent.add(name)
            raise
        self._left.discard(name)
        if self.holder(name) is None and self._exists(name):
            # What keeps it from being watched is known to the reader then.
            await self._single[name].ready()
        return found

    def written(self, live: Manifest) -> None:
        """Watch an object that was written, if it is not held."""
        name = namespaced_name(live)
        is_unheld = self._is_own is not None or (self.holder(name) is None and not self._exists(name))
        if is_unheld and self.selection.by_name and self._maker.keeps(self):
            self._needs_all = True
            self._base_of_all().start()

    async def select(self, selection: ListFilter, options: ListOptions, cluster: Cluster) -> ObjectList | None:
        """Return the objects that a filter selects, of those that are held.

        Args:
            cluster: The API server, for what has left the selection.

        Returns:
            The objects; None if the API server has to answer.
        """
        if self.selection.by_name and await self._all_of_kind() is None:
            return None
        bases = self._covering(options.namespace)
        if not bases:
            return None
        departures = self._departures
        await self._look_for_left(options.namespace)
        by_name = {name for name in self._beyond if options.namespace in ("", name[0])}
        if by_name:
            with suppress(ForbiddenError):
                return await self._listed_with_others(options, cluster)
        inside = {name: one for name, one in self._single.items() if options.namespace in ("", name[0])}
        # A role may allow lists in the namespaces of the selection only, and of what is elsewhere reads by name.
        by_name |= {name for name, one in inside.items() if not (one.synced or await one.ready())}
        read = await read_each(cluster, self.scope[:2], by_name, (NotFoundError, ForbiddenError))
        found = selection.selected(ObjectList(tuple(read.values()), "").selected_by(options).items)
        listing, version = [*(one for name, one in inside.items() if name not in by_name), *bases], ""
        for each in listing:
            if not (each.synced or await each.ready()):
                return None
            home = replace(options, namespace=options.namespace or each.scope.namespace)
            page = await each.select(selection, home)
            if page is None:
                # The content of one is not held, which it is from the next list on.
                chosen = home if each.selection is None else each.selection.narrowed(home)
                page = await cluster.list(self.scope.api_version, self.scope.kind, chosen)
            # A watch from the oldest one misses nothing.
            version = page.resource_version if not version or is_older(page.resource_version, version) else version
            found |= {namespaced_name(one): one for one in page.items}
        # What has left the selection during these reads is in none of them, and may exist; what has ended is empty.
        if departures != self._departures or any(each.ended for each in listing):
            return None
        return ObjectList(tuple(found[name] for name in sorted(found)), version)

    async def whole(self) -> Informer | None:
        """Return the informer that holds all of the kind, which it does from now on if it can; None if none does."""
        return await self._all_of_kind() if self.selection.by_name else None

    def unwatched(self, key: ObjectKey) -> str:
        """Return why no watch reports the changes of an object; empty if one does."""
        name = (key.namespace, key.name)
        if name in self._single:
            return self._single[name].state.unwatched
        return (_UNLISTED if self.selection.by_name else BEYOND) if name in self._beyond else ""

    def release(self, needed: Callable[[ObjectKey, CacheEntry | None], bool]) -> None:
        """Stop to watch the single objects that were not read since the last call, unless they are needed."""
        for name in [*self._single]:
            if name not in self._read and not needed(self._key(name), self._single[name].store.get(name)):
                self._end(name)
                self._forget(name)
        # What was deleted since would have each list be one of the API server for ever.
        self._beyond = {name for name in self._beyond if needed(self._key(name), None)}
        if self.selection.by_name and self.synced and not self._needs_all and (self._task is None or self._task.done()):
            for base in self._bases:
                self._narrow(base, needed)
        self._needs_all = False
        self._read.clear()
        self._absent.clear()
        self._gave_up = False  # the right may have been granted

    # Subscriptions

    def subscribe(self, namespace: str, on_served: OnServed | None = None) -> Subscription:
        """Add a subscription; the caller removes it with `unsubscribe`."""
        subscription = Subscription(self, namespace, on_served)
        self._subscriptions[subscription] = None
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self._subscriptions.pop(subscription, None)

    def get(self, name: NamespacedName) -> CacheEntry | None:
        """Return an object that is held; None if it is not."""
        holder = self.holder(name)
        return holder.store.get(name) if holder is not None else None

    def items(self, namespace: str = "") -> list[tuple[NamespacedName, CacheEntry]]:
        """Return the objects of a namespace (empty for all) that are held, ordered by namespace and name."""
        held = dict(chain.from_iterable(each.store.items(namespace) for each in reversed(self.all)))
        return [(name, held[name]) for name in sorted(held)]

    def changed(self, name: NamespacedName, *, by: Informer) -> None:
        """Record that an object has changed in an informer."""
        if by in self._bases:
            if by.store.get(name) is not None:
                self._left.discard(name)
                self._absent.discard(name)
                self._beyond.discard(name)
                self._end(name)
            elif not self.selection.by_name:
                self._left.add(name)
                self._departures += 1
                if len(self._left) >= _MOST_NAMES and (self._task is None or self._task.done()):
                    self._task = asyncio.create_task(self._forget_deleted(), name=f"cache of {self.scope}: deletions")
        self._mark_changed(name)

    def _mark_changed(self, name: NamespacedName) -> None:
        for subscription in self._subscriptions:
            subscription.mark_changed(name)

    def served(self, by: Informer, *, failed: bool = False) -> None:
        """Pass on that the API server may serve the kind anew."""
        if by not in self._bases and not by.was_listed:
            # The API server refuses to watch this object; the status of the owners that read it says so already.
            return
        for on_served in [each.on_served for each in self._subscriptions if each.on_served is not None]:
            on_served(failed=failed)

    def closed(self, informer: Informer) -> None:
        """Record that an informer has ended."""
        if informer in self._bases:
            self._close_subscriptions()

    # Informers

    def _key(self, name: NamespacedName) -> ObjectKey:
        return ObjectKey(self.scope.api_version, self.scope.kind, name[1], name[0])

    def _covering(self, namespace: str) -> list[Informer]:
        """Return the informers of the selection that hold the objects of a namespace, empty for all."""
        bases = [] if self.reads_single else self._bases
        return [each for each in bases if not namespace or each.scope.covers(namespace)]

    def _base_of_all(self) -> Informer:
        return self._bases[0] if self._bases else self._add_base(self.scope.namespace, None)

    def _add_base(self, namespace: str, selection: Selection | None) -> Informer:
        base = self._made(namespace, selection)
        self._bases.append(base)
        return base

    def _made(self, namespace: str, selection: Selection | None) -> Informer:
        informer = self._maker.make(self.scope._replace(namespace=namespace), selection)
        changed, closed = partial(self.changed, by=informer), partial(self.closed, informer)
        informer.attach(Relay(informer.store, partial(self.served, informer), changed, closed))
        return informer

    def _watch_alone(self, name: NamespacedName) -> bool:
        """Watch a single object from now on; return False if there are too many, or at the end."""
        if len(self._single) >= MOST_SINGLE or not self._maker.keeps(self):
            return False
        single = self._single[name] = self._made(name[0], one_object(name[1]))
        single.start()
        self._read.add(name)
        self._beyond.discard(name)
        return True

    def _exists(self, name: NamespacedName) -> bool:
        """Watch an object alone that exists and is not held; return False if there are too many."""
        is_watched = self._watch_alone(name)
        if not is_watched and (self._gave_up or self.reads_single or not self.selection.by_name):
            self._beyond.add(name)
        return is_watched

    async def _look_for_left(self, namespace: str) -> None:
        """Watch alone what has left the selection and exists, of a namespace, empty for all; the rest was deleted."""
        async with self._looking:
            names = {one for one in self._left if namespace in ("", one[0])}
            self._left -= names  # what leaves the selection from now on is noted anew
            try:
                homes = [namespace or each.scope.namespace for each in self._covering(namespace)]
                existing = await existing_objects(self._bases[0].cluster, self.scope[:2], names, homes)
            except BaseException:
                self._left |= names
                raise
            self._beyond -= names - existing
            found = [name for name in sorted(existing) if self.holder(name) is None and self._exists(name)]
            await asyncio.gather(*(self._single[name].ready() for name in found))

    async def _forget_deleted(self) -> None:
        """Look for all that has left the selection, so that no more names are kept of what was deleted."""
        # The next one that leaves is a reason to try again.
        with suppress(ApiError), requests_for(Purpose.CACHE):
            await self._look_for_left("")

    async def _listed_with_others(self, options: ListOptions, cluster: Cluster) -> ObjectList:
        """List what the API server has, selected or not, for there is more than can be watched alone."""
        everything = replace(options, controller="", owner="", index=None)
        asked = {name for name in self._beyond if options.namespace in ("", name[0])}
        page = await cluster.list(self.scope.api_version, self.scope.kind, everything)
        if not (options.label_selector or options.field_selector):
            self._beyond -= asked.difference(map(namespaced_name, page.items))
        return page.selected_by(options)

    async def _all_of_kind(self, *, for_read: bool = False) -> Informer | None:
        """Hold all of the kind from now on, for a read only if that is not forbidden; return None if that fails."""
        self._needs_all = True
        if not self._maker.keeps(self) or (for_read and self._gave_up):
            return None
        is_new, base = not self._bases, self._base_of_all()
        if not (base.synced or await base.ready()):
            if for_read and is_new and self.reads_single:
                self._gave_up = True
                self._bases.remove(base)
                self._maker.end(base)
            return None
        for name in [*self._single]:
            self._end(name)
            self.changed(name, by=base)
        return base

    def _narrow(self, base: Informer, needed: Callable[[ObjectKey, CacheEntry | None], bool]) -> None:
        """Watch the few objects alone that are read or needed, in place of all of the kind."""
        most, names = MOST_SINGLE // 2, {*self._read}  # half of the limit, so that the next one does not end it
        for name, entry in base.store.unordered():
            if len(names) > most or (self._is_own is not None and self._is_own(entry)):
                return
            if name not in names and needed(self._key(name), entry):
                names.add(name)
        if len(names) <= most:
            self._task = asyncio.create_task(self._watch_only(base, names), name=f"cache of {self.scope}: single ones")

    async def _watch_only(self, base: Informer, names: set[NamespacedName]) -> None:
        """Let single objects take the place of an informer of all once each is in memory."""
        single = {name: self._made(name[0], one_object(name[1])) for name in sorted(names)}
        try:
            ready = await asyncio.gather(*(each.ready() for each in single.values()))
            if all(ready) and not self._needs_all and self._read <= single.keys() and self._maker.keeps(self):
                self._bases.remove(base)
                self._read |= single.keys()
                self._single, single = self._single | single, {}
                for name, _ in base.store.unordered():
                    self._forget(name)
                self._maker.end(base)
        finally:
            for each in single.values():
                self._maker.end(each)
            await asyncio.gather(*(each.close() for each in single.values()))

    def _forget(self, name: NamespacedName) -> None:
        """Let subscriptions drop the last state of an object that is not held any more."""
        if self.get(name) is None:
            for subscription in self._subscriptions:
                subscription.forget(name)

    def _note_read(self, name: NamespacedName) -> None:
        """Note what is read of all of the kind, as long as it may be watched alone."""
        if self.selection.by_name and len(self._read) <= MOST_SINGLE:
            self._read.add(name)

    def _end(self, name: NamespacedName) -> None:
        self._read.discard(name)
        if (single := self._single.pop(name, None)) is not None:
            self._maker.end(single)

    def _close_subscriptions(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()
