"""`MetricsStub`: a server of metrics, registered at a real API server for as long as a block runs."""

import asyncio
import base64
import ssl
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ocf.concepts import Clock, SystemClock
from ocf.controllers.metrics_client import RESTMapper
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey, get_field
from ocf.objects.conditions import is_condition_true
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.metrics_stub.api_service import HOST, api_services, service
from ocf.testing.metrics_stub.handlers import Asked, MetricsHandlers, make_app

if TYPE_CHECKING:
    from aiohttp import web

    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane

__all__ = ["MetricsStub"]

_MANAGER: Final = "ocf-metrics-stub"
_PAUSE: Final = 0.05  # seconds between two looks at whether the API server has found it
_ADDRESS: Final = "127.0.0.1"


class MetricsStub:
    """A server of the three metrics APIs behind a control plane, which answers what a test says.

    A control plane has one such server at most: what is registered holds for all namespaces. It answers in the event
    loop of the test, so a test that blocks its loop keeps everybody waiting.

    Args:
        plane: The control plane, running.
        metrics: What is answered; None starts with nothing.
        clock: Tells when something was asked; None for the machine's.
        seconds: How long the API server may take to find it.

    Raises:
        ConfigError: On entering, if the API server does not find it in time.

    Example:
        >>> from ocf.testing.envtest import ControlPlane
        >>> async def usage(plane: ControlPlane) -> str:
        ...     async with MetricsStub(plane) as stub:
        ...         stub.metrics.set_usage("shop", "web-0", {"app": {"cpu": "450m"}}, labels={"app": "web"})
        ...         return await asyncio.to_thread(plane.kubectl, "top", "pods", "--namespace=shop")
    """

    def __init__(
        self,
        plane: "ControlPlane",
        metrics: FakeMetricsClient | None = None,
        *,
        clock: Clock | None = None,
        seconds: float = 30.0,
    ) -> None:
        self.metrics = metrics or FakeMetricsClient()
        """What is answered; a test may change it at any time."""
        self._plane = plane
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._stack = AsyncExitStack()
        self._desk: MetricsHandlers | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(await self._plane.cluster())
            kinds = RESTMapper(cluster)

            async def plural_of(group: str, kind: str) -> str:
                with suppress(NotFoundError):
                    return (await kinds.find(group, kind)).plural
                return ""

            self._desk = MetricsHandlers(self.metrics, plural_of, self._clock)
            port = await self._serve(stack, self._desk)
            await self._register(stack, cluster, port)
            self._desk.asked.clear()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def asked(self) -> list[Asked]:
        """What was asked so far, oldest first; questions of discovery are left out. May be cleared."""
        return self._open.asked

    def override(self, path: str, body: bytes | None, *, status: int = 200) -> None:
        """Answer something else to one question, for example nonsense.

        Args:
            path: The path of the question.
            body: The answer, JSON if it begins with a brace; None to answer as before.
            status: Its HTTP status.
        """
        self._open.overrides.pop(path, None)
        if body is not None:
            self._open.overrides[path] = (status, body)

    @property
    def _open(self) -> MetricsHandlers:
        if self._desk is None:
            raise ConfigError("this stub is not running; use it inside of its `async with` block")
        return self._desk

    async def _serve(self, stack: AsyncExitStack, desk: MetricsHandlers) -> int:
        from aiohttp import web

        pair = self._plane.certificate_for(_MANAGER, HOST)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        runner = web.AppRunner(make_app(desk), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        stack.push_async_callback(_hang_up, runner)
        await web.TCPSite(runner, _ADDRESS, 0, ssl_context=context).start()
        port: int = runner.addresses[0][1]
        return port

    async def _register(self, stack: AsyncExitStack, cluster: "ApiServerCluster", port: int) -> None:
        authority = base64.b64encode(self._plane.authority.read_bytes()).decode()
        registered = api_services(port, authority)
        for manifest in (service(), *registered):
            await cluster.apply(manifest, field_manager=_MANAGER, force=True)
            stack.push_async_callback(_gone, cluster, ObjectKey.of(manifest))
        try:
            async with asyncio.timeout(self._seconds):
                for manifest in registered:
                    while not await self._found(cluster, manifest, port):  # noqa: ASYNC110 (another process)
                        await asyncio.sleep(_PAUSE)
        except TimeoutError as error:
            raise ConfigError(f"the API server did not find the metrics stub within {self._seconds:g} s") from error

    async def _found(self, cluster: "ApiServerCluster", registered: Manifest, port: int) -> bool:
        """Tell whether questions for an API come here.

        That it is available is not enough: they may still go to where a stub before this one was.
        """
        group, version = registered["spec"]["group"], registered["spec"]["version"]
        path = f"/apis/{group}/{version}/namespaces/default/port-{port}"
        with suppress(ApiError):
            await cluster.read_path(path)
        here = any(asked.path == path for asked in self._open.asked)
        return here and _available(await cluster.get(ObjectKey.of(registered)))


async def _hang_up(runner: "web.AppRunner") -> None:
    """End the server and its connections: the API server keeps them open, and would be waited for to say goodbye."""
    for connection in [] if runner.server is None else runner.server.connections:
        if connection.transport is not None:
            connection.transport.abort()
    await runner.cleanup()
    await asyncio.sleep(0)  # the loop closes what was aborted


async def _gone(cluster: "ApiServerCluster", key: ObjectKey) -> None:
    with suppress(NotFoundError):
        await cluster.delete(key)


def _available(registered: Manifest) -> bool:
    return is_condition_true(get_field(registered, ("status", "conditions")), "Available")
