"""A certificate authority that lives as long as one control plane, and the certificates it hands out.

Keys are on P-256: made in a millisecond, where RSA takes a second for the four that are needed.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["Authority", "KeyPair"]

_VALID: Final = timedelta(days=7)  # longer than any run of tests
_SKEW: Final = timedelta(hours=1)
_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files of a certificate (or a public key) and of the private key that belongs to it."""

    certificate: Path
    key: Path


class Authority:
    """An authority with its files in a folder.

    Args:
        folder: Where its certificate and everything that it signs is written; not readable by others, please.

    Raises:
        ConfigError: If the package `cryptography` is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError as error:
            raise ConfigError(
                "a control plane for tests needs the package cryptography: pip install 'ocf[testing]'"
            ) from error
        self._folder = folder
        self._count = itertools.count(1)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("ocf-envtest", ())
        self.certificate = folder / "ca.crt"
        """The file with the authority's own certificate."""
        _write(self.certificate, _certificate_pem(self._self_signed()))

    def server(self, name: str, *hosts: str) -> KeyPair:
        """Return a certificate for a server on the loopback address.

        Args:
            name: What its files are called.
            *hosts: Other names under which it is asked for.
        """
        from cryptography import x509

        names = [*map(x509.DNSName, ("localhost", *hosts)), x509.IPAddress(ipaddress.ip_address(_HOST))]
        return self._issue(name, _name(name, ()), server=True, extension=x509.SubjectAlternativeName(names))

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """Return a certificate by which an API server knows a user.

        Args:
            user: Name of the user; the files are called after it, and differ from call to call.
            groups: The groups the user is in.

        Returns:
            The files.
        """
        return self._issue(_file(user), _name(user, groups), server=False)

    def signing_keys(self, name: str) -> KeyPair:
        """Return a pair of plain keys, for tokens of service accounts.

        Args:
            name: What its files are called.
        """
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return self._store(f"{name}.pub", public, f"{name}.key", key)

    def _issue(
        self, file: str, subject: x509.Name, *, server: bool, extension: x509.ExtensionType | None = None
    ) -> KeyPair:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.oid.ExtendedKeyUsageOID.SERVER_AUTH if server else x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH
        draft = (
            self._draft(subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if extension is not None:
            draft = draft.add_extension(extension, critical=False)
        stem = f"{next(self._count):02}-{file}"
        return self._store(f"{stem}.crt", _certificate_pem(draft.sign(self._key, hashes.SHA256())), f"{stem}.key", key)

    def _self_signed(self) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        return (
            self._draft(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _draft(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        """Return what all certificates of ours have; newer Pythons refuse them without key identifiers."""
        from cryptography import x509

        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + _VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _store(self, certificate: str, pem: bytes, key_file: str, key: ec.EllipticCurvePrivateKey) -> KeyPair:
        from cryptography.hazmat.primitives import serialization

        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return KeyPair(_write(self._folder / certificate, pem), _write(self._folder / key_file, private))


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    """Return a name as an API server reads it: the common name is the user, organizations are its groups."""
    from cryptography import x509

    parts = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(x509.NameOID.COMMON_NAME, user)])


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def _file(user: str) -> str:
    """Return a user's name without what file names should not have."""
    return re.sub(r"[^\w.-]", "-", user)


def _write(file: Path, content: bytes) -> Path:
    file.touch(mode=0o600)
    file.write_bytes(content)
    return file
