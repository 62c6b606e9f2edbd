"""Watches over HTTP: a stream with one JSON document per event.

An error before the first event is sent as a normal response. A later error is sent as an event of type `ERROR` that
ends the stream, as by a real API server.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from ocf.cluster.protocol import EventType, ListOptions, WatchEvent, WatchOptions
from ocf.embedded.http.backend import Backend
from ocf.embedded.http.content_negotiation import Form
from ocf.embedded.http.encoding import Event, ObjectEncoder, StoredObjectEncoder, encode, event_line
from ocf.embedded.http.handlers import RequestContext
from ocf.embedded.http.query_options import ListQuery
from ocf.embedded.http.responses import metadata_of
from ocf.embedded.http.status import status_of
from ocf.embedded.http.tables import table
from ocf.errors import ApiError
from ocf.objects import Manifest

__all__ = ["open_stream"]

_INITIAL_END: Final = "k8s.io/initial-events-end"
_ERROR: Final = "ERROR"


async def open_stream(
    backend: Backend, context: RequestContext, stopping: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """Start a watch.

    Args:
        backend: The cluster.
        context: The request.
        stopping: Set when the server stops.

    Returns:
        Its events, one line each.

    Raises:
        ApiError: If the watch is rejected.
    """
    options = ListQuery.read(context.query)
    encoder = StoredObjectEncoder.of(context.kind, backend.registry)
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
    return _lines(events, first, writer, stopping)


_LOOP_ITERATIONS: Final = 3
_EXPIRED: Final = 410


async def _events(backend: Backend, context: RequestContext, options: ListQuery) -> AsyncGenerator[Event, None]:
    version = options.resource_version
    if options.initial:
        async for event in _initial(backend, context, options):
            version = event.object["metadata"]["resourceVersion"] if event.type is EventType.BOOKMARK else version
            yield event
    elif options.initial is False and version in ("", "0"):
        version = str(backend.version)
    found = backend.watch(
        context.kind,
        WatchOptions(
            resource_version=version,
            namespace=context.path.namespace,
            label_selector=options.label_selector,
            field_selector=options.field_selector,
        ),
    )
    async with aclosing(found) as events:
        async for event in events:
            yield event


async def _initial(backend: Backend, context: RequestContext, options: ListQuery) -> AsyncIterator[Event]:
    """Report the existing objects, then the bookmark that marks their end."""
    found, encoder = await backend.list(
        context.kind,
        ListOptions(
            namespace=context.path.namespace,
            label_selector=options.label_selector,
            field_selector=options.field_selector,
        ),
    )
    for item in found.items:
        yield encoder.existing(item)
    metadata = {"resourceVersion": found.resource_version, "annotations": {_INITIAL_END: "true"}}
    head = {"kind": context.kind.kind, "apiVersion": context.kind.api_version}
    yield WatchEvent(EventType.BOOKMARK, {**head, "metadata": metadata})


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
            return (event_line(_ERROR, encode(status_of(error))) if error.code else b""), False
        if event.type is EventType.BOOKMARK and not self.options.bookmarks:
            return b"", True
        if self.context.media.form is Form.WHOLE:
            return self.encoder.line(event), True
        return event_line(event.type.value, encode(self._shown(event))), True

    def _shown(self, event: Event) -> Manifest:
        if self.context.media.form is Form.METADATA:
            return metadata_of(event.object)
        heading, self.headed = not self.headed, True
        version = {"resourceVersion": event.object["metadata"].get("resourceVersion", "")}
        context = replace(self.context, now=self.now())
        return table(context.kind, [event.object], version, context.table_options(heading=heading))


async def _lines(
    events: AsyncGenerator[Event, None],
    first: "asyncio.Future[Event]",
    writer: _Writer,
    stopping: asyncio.Event,
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of events until the watch ends, its timeout expires, or the server stops."""
    loop = asyncio.get_running_loop()
    end = loop.time() + writer.options.timeout if writer.options.timeout else None
    halt = asyncio.ensure_future(stopping.wait())
    coming = first
    try:
        while not halt.done():
            left = None if end is None else max(0.0, end - loop.time())
            waiting: set[asyncio.Future[Any]] = {coming, halt}
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
        halt.cancel()
        coming.cancel()
        await asyncio.gather(coming, halt, return_exceptions=True)
        await events.aclose()
