"""Defaulting of custom resources by their schemas.

A null in a field that is not nullable counts as absent: it is replaced by the default, or dropped.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting.
"""

from collections.abc import Mapping
from typing import Any

from ocf.objects import copy_json
from ocf_server.api.numbers import encoded_numbers

__all__ = ["set_schema_defaults"]


def set_schema_defaults(value: Any, schema: Mapping[str, Any], *, drop_nulls: bool = True) -> Any:
    """Return a value with the defaults of its schema.

    Args:
        value: The value; it is not changed.
        drop_nulls: Whether to drop a null in a field that is not nullable and has no default. The API server drops such
            a null of a request. One that is the result of an apply is validated first, so it is dropped only if the
            field has no type.

    Returns:
        The value with defaults; parts without defaults are shared.

    Example:
        >>> schema = {"properties": {"mode": {"default": "fast"}, "note": {"type": "string"}}}
        >>> set_schema_defaults({"note": None}, schema)
        {'mode': 'fast'}
    """
    if isinstance(value, list):
        items = schema.get("items")
        return [_item(item, items, drop_nulls=drop_nulls) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    known = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    out: dict[str, Any] = {}
    for name, item in value.items():
        below = known.get(name, extra if isinstance(extra, dict) else None)
        if below is None:
            out[name] = item
        elif item is not None or below.get("nullable") or not (drop_nulls or _takes_null(below)):
            out[name] = set_schema_defaults(item, below, drop_nulls=drop_nulls)
    for name, below in known.items():
        if name not in out and below.get("default") is not None:
            # A default is an object with defaults of its own.
            out[name] = set_schema_defaults(copy_json(encoded_numbers(below["default"])), below)
    return out


def _item(item: Any, schema: Mapping[str, Any], *, drop_nulls: bool) -> Any:
    if item is None and not schema.get("nullable") and schema.get("default") is not None:
        item = copy_json(encoded_numbers(schema["default"]))
    return set_schema_defaults(item, schema, drop_nulls=drop_nulls)


def _takes_null(schema: Mapping[str, Any]) -> bool:
    """Return whether a null in a field that is not nullable is no error."""
    if schema.get("default") is not None:
        return True
    return not schema.get("type") and not schema.get("x-kubernetes-int-or-string")
