"""The Certificate of cert-manager (`cert-manager.io/v1`): operational, graceful, not affected by suspension.

It is operational while its Secret has a valid certificate for its spec, and failing if there is none and an attempt to
issue one has failed. Suspending does not change it: the certificate is renewed, and nothing waits for one on resuming.

The models for its baseline and its editors are in `ocf.objects.third_party.cert_manager`.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus
from ocf.editors import CertificateSpecEditor, ObjectMetaEditor
from ocf.objects import Manifest
from ocf.objects.third_party.lazy import Certificate
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.certificate.status import (
    default_grace_status_handler,
    default_operational_status_handler,
    default_suspension_status_handler,
)
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]


class Mutator(BaseMutator):
    """Records edits of a Certificate: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_certificate_spec = Edits(CertificateSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Certificate."""

Resource: TypeAlias = IntegrationResource["Certificate", Mutator]
"""A Certificate as a resource of a component."""

_KIND: Kind[Certificate, Mutator] = Kind(
    "cert-manager.io/v1", "Certificate", "ocf.objects.third_party.cert_manager:Certificate", Mutator
)
_HANDLERS: Handlers[Certificate, Mutator, OperationalStatus] = Handlers(
    status=default_operational_status_handler,
    grace=default_grace_status_handler,
    suspension=default_suspension_status_handler,
)


class Builder(IntegrationBuilder[Certificate, Mutator]):
    """Builds a Certificate.

    Args:
        base: The desired baseline: a `Certificate`, a manifest, or a YAML text with one document.

    Example:
        >>> spec = {"secretName": "web-tls", "issuerRef": {"name": "internal"}, "dnsNames": ["web.shop.svc"]}
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": metadata, "spec": spec}
        >>> public = Mutation(
        ...     "public", lambda m: m.edit_certificate_spec(lambda spec: spec.ensure_dns_name("a.example.com"))
        ... )
        >>> Builder(base).with_mutation(public).build().render()["spec"]["dnsNames"]
        ['web.shop.svc', 'a.example.com']
    """

    def __init__(self, base: Certificate | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)
