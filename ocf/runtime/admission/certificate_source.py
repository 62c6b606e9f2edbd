"""`CertificateSource`: where a server's certificate comes from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ocf.runtime.admission.key_pairs import KeyPair

__all__ = ["CertificateSource", "ServingCertificate"]


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """What a server is to show.

    Args:
        pair: The certificate and its key.
        problem: Why API servers may not take it yet; empty if nothing is known against it.
    """

    pair: KeyPair
    problem: str = ""


class CertificateSource(Protocol):
    """Keeps a certificate for a server."""

    @property
    def interval(self) -> timedelta:
        """How often it wants to be asked."""
        ...

    async def refresh(self) -> ServingCertificate:
        """Return what to show from now on.

        Raises:
            OcfError: If there is nothing new to be had; what was shown is shown on.
        """
        ...
