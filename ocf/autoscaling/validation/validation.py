"""Validation of HPAs as the API server does it, without an API server.

Before the API server validates an HPA, it decodes it, sets defaults, drops fields whose feature gate is off, and copies
system fields from the stored object. The same is done here, in the same order, so that a manifest gets the result that
the API server would return. The error texts are those of Kubernetes 1.36; a few differ in other releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.api.defaulting import default_decoded
from ocf.autoscaling.validation.behavior import behavior_errors
from ocf.autoscaling.validation.metrics import metrics_errors
from ocf.autoscaling.validation.references import UNCHECKED, described_rule, reference_errors, target_rule
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.field_errors import ErrorType, FieldError, invalid, required
from ocf.objects.metadata_validation import creation_errors, standard_finalizer_errors, update_errors
from ocf.objects.name_validation import dns_subdomain, dns_subdomain_prefix, path_segment, path_segment_prefix
from ocf.objects.paths import get_field
from ocf.schema.kubernetes import FeatureGates

__all__ = ["admitted", "validate", "validate_spec", "validate_status"]

_V1_ANNOTATIONS: Final = frozenset(
    f"autoscaling.alpha.kubernetes.io/{name}"
    for name in (
        "metrics",
        "current-metrics",
        "conditions",
        "behavior",
        "scale-down-tolerance",
        "scale-up-tolerance",
    )
)
"""Annotations in which autoscaling/v1 keeps fields of autoscaling/v2; they are not stored."""
_CURRENT: Final = FeatureGates()
_SYSTEM_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_DIRECTIONS: Final = (("spec", "behavior", "scaleUp"), ("spec", "behavior", "scaleDown"))
_EMPTY: Final[tuple[object, ...]] = ("", [], {})


def validate(
    hpa: Manifest | BaseModel,
    old: Manifest | BaseModel | None = None,
    *,
    gates: FeatureGates = _CURRENT,
    any_version: bool = False,
) -> tuple[FieldError, ...]:
    """Return the errors of the API server for an HPA.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        hpa: A manifest of autoscaling/v2, or a model of the client, with or without defaults. The namespace may be
            missing: the API server takes that of the request.
        old: The stored object, for an update; None for a creation. Its `resourceVersion` is not compared: a stale one
            is a conflict, not a validation error.
        gates: The feature gates of the API server; by default those of Kubernetes 1.36.
        any_version: Whether manifests of other versions are converted, as for a request in that version. Those of
            autoscaling/v1 do not get the defaults of autoscaling/v2 before they are validated. Those of
            autoscaling/v2beta1 and v2beta2 have an error of `apiVersion`, before those of the converted object.

    Returns:
        All errors, in the order of the API server and with its repetitions; empty if it would accept the object.

    Raises:
        ManifestError: If it cannot be decoded, because a field is unknown or has a value of a wrong type. The API
            server returns 400 for that instead of 422.

    Example:
        >>> target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        >>> for error in validate({"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "minReplicas": 2}}):
        ...     print(error)
        spec.maxReplicas: Required value: must be set and greater than 0
        spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`
    """
    stored = None if old is None else _stored(old, any_version=any_version)
    decoded = _decoded(hpa, gates, any_version=any_version)
    if not (any_version and _is_v1(hpa)):
        decoded = default_decoded(decoded)
    found = (*_version_errors(hpa), *_errors(_prepare(decoded, stored, gates), stored, gates))
    return tuple(dict.fromkeys(found)) if gates.rules_declared else found


def validate_spec(
    spec: Manifest, old: Manifest | None = None, *, gates: FeatureGates = _CURRENT
) -> tuple[FieldError, ...]:
    """Return the errors of the API server for a spec that is already decoded and defaulted.

    `validate` does all steps; this function is for servers that store objects.

    Args:
        spec: The spec, with defaults.
        old: The stored spec, for an update; None for a creation.
        gates: The feature gates of the API server.

    Returns:
        All errors, as `validate` returns them.

    Example:
        >>> target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        >>> spec = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 2, "metrics": []}
        >>> [error.path for error in validate_spec(spec)]
        ['spec.maxReplicas']
    """
    return tuple(_spec_errors(spec, old, gates))


def validate_status(
    hpa: Manifest | BaseModel, old: Manifest | BaseModel, *, gates: FeatureGates = _CURRENT
) -> tuple[FieldError, ...]:
    """Return the errors of the API server for an update of the status.

    Args:
        hpa: The object with the new status; its `spec` is ignored.
        old: The stored object.
        gates: The rules of the API server; by default those of Kubernetes 1.36.

    Returns:
        All errors, as `validate` returns them.

    Raises:
        ManifestError: If it cannot be decoded.
    """
    stored, decoded = _stored(old, any_version=False), decode(hpa, generation_known=gates.observed_generation)
    # An update is validated by rest.BeforeUpdate, which takes any path segment for a name, and then by the strategy.
    metadata, old_metadata = _with_system_fields(decoded, stored)["metadata"], stored["metadata"]
    status = decoded.get("status", {})
    found = (
        *creation_errors(metadata, path_segment, path_segment_prefix),
        *update_errors(metadata, old_metadata),
        *update_errors(metadata, old_metadata),
        *standard_finalizer_errors(metadata),
        *(
            invalid(f"status.conditions[{index}].observedGeneration", seen, "must be greater than or equal to 0")
            for index, condition in enumerate(status.get("conditions", ()))
            if (seen := condition.get("observedGeneration", 0)) < 0
        ),
        *(
            invalid(f"status.{field}", status[field], "must be greater than or equal to 0")
            for field in ("currentReplicas", "desiredReplicas")
            if status.get(field, 0) < 0
        ),
    )
    return tuple(dict.fromkeys(found)) if gates.rules_declared else found


def admitted(
    hpa: Manifest | BaseModel,
    old: Manifest | BaseModel | None = None,
    *,
    gates: FeatureGates = _CURRENT,
    any_version: bool = False,
) -> Manifest:
    """Return an HPA as the API server would store it, if it accepts it.

    Besides setting defaults, the API server drops nulls, empty optional fields, the status, the annotations of
    autoscaling/v1, and a tolerance if its feature gate is off; it stores quantities in its own notation.

    Args:
        hpa: A manifest of autoscaling/v2, or a model of the client.
        old: The stored object, for an update; None for a creation.
        gates: The feature gates of the API server.
        any_version: Whether manifests of other versions are converted, also of autoscaling/v2beta1 and v2beta2.

    Returns:
        A new manifest of autoscaling/v2, without the fields that the API server generates (uid, creation time,
        resource version).

    Raises:
        ManifestError: If it cannot be decoded.

    Example:
        >>> stored = admitted({"metadata": {"name": "web"}, "spec": {"maxReplicas": 3, "behavior": None}})
        >>> stored["spec"]["minReplicas"], "behavior" in stored["spec"]
        (1, False)
    """
    stored = None if old is None else _stored(old, any_version=any_version)
    decoded = _decoded(hpa, gates, any_version=any_version)
    return _stored_form(_prepare(default_decoded(decoded), stored, gates))


def _decoded(hpa: Manifest | BaseModel, gates: FeatureGates, *, any_version: bool) -> Manifest:
    if any_version and isinstance(hpa, dict):
        from ocf.autoscaling.api.versions import read_hpa

        return read_hpa(hpa, gates=gates)
    return decode(hpa, tolerance_known=gates.tolerance_known, generation_known=gates.observed_generation)


def _version_errors(hpa: Manifest | BaseModel) -> Iterator[FieldError]:
    if isinstance(hpa, dict) and str(hpa.get("apiVersion")).startswith("autoscaling/v2beta"):
        from ocf.autoscaling.api.betas import not_served

        yield invalid("apiVersion", hpa["apiVersion"], not_served(hpa["apiVersion"]))


def _is_v1(hpa: Manifest | BaseModel) -> bool:
    return isinstance(hpa, dict) and hpa.get("apiVersion") == "autoscaling/v1"


def _stored(old: Manifest | BaseModel, *, any_version: bool) -> Manifest:
    # A newer API server may have stored fields that are unknown here.
    of_v2 = not any_version or not isinstance(old, dict) or old.get("apiVersion") in {None, "autoscaling/v2"}
    decoded = decode(old, strict=False) if of_v2 else _decoded(old, _CURRENT, any_version=True)
    return {"metadata": {}, **default_decoded(decoded)}


def _prepare(hpa: Manifest, old: Manifest | None, gates: FeatureGates) -> Manifest:
    """Return a decoded object with the defaults of its version as the API server validates it."""
    hpa = {field: value for field, value in hpa.items() if field != "status"}
    if old is not None and "status" in old:
        hpa["status"] = old["status"]
    hpa = _with_system_fields(hpa, old)
    if old is None and gates.observed_generation:
        # The API server counts the generation itself (HPAGeneration).
        hpa["metadata"].pop("generation", None)
    # A stored tolerance keeps the field usable when the gate is switched off (dropDisabledFields of the strategy).
    if not gates.configurable_tolerance and not _has_tolerance(old):
        for path in _DIRECTIONS:
            get_field(hpa, path, {}).pop("tolerance", None)
    return hpa


def _has_tolerance(hpa: Manifest | None) -> bool:
    return hpa is not None and any("tolerance" in get_field(hpa, path, {}) for path in _DIRECTIONS)


def _with_system_fields(hpa: Manifest, old: Manifest | None) -> Manifest:
    """Return the object with the metadata fields that the API server sets."""
    metadata = dict(hpa.get("metadata", {}))
    if "annotations" in metadata:
        kept = {key: value for key, value in metadata["annotations"].items() if key not in _V1_ANNOTATIONS}
        metadata["annotations"] = kept
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = _unique(metadata["ownerReferences"])
    if old is None:
        metadata = {key: value for key, value in metadata.items() if key not in _SYSTEM_FIELDS}
        return {**hpa, "metadata": metadata}
    before = old["metadata"]
    metadata.pop("generation", None)
    for field in ("generation", "creationTimestamp", "deletionTimestamp"):
        if field in before:
            metadata[field] = before[field]
    for field in ("namespace", "uid", "deletionGracePeriodSeconds"):
        # Unlike the fields above, one that is given is kept, and rejected if it differs.
        if field in before and not metadata.get(field):
            metadata[field] = before[field]
    if "namespace" not in before:
        metadata.pop("namespace", None)
    return {**hpa, "metadata": metadata}


def _unique(owners: list[Manifest]) -> list[Manifest]:
    found: list[Manifest] = []
    for owner in owners:
        if owner not in found:
            found.append(owner)
    return found


def _errors(hpa: Manifest, old: Manifest | None, gates: FeatureGates) -> Iterator[FieldError]:
    metadata = hpa.get("metadata", {})
    if old is None:
        yield from creation_errors(metadata, dns_subdomain, dns_subdomain_prefix)
    else:
        # As in `validate_status`: first rest.BeforeUpdate, then the strategy, each of which compares the metadata.
        yield from creation_errors(metadata, path_segment, path_segment_prefix)
        yield from update_errors(metadata, old["metadata"])
        yield from update_errors(metadata, old["metadata"])
    yield from standard_finalizer_errors(metadata)
    yield from _spec_errors(hpa["spec"], None if old is None else old["spec"], gates)


def _spec_errors(spec: Manifest, old: Manifest | None, gates: FeatureGates) -> Iterator[FieldError]:
    lower, upper = spec["minReplicas"], spec.get("maxReplicas", 0)
    bounds = tuple(_bound_errors(lower, upper, 0 if gates.scale_to_zero or (old or {}).get("minReplicas") == 0 else 1))
    # Rules that the types declare come last, and not for a value that an update keeps.
    declared = [error for error in bounds if gates.rules_declared and _is_changed(error.path, spec, old)]
    yield from (error for error in bounds if error not in declared)
    if upper < lower:
        yield invalid("spec.maxReplicas", upper, "must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef", {})
    of_target, of_described = UNCHECKED, UNCHECKED
    if gates.references_checked:
        of_target = target_rule(target, None if old is None else old.get("scaleTargetRef", {}))
        of_described = described_rule((old or {}).get("metrics", []))
    yield from reference_errors(target, "spec.scaleTargetRef", of_target)
    yield from metrics_errors(spec["metrics"], "spec.metrics", spec["minReplicas"], of_described)
    yield from behavior_errors(spec.get("behavior", {}), "spec.behavior")
    yield from (required(error.path) if error.type is ErrorType.REQUIRED else error for error in declared)


def _is_changed(path: str, spec: Manifest, old: Manifest | None) -> bool:
    name = path.removeprefix("spec.")
    return old is None or spec.get(name) != old.get(name)


def _bound_errors(lower: int, upper: int, least: int) -> Iterator[FieldError]:
    if lower < least:
        yield invalid("spec.minReplicas", lower, f"must be greater than or equal to {least}")
    # Zero is the unset value of a required integer, so it is "required" and not "invalid".
    if upper == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif upper < 0:
        yield invalid("spec.maxReplicas", upper, "must be greater than or equal to 1")


def _stored_form(hpa: Manifest) -> Manifest:
    """Return an HPA without its empty optional fields.

    Args:
        hpa: A valid HPA of autoscaling/v2, decoded and with defaults; it is not changed.

    Returns:
        A new manifest; a selector that is empty stays, because it selects everything.

    Example:
        >>> metadata, target = {"name": "web", "labels": {}}, {"kind": "Deployment", "name": "web", "apiVersion": ""}
        >>> _stored_form({"metadata": metadata, "spec": {"scaleTargetRef": target, "metrics": []}})
        {'metadata': {'name': 'web'}, 'spec': {'scaleTargetRef': {'kind': 'Deployment', 'name': 'web'}, 'metrics': []}}
    """
    spec = dict(hpa["spec"])
    if "scaleTargetRef" in spec:
        spec["scaleTargetRef"] = _reference(spec["scaleTargetRef"])
    spec["metrics"] = [{name: _source(part) for name, part in metric.items()} for metric in spec["metrics"]]
    metadata = {"metadata": _without_empty(hpa["metadata"])} if "metadata" in hpa else {}
    return {**hpa, **metadata, "spec": spec}


def _without_empty(fields: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in fields.items() if value not in _EMPTY}


def _reference(reference: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in reference.items() if name != "apiVersion" or value}


def _source(source: Any) -> Any:
    """Return a source of a metric; its type is a text."""
    if not isinstance(source, Mapping):
        return source
    found = dict(source)
    if "describedObject" in found:
        found["describedObject"] = _reference(found["describedObject"])
    selector = found.get("metric", {}).get("selector")
    if selector is not None:
        found["metric"] = {**found["metric"], "selector": _selector(selector)}
    return found


def _selector(selector: Mapping[str, Any]) -> Manifest:
    found = _without_empty(selector)
    if "matchExpressions" in found:
        found["matchExpressions"] = [
            {"key": "", "operator": "", **_without_empty(each)} for each in found["matchExpressions"]
        ]
    return found
