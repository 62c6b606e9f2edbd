"""Patches of MutatingAdmissionPolicies: apply configurations and JSON patches, from the values of their expressions.

Source: https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/; the error texts are those of
a real API server.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.go_strings import go_quoted
from ocf.schema.builtin import DEDUCED, Anything, ApiResource, ListType, MapType, Scalar, StructType, Type
from ocf_server.api.status_errors import go_json
from ocf_server.cel.conversions import shown
from ocf_server.cel.patch_types import APPLY_CONFIGURATION
from ocf_server.cel.values import Opaque, StructValue
from ocf_server.codec.decoding import unknown_fields
from ocf_server.managedfields.fieldset import path_text
from ocf_server.managedfields.merge import merge
from ocf_server.managedfields.typed import deduce, is_granular, type_problems
from ocf_server.patch.json_patch import PatchError, PatchTestError, json_patch

__all__ = ["NO_TYPE", "PatchFailedError", "applied_configuration", "patched"]

_TYPED: Final = "failed to convert patch object to typed object"
NO_TYPE: Final = f"error applying patch: {_TYPED}: no corresponding type for"
"""Start of the error of a kind that cannot be applied."""


class PatchFailedError(Exception):
    """A patch cannot be applied, for a reason that is the fault of the policy."""


def applied_configuration(live: Manifest, value: StructValue, resource: ApiResource) -> Manifest:
    """Merge an apply configuration into an object.

    Returns:
        The object with the fields of the apply configuration.

    Raises:
        PatchFailedError: If the apply configuration has a field of a wrong type, or an atomic one.
    """
    _check_names(value)
    patch = {**_json(value, ()), "apiVersion": live["apiVersion"], "kind": live["kind"]}
    if problems := type_problems(patch, resource.type):
        text = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
        raise PatchFailedError(f"error applying patch: {_TYPED}: {text}")
    if atomics := [path_text(path) for path in _atomics(patch, resource.type, ())]:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise PatchFailedError(f"error applying patch: invalid ApplyConfiguration: {text}")
    merged: Manifest = merge(live, patch, resource.type)
    return merged


def patched(live: Manifest, operations: Sequence[Mapping[str, Any]], resource: ApiResource | None) -> Manifest:
    """Apply a JSON patch to an object.

    Args:
        resource: The kind of the object; None if fields that it does not declare are not rejected.

    Returns:
        The patched object; the same one if a test of the patch fails.

    Raises:
        PatchFailedError: If the patch cannot be applied.
        ValueError: If the patched object has unknown fields.
    """
    for operation in operations:
        _check_names(operation.get("value"))
    try:
        result = json_patch(live, [_json(operation, ()) for operation in operations])
    except PatchTestError:
        # A failed test is the condition of a patch, not a problem.
        return live
    except PatchError as error:
        raise PatchFailedError(f"JSON Patch: {error}") from None
    if not isinstance(result, dict):
        raise ValueError("the patch does not leave an object")  # noqa: TRY004 (data of the policy, not an argument)
    if resource is not None and not resource.custom and (unknown := unknown_fields(result, resource.type)):
        raise ValueError("strict decoding error: " + ", ".join(f"unknown field {go_quoted(path)}" for path in unknown))
    return result


def _check_names(value: Any) -> None:
    if isinstance(value, StructValue) and (problems := [*_name_problems(value, value.kind)]):
        raise PatchFailedError("type mismatch: " + "\n".join(problems))


def _name_problems(value: Any, expected: str) -> Iterator[str]:
    """Yield the object literals whose names are not the path of their field; lists and maps have no names."""
    if isinstance(value, StructValue):
        if value.kind != expected:
            place = f"expected {go_json(expected)}, which matches field name path from root {APPLY_CONFIGURATION} type"
            yield f"unexpected type name {go_json(value.kind)}, {place}"
        for name, item in value.items():
            yield from _name_problems(item, f"{expected}.{name}")
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _name_problems(item, expected)


def _json(value: Any, path: tuple[str, ...]) -> Any:
    """Convert a value of CEL to JSON."""
    match value:
        case dict():
            return {str(name): _json(item, (*path, f"f:{name}")) for name, item in value.items()}
        case list():
            return [_json(item, (*path, f"i:{index}")) for index, item in enumerate(value)]
        # Before the integers, as a bool is one in Python.
        case bool() | str() | float():
            return value
        case int():
            return int(value)
        # Only a JSON patch, whose values are under `value`, may set a null.
        case None if path and path[0] != "f:value":
            raise PatchFailedError(
                f"error applying patch: {_TYPED}: {path_text(path)}: expected map, got &{{NULL_VALUE}}"
            )
        case Opaque():
            raise PatchFailedError(f"unsupported type: {value.kind}")
    return value if value is None else base64.b64encode(value).decode() if isinstance(value, bytes) else shown(value)


def _atomics(value: Any, kind: Type, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of atomic lists, maps and structs in an apply configuration."""
    if isinstance(kind, Anything):
        kind = deduce(value, kind)
    if isinstance(kind, Scalar):
        return
    if not is_granular(kind):
        yield path
    if isinstance(kind, ListType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _atomics(item, kind.item, (*path, f"i:{index}"))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _atomics(item, _field_type(kind, name), (*path, f"f:{name}"))


def _field_type(kind: Type, name: str) -> Type:
    if isinstance(kind, StructType):
        known = kind.fields.get(name)
        return known.type if known else kind.extra or DEDUCED
    return kind.value if isinstance(kind, MapType) else DEDUCED
