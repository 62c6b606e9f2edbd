"""Validation rules of a Scale, the object of the subresource `scale`."""

from __future__ import annotations

from typing import Final

from ocf.autoscaling.api.decoders import METADATA, integer, read_object, struct, text
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid
from ocf.objects.metadata_validation import creation_errors, standard_finalizer_errors
from ocf.objects.name_validation import dns_subdomain, dns_subdomain_prefix
from ocf.schema.kubernetes import FeatureGates

__all__ = ["validate_scale"]

_CURRENT: Final = FeatureGates()

_SCALE: Final = struct(
    apiVersion=text,
    kind=text,
    metadata=METADATA,
    spec=struct(replicas=integer("int32")),
    status=struct(replicas=integer("int32"), selector=text),
)


def validate_scale(scale: Manifest | BaseModel, *, gates: FeatureGates = _CURRENT) -> tuple[FieldError, ...]:
    """Return the errors of the API server for a write to the subresource `scale`.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/autoscaling-resources/scale-v1/.

    Args:
        scale: A manifest of autoscaling/v1 Scale, or a model of the client.
        gates: The rules of the API server; by default those of Kubernetes 1.36. Since 1.37, the metadata is not
            validated.

    Returns:
        All errors, in the order of the API server; empty if it would accept the object.

    Raises:
        ManifestError: If it cannot be decoded.

    Example:
        >>> [str(error) for error in validate_scale({"metadata": {"name": "web"}, "spec": {"replicas": -1}})]
        ['spec.replicas: Invalid value: -1: must be greater than or equal to 0']
    """
    decoded = read_object(scale, _SCALE, "autoscaling/v1", "Scale")
    metadata = decoded.get("metadata", {})
    replicas = decoded.get("spec", {}).get("replicas", 0)
    found: list[FieldError] = []
    if not gates.scale_metadata_ignored:
        found += creation_errors(metadata, dns_subdomain, dns_subdomain_prefix)
        found += standard_finalizer_errors(metadata)
    if replicas < 0:
        found.append(invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
    return tuple(found)
