"""Validation of Leases.

Source: `pkg/apis/coordination/validation/validation.go` of Kubernetes. The fields of coordinated leader election, which
is off by default, are not validated.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid
from ocf.objects.metadata_validation import creation_errors, update_errors
from ocf.objects.name_validation import dns_subdomain, dns_subdomain_prefix
from ocf_server.validation.fields import nonnegative
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]


def _lease_errors(lease: Manifest) -> Iterator[FieldError]:
    yield from creation_errors(lease["metadata"], dns_subdomain, dns_subdomain_prefix)
    yield from _spec_errors(lease.get("spec") or {})


def _lease_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from update_errors(new["metadata"], old["metadata"])
    yield from _spec_errors(new.get("spec") or {})


def _spec_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from nonnegative(spec.get("leaseTransitions"), "spec.leaseTransitions")


VALIDATIONS: Final = {"Lease.coordination.k8s.io": Validation(_lease_errors, _lease_update_errors)}
