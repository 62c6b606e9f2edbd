"""Validation of the objects that custom resources contain (`x-kubernetes-embedded-resource`).

Source: `pkg/apiserver/schema/objectmeta/validation.go` in k8s.io/apiextensions-apiserver.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.objects.metadata_validation import creation_errors
from ocf.objects.name_validation import dns_1035_label, path_segment, path_segment_prefix
from ocf.schema.builtin import struct
from ocf_server.api.status_errors import go_shape, go_value
from ocf_server.codec.decoding import DecodeError, decode

__all__ = ["decoded_metadata", "embedded_problems"]

_ANY_NAME: Final = "fakename"


def decoded_metadata(value: Any) -> dict[str, Any]:
    """Return the metadata of an object as they are decoded; a null is empty.

    Raises:
        DecodeError: If a value is of a wrong JSON type.

    Example:
        >>> decoded_metadata({"name": "web", "colour": "red"})
        {'name': 'web'}
    """
    if not isinstance(value, dict | None):
        raise DecodeError(f"json: cannot unmarshal {go_shape(value)} into Go value of type v1.ObjectMeta")
    return decode(value or {}, struct("meta.v1.ObjectMeta"))


def embedded_problems(value: Any, schema: Mapping[str, Any], path: str = "") -> Iterator[FieldProblem]:
    """Yield the violations in the heads of the objects that a value contains.

    Example:
        >>> schema = {"properties": {"template": {"x-kubernetes-embedded-resource": True}}}
        >>> print(*embedded_problems({"template": {"apiVersion": "v1"}}, schema))
        template.kind: Required value
    """
    if isinstance(value, dict) and schema.get("x-kubernetes-embedded-resource"):
        yield from _head_problems(value, path)
    for item, below, where in _below(value, schema, path):
        if isinstance(item, dict | list):
            yield from embedded_problems(item, below, where)


def _below(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[tuple[Any, Mapping[str, Any], str]]:
    """Yield the values in a value that have a schema, with that and their path."""
    items, known, extra = schema.get("items"), schema.get("properties") or {}, schema.get("additionalProperties")
    if isinstance(value, list) and isinstance(items, dict):
        yield from ((item, items, f"{path}[{index}]") for index, item in enumerate(value))
    for name, item in value.items() if isinstance(value, dict) else ():
        if name in known:
            yield item, known[name], f"{path}.{name}" if path else name
        elif isinstance(extra, dict):
            yield item, extra, f"{path}[{name}]"


def _head_problems(value: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for name, check in (("apiVersion", _version_fault), ("kind", _kind_fault)):
        if name not in value:
            yield FieldProblem(f"{path}.{name}", "Required value")
        elif fault := check(value[name]):
            yield FieldProblem(f"{path}.{name}", f"Invalid value: {go_value(value[name])}: {fault}")
    if "metadata" in value:
        yield from _metadata_problems(value["metadata"], f"{path}.metadata")


def _version_fault(version: Any) -> str:
    if not isinstance(version, str):
        return "must be a string"
    if not version:
        return "must not be empty"
    return f"unexpected GroupVersion string: {version}" if version.count("/") > 1 else ""


def _kind_fault(kind: Any) -> str:
    if not isinstance(kind, str):
        return "must be a string"
    if not kind:
        return "must not be empty"
    faults = dns_1035_label(kind.lower())
    return f"may have mixed case, but should otherwise match: {','.join(faults)}" if faults else ""


def _metadata_problems(value: Any, path: str) -> Iterator[FieldProblem]:
    try:
        metadata = decoded_metadata(value)
    except DecodeError as fault:
        yield FieldProblem(path, f"Invalid value: {go_value(value)}: {fault}")
        return
    named = {**metadata, "name": metadata.get("name") or _ANY_NAME}
    for error in creation_errors(named, path_segment, path_segment_prefix):
        yield FieldProblem(f"{path}{error.path.removeprefix('metadata')}", error.message)
