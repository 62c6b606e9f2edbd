"""Serving certificates and their keys, read from PEM or issued.

Each pair issued here has its own CA, whose key signs that one certificate and is then discarded. So no stored key can
sign another certificate, and every renewal also changes the CA: there is only one way to renew.

Keys use P-256, like those of Kubernetes' own tools.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["KeyPair", "authorities", "expiry_of", "issue"]

_MISSING: Final = "certificates need the package cryptography: pip install 'ocf[admission]'"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A serving certificate and its key.

    Args:
        chain: The certificate and those of its issuers in PEM, up to the CA if that is known.
        key: The private key in PEM.
        not_before: Start of the validity.
        not_after: End of the validity.
        hosts: The DNS names and IP addresses of the certificate, sorted.
        authority: The last certificate of the chain, the CA, in PEM.
    """

    chain: bytes
    key: bytes = field(repr=False)
    not_before: datetime
    not_after: datetime
    hosts: tuple[str, ...]
    authority: bytes

    @classmethod
    def read(cls, chain: bytes, key: bytes) -> KeyPair:
        """Read a pair.

        Args:
            chain: The certificates in PEM, the serving one first.
            key: The private key in PEM.

        Raises:
            ConfigError: If they cannot be read, or the key does not match the certificate.
        """
        _require_cryptography()
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            certificates = x509.load_pem_x509_certificates(chain)
            public = load_pem_private_key(key, None).public_key()
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ConfigError(f"certificate or key cannot be read ({type(error).__name__})") from None
        leaf = certificates[0]
        if leaf.public_key() != public:
            raise ConfigError("the key does not match the certificate")
        window = leaf.not_valid_before_utc, leaf.not_valid_after_utc
        return cls(chain, key, *window, _hosts(leaf), _pem(certificates[-1]))

    def is_usable(self, now: datetime) -> bool:
        """Return whether the certificate is valid at a time."""
        return self.not_before <= now < self.not_after

    def has_expired(self, now: datetime) -> bool:
        """Return whether the certificate has expired at a time."""
        return now >= self.not_after

    def is_signed_by_its_authority(self) -> bool:
        """Return whether the chain verifies: each certificate is issued by the next, and the last by itself."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature

        certificates = x509.load_pem_x509_certificates(self.chain)
        try:
            for one, issuer in zip(certificates, [*certificates[1:], certificates[-1]], strict=True):
                one.verify_directly_issued_by(issuer)
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True


def issue(hosts: Sequence[str], now: datetime, lifetime: timedelta) -> KeyPair:
    """Issue a certificate from a new CA, whose key is discarded.

    Args:
        lifetime: How long it is valid from now on, and also how long before now, so that clocks that differ by less or
            are set back do not matter.

    Example:
        >>> from datetime import UTC
        >>> pair = issue(["web.shop.svc"], datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=90))
        >>> pair.not_after.isoformat(), pair.hosts
        ('2026-04-01T00:00:00+00:00', ('web.shop.svc',))
    """
    _require_cryptography()
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    window = now - lifetime, now + lifetime
    serial = x509.random_serial_number()
    # One bundle contains CAs of several generations, so they need different names.
    name = _name(f"ocf webhooks authority {serial:x}"[:64])
    authority = (
        _draft(name, name, authority_key.public_key(), authority_key.public_key(), window)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    leaf = (
        _draft(_name("ocf webhooks"), name, key.public_key(), authority_key.public_key(), window)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair.read(_pem(leaf) + _pem(authority), private)


def authorities(bundle: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a bundle, each in PEM, without duplicates; none if it cannot be read."""
    _require_cryptography()
    from cryptography import x509

    try:
        return tuple(dict.fromkeys(map(_pem, x509.load_pem_x509_certificates(bundle))))
    except ValueError:
        return ()


def expiry_of(certificate: bytes) -> datetime:
    """Return the end of the validity of a certificate in PEM."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise ConfigError(_MISSING) from error


def _draft(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    window: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    """Return a builder with the fields of both certificates; Python 3.13 rejects them without key identifiers."""
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(window[0])
        .not_valid_after(window[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    others = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **others)


def _name(text: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _general(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509

    try:
        found: Iterable[x509.GeneralName] = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return tuple(sorted(str(name.value) for name in found))


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)
