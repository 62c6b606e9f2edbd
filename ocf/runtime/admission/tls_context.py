"""TLS context whose certificate can be replaced while the server listens.

A new pair must not be loaded into a context that is in use: OpenSSL keeps one certificate per key type, so an old one
may stay in use, and a key that does not match leaves the context without any. So every pair gets its own context, and
the listening one switches each connection to the latest.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from ocf.errors import ConfigError
from ocf.runtime.admission.key_pairs import KeyPair

__all__ = ["ReloadableTLSContext"]


class ReloadableTLSContext:
    """TLS context of a server."""

    def __init__(self, pair: KeyPair) -> None:
        self._shown = pair
        self._latest = _loaded(pair)
        self.context = _loaded(pair)
        """The context of the listening socket."""
        self.context.sni_callback = self._use_latest

    def show(self, pair: KeyPair) -> None:
        """Present another pair to new connections.

        Raises:
            ConfigError: If OpenSSL rejects the pair; the previous one stays in use.
        """
        if pair != self._shown:
            self._latest, self._shown = _loaded(pair), pair

    def _use_latest(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        # Also called for clients that send no server name.
        del name, context
        connection.context = self._latest


def _loaded(pair: KeyPair) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_TICKET  # a session ticket is valid only in the context that issued it
    try:
        with _file(pair.chain + b"\n" + pair.key) as name:
            context.load_cert_chain(name)
    except ssl.SSLError as error:
        raise ConfigError(f"the certificate cannot be used: {error.reason}") from None
    return context


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Yield the name of a temporary file with the given content, for OpenSSL; in memory where possible."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:  # readable by this user only
        file.write(content)
        file.flush()
        yield file.name
