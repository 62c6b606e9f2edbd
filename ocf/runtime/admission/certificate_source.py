"""Source of the webhook server's certificate."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from ocf.errors import ConfigError
from ocf.runtime.admission.key_pairs import KeyPair

__all__ = ["CertificateSource", "FileCertificates", "ServingCertificate"]


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """The certificate that a server is to present.

    Args:
        pair: The certificate and its key.
        problem: Why API servers may reject it for now; empty if there is no known reason.
    """

    pair: KeyPair
    problem: str = ""


class CertificateSource(Protocol):
    """Source of a server's certificate, which may change over time."""

    @property
    def interval(self) -> timedelta:
        """Interval between two calls of `refresh`."""
        ...

    async def refresh(self) -> ServingCertificate:
        """Return the certificate to present from now on.

        Raises:
            OcfError: If it cannot be read or renewed; the server keeps the previous one.
        """
        ...


_INTERVAL: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class FileCertificates:
    """A certificate and its key in two files, which are read periodically.

    Args:
        certificate: The certificate and its issuers, in PEM: `tls.crt`.
        key: The private key, in PEM: `tls.key`.
        interval: Interval between two reads.
    """

    certificate: Path
    key: Path
    interval: timedelta = _INTERVAL

    async def refresh(self) -> ServingCertificate:
        """Read the files.

        Raises:
            ConfigError: If they cannot be read, or the key does not match the certificate.
        """
        return ServingCertificate(await asyncio.to_thread(self._read))

    def _read(self) -> KeyPair:
        try:
            return KeyPair.read(self.certificate.read_bytes(), self.key.read_bytes())
        except (OSError, ConfigError) as error:
            problem = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"{self.certificate} and {self.key}: {problem}") from error
