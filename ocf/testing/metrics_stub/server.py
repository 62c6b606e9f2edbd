"""`MetricsStub`: a metrics server that is registered at an API server for the duration of a block."""

import asyncio
import base64
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self

from ocf.cluster.client import ApiServerCluster
from ocf.concepts import Clock, SystemClock
from ocf.controllers.metrics_client import RESTMapper
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import is_condition_true
from ocf.objects.paths import get_field
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.certificates import Authority
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.metrics_stub.api_service import HOST, api_services, service
from ocf.testing.metrics_stub.handlers import MetricsHandlers, MetricsQuery, make_app

__all__ = ["MetricsStub"]

_MANAGER: Final = "ocf-metrics-stub"
_PAUSE: Final = 0.05  # seconds between two checks whether the API server has found it
_ADDRESS: Final = "127.0.0.1"
_CONNECTIONS: Final = 100  # an API server needs a few


class MetricsStub:
    """A server of the three metrics APIs behind an API server; it returns the metrics that a test sets.

    An API server can have only one such server, because the registration applies to all namespaces. It runs in the
    event loop of the test, so a test that blocks its loop also blocks all clients of the metrics.

    Args:
        plane: The running control plane, or the kubeconfig of another API server on this machine, such as that of
            `ocf serve`.
        metrics: The metrics; None for an empty `FakeMetricsClient`.
        clock: Gives the time of requests; None for the system clock.
        seconds: How long the API server may take to find it.

    Raises:
        ConfigError: On entering, if the API server does not find it in time, or trustme is not installed.

    Example:
        >>> from ocf.testing.envtest import ControlPlane
        >>> async def usage(plane: ControlPlane) -> str:
        ...     async with MetricsStub(plane) as stub:
        ...         stub.metrics.set_usage("shop", "web-0", {"app": {"cpu": "450m"}}, labels={"app": "web"})
        ...         return await asyncio.to_thread(plane.kubectl, "top", "pods", "--namespace=shop")
    """

    def __init__(
        self,
        plane: "ControlPlane | Path",
        metrics: FakeMetricsClient | None = None,
        *,
        clock: Clock | None = None,
        seconds: float = 120.0,
    ) -> None:
        self.metrics = metrics or FakeMetricsClient()
        """The metrics; a test may change them at any time."""
        self._plane = plane
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._stack = AsyncExitStack()
        self._handlers: MetricsHandlers | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(await self._connect())
            kinds = RESTMapper(cluster)

            async def plural_of(group: str, kind: str) -> str:
                with suppress(NotFoundError):
                    return (await kinds.find(group, kind)).plural
                return ""

            self._handlers = MetricsHandlers(self.metrics, plural_of, self._clock)
            authority = Authority(Path(stack.enter_context(TemporaryDirectory(prefix=f"{_MANAGER}-"))))
            port = await self._serve(stack, self._handlers, authority)
            await self._register(stack, cluster, api_services(port, _encoded(authority)), port)
            self._handlers.queries.clear()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def queries(self) -> list[MetricsQuery]:
        """The requests for metrics, oldest first and without discovery requests; a test may clear the list."""
        return self._open.queries

    def override(self, path: str, body: bytes | None, *, status: int = 200) -> None:
        """Override the response to one path, for example with invalid JSON.

        Args:
            path: Path of the request.
            body: Body of the response, JSON if it begins with a brace; None removes the override.
            status: HTTP status of the response.
        """
        self._open.overrides.pop(path, None)
        if body is not None:
            self._open.overrides[path] = (status, body)

    @property
    def _open(self) -> MetricsHandlers:
        if self._handlers is None:
            raise ConfigError("this stub is not running; use it inside of its `async with` block")
        return self._handlers

    async def _connect(self) -> "ApiServerCluster":
        if not isinstance(self._plane, Path):
            return await self._plane.cluster()
        from ocf.cluster.client import ApiServerCluster

        return await ApiServerCluster.connect(self._plane)

    async def _serve(self, stack: AsyncExitStack, handlers: MetricsHandlers, authority: Authority) -> int:
        from ocf.http.limits import Limits
        from ocf.http.server import serving_app

        pair = authority.server(_MANAGER, HOST)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        limits = Limits(connections=_CONNECTIONS)
        served = serving_app(make_app(handlers), limits, name=_MANAGER, address=(_ADDRESS, 0), tls=context)
        return (await stack.enter_async_context(served)).port

    async def _register(
        self, stack: AsyncExitStack, cluster: "ApiServerCluster", registered: Sequence[Manifest], port: int
    ) -> None:
        for manifest in (service(), *registered):
            await cluster.apply(manifest, field_manager=_MANAGER, force=True)
            stack.push_async_callback(_delete, cluster, ObjectKey.of(manifest))
        try:
            async with asyncio.timeout(self._seconds):
                for manifest in registered:
                    while not await self._found(cluster, manifest, port):  # noqa: ASYNC110 (another process)
                        await asyncio.sleep(_PAUSE)
        except TimeoutError as error:
            raise ConfigError(f"the API server did not find the metrics stub within {self._seconds:g} s") from error

    async def _found(self, cluster: "ApiServerCluster", registered: Manifest, port: int) -> bool:
        """Return whether the API server sends requests for an API to this server.

        The condition `Available` is not enough: requests may still go to the address of an earlier stub.
        """
        group, version = registered["spec"]["group"], registered["spec"]["version"]
        path = f"/apis/{group}/{version}/namespaces/default/port-{port}"
        with suppress(ApiError):
            await cluster.read_path(path)
        here = any(query.path == path for query in self._open.queries)
        return here and _available(await cluster.get(ObjectKey.of(registered)))


def _encoded(authority: Authority) -> str:
    return base64.b64encode(authority.certificate.read_bytes()).decode()


async def _delete(cluster: "ApiServerCluster", key: ObjectKey) -> None:
    with suppress(NotFoundError):
        await cluster.delete(key)


def _available(registered: Manifest) -> bool:
    return is_condition_true(get_field(registered, ("status", "conditions")), "Available")
