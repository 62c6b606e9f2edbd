"""The Certificate of cert-manager (`cert-manager.io/v1`): operational, graceful, not affected by suspension.

It is operational while its Secret has a valid certificate for its spec, and failing if there is none and an attempt to
issue one has failed. Suspending does not change it: the certificate is renewed, and nothing waits for one on resuming.

The models for its baseline and its editors are in `ocf.objects.third_party.cert_manager`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus, StatusReport
from ocf.editors import CertificateSpecEditor, ObjectMetaEditor
from ocf.objects.third_party.lazy import Certificate
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource
from ocf.primitives.status import ConditionStatus, IntegrationStatus, always_suspended, condition_of

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


# Default status handlers of a Certificate, based on its condition `Ready`.
#
# `Ready` is True while the Secret has a certificate for the current spec that has not expired. Failed attempts to issue
# one are counted, and the count is removed by the next success.
#
# Source: https://cert-manager.io/docs/reference/api-docs/#cert-manager.io/v1.CertificateStatus.

_READY: Final = ConditionStatus()


def _observed(live: Certificate) -> StatusReport[OperationalStatus]:
    report = _READY.observe(live)
    attempts = (live.status.failed_issuance_attempts if live.status else None) or 0
    if report.status is OperationalStatus.OPERATIONAL or not attempts:
        return report
    issuing = condition_of(live, "Issuing")
    reason = issuing.message if issuing and issuing.message else report.reason
    return StatusReport(OperationalStatus.FAILING, f"Certificate could not be issued ({attempts} failed): {reason}")


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` while `Ready` is True for the current generation, `OperationFailing` if it is not and
an attempt to issue the certificate has failed, else `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` while `Ready` is True, `Down` if it is not and an attempt has failed, else `Degraded`."""

default_suspension_status_handler: Final = always_suspended("Certificate unaffected by suspension")
"""Suspension handler: always `Suspended`."""


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

    kind = Kind("cert-manager.io/v1", "Certificate", "ocf.objects.third_party.cert_manager:Certificate", Mutator)
    handlers = Handlers(
        status=default_operational_status_handler,
        grace=default_grace_status_handler,
        suspension=default_suspension_status_handler,
    )
