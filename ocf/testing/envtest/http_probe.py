"""`HttpProbe`: blocking HTTPS requests to a server of the control plane, with a client certificate.

For code outside of event loops, such as readiness checks and the creation of namespaces.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ocf.testing.envtest.certificates import CertificateFiles

__all__ = ["HttpProbe"]

_READY_TIMEOUT: Final = 1.0  # seconds; a slower server is not ready, or is another program on the same port
_TIMEOUT: Final = 30.0  # seconds for other requests
_OK: Final = 200


class HttpProbe:
    """A client of one server on loopback."""

    def __init__(self, port: int, authority: Path, client: CertificateFiles) -> None:
        self.port = port
        self._context = ssl.create_default_context(cafile=authority)
        self._context.load_cert_chain(client.certificate, client.key)
        self._threads = threading.local()

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Let the requests of this thread share one connection: a handshake costs more than a request does."""
        self._threads.kept = kept = self._connect(_TIMEOUT)
        try:
            yield
        finally:
            del self._threads.kept
            kept.close()

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Send one request.

        Returns:
            The status code and the JSON object of the response; empty if the response is not a JSON object.
        """
        code, text = self._send(method, path, body, _TIMEOUT)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        return code, answer if isinstance(answer, dict) else {}

    def is_open(self, path: str) -> bool:
        """Return whether the server responds with 200 to a readiness path."""
        try:
            return self._send("GET", path, None, _READY_TIMEOUT)[0] == _OK
        except (OSError, http.client.HTTPException):
            return False

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> tuple[int, bytes]:
        kept: http.client.HTTPSConnection | None = getattr(self._threads, "kept", None)
        connection = kept or self._connect(seconds)
        answered = False
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            response = connection.getresponse()
            code, text = response.status, response.read()
            answered = True
        finally:
            # One without an answer can only be opened again, which its next request does.
            if kept is None or not answered:
                connection.close()
        return code, text

    def _connect(self, seconds: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=seconds, context=self._context)
