"""One request and its answer, over the client's connections.

The client brings configuration, TLS, authentication and a pool of connections; its models and API classes are left
alone: they cost time and drop fields they do not know.

Nothing is sent twice. A write without an answer may have happened, and whether to repeat it depends on what it was: a
second create finds the name taken, a second delete finds nothing, a second update conflicts with the first, and the
caller would be told of a failure that was a success. A repeated read would be harmless, but only the caller knows
whether its result is still wanted. So the client's retries must be off, and the pool's own resending is switched off.

Errors of the HTTP library end here: what has no answer becomes a `ServerError` with code 0 and the library's error as
its cause.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from kubernetes.aio.client import ApiClient

from ocf.cluster.client.paths import bad_request
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.client.responses import answer_error, read_object
from ocf.errors import ConfigError, ServerError
from ocf.objects import Manifest

__all__ = ["Connection", "Stream"]

_OK: Final = range(200, 300)
_NO_ANSWER: Final = (aiohttp.ClientError, OSError, TimeoutError)


class Connection:
    """Sends requests through a client.

    Args:
        client: The client; its `retries` and `client_go_retries` must be off.
        owned: Whether to close the client, too.
        timeout: Seconds a request may take, from reading credentials to the last byte of the answer; a stream may take
            as long until it is open.
        silence: Seconds a stream may say nothing before it counts as dead.

    Raises:
        ConfigError: If a time is not positive, or the client retries.
    """

    def __init__(self, client: ApiClient, *, owned: bool, timeout: float, silence: float) -> None:
        if not (timeout > 0 and silence > 0):
            raise ConfigError(f"timeouts must be positive seconds, got {timeout} and {silence}")
        settings = client.configuration
        if settings.retries or settings.client_go_retries:
            raise ConfigError(
                f"the client must not retry, got retries={settings.retries!r}, "
                f"client_go_retries={settings.client_go_retries!r}; set them to None and False: "
                "a repeated write reports a failure for what the first one did"
            )
        self._client = client
        self._owned = owned
        self._closed = False
        self._streams: set[Stream] = set()
        self._timeout = timeout
        self._silence = silence

    async def send(self, request: HttpRequest, *, most_bytes: int | None = None) -> Manifest:
        """Send a request and return the object in the answer.

        Args:
            request: The request.
            most_bytes: How long the answer may be; None for any length.

        Returns:
            The object.

        Raises:
            ApiError: If the server refuses, or there is no answer, or one that is too long.
        """
        with _no_answer(request):
            async with asyncio.timeout(self._timeout), await self._open(request, aiohttp.ClientTimeout()) as answer:
                body = await _body(answer, most_bytes, asked=str(request))
        return read_object(body, code=answer.status, asked=str(request))

    async def stream(self, request: HttpRequest) -> "Stream":
        """Send a request whose answer goes on.

        Args:
            request: The request.

        Returns:
            The open answer; to be closed.

        Raises:
            ApiError: If the server refuses, or there is no answer.
        """
        with _no_answer(request):
            async with asyncio.timeout(self._timeout):
                answer = await self._open(request, aiohttp.ClientTimeout(sock_read=self._silence))
        return Stream(request, answer, self._streams)

    async def close(self) -> None:
        """Send nothing more and close every stream; whoever reads one gets `ServerError`."""
        self._closed = True
        for stream in list(self._streams):
            # Closing the pool alone would leave a reader waiting for ever.
            stream.close()
        if self._owned:
            await self._client.rest_client.close()

    async def _open(self, request: HttpRequest, times: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send a request and return its answer, if that is a good one."""
        url, headers = await self._addressed(request)
        self._ready(request)
        try:
            with _no_answer(request):
                opened = await self._client.call_api(
                    request.method, url, header_params=headers, body=request.body, _request_timeout=times
                )
        except (TypeError, ValueError) as error:
            # A manifest that is no JSON, or credentials that are no header. An address that is none is a ValueError of
            # the library, and therefore caught before.
            raise bad_request(f"{request}: cannot be sent: {error}") from error
        answer: aiohttp.ClientResponse = opened.response
        if answer.status in _OK:
            return answer
        async with answer:
            raise answer_error(answer.status, answer.headers, await answer.read(), asked=str(request))

    async def _addressed(self, request: HttpRequest) -> tuple[str, dict[str, str]]:
        """Return address and headers of a request, with credentials."""
        headers = {"Accept": "application/json", "Content-Type": request.content_type}
        try:
            _, url, signed, _, _ = await self._client.param_serialize(
                request.method,
                request.path,
                query_params=list(request.query),
                header_params=headers,
                auth_settings=["BearerToken"],
            )
        except Exception as error:
            # Credentials come from plugins, files and identity providers: any error may leave them.
            raise ServerError(f"{request}: not sent: credentials could not be read: {type(error).__name__}") from error
        return url, signed

    def _ready(self, request: HttpRequest) -> None:
        """Make the pool before the client does, so that it never resends."""
        rest = self._client.rest_client
        pool = rest.pool_manager
        if self._closed or (pool is not None and pool.closed):
            raise ServerError(f"{request}: not sent: the connection to the cluster is closed")
        if pool is None:
            pool = rest.pool_manager = rest._create_pool_manager()  # noqa: SLF001 (the client's hook for subclasses)
        # A GET, PUT or DELETE on a connection that breaks would go out a second time; there is no public switch.
        pool._retry_connection = False  # noqa: SLF001 (said above)


@dataclass(slots=True, eq=False)
class Stream:
    """An answer that goes on.

    Args:
        request: What was asked.
        answer: The open answer.
        siblings: The open streams of a connection; this one is among them until it is closed.
    """

    request: HttpRequest
    answer: aiohttp.ClientResponse
    siblings: set["Stream"]

    def __post_init__(self) -> None:
        self.siblings.add(self)

    async def read(self) -> bytes:
        """Return what arrived next; nothing at all when the server ended the answer.

        Raises:
            ServerError: If the connection breaks or is silent for too long.
        """
        with _no_answer(self.request):
            return await self.answer.content.readany()

    def close(self) -> None:
        """Drop the connection; it cannot be used again while the server goes on."""
        self.siblings.discard(self)
        if self.answer.connection is not None and self.answer.connection.transport is not None:
            # A farewell of TLS would wait for the server, and perhaps for longer than the event loop lives.
            self.answer.connection.transport.abort()
        self.answer.close()


async def _body(answer: aiohttp.ClientResponse, most: int | None, *, asked: str) -> bytes:
    if most is None:
        return await answer.read()
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > most:
            answer.close()  # the rest is not worth waiting for
            raise ServerError(f"{asked}: HTTP {answer.status}, but the answer has more than {most} bytes")
    return bytes(body)


@contextmanager
def _no_answer(request: HttpRequest) -> Iterator[None]:
    """Turn what the HTTP library raises into our error."""
    try:
        yield
    except _NO_ANSWER as error:
        raise ServerError(f"{request}: no answer: {_why(error)}") from error


def _why(error: Exception) -> str:
    """Say what happened; errors of the connection name addresses only, others may quote what came."""
    if isinstance(error, TimeoutError):
        return "time is up"
    told = isinstance(error, (aiohttp.ClientConnectionError, OSError)) and str(error)
    return f"{type(error).__name__}: {error}" if told else type(error).__name__
