"""Editor of the spec of a Certificate of cert-manager."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.model_values import own, own_or_none, require
from ocf.objects.third_party.lazy import CertificatePrivateKey, CertificateSpec, IssuerRef

__all__ = ["CertificateSpecEditor"]

_DNS_NAMES: Final[KeyedList[CertificateSpec, str]] = KeyedList("dns_names", key=lambda name: name)
_USAGES: Final[KeyedList[CertificateSpec, str]] = KeyedList("usages", key=lambda usage: usage)


class CertificateSpecEditor(Editor[CertificateSpec]):
    """Edits the spec of a Certificate.

    Source: https://cert-manager.io/docs/reference/api-docs/#cert-manager.io/v1.CertificateSpec.

    Args:
        raw: The live spec.

    Example:
        >>> from ocf.objects.third_party.cert_manager import CertificateSpec, IssuerRef
        >>> spec = CertificateSpecEditor(CertificateSpec(secret_name="tls", issuer_ref=IssuerRef(name="internal")))
        >>> spec.ensure_dns_name("web", "web.shop.svc", "web")
        >>> spec.raw.dns_names
        ['web', 'web.shop.svc']
    """

    __slots__ = ()

    def set_secret_name(self, name: str) -> None:
        """Set the Secret that the certificate is stored in.

        Args:
            name: Name of the Secret.
        """
        self._raw.secret_name = name

    def set_issuer_ref(self, issuer: IssuerRef) -> None:
        """Set the issuer.

        Args:
            issuer: Replaces the whole reference; a copy is stored.

        Raises:
            ConfigError: If the argument is not a reference to an issuer.
        """
        self._raw.issuer_ref = own(self._raw, "issuer_ref", issuer)

    def ensure_dns_name(self, *names: str) -> None:
        """Append DNS names that are missing.

        Args:
            names: DNS names.

        Raises:
            ConfigError: If a name is not a string; then none of them is stored.
        """
        _DNS_NAMES.ensure(self._raw, *names)

    def remove_dns_name(self, *names: str) -> None:
        """Remove DNS names.

        Args:
            names: DNS names.

        Raises:
            ConfigError: If a name is not a string.
        """
        _DNS_NAMES.remove(self._raw, *(require("dnsNames", name, str) for name in names))

    def ensure_usage(self, *usages: str) -> None:
        """Append usages that are missing.

        Args:
            usages: Usages, `server auth`.

        Raises:
            ConfigError: If a usage is not a string; then none of them is stored.
        """
        _USAGES.ensure(self._raw, *usages)

    def remove_usage(self, *usages: str) -> None:
        """Remove usages.

        Args:
            usages: Usages.

        Raises:
            ConfigError: If a usage is not a string.
        """
        _USAGES.remove(self._raw, *(require("usages", usage, str) for usage in usages))

    def set_common_name(self, name: str | None) -> None:
        """Set the common name.

        Args:
            name: At most 64 characters. None unsets the field.
        """
        self._raw.common_name = name

    def set_duration(self, duration: str | None) -> None:
        """Set how long a certificate is requested to be valid.

        Args:
            duration: A Go duration, `2160h`. None unsets the field; cert-manager then requests 90 days.
        """
        self._raw.duration = duration

    def set_renew_before(self, duration: str | None) -> None:
        """Set how long before its end a certificate is renewed.

        Args:
            duration: A Go duration, `360h`. None unsets the field; cert-manager then renews after two thirds.
        """
        self._raw.renew_before = duration

    def set_private_key(self, key: CertificatePrivateKey | None) -> None:
        """Set how the private key is generated.

        Args:
            key: Replaces all settings; a copy is stored. None unsets the field.

        Raises:
            ConfigError: If the argument is not the settings of a private key.
        """
        self._raw.private_key = own_or_none(self._raw, "private_key", key)
