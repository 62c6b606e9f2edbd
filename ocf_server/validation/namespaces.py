"""Validation of Namespaces.

Source: `ValidateNamespace` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator
from typing import Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid
from ocf.objects.name_validation import dns_label, dns_label_prefix, qualified_name
from ocf_server.validation.fields import each_problem
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_STANDARD: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


def _namespace_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"], dns_label, dns_label_prefix)
    for finalizer in (manifest.get("spec") or {}).get("finalizers") or ():
        yield from each_problem(qualified_name, finalizer, "spec.finalizers")
        if "/" not in finalizer and finalizer not in _STANDARD:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid("spec.finalizers", finalizer, detail)


def _namespace_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from _namespace_errors(new)
    yield from metadata_update_errors(new["metadata"], old["metadata"])


def _namespace_status_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    return metadata_update_errors(new["metadata"], old["metadata"])


VALIDATIONS: Final = {
    "Namespace": Validation(_namespace_errors, _namespace_update_errors, {Subresource.STATUS: _namespace_status_errors})
}
