"""Certificates from files that another program renews, such as cert-manager for a mounted Secret."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.runtime.admission.certificate_source import ServingCertificate
from ocf.runtime.admission.key_pairs import KeyPair

__all__ = ["FileCertificates"]

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
