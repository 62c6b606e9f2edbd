"""`HttpProbe`: a few blocking requests to a server of ours, with its own authority and our certificate.

For what happens outside of any event loop: asking whether a server is ready, and making a namespace.
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ocf.testing.envtest.certificates import CertificateFiles

__all__ = ["HttpProbe"]

_GLANCE: Final = 1.0  # seconds; whoever needs longer is not ready, or is somebody else who has the port
_PATIENCE: Final = 30.0  # seconds for a request that shall be answered
_OK: Final = 200


class HttpProbe:
    """Where a server listens on loopback, and how to get in.

    Args:
        port: Of the server.
        authority: The file with the certificate of the server's authority.
        client: Our certificate.
    """

    def __init__(self, port: int, authority: Path, client: CertificateFiles) -> None:
        self.port = port
        self._context = ssl.create_default_context(cafile=authority)
        self._context.load_cert_chain(client.certificate, client.key)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Send one request.

        Args:
            method: Of HTTP.
            path: On the server.
            body: Sent as JSON.

        Returns:
            The status code and the object of the answer, empty if that is none.

        Raises:
            OSError: If nobody listens, or it is not our server.
            http.client.HTTPException: If the answer is none of HTTP.
        """
        code, text = self._send(method, path, body, _PATIENCE)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {}
        return code, answer if isinstance(answer, dict) else {}

    def is_open(self, path: str) -> bool:
        """Tell whether the server says by this path that it is ready."""
        try:
            return self._send("GET", path, None, _GLANCE)[0] == _OK
        except (OSError, http.client.HTTPException):
            return False

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=seconds, context=self._context)
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
