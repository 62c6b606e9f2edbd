"""The cluster of one reconcile, which records what the reconcile reads and writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from ocf.cluster import Cluster, InterceptingCluster, ListOptions, ObjectList, PatchOptions, Request, Subresource, Verb
from ocf.cluster.cache.list_filter import ListFilter
from ocf.cluster.interceptor import key_of, requested_key
from ocf.cluster.packed import PackedList, PackedObject, list_packed
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS
from ocf.errors import ConflictError, InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator.observed_versions import ListScope, ObservedVersions

__all__ = ["RecordingReads"]

T = TypeVar("T")

_VERSION_PATH: Final = "/metadata/resourceVersion"


def _ignore(*_: str) -> None:
    """Ignore a request: what a watch reads triggers nothing."""


class RecordingReads(InterceptingCluster):
    """The cluster of one reconcile; records the versions of all objects that the reconcile reads and writes.

    Args:
        follow: Called with API version, kind and namespace of every request before it is sent.
        miss: Called with the same once the answer is that there is no such object, or no such kind.
        namespaces: The namespaces that the operator watches, and may list; empty for all.
        follows_owner: Whether the kind is followed because of a request for the owner; not if the owner has a cache of
            its own.
    """

    def __init__(
        self,
        cluster: Cluster,
        observed: ObservedVersions,
        follow: Callable[[str, str, str], None] = _ignore,
        miss: Callable[[str, str, str], None] = _ignore,
        *,
        namespaces: Collection[str] = (),
        follows_owner: bool = True,
    ) -> None:
        super().__init__(cluster)
        self._follows_owner = follows_owner
        self._observed = observed
        self._follow = follow
        self._miss = miss
        self._namespaces = tuple(sorted({*namespaces}))

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        # Reads and applies are nearly all requests of a reconcile, so they are not described as a `Request` first.
        sent = self._inner.get(key, subresource=subresource)
        found: Manifest = await self._recorded(key, sent, subresource)
        return found

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind; those of all namespaces are those of all namespaces that the operator watches."""
        homes = await self._homes(api_version, kind, options)
        found = [await self._list(api_version, kind, replace(options, namespace=home)) for home in homes]
        # A watch that follows the first list misses nothing that is not in the others.
        return found[0] if len(found) == 1 else replace(found[0], items=tuple(chain(*(each.items for each in found))))

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        """Read the objects of a kind as a cache holds them; they count as read, as those of a list do."""
        together: dict[tuple[str, str], PackedObject] = {}
        for home in await self._homes(api_version, kind, ListOptions(namespace=namespace)):
            sent = list_packed(self._inner, api_version, kind, home)
            found = await self._listed(api_version, kind, ListOptions(namespace=home), sent)
            if found is None:
                return None
            together |= found
        self._observed.record_packed(api_version, kind, together)
        return together

    async def _homes(self, api_version: str, kind: str, options: ListOptions) -> Collection[str]:
        """Return the namespaces that a list is sent for, one empty text for all; a page is never divided."""
        if options.namespace or not self._namespaces or options.limit or options.continue_token:
            return (options.namespace,)
        try:
            return self._namespaces if await self._inner.is_namespaced(api_version, kind) else ("",)
        except NotFoundError:
            # The lists fail as well, and are followed until the kind is served.
            return self._namespaces

    async def _list(self, api_version: str, kind: str, options: ListOptions) -> ObjectList:
        found = await self._listed(api_version, kind, options, self._inner.list(api_version, kind, options))
        self._observed.record_list(found.items)
        return found

    async def _listed(self, api_version: str, kind: str, options: ListOptions, sent: Awaitable[T]) -> T:
        """Wait for the answer to a list, and record what the list selects, whatever the answer is."""
        selected = ListFilter.parse(options.label_selector, options.field_selector)
        scope = ListScope(api_version, kind, options.namespace, selected, options.controller, options.index)
        self._follow(api_version, kind, options.namespace)
        if scope not in self._observed.lists:
            self._observed.lists.append(scope)
        try:
            return await sent
        except NotFoundError:
            self._miss(api_version, kind, options.namespace)
            raise

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Create or change an object by server-side apply."""

        def send(version: str) -> Awaitable[Manifest]:
            return self._inner.apply(
                _naming(manifest, version),
                field_manager=field_manager,
                force=force,
                subresource=subresource,
                dry_run=dry_run,
            )

        write = _Write(field_manager, subresource, dry_run=dry_run)
        return await self._written(requested_key(manifest), manifest, send, write)

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, or its status."""

        def send(version: str) -> Awaitable[Manifest]:
            return self._inner.update(
                _naming(manifest, version), field_manager=field_manager, subresource=subresource, dry_run=dry_run
            )

        write = _Write(field_manager, subresource, dry_run=dry_run)
        return await self._written(requested_key(manifest), manifest, send, write)

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale."""

        def send(version: str) -> Awaitable[Manifest]:
            return self._inner.patch(key, _naming(patch, version), options)

        write = _Write(options.field_manager, options.subresource, dry_run=options.dry_run)
        return await self._written(key, patch, send, write)

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, and record the returned object."""
        write = _Write(request.field_manager, request.subresource, dry_run=request.dry_run)
        key = key_of(request)
        answer = await self._recorded(key, send(), request.subresource, None if request.verb.is_read else write)
        if request.verb is Verb.DELETE and not request.dry_run:
            self._observed.record_delete(key)
        return answer

    async def _written(
        self, key: ObjectKey, sent: Any, send: Callable[[str], Awaitable[Manifest]], write: _Write
    ) -> Manifest:
        """Send a write that names the version that was read; if another writer was faster, without the version.

        Args:
            sent: The object or the patch; it may name a version itself, and its sender handles the conflict then.
            send: Sends it, with a version that is not empty.
        """
        version = self._observed.version_of(key) if write.is_recorded and not _names_version(sent) else ""
        if version:
            try:
                named: Manifest = await self._recorded(key, send(version), write.subresource, write)
            except ConflictError as error:
                # Only a conflict about the ownership of fields has causes.
                if error.causes:
                    raise
            except InvalidError:
                # A JSON patch whose test of the version fails; or it is invalid, and is so again.
                if not isinstance(sent, list):
                    raise
                self._observed.invalidate(key)
            else:
                return named
        stored: Manifest = await self._recorded(key, send(""), write.subresource, write)
        return stored

    async def _recorded(
        self, key: ObjectKey, sent: Awaitable[Any], subresource: Subresource | None, write: _Write | None = None
    ) -> Any:
        """Wait for the answer to a request, and record it; the name in the key is empty for a watch."""
        if self._follows_owner or key != self._observed.owner:
            self._follow(key.api_version, key.kind, key.namespace)
        self._observed.requested.add(key)
        try:
            answer = await sent
        except NotFoundError:
            self._miss(key.api_version, key.kind, key.namespace)
            if write is None and key.name:
                self._observed.record(key, None)
            raise
        except ConflictError:
            self._observed.invalidate(key)
            raise
        if isinstance(answer, dict) and key.name:
            if write is None and _shows_object(subresource):
                self._observed.record(key, answer)
            elif write is not None and write.is_recorded:
                # The API server completes a name that begins with `generateName`.
                written = key._replace(name=str(answer["metadata"].get("name") or key.name))
                self._observed.record_write(written, answer, write.manager, whole=subresource is None)
        return answer


class _Write(NamedTuple):
    """How an object is written.

    Args:
        subresource: The part of the object that is written; None for the object itself.
    """

    manager: str
    subresource: Subresource | None
    dry_run: bool

    @property
    def is_recorded(self) -> bool:
        """Whether its answer is the object as it is stored now."""
        return _shows_object(self.subresource) and not self.dry_run


def _shows_object(subresource: Subresource | None) -> bool:
    return subresource is None or subresource.shows_object


def _names_version(sent: Any) -> bool:
    """Return whether an object or a patch names a version itself."""
    if isinstance(sent, list):
        return any(isinstance(one, dict) and one.get("path") == _VERSION_PATH for one in sent)
    metadata = sent.get("metadata") if isinstance(sent, dict) else None
    return isinstance(metadata, dict) and bool(metadata.get("resourceVersion"))


def _naming(sent: Any, version: str) -> Any:
    """Return an object or a patch that applies to one version only; unchanged without a version."""
    if not version:
        return sent
    if isinstance(sent, list):
        return [{"op": "test", "path": _VERSION_PATH, "value": version}, *sent]
    return {**sent, "metadata": {**(sent.get("metadata") or {}), "resourceVersion": version}}
