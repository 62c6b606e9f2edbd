"""Sending of requests over a pool of connections.

No request is sent twice. A write without an answer may have been applied, and whether to repeat it depends on the verb:
a second create finds that the name is taken, a second delete finds nothing, a second update conflicts with the first.
The caller would get an error for a write that succeeded. A repeated read would be harmless, but only the caller knows
whether it still needs the result. So the retries of the pool are switched off.

A watch keeps a connection for as long as it is open, so watches would use up any limit of the pool, and then nothing
could be requested. The pool has no limit: only requests are counted, those of each purpose by themselves, and watches
are limited by the open files of the process.

Other defaults of the HTTP library that change what is sent or accepted are set here, too.

Errors of the HTTP library are converted here: a request without an answer raises a `ServerError` with code 0, with the
error of the library as its cause.
"""

import asyncio
import errno
import logging
import os
import socket
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

import ocf
from ocf.cluster.client.credentials import Credential, credentials_for, describe_credentials
from ocf.cluster.client.paths import bad_request
from ocf.cluster.client.proxy import environment_proxy
from ocf.cluster.client.requests import HttpRequest, request_span, response_attributes
from ocf.cluster.client.responses import answer_error, read_object, read_warnings
from ocf.cluster.client.rest_config import RestConfig
from ocf.cluster.client.tls import TlsContexts
from ocf.cluster.request_purpose import Purpose, current_purpose
from ocf.cluster.server_errors import as_impersonation_error
from ocf.concepts.open_files import open_files_hint
from ocf.concepts.tracing import SpanStart, annotate_span, trace_headers, traced
from ocf.errors import ApiError, ConfigError, ManifestError, ServerError, api_error
from ocf.objects import Manifest
from ocf.objects.json_values import encode_json

__all__ = ["MAX_REQUESTS", "Connection", "Resolver", "Stream"]

MAX_REQUESTS: Final = 100
"""Requests of a connection at the same time for each purpose; watches do not count.

As many as kube-apiserver 1.36 allows on the one connection of a client with HTTP/2, such as client-go.
"""

_log: Final = logging.getLogger(__name__)

_MAX_WARNINGS: Final = 1000
"""Texts of warnings that a connection remembers; some contain names of objects."""

_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)
_UNAUTHORIZED: Final = 401
_READ_BUFFER: Final = 2**21  # events of a watch can be large
_IDLE_SECONDS: Final = 15.0  # less than after which servers and load balancers close an idle connection
_DNS_SECONDS: Final = 10  # a new connection finds a changed address after this time
# client-go accepts 10 MB of headers. kube-apiserver sends warnings of 4096 characters in all, one per header: up to
# 16 KiB in one, or thousands of one character.
_MAX_HEADER_BYTES: Final = 2**16
_MAX_HEADERS: Final = 2**13
_MAX_ERROR_BYTES: Final = 2**22  # an invalid object has a cause for each field
_UNLIMITED: Final = aiohttp.ClientTimeout()  # in addition to the timeout around the request
_NO_MORE_FILES: Final = (errno.EMFILE, errno.ENFILE)  # of the process, of the machine
_NO_ANSWER: Final = (aiohttp.ClientError, OSError, TimeoutError)


