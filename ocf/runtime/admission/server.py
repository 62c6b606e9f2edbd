"""HTTPS server of the webhooks.

A connection keeps the certificate that it was opened with; new connections get the current one. So a renewal neither
closes nor rejects a connection.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from typing import Any, Final, TypeVar

from aiohttp import web
from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.concepts import Clock, SystemClock
from ocf.concepts.tracing import annotate_span, spanning
from ocf.errors import ConfigError, OcfError
from ocf.http.limits import Limits, connections_within
from ocf.http.server import ListeningServer, serving_app
from ocf.objects.timestamps import format_time
from ocf.runtime.admission.certificate_source import CertificateSource, ServingCertificate
from ocf.runtime.admission.key_pairs import KeyPair
from ocf.runtime.admission.review import Answer
from ocf.runtime.admission.routes import Route, routes
from ocf.runtime.admission.spans import webhook_outcome, webhook_span
from ocf.runtime.admission.tls_context import ReloadableTLSContext
from ocf.runtime.admission.webhook_metrics import WebhookMetrics
from ocf.runtime.admission.webhooks import Webhooks
from ocf.runtime.admission.worker_threads import WorkerCall, WorkerThreads

__all__ = ["WebhookServer", "serving"]

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

_PORT: Final = 9443
# API servers keep idle connections for 90 seconds. They must close first: a request on a connection that the server
# closes at the same time fails.
_IDLE: Final = 120.0
# Of the files that the process may open; probes and metrics hold an eighth, and the rest is for its own connections.
_SHARE: Final = 1 / 4
_MOST: Final = 512
# Bytes of large bodies that may be in memory at once: two of the largest conversions.
_BODIES: Final = 256 * 1024 * 1024
_WORKERS: Final = 4
# Functions that may hang while others still get a thread.
_SPARE: Final = 16
# How long after its time limit a function may return before it counts as one that never will.
_HANGS_AFTER: Final = timedelta(minutes=1)
# How long the refresh of a certificate may take: several requests to the API server, each with retries.
_REFRESH_HANGS_AFTER: Final = timedelta(minutes=5)
# How long accepting connections may fail before the process is unhealthy.
_NOT_ACCEPTING: Final = 60.0


class WebhookServer:
    """A running server of webhooks.

    Args:
        certificates: Source of the server's certificate.
        clock: The clock that the validity of the certificate is checked with.
        certificate: The first certificate.
        metrics: The metrics of the requests; None for none.
        cluster: The cluster that functions get; None if none of them takes it.

    Attributes:
        tls_context: The TLS context of the listening socket.
        url: URL of the server; empty before it listens.
        cluster: The cluster that functions get.
        threads: Run plain functions.
    """

    def __init__(
        self,
        webhooks: Webhooks,
        certificates: CertificateSource,
        clock: Clock,
        certificate: ServingCertificate,
        metrics: WebhookMetrics | None = None,
        *,
        cluster: Cluster | None = None,
    ) -> None:
        self.tls_context: Final = ReloadableTLSContext(certificate.pair)
        self.url = ""
        self._routes = routes(webhooks)
        self._metrics = metrics
        self.cluster: Final = cluster
        self._certificates = certificates
        self._clock = clock
        self._certificate = certificate
        self._bodies = _BodyReader(_BODIES)
        self.threads: Final = WorkerThreads(_WORKERS, _SPARE, "admission", clock)
        self._listening: ListeningServer | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_began: timedelta | None = None
        self._cancelled: set[asyncio.Task[Any]] = set()
        """Functions that were cancelled, and may go on."""

    @property
    def pair(self) -> KeyPair:
        """The certificate that new connections get, and its key."""
        return self._certificate.pair

    def problem(self) -> str:
        """Return why API servers cannot call the webhooks; empty if they can. A check for `/readyz`."""
        pair = self.pair
        if not pair.is_usable(self._clock.now()):
            window = f"from {format_time(pair.not_before)} to {format_time(pair.not_after)}"
            return f"the certificate is valid {window}, and it is {format_time(self._clock.now())}"
        if self.threads.exhausted:
            return f"no function can be called: {_not_returning(self.threads.given_up())}"
        return self._not_accepting() or self._not_refreshing() or self._certificate.problem

    def live(self) -> str:
        """Return why the process should be restarted; empty if it should not. A check for `/healthz`.

        A restart ends the threads of functions that do not return, frees files, and starts tasks that have ended.
        """
        hanging = self.threads.given_up(lasting=_HANGS_AFTER)
        if hanging.total() >= _SPARE:
            return f"for {_HANGS_AFTER} after their time limit: {_not_returning(hanging)}"
        return self._not_accepting(_NOT_ACCEPTING) or self._not_refreshing()

    def _not_accepting(self, lasting: float = 0.0) -> str:
        return self._listening.problem(lasting=lasting) if self._listening is not None else ""

    def _not_refreshing(self) -> str:
        if self._refreshing is not None and self._refreshing.done():
            return "the task that renews the certificate has ended"
        began = self._refresh_began
        if began is not None and self._clock.elapsed() - began >= _REFRESH_HANGS_AFTER:
            return f"the renewal of the certificate has not ended for {_REFRESH_HANGS_AFTER}"
        return ""

    @asynccontextmanager
    async def started(self, listening: ListeningServer) -> AsyncIterator[None]:
        """Refresh the certificate for as long as the block runs.

        Args:
            listening: Accepts the connections.
        """
        self._listening, self.url = listening, f"https://{listening.host}:{listening.port}"
        self._refreshing = task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            self._refreshing = None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def refresh(self) -> None:
        """Use the current certificate of the source; an error is logged, and the previous one stays in use."""
        self._refresh_began = self._clock.elapsed()
        try:
            certificate = await self._certificates.refresh()
            self.tls_context.show(certificate.pair)
        except Exception as error:  # noqa: BLE001 (no error may end the refreshing)
            _log.warning("the certificate of the webhooks is not renewed: %s", _error_text(error))
            return
        finally:
            self._refresh_began = None
        self._certificate = certificate

    async def run(self) -> None:
        """Refresh the certificate periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._certificates.interval.total_seconds())
            await self.refresh()

    async def answer(self, request: web.Request) -> web.Response:
        """Respond to a review."""
        route = self._routes.get(request.path)
        if route is None:
            raise web.HTTPNotFound(text=f"there is no webhook at {request.path}\n")
        with self._metrics.measured(request.path) if self._metrics is not None else nullcontext() as measured:
            with spanning(webhook_span, route.name, request):
                answer = await self._answered(route, request)
                annotate_span(webhook_outcome, answer.review)
            if measured is not None and answer.failed:
                measured.failed(ignored=bool(answer.review["response"].get("allowed")))
        return web.json_response(answer.review)

    async def _answered(self, route: Route, request: web.Request) -> Answer:
        seconds = route.seconds(request.query.get("timeout", ""))
        uid, calls = "", _Calls(self)
        try:
            async with asyncio.timeout(seconds):
                async with self._bodies.read(request, route.longest) as body:
                    question = _question(body, route)
                    uid = str(question["request"].get("uid") or "") if isinstance(question.get("request"), dict) else ""
                    return await route.respond(question, calls)
        except TimeoutError:
            return route.reject_late(uid, f"{route.name}: {self._late(calls.call)} within {seconds:g} seconds")

    async def call_in_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a function in the event loop; nothing waits for one that ignores its cancellation."""
        task = asyncio.create_task(coroutine)
        try:
            await asyncio.wait({task})
        finally:
            if not task.done():
                self._cancelled.add(task)
                task.add_done_callback(self._cancelled.discard)
                task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
                task.cancel()
        return task.result()

    def _late(self, call: WorkerCall | None) -> str:
        """Return what has not happened in time, and log where a function is that has not returned."""
        if call is None:
            return "the request did not arrive"
        if call.thread is None and call.running.name:
            _log.error("%s did not return in time, and was cancelled", call.running.name)
            return f"{call.running.name} did not return"
        if call.thread is None:
            others = self.threads.given_up()
            return "no thread was free" + (f" ({_not_returning(others)})" if others else "")
        what = f"{call.running.name or 'the webhook'} did not return"
        _log.error("%s in time; its thread is not stopped, and is now at\n%s", what, call.place())
        return what

    async def readiness(self, _: web.Request) -> web.Response:
        """Respond whether API servers can call the webhooks."""
        problem = self.problem()
        return web.Response(status=500, text=f"{problem}\n") if problem else web.Response(text="ok")


class _Calls:
    """The functions of one request.

    Attributes:
        call: The last one that was called; None before the first one.
    """

    def __init__(self, server: WebhookServer) -> None:
        self._server = server
        self.call: WorkerCall | None = None

    @property
    def cluster(self) -> Cluster | None:
        return self._server.cluster

    async def in_thread(self, function: Callable[[], T]) -> T:
        self.call = WorkerCall()
        return await self._server.threads.call(function, self.call)

    async def in_loop(self, name: str, coroutine: Coroutine[Any, Any, T]) -> T:
        self.call = WorkerCall()
        self.call.running.name = name
        return await self._server.call_in_loop(coroutine)


@asynccontextmanager
async def serving(
    webhooks: Webhooks,
    *,
    certificates: CertificateSource,
    host: str = "0.0.0.0",  # noqa: S104 (API servers come from outside of the pod)
    port: int = _PORT,
    clock: Clock | None = None,
    registry: CollectorRegistry | None = None,
    cluster: Cluster | None = None,
) -> AsyncIterator[WebhookServer]:
    """Serve webhooks for as long as the block runs, and refresh the server's certificate.

    `/readyz` fails while API servers cannot call the webhooks: the certificate is not valid, or, if self-managed, not
    trusted yet.

    Args:
        certificates: Source of the certificate: `FileCertificates` or `SecretCertificates`.
        host: The address to listen on.
        port: The port to listen on; 0 takes any free port.
        clock: The clock; the system clock by default.
        registry: The registry of the metrics of the requests; None for no metrics.
        cluster: The cluster that functions of (request, cluster) get; None if there are none.

    Yields:
        The server: its `url`, and `problem` and `live`, checks for the `/readyz` and `/healthz` of the process.

    Raises:
        ConfigError: If there is no certificate, the server cannot listen on the address, or a function takes the
            cluster, and there is none.
        ApiError: If the certificate is stored in a cluster that cannot be reached.
    """
    clock = clock or SystemClock()
    metrics = WebhookMetrics(registry, clock) if registry is not None else None
    if cluster is None and (reading := [one for one in webhooks.webhooks if one.reads_cluster]):
        raise ConfigError(
            f"webhooks {webhooks.name}: functions of {reading[0].kind} take the cluster, and there is none: pass "
            "`cluster` to `serving`"
        )
    server = WebhookServer(webhooks, certificates, clock, await certificates.refresh(), metrics, cluster=cluster)
    app = web.Application()
    app.router.add_get("/readyz", server.readiness)
    app.router.add_post("/{path:.*}", server.answer)
    serving = serving_app(
        app,
        Limits(connections=connections_within(_SHARE, _MOST), idle=_IDLE),
        name="webhooks",
        address=(host, port),
        tls=server.tls_context.context,
        shutdown_timeout=max(route.timeout for route in routes(webhooks).values()).total_seconds(),
    )
    async with serving as listening, server.started(listening):
        yield server


def _not_returning(calls: Counter[str]) -> str:
    """Return which functions do not return, the most frequent first."""
    counted = (f"{name or 'a webhook'} ({number})" for name, number in calls.most_common())
    return f"{calls.total()} calls do not return: {', '.join(counted)}"


def _question(body: bytes, route: Route) -> dict[str, Any]:
    try:
        question = json.loads(body)
    except (ValueError, RecursionError):
        question = None
    if not isinstance(question, dict):
        raise web.HTTPBadRequest(text=f"the body is not {route.review}\n")
    return question


def _error_text(error: Exception) -> str:
    return str(error) if isinstance(error, OcfError) else type(error).__name__


# Bytes of each body that always have room; 32 MB of all connections that the server of the webhooks may have.
_SMALL: Final = 64 * 1024


class _BodyReader:
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
            longest: Maximum number of bytes of the body.
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
