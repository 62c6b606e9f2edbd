"""A cluster around a cluster: every request passes one place, where it is looked at, refused or tampered with.

Whoever only has something to say about requests overrides `intercept`, and gets every verb of the `Cluster` protocol
without writing one of them; tests do, and so does what only a leader may write to. Wrappers can be put around each
other.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from ocf.cluster.apply_cache import ApplyCache
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
from ocf.cluster.request_log import Request, Verb
from ocf.objects import Manifest, ObjectKey

__all__ = ["InterceptingCluster", "describe", "is_write", "key_of"]


class InterceptingCluster:
    """A cluster that lets every request to another one pass through `intercept`.

    Args:
        cluster: The cluster that does the work.
        memory: The memory of the operator that uses this one; None shares that of `cluster`. A new one is what a
            restarted operator has.

    Example:
        >>> class Loud(InterceptingCluster):
        ...     async def intercept(self, request, send):
        ...         print(describe(request))
        ...         return await send()
        >>> import asyncio
        >>> from ocf.embedded import EmbeddedCluster
        >>> _ = asyncio.run(Loud(EmbeddedCluster()).get(ObjectKey("v1", "Namespace", "default")))
        get v1/Namespace/default
    """

    def __init__(self, cluster: Cluster, *, memory: ApplyCache | None = None) -> None:
        self._inner = cluster
        self._memory = memory

    @property
    def apply_cache(self) -> ApplyCache:
        """What must outlive a pass; losing it costs one write per affected object."""
        return self._inner.apply_cache if self._memory is None else self._memory

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Handle one request; this one only sends it.

        Args:
            request: What is asked. Its `changed` and `code` say nothing yet.
            send: Asks the inner cluster; may be called never or several times.

        Returns:
            What the caller gets: an object, a list, None for a delete, an iterator of events for a watch.
        """
        del request
        return await send()

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        request = _about(Verb.GET, key, subresource)
        found: Manifest = await self.intercept(request, lambda: self._inner.get(key, subresource=subresource))
        return found

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind."""
        found: ObjectList = await self.intercept(
            Request(Verb.LIST, api_version, kind, options.namespace),
            lambda: self._inner.list(api_version, kind, options),
        )
        return found

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the objects of a kind; only the opening of the watch goes through `intercept`."""

        async def send() -> AsyncIterator[WatchEvent]:
            return self._inner.watch(api_version, kind, options)

        events: AsyncIterator[WatchEvent] = await self.intercept(
            Request(Verb.WATCH, api_version, kind, options.namespace), send
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
        request = _of(Verb.APPLY, manifest, subresource, field_manager, dry_run=dry_run)
        stored: Manifest = await self.intercept(
            request,
            lambda: self._inner.apply(
                manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
            ),
        )
        return stored

    async def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool = False) -> Manifest:
        """Create an object."""
        stored: Manifest = await self.intercept(
            _of(Verb.CREATE, manifest, None, field_manager, dry_run=dry_run),
            lambda: self._inner.create(manifest, field_manager=field_manager, dry_run=dry_run),
        )
        return stored

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, or its status."""
        stored: Manifest = await self.intercept(
            _of(Verb.UPDATE, manifest, subresource, field_manager, dry_run=dry_run),
            lambda: self._inner.update(manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run),
        )
        return stored

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale."""
        request = replace(
            _about(Verb.PATCH, key, options.subresource), field_manager=options.field_manager, dry_run=options.dry_run
        )
        stored: Manifest = await self.intercept(request, lambda: self._inner.patch(key, patch, options))
        return stored

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object."""
        await self.intercept(
            replace(_about(Verb.DELETE, key, None), dry_run=options.dry_run), lambda: self._inner.delete(key, options)
        )


def is_write(request: Request) -> bool:
    """Tell whether a request may change something."""
    return not request.verb.is_read and not request.dry_run


def key_of(request: Request) -> ObjectKey:
    """Return what a request is about; of a list or a watch the name is empty."""
    return ObjectKey(request.api_version, request.kind, request.name, request.namespace)


def describe(request: Request) -> str:
    """Tell a request in one line.

    Args:
        request: The request.

    Returns:
        Verb, object, subresource and who wrote.

    Example:
        >>> describe(Request(Verb.UPDATE, "example.com/v1", "Shop", "eu", "demo", Subresource.STATUS, "Shop/status"))
        'update example.com/v1/Shop/eu/demo status by Shop/status'
    """
    words = [str(request.verb), str(key_of(request)), str(request.subresource or "")]
    words += [f"by {request.field_manager}" if request.field_manager else "", "(dry run)" if request.dry_run else ""]
    return " ".join(word for word in words if word)


def _about(verb: Verb, key: ObjectKey, subresource: Subresource | None) -> Request:
    return Request(verb, key.api_version, key.kind, key.namespace, key.name, subresource)


def _of(
    verb: Verb, manifest: Manifest, subresource: Subresource | None, field_manager: str, *, dry_run: bool
) -> Request:
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return Request(
        verb,
        str(manifest.get("apiVersion") or ""),
        str(manifest.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or metadata.get("generateName") or ""),
        subresource,
        field_manager,
        dry_run,
    )