class Connection:
    """Sends requests to one API server.

    Args:
        timeout: The maximum duration of a request in seconds, from reading credentials to the last byte of the answer;
            for a stream, the time until it is open.
        idle_timeout: Seconds without data after which a stream fails.
        now: The time, in seconds since the epoch.
    """

    def __init__(
        self,
        config: RestConfig,
        *,
        timeout: float,
        idle_timeout: float,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not (timeout > 0 and idle_timeout > 0):
            raise ConfigError(f"timeouts must be positive seconds, got {timeout} and {idle_timeout}")
        self._config = config
        self._credentials = credentials_for(config, now)
        self._tls = _tls_contexts(config, now)
        self._proxy = config.proxy_url or environment_proxy(config.host, environ)
        self._host = config.host.rstrip("/")
        agent = ("User-Agent", f"ocf/{ocf.__version__}")
        # The library would accept other encodings, by which packages are installed; an API server has this one.
        accept = (("Accept", "application/json"), ("Accept-Encoding", "gzip"))
        self._headers = (agent, *accept)
        self._session: aiohttp.ClientSession | None = None
        self._resolver = Resolver()
        self._closed = False
        self._streams: set[Stream] = set()
        self._slots: defaultdict[Purpose, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(MAX_REQUESTS))
        self._warned: dict[str, None] = {}
        self._timeout = timeout
        self._idle_timeout = idle_timeout
        self.date = ""
        """The time of the server in its last answer, as HTTP writes it; empty before, and if it has none."""

    async def prepare(self) -> None:
        """Read the credentials, so that unusable ones are found before the first request."""
        credential = await self._credentials.current()
        if self._tls is not None:
            self._tls.current(credential.pair)

    def _span(self, request: HttpRequest, **_: object) -> SpanStart:
        return request_span(self._host, request)

    @traced(_span)
    async def send(self, request: HttpRequest, *, most_bytes: int | None = None) -> Manifest:
        """Send a request and return the object in the answer.

        Args:
            most_bytes: The maximum length of the answer; None for no limit.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout
        async with self._slot(request, deadline):
            try:
                async with asyncio.timeout_at(deadline), await self._open(request, _UNLIMITED) as answer:
                    body = await _body(answer, most_bytes, request_line=str(request))
            except _NO_ANSWER as error:
                raise _unanswered(request, error) from error
        return read_object(body, code=answer.status, request_line=str(request))

    @traced(_span)
    async def stream(self, request: HttpRequest) -> "Stream":
        """Send a request whose answer is a stream.

        Returns:
            The open stream; the caller closes it.
        """
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._open(request, aiohttp.ClientTimeout(sock_read=self._idle_timeout))
        except _NO_ANSWER as error:
            raise _unanswered(request, error) from error
        return Stream(request, answer, self._streams)

    async def close(self) -> None:
        """Reject new requests and close all streams; reading a closed stream raises `ServerError`."""
        self._closed = True
        for stream in list(self._streams):
            # If only the pool were closed, a reader would wait forever.
            stream.close()
        if self._session is not None:
            await self._session.close()
        await self._resolver.close()

    @asynccontextmanager
    async def _slot(self, request: HttpRequest, deadline: float) -> AsyncIterator[None]:
        """Wait until the request may be sent; the caller sends it in the block."""
        purpose = current_purpose()
        slots = self._slots[purpose]
        try:
            # Most requests need not wait, and a timeout would cost them as much as the slot.
            if not slots.locked():
                await slots.acquire()
            else:
                async with asyncio.timeout_at(deadline):
                    await slots.acquire()
        except TimeoutError as error:
            problem = f"time is up; {MAX_REQUESTS} other requests of this client for {purpose} had no answer yet"
            raise ServerError(f"{request}: not sent: {problem}, see whether the API server is slow") from error
        try:
            yield
        finally:
            slots.release()

    async def _open(self, request: HttpRequest, timeouts: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send a request and return its answer; raise the error of an answer that is not 2xx."""
        credential = await self._credential(request)
        try:
            body = None if request.body is None else encode_json(request.body, "the body").encode()
            answer = await self._pool(request).request(
                request.method,
                self._url(request),
                data=body,
                headers=self._headers_of(request, credential),
                timeout=timeouts,
                allow_redirects=False,
                **self._route(request, credential),
            )
        except _NO_ANSWER as error:
            raise _unanswered(request, error) from error
        except ManifestError as error:
            raise bad_request(f"{request}: cannot be sent: {'; '.join(map(str, error.problems))}") from None
        except (TypeError, ValueError) as error:
            # The credentials are not a valid header. An invalid address is a ValueError of the library, and is caught
            # before.
            raise bad_request(f"{request}: cannot be sent: the credentials are not a valid header") from error
        annotate_span(response_attributes, answer.status)
        self._log_warnings(request, answer)
        self.date = answer.headers.get("Date", "")
        if answer.status in _OK:
            return answer
        if answer.status == _UNAUTHORIZED:
            self._credentials.reject(credential)
        async with answer:
            if answer.status in _REDIRECT:
                raise _redirected(request, answer)
            body = await _body(answer, _MAX_ERROR_BYTES, request_line=str(request))
            refusal = answer_error(answer.status, answer.headers, body, request_line=str(request))
            if answer.status == _UNAUTHORIZED:
                # The API server says nothing but "Unauthorized", for whatever reason.
                problem = f"{refusal.message}: {self._host} does not accept {describe_credentials(self._config)}"
                raise api_error(problem, code=refusal.code, reason=refusal.reason)
            raise as_impersonation_error(refusal, request.user or self._config.impersonate)

    def _log_warnings(self, request: HttpRequest, answer: aiohttp.ClientResponse) -> None:
        """Log what the API server warns of, each text once: it warns in every answer."""
        for text in read_warnings(answer.headers.getall("Warning", ())):
            if text not in self._warned:
                if len(self._warned) >= _MAX_WARNINGS:
                    del self._warned[next(iter(self._warned))]
                self._warned[text] = None
                _log.warning("the API server warns: %s (%s)", text, request)

    async def _credential(self, request: HttpRequest) -> Credential:
        try:
            return await self._credentials.current()
        except ConfigError as error:
            raise ServerError(f"{request}: not sent: credentials could not be read: {error}") from error

    def _url(self, request: HttpRequest) -> str:
        return f"{self._host}{request.path}{_query(request.query)}"

    def _headers_of(self, request: HttpRequest, credential: Credential) -> list[tuple[str, str]]:
        """Return the headers that not all requests have."""
        headers: list[tuple[str, str]] = []
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        if request.accept:
            headers.append(("Accept", request.accept))
        if credential.authorization:
            headers.append(("Authorization", credential.authorization))
        # Not a header of all requests of the pool: the groups of that user would be sent with another user's name.
        user = request.user or self._config.impersonate
        if user is not None:
            headers.extend(user.headers())
        headers.extend(trace_headers().items())
        return headers

    def _route(self, request: HttpRequest, credential: Credential) -> dict[str, Any]:
        """Return how the server is reached: the proxy, and the current certificates."""
        route: dict[str, Any] = {"proxy": self._proxy} if self._proxy else {}
        if self._tls is None:
            return route
        try:
            # The pool keeps connections by context, so changed certificates open new ones.
            route["ssl"] = self._tls.current(credential.pair)
        except ConfigError as error:
            raise ServerError(f"{request}: not sent: {error}") from error
        if self._config.tls.server_name:
            route["server_hostname"] = self._config.tls.server_name
        return route

    def _pool(self, request: HttpRequest) -> aiohttp.ClientSession:
        """Return the pool; it belongs to the event loop of the first request."""
        if self._closed or (self._session is not None and self._session.closed):
            raise ServerError(f"{request}: not sent: the connection to the cluster is closed")
        if self._session is None:
            # Without trust_env: the library would read proxies by other rules, and passwords of ~/.netrc.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    keepalive_timeout=_IDLE_SECONDS, limit=0, resolver=self._resolver, ttl_dns_cache=_DNS_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                max_field_size=_MAX_HEADER_BYTES,
                max_headers=_MAX_HEADERS,
                max_line_size=_MAX_HEADER_BYTES,
                read_bufsize=_READ_BUFFER,
            )
            # The pool would send a GET, PUT or DELETE again when the connection breaks; there is no public option.
            self._session._retry_connection = False  # noqa: SLF001 (said above)
        return self._session


