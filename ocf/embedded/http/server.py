"""Starting and stopping the server."""

import asyncio
import ipaddress
import json
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocf.cluster.protocol import Cluster
from ocf.embedded.cluster import EmbeddedCluster
from ocf.embedded.http.control import Control
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.embedded.http.backend import Backend, Wrap

__all__ = ["Control", "HttpServer", "serving", "write_kubeconfig"]

_NAME = "ocf"


@dataclass(slots=True)
class HttpServer:
    """A running server.

    Args:
        url: Where it is, `http://127.0.0.1:41234`.
        cluster: The cluster that it serves.
        _backend: What requests go through.
    """

    url: str
    cluster: EmbeddedCluster
    _backend: "Backend"

    def wrap(self, wrap: "Wrap | None") -> Cluster:
        """Let requests go through another wrapper from now on.

        Args:
            wrap: Puts it around the cluster, `lambda cluster: FaultyCluster(cluster, faults)`; None for no wrapper.

        Returns:
            What requests go through.
        """
        return self._backend.wrap(wrap)

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig that leads here."""
        context = {"cluster": _NAME, "user": _NAME}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": {"server": self.url}}],
            "users": [{"name": _NAME, "user": {}}],
            "contexts": [{"name": _NAME, "context": context}],
            "current-context": _NAME,
        }


@asynccontextmanager
async def serving(
    cluster: EmbeddedCluster,
    *,
    wrap: "Wrap | None" = None,
    host: str = "127.0.0.1",
    port: int = 0,
    control: Control | None = None,
) -> AsyncGenerator[HttpServer, None]:
    """Serve a cluster over HTTP while the block runs.

    Args:
        cluster: The cluster.
        wrap: Puts around the cluster what requests go through, for example a `FaultyCluster`; None for nothing.
        host: A loopback address; others are refused, because who reaches the server may do everything.
        port: The port; 0 for a free one.
        control: What requests beside the API go to.

    Yields:
        The server.

    Raises:
        ConfigError: If the address is not one of loopback, or is taken.

    Example:
        >>> async def url() -> str:
        ...     async with serving(EmbeddedCluster()) as server:
        ...         return server.url
        >>> asyncio.run(url()).startswith("http://127.0.0.1:")
        True
    """
    # aiohttp takes longer to import than everything else here together.
    from aiohttp import web

    from ocf.embedded.http.app import make_app
    from ocf.embedded.http.backend import Backend

    _demand_loopback(host)
    backend = Backend(cluster)
    backend.wrap(wrap)
    stopping = asyncio.Event()
    app = make_app(backend, stopping, control)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            # What asyncio says repeats the address.
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise ConfigError(f"{host}:{port} cannot be served: {reason}") from error
        bound = runner.addresses[0][1]
        name = f"[{host}]" if ":" in host else host
        yield HttpServer(f"http://{name}:{bound}", cluster, backend)
    finally:
        stopping.set()
        await runner.cleanup()


def _demand_loopback(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigError(f'the embedded cluster is served on loopback only: 127.0.0.1, ::1 or localhost, not "{host}"')


def write_kubeconfig(kubeconfig: dict[str, Any], path: Path) -> None:
    """Write a kubeconfig, readable by its owner only, and whole or not at all.

    Args:
        kubeconfig: What `HttpServer.kubeconfig` returns.
        path: The file; one that is there is replaced.

    Raises:
        ConfigError: If it cannot be written.
    """
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(kubeconfig, file, indent=1)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error
