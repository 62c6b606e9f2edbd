"""Validation of the specs of claims to persistent volumes: of a claim itself, and of templates in other kinds.

Source: `ValidatePersistentVolumeClaimSpec` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.objects.field_errors import FieldError, forbidden, invalid, required
from ocf.objects.metadata_validation import annotation_errors, label_errors
from ocf.objects.name_validation import dns_label, dns_subdomain
from ocf.objects.quantity import Quantity
from ocf_server.validation.fields import each_problem, enumeration, label_selector
from ocf_server.validation.resources import quantity_errors

__all__ = ["claim_spec_errors", "claim_template_errors"]

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_ONE_POD: Final = "ReadWriteOncePod"
_CLAIM: Final = "PersistentVolumeClaim"
_TEMPLATE_METADATA: Final = frozenset({"annotations", "labels"})


def claim_template_errors(template: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors of a claim template, of whose metadata only labels and annotations may be set.

    Args:
        template: The template, with `metadata` and `spec`.

    Yields:
        The errors, in the order of the API server.
    """
    metadata = template.get("metadata") or {}
    yield from annotation_errors(metadata.get("annotations") or {}, f"{path}.metadata.annotations")
    yield from label_errors(metadata.get("labels") or {}, f"{path}.metadata.labels")
    for name, value in metadata.items():
        if name not in _TEMPLATE_METADATA and value:
            yield forbidden(f"{path}.metadata.{name}", "cannot be set")
    yield from claim_spec_errors(template["spec"], f"{path}.spec")


def claim_spec_errors(spec: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors of the spec of a claim.

    Args:
        path: Its field, `spec`.

    Yields:
        The errors, in the order of the API server.
    """
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    if "selector" in spec:
        yield from label_selector(spec["selector"], f"{path}.selector")
    for mode in modes:
        yield from enumeration(mode, _ACCESS_MODES, f"{path}.accessModes")
    if _ONE_POD in modes and any(mode in _ACCESS_MODES and mode != _ONE_POD for mode in modes):
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    yield from _storage_errors(spec.get("resources") or {}, f"{path}.resources[storage]")
    if spec.get("storageClassName"):
        yield from each_problem(dns_subdomain, spec["storageClassName"], f"{path}.storageClassName")
    yield from enumeration(spec.get("volumeMode"), _VOLUME_MODES, f"{path}.volumeMode")
    yield from _source_errors(spec, path)
    if spec.get("volumeAttributesClassName"):
        yield from each_problem(dns_subdomain, spec["volumeAttributesClassName"], f"{path}.volumeAttributesClassName")


def _storage_errors(resources: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    value = (resources.get("requests") or {}).get("storage")
    if value is None:
        yield required(path)
    elif Quantity.parse(value).nano <= 0:
        yield invalid(path, str(Quantity.parse(value)), "must be greater than zero")
    else:
        yield from quantity_errors("storage", value, path)


def _source_errors(spec: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for name, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is not None:
            yield from _typed_reference_errors(value, f"{path}.{name}")
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        # The API server prints the path struct of the field, whose members are private.
        yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield invalid(path, {}, "must match dataSourceRef")


def _typed_reference_errors(reference: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name in ("name", "kind"):
        if not reference.get(name):
            yield required(f"{path}.{name}")
    group = reference.get("apiGroup") or ""
    if not group and reference.get("kind") != _CLAIM:
        detail = f"must be '{_CLAIM}' when referencing the default apiGroup"
        yield invalid(path, reference.get("kind", ""), detail)
    if group:
        yield from each_problem(dns_subdomain, group, f"{path}.apiGroup")
    if reference.get("namespace"):
        yield from each_problem(dns_label, reference["namespace"], f"{path}.namespace")