def _tls_contexts(config: RestConfig, now: Callable[[], float]) -> TlsContexts | None:
    if urlsplit(config.host).scheme != "https":
        return None
    try:
        return TlsContexts(config.tls, now)
    except ConfigError as error:
        raise ConfigError(f"the certificates for {config.host} cannot be used: {error}") from error


@dataclass(slots=True, eq=False)
class Stream:
    """The open answer to a watch.

    Args:
        siblings: The open streams of the connection; this one is removed when it is closed.
    """

    request: HttpRequest
    answer: aiohttp.ClientResponse
    siblings: set["Stream"]

    def __post_init__(self) -> None:
        self.siblings.add(self)

    async def read(self) -> bytes:
        """Return the next bytes; empty when the server has ended the answer."""
        try:
            return await self.answer.content.readany()
        except _NO_ANSWER as error:
            raise _unanswered(self.request, error) from error

    def close(self) -> None:
        """Close the connection; it cannot be reused while the server is sending."""
        self.siblings.discard(self)
        if self.answer.connection is not None and self.answer.connection.transport is not None:
            # A TLS shutdown would wait for the server, perhaps for longer than the event loop runs.
            self.answer.connection.transport.abort()
        self.answer.close()


@lru_cache(maxsize=256)
def _query(parameters: tuple[tuple[str, str], ...]) -> str:
    """Return query parameters as they follow the path; those of all writes of one component are equal."""
    return f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""


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


def _redirected(request: HttpRequest, answer: aiohttp.ClientResponse) -> ApiError:
    """Return the error of an answer that names another address.

    The library would send the request there, a write as a GET, with the impersonated user and the certificate. Of the
    address only the origin is named; a proxy that asks for a login adds secrets to it.
    """
    try:
        address = urlsplit(urljoin(str(answer.url), answer.headers["Location"]))
        target = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
    except (KeyError, ValueError):
        target = "an unknown address"
    return api_error(
        f"{request}: HTTP {answer.status}, redirected to {target}; an API server does not redirect: check its address",
        code=answer.status,
    )


def _unanswered(request: HttpRequest, error: Exception) -> ServerError:
    """Return the error of a request that the HTTP library could not complete."""
    return ServerError(f"{request}: no answer: {_why(error)}")


def _why(error: Exception) -> str:
    """Return the text of an error; errors of the connection contain only addresses, others may quote the answer."""
    if isinstance(error, TimeoutError):
        return "time is up"
    if isinstance(error, OSError) and error.errno in _NO_MORE_FILES:
        return f"too many open files: {open_files_hint()}"
    has_safe_text = isinstance(error, (aiohttp.ClientConnectionError, OSError)) and str(error)
    return f"{type(error).__name__}: {error}" if has_safe_text else type(error).__name__


# asyncio resolves names in the threads that it also gives to `asyncio.to_thread`: five on a machine with one processor.
# Functions of an operator that block there, on another service that hangs, would keep the client from every new
# connection to an API server that is named by its address in DNS.
_THREADS: Final = 2  # for the API server and its proxy; requests that need the same name share a lookup
_NUMERIC: Final = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV


class Resolver(AbstractResolver):
    """Resolves names as the operating system is configured, whichever packages for DNS are installed."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ocf-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a name, in the order of the operating system."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, _resolve, host, port, family)

    async def close(self) -> None:
        """End the threads; a lookup that hangs does not delay it."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _resolve(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [
        ResolveResult(
            hostname=host,
            # With the scope of a link-local address.
            host=socket.getnameinfo(address, _NUMERIC)[0],
            port=port,
            family=kind,
            proto=proto,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, proto, _, address in found
    ]
