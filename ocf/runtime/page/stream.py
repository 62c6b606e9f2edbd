"""Server-sent events of the page: the parts that have changed, rendered once for all who look at the same.

Source of the format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Final, Generic, TypeVar

from ocf.errors import failure_text

__all__ = ["Streams", "Subscriber", "token_of"]

K = TypeVar("K", bound=Hashable)

_log: Final = logging.getLogger(__name__)
_PERIOD: Final = 1.0
# The page takes at most a twenty-fifth of the time of the process, whatever it shows, and to however many: half of that
# for looking and rendering, the other half for sending, which takes a tenth of a millisecond for each page.
_SHARE: Final = 50.0
_SECONDS_EACH: Final = 0.005
_LONGEST: Final = 60.0

Parts = Mapping[str, str]
"""HTML by the identifier of a part of the page."""


def token_of(parts: Parts) -> str:
    """Return a name of the state of parts."""
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]


class Subscriber:
    """One open page.

    Args:
        token: The state of the parts that it shows.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.changed = asyncio.Event()
        self.ended = False
        self._message = b""

    def put(self, message: bytes, token: str) -> None:
        """Give it a message, which replaces one that it has not taken yet."""
        self._message, self.token = message, token
        self.changed.set()

    def take(self) -> bytes:
        """Return the message, once."""
        self.changed.clear()
        message, self._message = self._message, b""
        return message

    def end(self) -> None:
        """End its stream."""
        self.ended = True
        self.changed.set()

    @property
    def is_behind(self) -> bool:
        """Whether it has not taken its message yet."""
        return bool(self._message)


class _Channel:
    """The open pages that show the same."""

    def __init__(self) -> None:
        self.subscribers: set[Subscriber] = set()
        self.token = ""
        self.parts: Parts = {}

    def publish(self, parts: Parts) -> None:
        """Send what has changed to each page; to one that is behind, or of another state, everything."""
        before, self.token = self.token, token_of(parts)
        changed = {name: html for name, html in parts.items() if self.parts.get(name) != html}
        self.parts = parts
        delta, whole = (_message(self.token, each) for each in (changed, parts))
        for one in self.subscribers:
            if one.token != self.token:
                one.put(delta if one.token == before and not one.is_behind else whole, self.token)


def _message(token: str, parts: Parts) -> bytes:
    # No line of JSON ends within a text.
    return f"data: {json.dumps({'token': token, 'parts': parts})}\n\n".encode()


class Streams(Generic[K]):
    """The open pages, by what they show.

    Args:
        render: Returns the parts of what pages show; None if their caller may not see it any more.
        look: Called with what all pages show before the parts of all are rendered; returns the seconds of the processor
            that it took.
    """

    def __init__(
        self, render: Callable[[K], Awaitable[Parts | None]], look: Callable[[Iterable[K]], Awaitable[float]]
    ) -> None:
        self._render = render
        self._look = look
        self._channels: dict[K, _Channel] = {}
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(len(each.subscribers) for each in self._channels.values())

    @contextmanager
    def subscribed(self, key: K, token: str) -> Iterator[Subscriber]:
        """Subscribe a page for the duration of a block.

        Args:
            token: The state of the parts that it shows.
        """
        one = Subscriber(token)
        channel = self._channels.setdefault(key, _Channel())
        channel.subscribers.add(one)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._publish(), name="changes of the page")
        try:
            yield one
        finally:
            channel.subscribers.discard(one)
            if not channel.subscribers and self._channels.get(key) is channel:
                del self._channels[key]

    def close(self) -> None:
        """End all streams."""
        if self._task is not None:
            self._task.cancel()
        for channel in self._channels.values():
            for one in channel.subscribers:
                one.end()

    async def _publish(self) -> None:
        """Publish the parts of all open pages, until there is none."""
        while self._channels:
            spent = 0.0
            try:
                spent += await self._look([*self._channels])
                for key, channel in [*self._channels.items()]:
                    # Other tasks run meanwhile only while a review of a caller is awaited.
                    began = time.thread_time()
                    await self._publish_one(key, channel)
                    spent += time.thread_time() - began
            except Exception as error:  # noqa: BLE001 (the next attempt may succeed, and the page says that it is late)
                _log.warning("the changes of the page could not be sent: %s", failure_text(error))
            await asyncio.sleep(max(_PERIOD, min(_LONGEST, _SHARE * spent), _SECONDS_EACH * len(self)))

    async def _publish_one(self, key: K, channel: _Channel) -> None:
        parts = await self._render(key)
        if parts is not None:
            channel.publish(parts)
            return
        for one in channel.subscribers:
            one.end()
