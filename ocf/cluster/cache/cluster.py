"""`CachedCluster`: the verbs of `ocf.cluster.Cluster`, reads from memory and writes through to the cluster."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.cache.informer import Informer, InformerState
from ocf.cluster.cache.keys import NamespacedName, WatchScope
from ocf.cluster.cache.list_filter import ListFilter
from ocf.cluster.cache.serialization import unpack
from ocf.cluster.cache.timing import CacheTiming
from ocf.cluster.cache.transform import reduction
from ocf.cluster.cache.write_tracker import InFlightWrite
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
from ocf.errors import ConfigError, ManifestError, NotFoundError
from ocf.objects import Manifest, ObjectKey, split_api_version

__all__ = ["CachedCluster"]

# A long list lets others work in between.
_AT_ONCE: Final = 500
_RESET_MANAGERS: Final[list[Manifest]] = [{}]


class CachedCluster:
    """A cluster whose objects are read from memory, which watches keep up to date.

    The first get or list of a kind starts an informer: it lists the kind, then watches it, and from then on memory
    answers. What we wrote ourselves is visible at once. A read that memory cannot answer goes to the cluster: one
    that only the cluster can answer (a subresource, other field selectors than name and namespace, a page), one of an
    object whose state our own delete or conflict left open, and every read of a kind while its informer has not
    succeeded yet, or has met an error that nobody foresaw. While the cluster cannot be reached, memory goes on
    answering with what it last saw, and `healthy` says so.

    Args:
        cluster: The cluster; it stays the caller's to close.
        uncached: Kinds that are always read directly, as pairs of apiVersion and kind, for example Secrets.
        per_namespace: Cache each namespace that is read by itself, for operators that may not list all of them.
        keeps_manager: Says of which field managers `metadata.managedFields` is kept; None keeps all of them.
        left_fields: With `keeps_manager`: fields whose owners are kept all the same, `spec.replicas`.
        max_objects: How many objects one informer may hold; None for any number.
        pace: How often to ask the cluster, by which clock.

    Raises:
        ConfigError: If a setting is out of range. A kind with more than `max_objects` objects raises it when read.

    Example:
        >>> import asyncio
        >>> from ocf.embedded import EmbeddedCluster
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

    def __init__(
        self,
        cluster: Cluster,
        *,
        uncached: Collection[tuple[str, str]] = (),
        per_namespace: bool = False,
        keeps_manager: Callable[[str], bool] | None = None,
        left_fields: Collection[str] = (),
        max_objects: int | None = None,
        pace: CacheTiming | None = None,
    ) -> None:
        self._cluster = cluster
        self._uncached = frozenset(uncached)
        self._per_namespace = per_namespace
        self._reduce = reduction(keeps_manager, left_fields) if keeps_manager is not None else None
        self._max_objects = max_objects
        self._pace = pace or CacheTiming()
        self._informers: dict[WatchScope, Informer] = {}
        self._of_kind: defaultdict[tuple[str, str], list[Informer]] = defaultdict(list)
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all informers and subscriptions, and wait for that; reads go to the cluster from then on."""
        self._closed = True
        informers = tuple(self._informers.values())
        self._informers.clear()
        self._of_kind.clear()
        await asyncio.gather(*(informer.close() for informer in informers))

    @property
    def apply_cache(self) -> ApplyCache:
        """The memory of the wrapped cluster."""
        return self._cluster.apply_cache

    @property
    def informers(self) -> tuple[InformerState, ...]:
        """How each informer is doing; one that has not synced and has no problem is of a kind without watches."""
        return tuple(informer.state for informer in self._informers.values())

    @property
    def healthy(self) -> bool:
        """Whether no informer has a problem; a watch that broke and is being replaced is none yet."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, one sentence for each informer that has a problem."""
        return tuple(state.problem for state in self.informers if state.problem)

    async def cache(self, api_version: str, kind: str, *, namespace: str = "") -> None:
        """Start the informer of a kind now, and wait until memory answers.

        Args:
            api_version: Group and version.
            kind: Kind.
            namespace: Only of this namespace; empty for all.

        Raises:
            ApiError: As the cluster refused the first list; the informer goes on trying.
            ConfigError: If there are more objects than may be kept.
        """
        informer = self._informer(WatchScope(api_version, kind, namespace))
        if informer is not None and not await informer.ready():
            error = informer.error
            if error is not None:
                raise error

    async def subscribe(self, api_version: str, kind: str, *, namespace: str = "") -> AsyncGenerator[WatchEvent, None]:
        """Report the objects of a kind, and then every change of what the cache knows, our own writes included.

        Each change is told once. To a consumer that is slower than the changes, the last state of an object is told,
        so nothing but the objects themselves takes memory. A deleted object comes as it was last told; one that was
        deleted and made anew comes as deleted and added. There are no bookmarks.

        Args:
            api_version: Group and version.
            kind: Kind.
            namespace: Only of this namespace; empty for all.

        Yields:
            Events, until this cluster is closed; errors on the way are outlived.

        Raises:
            ApiError: If the kind cannot be watched.
            ConfigError: If the kind is one of `uncached`, or there are more objects than may be kept.
        """
        if (api_version, kind) in self._uncached:
            raise ConfigError(f"{api_version}/{kind} is one of `uncached`: nothing follows its changes; use `watch`")
        informer = self._covering(api_version, kind, namespace)
        if informer is None:
            return
        await informer.ready()
        if informer.ended and not self._closed and informer.error is not None:
            raise informer.error
        subscription = informer.subscribe(namespace)
        try:
            async for event in subscription.events():
                yield event
        finally:
            informer.unsubscribe(subscription)

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object from memory, or its Scale from the cluster."""
        informer = None if subresource else self._covering(key.api_version, key.kind, key.namespace)
        if informer is None or not (informer.synced or await informer.ready()):
            return await self._cluster.get(key, subresource=subresource)
        place = (key.namespace, key.name)
        if informer.store.is_stale(place):
            found: Manifest | None = await informer.read(place)
        else:
            entry = informer.store.get(place)
            found = unpack(entry) if entry is not None else None
        if found is None:
            raise NotFoundError(f"{key} not found", code=404, reason="NotFound")
        return found

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind from memory, or a page of them from the cluster.

        The cluster answers a request for a page, and a field selector with other fields than `metadata.name` and
        `metadata.namespace`. From the resource version of an answer from memory, a watch misses none of its objects.
        """
        informer = self._covering(api_version, kind, options.namespace)
        selection = ListFilter.parse(options.label_selector, options.field_selector)
        in_pages = options.limit > 0 or options.continue_token
        if informer and selection and not in_pages and (informer.synced or await informer.ready()):
            return await _selected(informer, options.namespace, selection)
        return await self._cluster.list(api_version, kind, options)

    def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncIterator[WatchEvent]:
        """Watch the cluster itself; see `subscribe` for the changes of the cache."""
        return self._cluster.watch(api_version, kind, options)

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
        sent = self._cluster.apply(
            manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
        )
        return await self._write(_key_of(manifest), sent, subresource, dry_run=dry_run)

    async def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool = False) -> Manifest:
        """Create an object, and cache the answer."""
        sent = self._cluster.create(manifest, field_manager=field_manager, dry_run=dry_run)
        return await self._write(_key_of(manifest), sent, None, dry_run=dry_run)

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, its status, or its Scale, and cache the answer.

        Where `keeps_manager` is given, `managedFields` is not sent, except for the list that resets it (`[{}]`): an
        object from memory does not have all of it, and sending a part would drop the rest.
        """
        whole = manifest if self._reduce is None else _without_managers(manifest)
        sent = self._cluster.update(whole, field_manager=field_manager, subresource=subresource, dry_run=dry_run)
        return await self._write(_key_of(manifest), sent, subresource, dry_run=dry_run)

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale, and cache the answer."""
        sent = self._cluster.patch(key, patch, options)
        return await self._write(key, sent, options.subresource, dry_run=options.dry_run)

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object; the next read of it asks the cluster how far the deletion is."""
        with self._flight(key) as flight:
            await self._cluster.delete(key, options)
            if not options.dry_run:
                uid = options.preconditions.uid if options.preconditions is not None else None
                flight.in_doubt(uid or "")

    async def _write(
        self, key: ObjectKey | None, sent: Awaitable[Manifest], subresource: Subresource | None, *, dry_run: bool
    ) -> Manifest:
        if dry_run or key is None:
            return await sent
        with self._flight(key) as flight:
            answer = await sent
            flight.completed(answer, whole=subresource is not Subresource.SCALE)
            return answer

    def _flight(self, key: ObjectKey) -> InFlightWrite:
        place: NamespacedName | None = (key.namespace, key.name) if key.name else None
        return InFlightWrite(partial(self._concerned, key.api_version, key.kind), place, key.api_version)

    def _concerned(self, api_version: str, kind: str, namespace: str) -> Iterator[Informer]:
        """Return the informers that hold an object, whatever the version of its kind."""
        group, _ = split_api_version(api_version)
        for informer in self._of_kind.get((group, kind), ()):
            if informer.scope.covers(namespace) and not informer.ended:
                yield informer

    def _covering(self, api_version: str, kind: str, namespace: str) -> Informer | None:
        """Return the informer that answers for a namespace, or all (empty); None where the cluster does."""
        found = self._informers.get(WatchScope(api_version, kind, namespace))
        if found is None and namespace:
            found = self._informers.get(WatchScope(api_version, kind))
        if found is not None:
            return found
        return self._informer(WatchScope(api_version, kind, namespace if self._per_namespace else ""))

    def _informer(self, scope: WatchScope) -> Informer | None:
        if self._closed or scope[:2] in self._uncached:
            return None
        informer = self._informers.get(scope)
        if informer is None:
            informer = Informer(self._cluster, scope, self._pace, reduce=self._reduce, max_objects=self._max_objects)
            self._informers[scope] = informer
            self._of_kind[split_api_version(scope.api_version)[0], scope.kind].append(informer)
        return informer


async def _selected(informer: Informer, namespace: str, selection: ListFilter) -> ObjectList:
    """List from memory; what is in doubt is read first."""
    read = {place: await informer.read(place) for place in informer.store.stale(namespace)}
    found = {
        place: manifest
        for place, manifest in read.items()
        if manifest is not None and selection.matches(place, manifest["metadata"].get("labels") or {})
    }
    version = informer.store.version
    for number, (place, entry) in enumerate(informer.store.items(namespace), start=1):
        if place not in read and selection.matches(place, entry.labels if selection.asks_for_labels else {}):
            found[place] = unpack(entry)
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return ObjectList(tuple(found[place] for place in sorted(found)), version)


def _key_of(manifest: Manifest) -> ObjectKey | None:
    """Return what an object is called, its name empty if the cluster makes it up; None if that cannot be read."""
    try:
        if (manifest.get("metadata") or {}).get("generateName") and not manifest["metadata"].get("name"):
            unnamed = {**manifest, "metadata": {**manifest["metadata"], "name": "-"}}
            key = ObjectKey.of(unnamed)
            return ObjectKey(key.api_version, key.kind, "", key.namespace)
        return ObjectKey.of(manifest)
    except ManifestError:
        return None


def _without_managers(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("managedFields") in (None, _RESET_MANAGERS):
        return manifest
    return {**manifest, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
