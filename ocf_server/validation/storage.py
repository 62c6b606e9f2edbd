"""Validation of PersistentVolumeClaims and StorageClasses.

Source: `ValidatePersistentVolumeClaim` in `pkg/apis/core/validation/validation.go` and
`pkg/apis/storage/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, required, too_long
from ocf.objects.name_validation import qualified_name
from ocf.objects.quantity import Quantity
from ocf_server.validation.claims import claim_spec_errors
from ocf_server.validation.fields import each_problem, enumeration, immutable
from ocf_server.validation.go_structs import go_diff, go_struct
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_SPEC: Final = "PersistentVolumeClaimSpec"
_RECLAIM: Final = ("Delete", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
# maxProvisionerParameterLen and maxProvisionerParameterSize.
_MOST_PARAMETERS: Final = 512
_PARAMETER_BYTES: Final = 256 * 1024
_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim_errors(claim: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(claim["metadata"])
    yield from claim_spec_errors(claim["spec"], "spec")


def _claim_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from _claim_errors(new)
    yield from _annotation_errors(new, old)
    before, after = _accepted(new, old)
    if go_struct(_SPEC, before) != go_struct(_SPEC, after):
        yield forbidden("spec", f"{_FIXED}\n{go_diff(_SPEC, before, after)}")
    yield from _shrink_errors(new, old)
    yield from immutable(new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")
    yield from _attributes_errors(new, old)


def _annotation_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    value, known = (
        (manifest["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION, "") for manifest in (new, old)
    )
    moved = known and old["spec"].get("storageClassName") is None and new["spec"].get("storageClassName") == known
    if value != known and not (moved and not value):
        yield invalid(f"metadata.annotations.{_CLASS_ANNOTATION}", value, "field is immutable")


def _accepted(new: Manifest, old: Manifest) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the old and the new spec, equal in the fields that may change or are set once."""
    before, after = dict(old["spec"]), dict(new["spec"])
    known = (old["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    if not before.get("volumeName"):
        before["volumeName"] = after.get("volumeName", "")
    if before.get("storageClassName") is None and known in (None, after.get("storageClassName")):
        after["storageClassName"] = None
    if (new.get("status") or {}).get("phase") == "Bound":
        resources = after.get("resources") or {}
        if resources.get("requests") is not None:
            after["resources"] = {**resources, "requests": {**resources["requests"], "storage": _amount(old["spec"])}}
        after["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    return before, after


def _amount(spec: Mapping[str, Any]) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _shrink_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    size, before = (Quantity.parse(_amount(manifest["spec"])) for manifest in (new, old))
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if size < before and size <= Quantity.parse(capacity):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _attributes_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    value, before = (manifest["spec"].get("volumeAttributesClassName") for manifest in (new, old))
    if value == before or value or (old.get("status") or {}).get("currentVolumeAttributesClassName") is None:
        return
    what = "nil" if value is None else "empty string"
    detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    yield forbidden("spec.volumeAttributesClassName", detail)


def _claim_status_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    return metadata_update_errors(new["metadata"], old["metadata"])


def _class_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    provisioner = manifest.get("provisioner", "")
    if provisioner:
        yield from each_problem(qualified_name, provisioner.lower(), "provisioner")
    else:
        yield required("provisioner")
    yield from _parameter_errors(manifest.get("parameters") or {})
    yield from enumeration(manifest.get("reclaimPolicy") or None, _RECLAIM, "reclaimPolicy")
    yield from enumeration(manifest.get("volumeBindingMode"), _BINDING, "volumeBindingMode")
    yield from _topology_errors(manifest.get("allowedTopologies") or ())


def _parameter_errors(parameters: Mapping[str, str]) -> Iterator[FieldError]:
    if len(parameters) > _MOST_PARAMETERS:
        yield too_long("parameters", _MOST_PARAMETERS)
        return
    if "" in parameters:
        yield invalid("parameters", "", "field can not be empty.")
    if sum(len(text.encode(errors="surrogatepass")) for pair in parameters.items() for text in pair) > _PARAMETER_BYTES:
        yield too_long("parameters", _PARAMETER_BYTES)


def _topology_errors(terms: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    # The API server compares each term with as many empty terms as there are terms.
    known: list[dict[str, set[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        path, found = f"allowedTopologies[{index}].matchLabelExpressions", dict[str, set[str]]()
        for at, expression in enumerate(term.get("matchLabelExpressions") or ()):
            key = expression.get("key", "")
            yield from _expression_errors(expression, f"{path}[{at}]")
            if key in found:
                yield duplicate(f"{path}[{at}].key", key)
            found[key] = set(expression.get("values") or ())
        yield from (duplicate(path, "") for each in known if each == found)
        known.append(found)


def _expression_errors(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    values = expression.get("values") or ()
    if not values:
        yield required(f"{path}.values")
    for index, value in enumerate(values):
        if value in values[:index]:
            yield duplicate(f"{path}.values[{index}]", value)
    yield from each_problem(qualified_name, expression.get("key", ""), f"{path}.key")


def _class_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from _class_errors(new)
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    yield from immutable(new.get("parameters"), old.get("parameters"), "parameters")
    for name in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from immutable(new.get(name, ""), old.get(name, ""), name)


VALIDATIONS: Final = {
    "PersistentVolumeClaim": Validation(
        _claim_errors, _claim_update_errors, {Subresource.STATUS: _claim_status_errors}
    ),
    "StorageClass.storage.k8s.io": Validation(_class_errors, _class_update_errors),
}
