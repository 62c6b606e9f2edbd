"""Sending of requests over the connections of the official client.

The client provides configuration, TLS, authentication and a connection pool. Its models and API classes are not used:
they are slow and drop unknown fields.

No request is sent twice. A write without an answer may have been applied, and whether to repeat it depends on the verb:
a second create finds that the name is taken, a second delete finds nothing, a second update conflicts with the first.
The caller would get an error for a write that succeeded. A repeated read would be harmless, but only the caller knows
whether it still needs the result. So the retries of the client must be off, and those of the pool are switched off.

Errors of the HTTP library are converted here: a request without an answer raises a `ServerError` with code 0, with the
error of the library as its cause.
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
        owned: Whether `close` also closes the client.
        timeout: The maximum duration of a request in seconds, from reading credentials to the last byte of the answer;
            for a stream, the time until it is open.
        idle_timeout: Seconds without data after which a stream fails.

    Raises:
        ConfigError: If a time is not positive, or the client retries.
    """

    def __init__(self, client: ApiClient, *, owned: bool, timeout: float, idle_timeout: float) -> None:
        if not (timeout > 0 and idle_timeout > 0):
            raise ConfigError(f"timeouts must be positive seconds, got {timeout} and {idle_timeout}")
        settings = client.configuration
        if settings.retries or settings.client_go_retries:
            raise ConfigError(
                f"the client must not retry, got retries={settings.retries!r}, "
                f"client_go_retries={settings.client_go_retries!r}; set them to None and False: "
                "a repeated write would report an error for a first one that succeeded"
            )
        self._client = client
        self._owned = owned
        self._closed = False
        self._streams: set[Stream] = set()
        self._timeout = timeout
        self._idle_timeout = idle_timeout

    async def send(self, request: HttpRequest, *, most_bytes: int | None = None) -> Manifest:
        """Send a request and return the object in the answer.

        Args:
            request: The request.
            most_bytes: The maximum length of the answer; None for no limit.

        Returns:
            The object.

        Raises:
            ApiError: If the server rejects the request, does not answer, or its answer is too long.
        """
        with _no_answer(request):
            async with asyncio.timeout(self._timeout), await self._open(request, aiohttp.ClientTimeout()) as answer:
                body = await _body(answer, most_bytes, request_line=str(request))
        return read_object(body, code=answer.status, request_line=str(request))

    async def stream(self, request: HttpRequest) -> "Stream":
        """Send a request whose answer is a stream.

        Args:
            request: The request.

        Returns:
            The open stream; the caller closes it.

        Raises:
            ApiError: If the server rejects the request, or does not answer.
        """
        with _no_answer(request):
            async with asyncio.timeout(self._timeout):
                answer = await self._open(request, aiohttp.ClientTimeout(sock_read=self._idle_timeout))
        return Stream(request, answer, self._streams)

    async def close(self) -> None:
        """Reject new requests and close all streams; reading a closed stream raises `ServerError`."""
        self._closed = True
        for stream in list(self._streams):
            # If only the pool were closed, a reader would wait forever.
            stream.close()
        if self._owned:
            await self._client.rest_client.close()

    async def _open(self, request: HttpRequest, timeouts: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send a request and return its answer; raise the error of an answer that is not 2xx."""
        url, headers = await self._serialize(request)
        self._prepare_pool(request)
        try:
            with _no_answer(request):
                opened = await self._client.call_api(
                    request.method, url, header_params=headers, body=request.body, _request_timeout=timeouts
                )
        except (TypeError, ValueError) as error:
            # The manifest is not valid JSON, or the credentials are not a valid header. An invalid address is a
            # ValueError of the library, and is caught before.
            raise bad_request(f"{request}: cannot be sent: {error}") from error
        answer: aiohttp.ClientResponse = opened.response
        if answer.status in _OK:
            return answer
        async with answer:
            raise answer_error(answer.status, answer.headers, await answer.read(), request_line=str(request))

    async def _serialize(self, request: HttpRequest) -> tuple[str, dict[str, str]]:
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
            # Credentials come from plugins, files and identity providers, which may raise any error.
            raise ServerError(f"{request}: not sent: credentials could not be read: {type(error).__name__}") from error
        return url, signed

    def _prepare_pool(self, request: HttpRequest) -> None:
        """Create the pool before the client does, with its retries switched off."""
        rest = self._client.rest_client
        pool = rest.pool_manager
        if self._closed or (pool is not None and pool.closed):
            raise ServerError(f"{request}: not sent: the connection to the cluster is closed")
        if pool is None:
            pool = rest.pool_manager = rest._create_pool_manager()  # noqa: SLF001 (the client's hook for subclasses)
        # The pool would send a GET, PUT or DELETE again when the connection breaks; there is no public option.
        pool._retry_connection = False  # noqa: SLF001 (said above)


@dataclass(slots=True, eq=False)
class Stream:
    """The open answer to a watch.

    Args:
        request: The request.
        answer: The open answer.
        siblings: The open streams of the connection; this one is removed when it is closed.
    """

    request: HttpRequest
    answer: aiohttp.ClientResponse
    siblings: set["Stream"]

    def __post_init__(self) -> None:
        self.siblings.add(self)

    async def read(self) -> bytes:
        """Return the next bytes; empty when the server has ended the answer.

        Raises:
            ServerError: If the connection breaks or is idle for too long.
        """
        with _no_answer(self.request):
            return await self.answer.content.readany()

    def close(self) -> None:
        """Close the connection; it cannot be reused while the server is sending."""
        self.siblings.discard(self)
        if self.answer.connection is not None and self.answer.connection.transport is not None:
            # A TLS shutdown would wait for the server, perhaps for longer than the event loop runs.
            self.answer.connection.transport.abort()
        self.answer.close()


async def _body(answer: aiohttp.ClientResponse, limit: int | None, *, request_line: str) -> bytes:
    if limit is None:
        return await answer.read()
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > limit:
            answer.close()  # the rest is not read
            raise ServerError(f"{request_line}: HTTP {answer.status}, but the answer has more than {limit} bytes")
    return bytes(body)


@contextmanager
def _no_answer(request: HttpRequest) -> Iterator[None]:
    """Convert errors of the HTTP library to `ServerError`."""
    try:
        yield
    except _NO_ANSWER as error:
        raise ServerError(f"{request}: no answer: {_why(error)}") from error


def _why(error: Exception) -> str:
    """Return the text of an error; errors of the connection contain only addresses, others may quote the answer."""
    if isinstance(error, TimeoutError):
        return "time is up"
    has_safe_text = isinstance(error, (aiohttp.ClientConnectionError, OSError)) and str(error)
    return f"{type(error).__name__}: {error}" if has_safe_text else type(error).__name__
