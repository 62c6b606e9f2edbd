"""Validation of references to fields and resources of the pod itself (downward API).

Source: `validateObjectFieldSelector`, `validateContainerResourceFieldSelector` and `validateDownwardAPIVolumeFile` in
`pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.objects.field_errors import FieldError, invalid, not_supported, required
from ocf.objects.name_validation import qualified_name
from ocf.objects.quantity import Quantity
from ocf_server.validation.fields import each_problem
from ocf_server.validation.file_paths import file_mode, unreserved_path

__all__ = ["environment_field_errors", "file_errors", "resource_field_errors"]

_IN_ENVIRONMENT: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_IN_FILES: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_MAPS: Final = ("metadata.annotations", "metadata.labels")
_FIELDS: Final = frozenset({*_IN_ENVIRONMENT, *_IN_FILES, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
_RENAMED: Final = {"spec.host": "spec.nodeName"}
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE: Final = ("limits.hugepages-", "requests.hugepages-")
_UNITS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_NAMES: Final = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}


def environment_field_errors(reference: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors of a `fieldRef` of an environment variable."""
    return _field_errors(reference, _IN_ENVIRONMENT, path)


def _field_errors(reference: Mapping[str, Any], supported: Sequence[str], path: str) -> Iterator[FieldError]:
    version, label = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        yield required(f"{path}.apiVersion")
        return
    if not label:
        yield required(f"{path}.fieldPath")
        return
    name, subscript = _split(label)
    problem = _conversion_problem(version, label, name, subscript)
    if problem:
        yield invalid(f"{path}.fieldPath", label, f"error converting fieldPath: {problem}")
    elif subscript is not None:
        key = subscript.lower() if name == "metadata.annotations" else subscript
        yield from each_problem(qualified_name, key, path)
    elif _RENAMED.get(name, name) not in supported:
        yield not_supported(f"{path}.fieldPath", _RENAMED.get(name, name), supported)


def _split(label: str) -> tuple[str, str | None]:
    """Split `metadata.labels['key']` into the path and the subscript; None if there is none."""
    name, bracket, rest = label.partition("['")
    if label.endswith("']") and bracket and name:
        return name, rest.removesuffix("']")
    return label, None


def _conversion_problem(version: str, label: str, name: str, subscript: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        return "" if name in _MAPS else f"field label does not support subscript: {label}"
    return "" if label in _FIELDS or label in _RENAMED else f"field label not supported: {label}"


def resource_field_errors(reference: Mapping[str, Any], path: str, *, in_file: bool) -> Iterator[FieldError]:
    """Yield the errors of a `resourceFieldRef`.

    Args:
        in_file: Whether it is the content of a file, which has to name the container.
    """
    name = reference.get("resource", "")
    if in_file and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not name:
        yield required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        yield not_supported(f"{path}.resource", name, _RESOURCES)
    yield from _divisor_errors(name, Quantity.parse(reference.get("divisor", "0")), f"{path}.divisor")


def _divisor_errors(name: str, divisor: Quantity, path: str) -> Iterator[FieldError]:
    if not divisor.nano:
        return
    kind = name.partition(".")[2]
    if kind == "cpu" and name in _RESOURCES:
        if str(divisor) not in ("1m", "1"):
            yield invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource")
    elif (name in _RESOURCES or name.startswith(_HUGE)) and str(divisor) not in _UNITS:
        what = _NAMES.get(kind, "hugepages")
        yield invalid(path, name, f"only divisor's values {', '.join(_UNITS)} are supported with the {what} resource")


def file_errors(file: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors of a file of a volume with fields or resources of the pod."""
    if not file.get("path"):
        yield required(f"{path}.path")
    yield from unreserved_path(file.get("path", ""), f"{path}.path")
    if "fieldRef" in file:
        yield from _field_errors(file["fieldRef"], _IN_FILES, f"{path}.fieldRef")
        if "resourceFieldRef" in file:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif "resourceFieldRef" in file:
        yield from resource_field_errors(file["resourceFieldRef"], f"{path}.resourceFieldRef", in_file=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from file_mode(file.get("mode"), f"{path}.mode")
