"""Watches over HTTP: a stream of events.

An error before the first event is sent as a normal response. A later error is sent as an event of type `ERROR` that
ends the stream, as by a real API server.

The C library keeps the memory that it freed for later allocations, also that of the buffers of a thousand clients which
were disconnected long ago. It is returned to the operating system after many watches have ended.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from ocf.cluster.protocol import EventType, WatchOptions
from ocf.errors import ApiError, ManifestError
from ocf.objects import Manifest
from ocf.objects.selectors import parse_field_selector
from ocf_server.api.status_errors import bad_request, method_not_allowed, no_such_resource
from ocf_server.http.backend import Backend
from ocf_server.http.media import Form
from ocf_server.http.request import ListQuery, RequestContext, ResourcePath
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.responses import Event, ObjectEncoder, StoredObjectEncoder, metadata_of, serializer_of
from ocf_server.http.status import status_of
from ocf_server.http.tables import table

__all__ = ["OpenWatches", "open_stream", "return_memory", "watch_of_path"]

# Fewer streams hold too little memory for a collection to be worth it.
_MANY: Final = 32
# Seconds after which the buffers of connections that were closed are freed.
_DELAY: Final = 1.0


def return_memory() -> None:
    """Return freed memory to the operating system, where the C library can."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _soon() -> None:
    asyncio.get_running_loop().call_later(_DELAY, return_memory)


@dataclass(slots=True)
class OpenWatches:
    """Number of open watches.

    Args:
        ended: Called each time when half of many watches have ended.

    Example:
        >>> from contextlib import ExitStack
        >>> watches = OpenWatches(lambda: print("half of them have ended"))
        >>> with ExitStack() as stack:
        ...     for _ in range(100):
        ...         stack.enter_context(watches.counted())
        half of them have ended
        half of them have ended
    """

    ended: Callable[[], None] = _soon
    _open: int = field(default=0, init=False)
    _most: int = field(default=0, init=False)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a watch as open while the block runs."""
        self._open += 1
        self._most = max(self._most, self._open)
        try:
            yield
        finally:
            self._open -= 1
            if self._most >= _MANY and self._open <= self._most // 2:
                self._most = self._open
                self.ended()


_ERROR: Final = "ERROR"


def watch_of_path(
    method: str, path: ResourcePath, query: Mapping[str, str], kind: ServedResource
) -> tuple[ResourcePath, Mapping[str, str]]:
    """Return the request that a deprecated path of a watch, `/api/v1/watch/pods/web`, stands for.

    Returns:
        The path of the collection, and the query with `watch` and the name as field selector.

    Raises:
        ApiError: If the resource has no such path, or the query selects another name.
    """
    if path.subresource or "watch" not in kind.verbs:
        raise no_such_resource()
    if method != "GET":
        raise method_not_allowed()
    selector = query.get("fieldSelector", "")
    if path.name and selector and not _requires_name(selector, path.name):
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    wanted = {"watch": "true", **({"fieldSelector": selector or f"metadata.name={path.name}"} if path.name else {})}
    return replace(path, name=""), {**{name: query[name] for name in query}, **wanted}


def _requires_name(selector: str, name: str) -> bool:
    try:
        terms = parse_field_selector(selector)
    except ManifestError:
        return False
    return any((term.path, term.operator, term.value) == ("metadata.name", "=", name) for term in terms)


async def open_stream(
    backend: Backend, context: RequestContext, halts: Iterable[asyncio.Event]
) -> AsyncGenerator[bytes, None]:
    """Start a watch.

    Args:
        halts: Each ends the watch when it is set.

    Returns:
        The bytes of its events.
    """
    options = ListQuery.read(context.query)
    encoder = StoredObjectEncoder.of(context.kind, serializer_of(context.media), backend.registry)
    if context.media.form is Form.TABLE:
        context.table_options()  # checks them
    events = _events(backend, context, options)
    first = asyncio.ensure_future(anext(events))
    # The cluster rejects a watch without waiting for I/O, but the first event may never come.
    for _ in range(_LOOP_ITERATIONS):
        await asyncio.sleep(0)
        if first.done():
            break
    if first.done():
        error = first.exception()
        if isinstance(error, ApiError) and error.code != _EXPIRED:
            raise error
    writer = _Writer(context, options, encoder, backend.registry.now)
    return _lines(events, first, writer, halts)


_LOOP_ITERATIONS: Final = 3
_EXPIRED: Final = 410


async def _events(backend: Backend, context: RequestContext, options: ListQuery) -> AsyncGenerator[Event, None]:
    version = "0" if options.initial else options.resource_version
    if options.initial is False and version in ("", "0"):
        version = str(backend.version)
    found = backend.watch(
        context.kind,
        WatchOptions(
            resource_version=version,
            namespace=context.path.namespace,
            label_selector=options.label_selector,
            field_selector=options.field_selector,
            shard_selector=options.shard_selector,
            timeout=max(0, options.timeout) or None,
        ),
    )
    async with aclosing(found) as events:
        async for event in events:
            yield event


@dataclass(slots=True)
class _Writer:
    """Writes the events of one watch."""

    context: RequestContext
    options: ListQuery
    encoder: ObjectEncoder
    now: Callable[[], datetime]
    headed: bool = False

    def line(self, done: "asyncio.Future[Event]") -> tuple[bytes, bool]:
        """Return the bytes to write for an event, and whether the watch continues."""
        try:
            event = done.result()
        except StopAsyncIteration:
            return b"", False
        except ApiError as error:
            return (self._event(_ERROR, status_of(error)) if error.code else b""), False
        if self.context.media.form is Form.METADATA_LIST:
            return b"", False  # an event is not a list, and a real API server ends the stream there
        if event.type is EventType.BOOKMARK and not self.options.bookmarks:
            return b"", True
        if self.context.media.form is Form.WHOLE:
            return self.encoder.line(event), True
        return self._event(event.type.value, self._shown(event)), True

    def _event(self, event: str, shown: Manifest) -> bytes:
        serializer = self.encoder.serializer
        return serializer.event(event, serializer.document(shown))

    def _shown(self, event: Event) -> Manifest:
        if self.context.media.form is Form.METADATA:
            return metadata_of(event.object, self.context.media)
        heading, self.headed = not self.headed, True
        version = {"resourceVersion": event.object["metadata"].get("resourceVersion", "")}
        context = replace(self.context, now=self.now())
        return table(context.kind, [event.object], version, context.table_options(heading=heading))


async def _lines(
    events: AsyncGenerator[Event, None],
    first: "asyncio.Future[Event]",
    writer: _Writer,
    halts: Iterable[asyncio.Event],
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of events until the watch ends, its timeout expires, or it is halted."""
    loop = asyncio.get_running_loop()
    end = loop.time() + writer.options.timeout if writer.options.timeout else None
    halting = [asyncio.ensure_future(halt.wait()) for halt in halts]
    coming = first
    try:
        while not any(halt.done() for halt in halting):
            left = None if end is None else max(0.0, end - loop.time())
            waiting: set[asyncio.Future[Any]] = {coming, *halting}
            await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                return
            line, goes_on = writer.line(coming)
            if line:
                yield line
            if not goes_on:
                return
            coming = asyncio.ensure_future(anext(events))
    finally:
        waited: list[asyncio.Future[Any]] = [coming, *halting]
        for future in waited:
            future.cancel()
        await asyncio.gather(*waited, return_exceptions=True)
        await events.aclose()
