"""Certificate authority of one control plane, and the certificates it issues.

Keys use P-256, which takes a millisecond to generate; four RSA keys take a second.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError
from ocf_server.http.tls import client_certificate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trustme import LeafCert

__all__ = ["Authority", "CertificateFiles"]

_NAME: Final = "ocf-envtest"
_VALID: Final = timedelta(days=7)  # longer than any run of tests
_SKEW: Final = timedelta(hours=1)
_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Files of a certificate (or a public key) and of the private key that belongs to it."""

    certificate: Path
    key: Path


class Authority:
    """An authority with its files in a folder.

    Args:
        folder: Folder of its certificate and of all issued certificates; must not be readable by other users.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import trustme
        except ImportError as error:
            raise ConfigError(
                "a control plane for tests needs the package trustme: pip install 'ocf[testing]'"
            ) from error
        self._folder = folder
        self._count = itertools.count(1)
        self._ca = trustme.CA(path_length=0, organization_name=_NAME, organization_unit_name=_NAME)
        self.certificate = folder / "ca.crt"
        """The file with the authority's own certificate."""
        _write(self.certificate, self._ca.cert_pem.bytes())

    def server(self, name: str, *hosts: str) -> CertificateFiles:
        """Return a certificate for a server on the loopback address."""
        leaf = self._leaf(name, "localhost", *hosts, _HOST)
        return self._store(name, leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes())

    def client(self, user: str, groups: Sequence[str] = ()) -> CertificateFiles:
        """Return a client certificate that authenticates a user to the API server.

        Args:
            user: Name of the user; the file names contain it, and differ between calls.

        Raises:
            ConfigError: As `client_certificate`.
        """
        leaf = self._leaf("client")
        certificate = client_certificate(self._ca, leaf, user, groups)
        return self._store(re.sub(r"[^\w.-]", "-", user), certificate, leaf.private_key_pem.bytes())

    def signing_keys(self, name: str) -> CertificateFiles:
        """Return a key pair without certificate, which signs the tokens of service accounts."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return CertificateFiles(
            _write(self._folder / f"{name}.pub", public), _write(self._folder / f"{name}.key", private)
        )

    def _leaf(self, name: str, *hosts: str) -> LeafCert:
        now = datetime.now(UTC)
        return self._ca.issue_cert(
            *hosts, common_name=name, organization_name=_NAME, not_before=now - _SKEW, not_after=now + _VALID
        )

    def _store(self, name: str, certificate: bytes, key: bytes) -> CertificateFiles:
        stem = f"{next(self._count):02}-{name}"
        return CertificateFiles(
            _write(self._folder / f"{stem}.crt", certificate), _write(self._folder / f"{stem}.key", key)
        )


def _write(file: Path, content: bytes) -> Path:
    file.touch(mode=0o600)
    file.write_bytes(content)
    return file
