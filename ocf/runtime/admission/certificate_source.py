"""Source of the webhook server's certificate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ocf.runtime.admission.key_pairs import KeyPair

__all__ = ["CertificateSource", "ServingCertificate"]


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
