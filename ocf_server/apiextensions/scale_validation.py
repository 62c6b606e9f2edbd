"""Validation of the replicas of custom resources with a scale subresource.

It is separate from the schema, which need not declare these fields: the replicas of a Scale are non-negative integers.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.schema.builtin import ScalePaths
from ocf_server.api.status_errors import go_json, go_text

__all__ = ["count_problems"]

_MOST: Final = 2**31 - 1


class _AccessError(ValueError):
    """A value, or a value above it, has another type."""


def count_problems(manifest: Mapping[str, Any], paths: ScalePaths, *, spec: bool = True) -> Iterator[FieldProblem]:
    """Validate the fields that the Scale of a custom resource contains.

    Args:
        spec: Whether to check the desired replicas; a write of the status does not change them.

    Yields:
        The violations.

    Example:
        >>> [str(problem) for problem in count_problems({"spec": {"replicas": -1}}, ScalePaths())]
        ['.spec.replicas: Invalid value: -1: should be a non-negative integer']
    """
    if spec:
        yield from _count(manifest, paths.spec)
    yield from _count(manifest, paths.status)
    if paths.selector:
        try:
            _read(manifest, paths.selector, str, "string")
        except _AccessError as error:
            yield FieldProblem(paths.selector, f'Invalid value: "": {error}')


def _count(manifest: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    try:
        count = _read(manifest, path, int, "int64") or 0
    except _AccessError as error:
        yield FieldProblem(path, f"Invalid value: 0: {error}")
        return
    if count < 0:
        yield FieldProblem(path, f"Invalid value: {go_json(count)}: should be a non-negative integer")
    elif count > _MOST:
        yield FieldProblem(path, f"Invalid value: {go_json(count)}: should be less than or equal to {_MOST}")


def _read(manifest: Mapping[str, Any], path: str, wanted: type, named: str) -> Any:
    """Return the value at a path; None if it does not exist."""
    value: Any = manifest
    for name in path.removeprefix(".").split("."):
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise _error(path, value, "map[string]interface{}")
        if name not in value:
            return None
        value = value[name]
    # A whole number is stored as an integer, however it was written.
    if value.__class__ is float and value.is_integer() and wanted is int:
        value = int(value)
    if value.__class__ is not wanted:
        raise _error(path, value, named)
    return value


def _error(path: str, value: Any, wanted: str) -> _AccessError:
    types = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    found = "<nil>" if value is None else types.get(type(value), "map[string]interface {}")
    return _AccessError(
        f".{path.removeprefix('.')} accessor error: {go_text(value)} is of the type {found}, expected {wanted}"
    )
