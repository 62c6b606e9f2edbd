"""A wrapper of a cluster: every request goes through one method that can observe, reject or change it.

A subclass overrides `intercept` and inherits all the verbs of the `Cluster` protocol. Test doubles use it, and so does
the cluster that rejects writes unless the operator leads. Wrappers can be nested.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.impersonation import NO_EXTRA, Impersonation, ServiceAccount
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
    as_user,
)
from ocf.cluster.request_log import Request, Verb
from ocf.objects import Manifest, ObjectKey

__all__ = ["InterceptingCluster", "describe", "is_write", "key_of", "requested_key", "wrapped_clusters"]


class InterceptingCluster:
    """A cluster that sends every request to another cluster through `intercept`.

    Args:
        cluster: The wrapped cluster.
        apply_cache: The apply cache of the operator that uses this cluster; None shares that of `cluster`. A new one
            simulates a restart of the operator.

    Example:
        >>> class Loud(InterceptingCluster):
        ...     async def intercept(self, request, send):
        ...         print(describe(request))
        ...         return await send()
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> _ = asyncio.run(Loud(EmbeddedCluster()).get(ObjectKey("v1", "Namespace", "default")))
        get v1/Namespace/default

    With `acting_as`, the requests go through the same `intercept`, with the same attributes of the object, on the way
    to the wrapped cluster that acts as the user. A subclass that sends requests to yet another cluster overrides
    `acting_as`, and keeps that cluster in a slot.
    """

    # All that acts as another user, and nothing else, is its own: a counter of a subclass counts all requests.
    __slots__ = ("__dict__", "__weakref__", "_acting", "_inner")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a subclass that overrides nothing: one that misspells `intercept` would silently let all pass."""
        super().__init_subclass__(**kwargs)
        methods = {name for name in vars(InterceptingCluster) if not name.startswith("_")}
        bases = cls.__mro__[: cls.__mro__.index(InterceptingCluster)]
        if not any(methods & {*vars(base)} for base in bases):
            raise TypeError(
                f"{cls.__name__} overrides no method of InterceptingCluster, so it would change nothing: override"
                " intercept(request, send), or a method of Cluster"
            )

    def __init__(self, cluster: Cluster, *, apply_cache: ApplyCache | None = None) -> None:
        self._inner = cluster
        self._acting: Impersonation | None = None
        self._apply_cache = apply_cache

    @property
    def apply_cache(self) -> ApplyCache:
        """Results of writes, shared by all reconciles; losing it costs one write for each affected object."""
        if self._apply_cache is None:
            return self._inner.apply_cache
        return self._apply_cache if self._acting is None else self._apply_cache.acting_as(self._acting.key)

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Self:
        """Return this cluster with another user; see `Cluster.acting_as`."""
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        view._acting = Impersonation.of(user, groups, uid, extra)
        view._inner = as_user(self._inner, view._acting)
        return view

    @property
    def _user(self) -> str:
        return self._acting.user if self._acting is not None else ""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Handle one request; the default only sends it.

        Args:
            request: The request. Its `changed` and `code` are not set yet.
            send: Sends the request to the wrapped cluster; it may be called any number of times.

        Returns:
            The answer for the caller: an object, a list, None for a delete, an iterator of events for a watch.
        """
        del request
        return await send()

    async def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether the objects of a kind are in namespaces."""
        return await self._inner.is_namespaced(api_version, kind)

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        request = self._about(Verb.GET, key, subresource)
        found: Manifest = await self.intercept(request, lambda: self._inner.get(key, subresource=subresource))
        return found

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind."""
        found: ObjectList = await self.intercept(
            Request(Verb.LIST, api_version, kind, options.namespace, user=self._user),
            lambda: self._inner.list(api_version, kind, options),
        )
        return found

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the objects of a kind; only the opening of the watch goes through `intercept`."""

        async def send() -> AsyncIterator[WatchEvent]:
            return self._inner.watch(api_version, kind, options)

        events: AsyncIterator[WatchEvent] = await self.intercept(
            Request(Verb.WATCH, api_version, kind, options.namespace, user=self._user), send
        )
        try:
            async for event in events:
                yield event
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

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
        request = self._about(Verb.APPLY, requested_key(manifest), subresource, field_manager, dry_run=dry_run)
        stored: Manifest = await self.intercept(
            request,
            lambda: self._inner.apply(
                manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
            ),
        )
        return stored

    async def create(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Manifest:
        """Create an object, evict a pod, or bind a pod to a node."""
        stored: Manifest = await self.intercept(
            self._about(Verb.CREATE, requested_key(manifest), subresource, field_manager, dry_run=dry_run),
            lambda: self._inner.create(
                manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run, strict=strict
            ),
        )
        return stored

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, or its status."""
        stored: Manifest = await self.intercept(
            self._about(Verb.UPDATE, requested_key(manifest), subresource, field_manager, dry_run=dry_run),
            lambda: self._inner.update(manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run),
        )
        return stored

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale."""
        request = self._about(Verb.PATCH, key, options.subresource, options.field_manager, dry_run=options.dry_run)
        stored: Manifest = await self.intercept(request, lambda: self._inner.patch(key, patch, options))
        return stored

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object."""
        request = self._about(Verb.DELETE, key, None, dry_run=options.dry_run)
        await self.intercept(request, lambda: self._inner.delete(key, options))

    def _about(
        self, verb: Verb, key: ObjectKey, part: Subresource | None, manager: str = "", *, dry_run: bool = False
    ) -> Request:
        version, kind, name, namespace = key
        return Request(verb, version, kind, namespace, name, part, manager, dry_run, user=self._user)


def is_write(request: Request) -> bool:
    """Return whether a request may change an object."""
    return not request.verb.is_read and not request.dry_run


def key_of(request: Request) -> ObjectKey:
    """Return the key of the object of a request; for a list or a watch, the name is empty."""
    return ObjectKey(request.api_version, request.kind, request.name, request.namespace)


def describe(request: Request) -> str:
    """Describe a request in one line.

    Example:
        >>> describe(Request(Verb.UPDATE, "example.com/v1", "Shop", "eu", "demo", Subresource.STATUS, "Shop/status"))
        'update example.com/v1/Shop/eu/demo status by Shop/status'
    """
    words = [str(request.verb), str(key_of(request)), str(request.subresource or "")]
    words += [f"by {request.field_manager}" if request.field_manager else "", "(dry run)" if request.dry_run else ""]
    words += [f"as {request.user}" if request.user else ""]
    return " ".join(word for word in words if word)


def requested_key(manifest: Manifest) -> ObjectKey:
    """Return the key of the object of a write, as far as its manifest is valid: what is missing there is empty.

    Args:
        manifest: The manifest; its `generateName` takes the place of a missing name.
    """
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return ObjectKey(
        str(manifest.get("apiVersion") or ""),
        str(manifest.get("kind") or ""),
        str(metadata.get("name") or metadata.get("generateName") or ""),
        str(metadata.get("namespace") or ""),
    )


def wrapped_clusters(cluster: Cluster) -> Iterator[Cluster]:
    """Yield a cluster, the one that it wraps, and so on; the last one wraps none, or hides it."""
    yield cluster
    while isinstance(cluster, InterceptingCluster):
        cluster = cluster._inner  # noqa: SLF001 (of the class of this module)
        yield cluster
