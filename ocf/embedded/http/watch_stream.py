"""Watches over HTTP: one JSON document per event, on a connection that stays open.

What may go wrong before the first event is an answer like any other; afterwards it is an event of type `ERROR`, and the
stream ends, as on a real server.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, cast

from ocf.cluster.protocol import EventType, ListOptions, WatchEvent, WatchOptions
from ocf.embedded.http.backend import Backend
from ocf.embedded.http.content_negotiation import Form
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


async def open_stream(backend: Backend, call: RequestContext, stopping: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """Begin a watch.

    Args:
        backend: The cluster.
        call: The request.
        stopping: Set when the server ends.

    Returns:
        Its events, each as a line, once it is clear that it is not refused.

    Raises:
        ApiError: If it is refused.
    """
    options = ListQuery.read(call.query)
    events = _events(backend, call, options)
    first = asyncio.ensure_future(anext(events))
    # A refusal comes without waiting for anything; an event may never come.
    for _ in range(_TURNS):
        await asyncio.sleep(0)
        if first.done():
            break
    if first.done():
        error = first.exception()
        if isinstance(error, ApiError) and error.code != _EXPIRED:
            raise error
    writer = _Writer(call, options, backend.core.now)
    return _lines(events, first, writer, stopping)


_TURNS: Final = 3
_EXPIRED: Final = 410


async def _events(backend: Backend, call: RequestContext, options: ListQuery) -> AsyncGenerator[WatchEvent, None]:
    version = options.resource_version
    if options.initial:
        async for event in _initial(backend, call, options):
            version = event.object["metadata"]["resourceVersion"] if event.type is EventType.BOOKMARK else version
            yield event
    elif options.initial is False and version in ("", "0"):
        version = str(backend.version)
    found = backend.front.watch(
        call.kind.api_version,
        call.kind.kind,
        WatchOptions(
            resource_version=version,
            namespace=call.path.namespace,
            label_selector=options.label_selector,
            field_selector=options.field_selector,
        ),
    )
    async with aclosing(cast("AsyncGenerator[WatchEvent, None]", found)) as events:
        async for event in events:
            yield event


async def _initial(backend: Backend, call: RequestContext, options: ListQuery) -> AsyncIterator[WatchEvent]:
    """Report the present objects, and where they end."""
    found = await backend.front.list(
        call.kind.api_version,
        call.kind.kind,
        ListOptions(
            namespace=call.path.namespace, label_selector=options.label_selector, field_selector=options.field_selector
        ),
    )
    for item in found.items:
        yield WatchEvent(EventType.ADDED, item)
    metadata = {"resourceVersion": found.resource_version, "annotations": {_INITIAL_END: "true"}}
    head = {"kind": call.kind.kind, "apiVersion": call.kind.api_version}
    yield WatchEvent(EventType.BOOKMARK, {**head, "metadata": metadata})


@dataclass(slots=True)
class _Writer:
    """Writes the events of one watch."""

    call: RequestContext
    options: ListQuery
    now: Callable[[], datetime]
    headed: bool = False

    def line(self, done: "asyncio.Future[WatchEvent]") -> tuple[bytes, bool]:
        """Return what is written, and whether the watch goes on."""
        try:
            event = done.result()
        except StopAsyncIteration:
            return b"", False
        except ApiError as error:
            return (_line(_ERROR, status_of(error)) if error.code else b""), False
        if event.type is EventType.BOOKMARK and not self.options.bookmarks:
            return b"", True
        return _line(event.type.value, self._shown(event)), True

    def _shown(self, event: WatchEvent) -> Manifest:
        form = self.call.media.form
        if form is Form.METADATA:
            return metadata_of(event.object)
        if form is not Form.TABLE:
            return event.object
        heading, self.headed = not self.headed, True
        version = {"resourceVersion": event.object["metadata"].get("resourceVersion", "")}
        call = replace(self.call, now=self.now())
        return table(call.kind, [event.object], version, call.table_options(heading=heading))


async def _lines(
    events: AsyncGenerator[WatchEvent, None],
    first: "asyncio.Future[WatchEvent]",
    writer: _Writer,
    stopping: asyncio.Event,
) -> AsyncGenerator[bytes, None]:
    """Write events until the watch, its time or the server ends."""
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


def _line(kind: str, body: Any) -> bytes:
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"
