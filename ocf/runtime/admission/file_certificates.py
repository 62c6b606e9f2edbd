"""Certificates from files that somebody else renews, as cert-manager does those of a mounted Secret."""

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
    """A pair in two files, which are read again and again.

    Args:
        certificate: The certificate and its issuers, in PEM: `tls.crt`.
        key: The private key, in PEM: `tls.key`.
        interval: How often they are read.
    """

    certificate: Path
    key: Path
    interval: timedelta = _INTERVAL

    async def refresh(self) -> ServingCertificate:
        """Read the files.

        Raises:
            ConfigError: If they cannot be read, or do not belong together.
        """
        return ServingCertificate(await asyncio.to_thread(self._read))

    def _read(self) -> KeyPair:
        try:
            return KeyPair.read(self.certificate.read_bytes(), self.key.read_bytes())
        except (OSError, ConfigError) as error:
            problem = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"{self.certificate} and {self.key}: {problem}") from error
