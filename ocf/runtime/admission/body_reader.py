"""Reading of the bodies of requests, which together take a limited amount of memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

__all__ = ["BodyReader"]

# Bytes of each body that always have room; 32 MB of all connections that the server of the webhooks may have.
_SMALL: Final = 64 * 1024


class BodyReader:
    """Reads bodies of requests.

    Args:
        most: How many bytes of large bodies may be in memory at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    @asynccontextmanager
    async def read(self, request: web.Request, longest: int) -> AsyncIterator[bytes]:
        """Read a body; it counts as being in memory until the block ends.

        Args:
            request: The request.
            longest: Maximum number of bytes of the body.

        Yields:
            The body.

        Raises:
            HTTPRequestEntityTooLarge: If the body is longer.
            HTTPServiceUnavailable: If there is no room for the body, because of other large ones.
        """
        body, counted = bytearray(), 0
        try:
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > longest:
                    raise web.HTTPRequestEntityTooLarge(longest, len(body))
                large = max(0, len(body) - _SMALL)
                self._held, counted = self._held + large - counted, large
                if large and self._held > self._most:
                    text = f"the bodies of all requests take more than {self._most} bytes; send this one again later\n"
                    raise web.HTTPServiceUnavailable(text=text)
            yield bytes(body)
        finally:
            self._held -= counted
