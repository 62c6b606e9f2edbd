"""TLS contexts that follow rotated files.

The files are read again each minute. A changed certificate gets a new context; connections with the old one finish
their request and are not used for another, because the pool keeps connections by context. A file that cannot be used,
such as a certificate whose key is not written yet, leaves the context as it is until the next minute.
"""

import logging
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ocf.cluster.client.rest_config import TlsConfig
from ocf.errors import ConfigError

__all__ = ["ClientKeyPair", "TlsContexts"]

_PERIOD: Final = 60.0
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientKeyPair:
    """A client certificate with its private key, PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Material:
    """What a context is made of."""

    authorities: str
    pair: ClientKeyPair | None


class TlsContexts:
    """The TLS context of new requests.

    Args:
        now: The time in seconds.
    """

    def __init__(self, config: TlsConfig, now: Callable[[], float]) -> None:
        self._config = config
        self._now = now
        self._files = self._material = self._read()
        self._context = _build(config, self._material)
        self._read_at = now()

    def current(self, pair: ClientKeyPair | None = None) -> ssl.SSLContext:
        """Return the context; the same object as long as no certificate has changed.

        Args:
            pair: Client certificate of a credential plugin; None takes the one of the settings.
        """
        if not 0 <= self._now() - self._read_at < _PERIOD:
            self._read_again()
        material = self._files if pair is None else replace(self._files, pair=pair)
        if material != self._material:
            self._context = _build(self._config, material)
            self._material = material
        return self._context

    def _read_again(self) -> None:
        """Read the files; keep what they contained before if they cannot be used."""
        self._read_at = self._now()
        try:
            files = self._read()
            if files != self._files:
                _build(self._config, files)
        except ConfigError as error:
            _log.warning("the certificates of the API client are not renewed: %s", error)
        else:
            self._files = files

    def _read(self) -> _Material:
        config = self._config
        authorities = _content(config.ca_data, config.ca_file)
        if not config.has_certificate:
            return _Material(_decode(authorities), None)
        certificate = _content(config.cert_data, config.cert_file)
        return _Material(_decode(authorities), ClientKeyPair(certificate, _content(config.key_data, config.key_file)))


def _content(data: bytes, file: str) -> bytes:
    if data or not file:
        return data
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error


def _decode(pem: bytes) -> str:
    # Text before and after a certificate may have any encoding.
    return pem.decode("ascii", "replace")


def _build(config: TlsConfig, material: _Material) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=material.authorities or None)
    except ssl.SSLError as error:
        raise ConfigError(f"{config.ca_file or 'certificate-authority-data'}: not a PEM certificate") from error
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if material.pair is not None:
        _load_pair(context, material.pair, config.cert_file or "the client certificate")
    return context


def _load_pair(context: ssl.SSLContext, pair: ClientKeyPair, name: str) -> None:
    """Load a client certificate; the library reads it from files only."""
    try:
        with tempfile.TemporaryDirectory(prefix="ocf-") as folder:  # only this user can enter it
            certificate, key = Path(folder, "certificate"), Path(folder, "key")
            certificate.write_bytes(pair.certificate)
            key.write_bytes(pair.key)
            context.load_cert_chain(certificate, key, password="")  # otherwise it asks the terminal
    except ssl.SSLError as error:
        reason = error.reason or type(error).__name__
        raise ConfigError(f"{name} and its key cannot be used: {reason}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} and its key cannot be used: {type(error).__name__}") from error
