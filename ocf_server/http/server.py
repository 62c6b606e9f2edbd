"""HTTP server of an embedded cluster."""

import asyncio
import base64
import ipaddress
import json
import os
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocf.cluster.protocol import Cluster
from ocf.errors import ConfigError
from ocf_server.api.users import ADMINISTRATOR_TOKEN
from ocf_server.cluster import EmbeddedCluster
from ocf_server.http.backend import Backend, Wrap
from ocf_server.http.control import Control
from ocf_server.http.tls import ServingTls, TlsFiles

__all__ = ["Control", "HttpServer", "serving", "write_kubeconfig"]

_NAME = "ocf"
# The default of Go's HTTP server: selectors in the query may be long.
_MAX_HEADER_BYTES = 2**20
# Of the files that the process may open: an operator in the same process holds up to three eighths.
_SHARE = 1 / 2


@dataclass(slots=True)
class HttpServer:
    """A running server.

    Args:
        url: Its URL, for example `http://127.0.0.1:41234`.
        cluster: The cluster that it serves.
        _backend: The cluster with its current wrapper.
        authority: The certificate of its authority, as PEM; empty if it serves without TLS.
        _tls: Its TLS configuration; None if it serves without TLS.
    """

    url: str
    cluster: EmbeddedCluster
    _backend: "Backend"
    authority: bytes = b""
    _tls: ServingTls | None = None

    def wrap(self, wrap: "Wrap | None") -> Cluster:
        """Replace the wrapper around the cluster.

        Args:
            wrap: Returns the wrapper for a cluster, for example `lambda cluster: FaultyCluster(cluster, faults)`; None
                removes the wrapper.

        Returns:
            The cluster that requests are sent to from now on.
        """
        return self._backend.wrap(wrap)

    def kubeconfig(self, user: str = "", groups: Sequence[str] = ()) -> dict[str, Any]:
        """Return a kubeconfig for this server.

        Without TLS it has `insecure-skip-tls-verify`: some clients, such as `@kubernetes/client-node`, connect to a URL
        of plain HTTP only then.

        Args:
            user: Name of its user; empty for the administrator. With TLS it has a client certificate of that user;
                without TLS the administrator impersonates the user, because kubectl sends no credentials then.
            groups: Groups of the user.
        """
        context = {"cluster": _NAME, "user": _NAME}
        trust: dict[str, Any] = {"insecure-skip-tls-verify": True}
        if self.authority:
            trust = {"certificate-authority-data": base64.b64encode(self.authority).decode()}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": {"server": self.url, **trust}}],
            # The server asks for no credentials, but kubectl asks its user for some over HTTPS where it finds none.
            "users": [{"name": _NAME, "user": self._credentials(user, groups)}],
            "contexts": [{"name": _NAME, "context": context}],
            "current-context": _NAME,
        }

    def _credentials(self, user: str, groups: Sequence[str]) -> dict[str, Any]:
        if self._tls is None:
            return {"as": user, "as-groups": [*groups]} if user else {}
        if not user:
            return {"token": ADMINISTRATOR_TOKEN}
        certificate, key = map(base64.b64encode, self._tls.client(user, groups))
        return {"client-certificate-data": certificate.decode(), "client-key-data": key.decode()}


@asynccontextmanager
async def serving(
    cluster: EmbeddedCluster,
    *,
    wrap: "Wrap | None" = None,
    host: str = "127.0.0.1",
    port: int = 0,
    control: Control | None = None,
    tls: bool | TlsFiles = False,
) -> AsyncGenerator[HttpServer, None]:
    """Serve a cluster over HTTP while the block runs.

    Args:
        cluster: The cluster.
        wrap: Returns a wrapper for the cluster, for example a `FaultyCluster`; None for no wrapper.
        host: A loopback address; others are rejected, because every client of the server may do everything.
        port: The port; 0 for a free one.
        control: Handles requests beside the Kubernetes API; None if the server has none.
        tls: Serve HTTPS, with a certificate of an authority that is made for this server and stands in the kubeconfig,
            or with the certificate of files.

    Yields:
        The server.

    Raises:
        ConfigError: If the address is not a loopback address or is in use, or if the extra `ocf[testing]` is missing,
            which TLS needs.

    Example:
        >>> async def url() -> str:
        ...     async with serving(EmbeddedCluster()) as server:
        ...         return server.url
        >>> asyncio.run(url()).startswith("http://127.0.0.1:")
        True
    """
    # Imported here, because the import of aiohttp is slow.
    from ocf.http.limits import Limits, connections_within
    from ocf.http.server import serving_app
    from ocf_server.http.app import make_app
    from ocf_server.http.backend import Backend
    from ocf_server.http.request_log import request_logger

    _require_loopback(host)
    issued = None
    if tls:
        issued = ServingTls.load(tls) if isinstance(tls, TlsFiles) else ServingTls.issue(host, "localhost")
    backend = Backend(cluster)
    backend.wrap(wrap)
    stopping = asyncio.Event()
    app = make_app(backend, stopping, control)
    # A client may leave a response unread for as long as it likes, and close its side after a request as `nc -N` does:
    # a real API server waits for the one and answers the other, too.
    most = connections_within(_SHARE)
    limits = Limits(connections=most, reading=None, line_bytes=_MAX_HEADER_BYTES, half_closed=True)
    context = issued.context if issued else None
    served = serving_app(app, limits, name="API server", address=(host, port), tls=context, logger=request_logger())
    async with served as listening:
        name = f"[{host}]" if ":" in host else host
        scheme, authority = ("https", issued.authority) if issued else ("http", b"")
        try:
            yield HttpServer(f"{scheme}://{name}:{listening.port}", cluster, backend, authority, issued)
        finally:
            stopping.set()


def _require_loopback(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigError(f'invalid host "{host}": the server listens only on 127.0.0.1, ::1 or localhost')


def write_kubeconfig(kubeconfig: dict[str, Any], path: Path) -> None:
    """Write a kubeconfig atomically, readable by its owner only.

    Args:
        kubeconfig: The result of `HttpServer.kubeconfig`.
        path: The file; an existing one is replaced.

    Raises:
        ConfigError: If the file cannot be written.
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
        advice = "choose a file in an existing folder that you can write to"
        raise ConfigError(f"kubeconfig {path} cannot be written: {error.strerror or error}; {advice}") from error
