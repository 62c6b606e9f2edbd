"""Models of cert-manager (`cert-manager.io/v1`).

Source: https://cert-manager.io/docs/reference/api-docs/#cert-manager.io/v1.Certificate.
"""

from __future__ import annotations

from pydantic import Field

from ocf.objects.third_party.base import ApiModel, ApiObject, Condition

__all__ = [
    "Certificate",
    "CertificatePrivateKey",
    "CertificateSecretTemplate",
    "CertificateSpec",
    "CertificateStatus",
    "IssuerRef",
]


class IssuerRef(ApiModel):
    """The issuer that signs the certificate; an Issuer of the same namespace unless it names another kind."""

    name: str
    kind: str | None = None
    group: str | None = None


class CertificatePrivateKey(ApiModel):
    """How the private key is generated."""

    algorithm: str | None = None
    encoding: str | None = None
    size: int | None = None
    rotation_policy: str | None = None


class CertificateSecretTemplate(ApiModel):
    """Annotations and labels of the Secret."""

    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class CertificateSpec(ApiModel):
    """Names, issuer and Secret of a certificate."""

    secret_name: str
    issuer_ref: IssuerRef
    secret_template: CertificateSecretTemplate | None = None
    common_name: str | None = None
    dns_names: list[str] | None = None
    ip_addresses: list[str] | None = None
    uris: list[str] | None = None
    email_addresses: list[str] | None = None
    duration: str | None = None
    renew_before: str | None = None
    private_key: CertificatePrivateKey | None = None
    usages: list[str] | None = None
    is_ca: bool | None = Field(default=None, alias="isCA")


class CertificateStatus(ApiModel):
    """The conditions `Ready` and `Issuing`, and the dates of the issued certificate."""

    conditions: list[Condition] | None = None
    revision: int | None = None
    not_after: str | None = None
    renewal_time: str | None = None
    last_failure_time: str | None = None
    failed_issuance_attempts: int | None = None


class Certificate(ApiObject):
    """A certificate that is issued into a Secret and renewed."""

    spec: CertificateSpec
    status: CertificateStatus | None = None
