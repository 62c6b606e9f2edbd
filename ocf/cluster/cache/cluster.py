"""`CachedCluster`: reads from memory, writes through to the cluster."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Container, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Self

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.cache.divided import Division
from ocf.cluster.cache.informer import Informer
from ocf.cluster.cache.informer_state import InformerState
from ocf.cluster.cache.informers import Informers, require_served
from ocf.cluster.cache.keys import WatchScope, sent_key
from ocf.cluster.cache.list_filter import ListFilter
from ocf.cluster.cache.missing_kinds import MissingKinds
from ocf.cluster.cache.selection import Selection
from ocf.cluster.cache.selective import SelectiveInformer
from ocf.cluster.cache.serialization import CacheEntry, pack, unpack
from ocf.cluster.cache.subscriptions import CacheChange, OnServed, Subscription
from ocf.cluster.cache.timing import CacheTiming
from ocf.cluster.cache.transform import NeedsContent, read_only, reduction, without_managers
from ocf.cluster.impersonation import NO_EXTRA, ServiceAccount
from ocf.cluster.packed import PackedList
from ocf.cluster.protocol import (
    DEFAULT_DELETE_OPTIONS,
    DEFAULT_LIST_OPTIONS,
    Cluster,
    DeleteOptions,
    ListOptions,
    ObjectList,
    PatchOptions,
    Subresource,
    WatchEvent,
    WatchOptions,
)
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["CachedCluster"]


class CachedCluster:
    """A cluster whose objects are read from a cache, which watches keep up to date.

    The first get or list of a kind starts an informer: it lists the kind, then watches it, and from then on reads are
    answered from the cache. Writes through this cluster are visible at once. These reads go to the cluster: reads that
    only the cluster can answer (a subresource, a field selector with other fields than name and namespace, a page),
    reads of an object that a delete or conflict of our own left stale, and all reads of a kind while its informer has
    not succeeded yet or has met an unexpected error. While the cluster is unreachable, the cache answers with the last
    known state, and `healthy` is False.

    A kind that the cluster does not serve is looked for from time to time, at the latest after `longest_delay` of the
    timing; one look is for all such kinds. Until then, requests for it fail with the `NotFoundError` of the last look.

    Args:
        cluster: The cluster; closing it remains the task of the caller.
        uncached: Kinds that are always read from the cluster, as pairs of apiVersion and kind, for example Secrets. It
            is asked for each kind that is read.
        per_namespace: Cache each namespace separately when it is first read, for operators that may not list all
            namespaces.
        keeps_manager: Returns for a field manager whether its entries in `metadata.managedFields` are kept; None keeps
            all entries.
        ignored_fields: With `keeps_manager`: fields whose owners are kept in any case, `spec.replicas`.
        max_objects: The maximum number of objects of one informer; None for no limit.
        needs_content: Kinds of which only the metadata is held, except of objects for which the function returns True,
            and of those that were read. The first list that needs more has all of the kind held as a whole.
        selections: Kinds of which not all objects are listed, watched and held, each with what is.
        read_by_name: Kinds of which objects that are read by name are watched alone, until one is written, or read for
            which the function returns True.
        division: Kinds that processes divide by namespace: the lists of `cluster` have those of this process.
        timing: Delays, idle timeout and relist interval, and the clock.

    Raises:
        ConfigError: If a setting is out of range. A kind with more than `max_objects` objects raises it when read.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> async def main() -> None:
        ...     cluster = EmbeddedCluster(namespaces=("shop",))
        ...     async with CachedCluster(cluster) as cached:
        ...         settings = {
        ...             "apiVersion": "v1",
        ...             "kind": "ConfigMap",
        ...             "metadata": {"name": "settings", "namespace": "shop"},
        ...         }
        ...         await cached.apply(settings, field_manager="demo")
        ...         await cached.get(ObjectKey.of(settings))
        ...         cluster.requests.clear()
        ...         await cached.get(ObjectKey.of(settings))
        ...         print(cluster.requests.reads, cached.healthy)
        >>> asyncio.run(main())
        0 True
    """

    # Informers, and all that they hold, are those of the process; only what goes past them is sent as another user.
    __slots__ = ("__dict__", "__weakref__", "_direct")

    def __init__(  # noqa: PLR0913 (independent settings, by keyword)
        self,
        cluster: Cluster,
        *,
        uncached: Container[tuple[str, str]] = (),
        per_namespace: bool = False,
        keeps_manager: Callable[[str], bool] | None = None,
        ignored_fields: Collection[str] = (),
        max_objects: int | None = None,
        needs_content: Mapping[tuple[str, str], NeedsContent] | None = None,
        selections: Mapping[tuple[str, str], Selection] | None = None,
        read_by_name: Mapping[tuple[str, str], Callable[[CacheEntry], bool]] | None = None,
        division: Division | None = None,
        timing: CacheTiming | None = None,
    ) -> None:
        self._cluster = self._direct = cluster
        self.uncached: Final = uncached
        """Kinds that are read from the cluster."""
        timing = timing or CacheTiming()
        missing_kinds = MissingKinds(cluster, timing)
        self.missing_kinds: Final = missing_kinds
        reduce = reduction(keeps_manager, ignored_fields) if keeps_manager is not None else None
        self._drops_managers = reduce is not None
        given = selections or {}
        needed = {kind: read_only for kind, one in given.items() if one.metadata_only} | dict(needs_content or {})
        given = {kind: one for kind, one in given.items() if not one.selects_all}

        def informer(scope: WatchScope, selection: Selection | None) -> Informer:
            return Informer(
                cluster,
                scope,
                timing,
                missing_kinds=missing_kinds,
                reduce=reduce,
                max_objects=max_objects,
                needs_content=None if selection is not None and selection.one_object else needed.get(scope[:2]),
                selection=selection,
            )

        self._informers: Final = Informers(
            informer,
            uncached,
            per_namespace=per_namespace,
            selections=given,
            read_by_name=read_by_name,
            division=division,
        )
        # Each returns whether an object that is watched alone is still needed.
        self.readers: Final[list[Callable[[ObjectKey, CacheEntry | None], bool]]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop all informers and subscriptions, and wait until they have ended; later reads go to the cluster."""
        await self._informers.close()
        await self.missing_kinds.close()

    @property
    def apply_cache(self) -> ApplyCache:
        """The apply cache of the wrapped cluster."""
        return self._direct.apply_cache

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Cluster:
        """Return this cache with another user; see `Cluster.acting_as`.

        Kinds that are cached are read as the user of the process: its informers hold them. Everything else goes out as
        the other user: writes, whose answers are cached, and reads of `uncached` kinds and of subresources.
        """
        return self.writing_to(self._direct.acting_as(user, groups=groups, uid=uid, extra=extra))

    def writing_to(self, cluster: Cluster) -> Self:
        """Return this cache with another cluster, such as that of a leader, for what its informers do not answer."""
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        view._direct = cluster
        return view

    @property
    def informers(self) -> tuple[InformerState, ...]:
        """The state of each informer; one that is not synced and has no problem is of a kind that cannot be watched."""
        return tuple(informer.state for informer in self._informers)

    @property
    def held(self) -> tuple[tuple[ObjectKey, CacheEntry], ...]:
        """The objects in memory, without a request; one that is watched in two ways comes twice."""
        return tuple(self._informers.held)

    @property
    def failing(self) -> tuple[InformerState, ...]:
        """The state of each informer that has a problem."""
        return tuple(informer.state for informer in self._informers if informer.problem)

    @property
    def healthy(self) -> bool:
        """Whether no informer has a problem; the first failure of a watch does not count as one."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of all informers, one message for each informer that has one."""
        return tuple(informer.problem for informer in self._informers if informer.problem)

    def informers_of(self, api_version: str, kind: str) -> tuple[InformerState, ...]:
        """Return the state of each informer of a kind, one per namespace that is cached separately.

        Args:
            api_version: Group and version.
        """
        return self._informers.states_of(api_version, kind)

    async def cache(self, api_version: str, kind: str, *, namespace: str = "") -> None:
        """Start the informer of a kind now, and wait until it has synced.

        Args:
            api_version: Group and version.
            namespace: Only this namespace; empty for all namespaces.

        Raises:
            ApiError: The error of the first list; the informer keeps trying.
            ConfigError: If there are more objects than `max_objects`.
        """
        informer = self._informers.of(WatchScope(api_version, kind, namespace))
        if informer is not None and not await informer.ready() and (error := informer.error) is not None:
            raise error

    def retain(self, api_version: str, kind: str, namespace: str = "") -> None:
        """Keep the informer of a kind, once it was started, until `release` was called as often.

        Args:
            api_version: Group and version.
            namespace: Only this namespace; empty for all namespaces.
        """
        self._informers.retain(WatchScope(api_version, kind, namespace))

    def release(self, api_version: str, kind: str, namespace: str = "") -> None:
        """Stop the informer of a kind unless it is retained by others; the next read starts another one."""
        self._informers.release(WatchScope(api_version, kind, namespace))

    def release_unread(self) -> None:
        """Stop to watch single objects that were not read since the last call, unless one of `readers` needs them."""
        for one in self._informers.selective:
            one.release(lambda key, entry: any(needs(key, entry) for needs in self.readers))

    def unwatched(self, key: ObjectKey) -> str:
        """Return why no watch reports changes of an object, although its kind is watched; empty if one does."""
        return found.unwatched(key) if (found := self._informers.selective_of(key)) is not None else ""

    async def wait_for_sync(self, api_version: str, kind: str, *, namespace: str = "") -> None:
        """Start the informer of a kind, and wait until it has listed the objects, however often that fails before."""
        informer = self._informers.covering(api_version, kind, namespace)
        if informer is not None:
            await informer.listed()

    async def subscribe(self, api_version: str, kind: str, *, namespace: str = "") -> AsyncGenerator[WatchEvent, None]:
        """Report the objects of a kind, and then every change of the cache, including changes by our own writes.

        Each change is reported once. A subscriber that is slower than the changes gets the last state of an object, so
        a subscription takes no memory beyond the objects themselves. A modification is reported with the state that was
        reported before (`old`), a deletion with the last reported state; an object that was deleted and created again
        is reported as deleted and added. There are no bookmarks.

        Args:
            api_version: Group and version.
            namespace: Only this namespace; empty for all namespaces.

        Yields:
            Events, until this cluster is closed; errors of the watch do not end the subscription.

        Raises:
            ApiError: If the kind cannot be watched.
            ConfigError: If the kind is one of `uncached`, or there are more objects than `max_objects`.
        """
        async with aclosing(self.changes(api_version, kind, namespace=namespace)) as changes:
            async for change in changes:
                yield change.event()

    async def changes(
        self, api_version: str, kind: str, *, namespace: str = "", on_served: OnServed | None = None
    ) -> AsyncGenerator[CacheChange, None]:
        """Report the same as `subscribe`, with packed objects, for a subscriber that ignores most changes.

        Args:
            api_version: Group and version.
            namespace: Only this namespace; empty for all namespaces.
            on_served: Called when the API server serves the kind again after it did not, or after it may not have: no
                change need follow, since no object may exist yet. See `Subscription`.
        """
        if (api_version, kind) in self.uncached:
            raise ConfigError(f"{api_version}/{kind} is one of `uncached`: it has no informer; use `watch`")
        informer = self._informers.covering(api_version, kind, namespace)
        if informer is None:
            return
        await informer.ready()
        if not informer.ended:
            subscription = informer.subscribe(namespace, on_served)
            try:
                async for change in subscription.changes():
                    yield change
            finally:
                informer.unsubscribe(subscription)
        if informer.ended and not self._informers.closed and informer.error is not None:
            raise informer.error

    def follow(self, api_version: str, kind: str) -> Subscription | None:
        """Return the pending changes of a kind in all namespaces, which the caller takes; first of all every object.

        Args:
            api_version: Group and version.

        Returns:
            The changes; None while reads of the kind go to the cluster.
        """
        informer = self._informers.covering(api_version, kind, "")
        return informer.subscribe("") if informer is not None and informer.synced else None

    async def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether the objects of a kind are in namespaces."""
        return await self._cluster.is_namespaced(api_version, kind)

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object from memory, or its Scale from the cluster."""
        if subresource is not None:
            # As for writes: a Scale that is read before the kind is found could not be written yet.
            require_served(self._informers.started(key))
            return await self._direct.get(key, subresource=subresource)
        name = (key.namespace, key.name)
        informer = self._informers.covering(key.api_version, key.kind, key.namespace)
        require_served(informer)
        if informer is None or not (informer.synced or await informer.ready() or informer.reads_single):
            require_served(informer)
            return await self._reader(key.api_version, key.kind).get(key)
        selective, found = None, None
        if isinstance(informer, SelectiveInformer):
            selective, informer = informer, await informer.find(name)
        if informer is not None and (informer.store.is_stale(name) or informer.store.lacks_content(name)):
            found = await informer.read(name)
        elif informer is not None and (entry := informer.store.get(name)) is not None:
            found = unpack(entry)
        if found is None and selective is not None and selective.may_hide(informer):
            return await selective.found_by(name, self._reader(key.api_version, key.kind).get(key))
        if found is None:
            if informer is not None:
                informer.store.ask_for(name)
            raise NotFoundError(f"{key} not found", code=404, reason="NotFound")
        return found

    def entry(self, key: ObjectKey) -> CacheEntry | None:
        """Return an object that is in memory, without a request; None if it is not."""
        informer = self._informers.started(key)
        return informer.store.get((key.namespace, key.name)) if informer is not None else None

    def lacks(self, key: ObjectKey) -> bool:
        """Return whether the objects of a kind are in memory, and this one is not, without a request."""
        informer = self._informers.started(key)
        if informer is None or not informer.synced:
            return False
        name = (key.namespace, key.name)
        return informer.store.get(name) is None and not informer.store.is_stale(name)

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind from memory, or a page of them from the cluster.

        The cluster answers a request for a page, and a field selector with other fields than `metadata.name` and
        `metadata.namespace`. From the resource version of an answer from memory, a watch misses none of its objects.
        """
        in_pages = options.limit > 0 or options.continue_token
        informer = None if in_pages else self._informers.covering(api_version, kind, options.namespace)
        selection = ListFilter.parse(options.label_selector, options.field_selector)
        if informer and selection and (informer.synced or await informer.ready()):
            found = await informer.select(selection, options, self._cluster)
            if found is not None:
                return found
        require_served(informer)
        return await self._reader(api_version, kind).list(api_version, kind, options)

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        """Return the objects of a kind as they are in memory; None if they have to be listed."""
        informer = self._informers.covering(api_version, kind, namespace)
        if informer is None or not (informer.synced or await informer.ready()):
            require_served(informer)
            return None
        if isinstance(informer, SelectiveInformer):
            informer = await informer.whole()
        if informer is None or any(entry.metadata_only for _, entry in informer.store.unordered()):
            # The list that follows has them held as a whole.
            return None
        read = {name: await informer.read(name) for name in informer.store.stale(namespace)}
        found = dict(informer.store.unordered())
        for name, live in read.items():
            if live is not None:
                found[name] = pack(live)
            else:
                found.pop(name, None)
        return {name: one for name, one in found.items() if name[0] == namespace} if namespace else found

    def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncIterator[WatchEvent]:
        """Watch the cluster itself; see `subscribe` for the changes of the cache."""
        return self._reader(api_version, kind).watch(api_version, kind, options)

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Create or change an object by server-side apply, and cache the answer."""
        key = self._written(manifest)
        sent = self._direct.apply(
            manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
        )
        return await self._write(key, sent, subresource, dry_run=dry_run)

    async def create(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Manifest:
        """Create an object, and cache the answer; or evict or bind a pod, which the next read asks the cluster for."""
        key = self._written(manifest)
        sent = self._direct.create(
            manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run, strict=strict
        )
        if subresource is None or dry_run or key is None:
            return await self._write(key, sent, subresource, dry_run=dry_run)
        with self._informers.in_flight_write(key) as write:
            answer = await sent
            write.mark_stale("")
            return answer

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, its status, or its Scale, and cache the answer.

        Where `keeps_manager` is given, `managedFields` is not sent, except for the list that resets it (`[{}]`): an
        object from memory does not have all of it, and sending a part would drop the rest. With a status it is not
        sent either, because the server takes it from the live object then.
        """
        key = self._written(manifest)
        is_left_out = self._drops_managers or subresource is Subresource.STATUS
        sent = self._direct.update(
            without_managers(manifest) if is_left_out else manifest,
            field_manager=field_manager,
            subresource=subresource,
            dry_run=dry_run,
        )
        return await self._write(key, sent, subresource, dry_run=dry_run)

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale, and cache the answer."""
        require_served(self._informers.started(key))
        sent = self._direct.patch(key, patch, options)
        return await self._write(key, sent, options.subresource, dry_run=options.dry_run)

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object; the next read of it asks the cluster how far the deletion is."""
        require_served(self._informers.started(key))
        with self._informers.in_flight_write(key) as write:
            await self._direct.delete(key, options)
            if not options.dry_run:
                uid = options.preconditions.uid if options.preconditions is not None else None
                write.mark_stale(uid or "")

    async def _write(
        self, key: ObjectKey | None, sent: Awaitable[Manifest], subresource: Subresource | None, *, dry_run: bool
    ) -> Manifest:
        if dry_run or key is None:
            return await sent
        with self._informers.in_flight_write(key) as write:
            answer = await sent
            write.completed(answer, whole=subresource is None or subresource.shows_object)
        if subresource is None and (selective := self._informers.selective_of(key)) is not None:
            selective.written(answer)
        return answer

    def _written(self, manifest: Manifest) -> ObjectKey | None:
        """Return the key of a manifest to send, as `sent_key`; raise an error if its kind is known not to be served."""
        key = sent_key(manifest)
        if key is not None:
            require_served(self._informers.started(key))
        return key

    def _reader(self, api_version: str, kind: str) -> Cluster:
        """Return the cluster for what the informers do not answer: of a kind that is cached, as they read it."""
        return self._direct if (api_version, kind) in self.uncached else self._cluster
