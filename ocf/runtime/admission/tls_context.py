"""`ReloadableTLSContext`: a TLS context that shows whatever pair it was told last.

Loading a new pair into a context that is in use would not do: OpenSSL keeps one certificate for each kind of key, so an
old one may be shown on, and a key that does not fit leaves the context without any. So every pair has a context of its
own, and the one that listens hands each connection to the latest.
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
    """What a server listens with.

    Args:
        pair: What is shown first.

    Raises:
        ConfigError: If OpenSSL does not take it.
    """

    def __init__(self, pair: KeyPair) -> None:
        self._shown = pair
        self._latest = _loaded(pair)
        self.context = _loaded(pair)
        """The context to listen with."""
        self.context.sni_callback = self._hand_over

    def show(self, pair: KeyPair) -> None:
        """Show another pair to whoever connects from now on.

        Args:
            pair: The pair.

        Raises:
            ConfigError: If OpenSSL does not take it; then nothing changes.
        """
        if pair != self._shown:
            self._latest, self._shown = _loaded(pair), pair

    def _hand_over(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        # Called for clients that name no host, too.
        del name, context
        connection.context = self._latest


def _loaded(pair: KeyPair) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_TICKET  # tickets of one context mean nothing to the next
    try:
        with _file(pair.chain + b"\n" + pair.key) as name:
            context.load_cert_chain(name)
    except ssl.SSLError as error:
        raise ConfigError(f"the certificate cannot be used: {error.reason}") from None
    return context


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Give the name of a file with some content, which OpenSSL asks for; where possible it is on no disk."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:  # ours alone to read
        file.write(content)
        file.flush()
        yield file.name
