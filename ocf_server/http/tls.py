"""TLS of the HTTP server: a certificate authority that is made for one server, and the certificates it issues."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from ocf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric import ec
    from trustme import CA, LeafCert

__all__ = ["ServingTls", "TlsFiles", "client_certificate"]

_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files of the certificate of a server, as PEM.

    Args:
        client_authority: The certificates of the authorities of clients; None for clients without certificates.
    """

    certificate: Path
    key: Path
    client_authority: Path | None = None


@dataclass(frozen=True, slots=True)
class ServingTls:
    """The TLS configuration of a server.

    Args:
        issuer: The authority that issued its certificate; None if the certificate was given.
    """

    context: ssl.SSLContext
    issuer: CA | None

    @classmethod
    def load(cls, files: TlsFiles) -> ServingTls:
        """Read the certificate of a server.

        Raises:
            ConfigError: If a file cannot be read, or has no certificate or key.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(files.certificate, files.key)
            if files.client_authority is not None:
                context.load_verify_locations(files.client_authority)
                context.verify_mode = ssl.CERT_OPTIONAL
        except OSError as error:
            names = ", ".join(str(path) for path in (files.certificate, files.key, files.client_authority) if path)
            raise ConfigError(f"TLS files {names} cannot be used: {error.strerror or error}") from error
        return cls(context, None)

    @classmethod
    def issue(cls, *hosts: str) -> ServingTls:
        """Make an authority, and a serving certificate for some hosts; both are valid for years and kept in memory.

        Raises:
            ConfigError: If trustme, which issues certificates, is not installed.
        """
        try:
            import trustme
        except ImportError as error:
            raise ConfigError("serving with TLS needs trustme: install it with pip install 'ocf[testing]'") from error
        issuer = trustme.CA(organization_name="ocf")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issuer.issue_cert(*hosts).configure_cert(context)
        # A client may have a certificate of this authority, and needs none.
        issuer.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        return cls(context, issuer)

    @property
    def authority(self) -> bytes:
        """The certificate of the authority, as PEM; empty if it is not known."""
        return self.issuer.cert_pem.bytes() if self.issuer else b""

    def client(self, user: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        """Return a certificate of a user and its private key, as PEM.

        Raises:
            ConfigError: If the authority is not known.
        """
        if self.issuer is None:
            raise ConfigError("certificates of users need the authority of the server, which was given only its own")
        leaf = self.issuer.issue_cert(common_name="client")
        return client_certificate(self.issuer, leaf, user, groups), leaf.private_key_pem.bytes()


def client_certificate(issuer: CA, leaf: LeafCert, user: str, groups: Sequence[str]) -> bytes:
    """Return a certificate, as PEM, that authenticates a user to an API server.

    The API server reads the common name as the user and each organization as a group, but trustme always writes exactly
    one organization. So the certificate is signed again with another subject.

    Args:
        leaf: The certificate that trustme has issued.

    Raises:
        ConfigError: If a name is empty, or longer than X.509 allows.
    """
    for name in (user, *groups):
        if not 0 < len(name) <= _LONGEST:
            raise ConfigError(
                f"user {user!r}: a certificate holds names of 1 to {_LONGEST} characters, got {len(name)}: {name!r}; "
                "act as a user with a longer name with `Cluster.acting_as`"
            )
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    issued = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    parts = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group) for group in groups]
    draft = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([*parts, x509.NameAttribute(x509.NameOID.COMMON_NAME, user)]))
        .issuer_name(issued.issuer)
        .public_key(issued.public_key())
        .serial_number(issued.serial_number)
        .not_valid_before(issued.not_valid_before_utc)
        .not_valid_after(issued.not_valid_after_utc)
    )
    for extension in issued.extensions:
        # A client has no alternative names; Go rejects a critical extension with an empty list.
        if not isinstance(extension.value, x509.SubjectAlternativeName):
            draft = draft.add_extension(extension.value, critical=extension.critical)
    key = serialization.load_pem_private_key(issuer.private_key_pem.bytes(), password=None)
    signed = draft.sign(cast("ec.EllipticCurvePrivateKey", key), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)
