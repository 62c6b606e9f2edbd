"""Types of custom resources for server-side apply, derived from their schemas.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy.
"""

from collections.abc import Mapping
from typing import Any, Final

from ocf.schema.builtin import (
    ANYTHING,
    DEDUCED,
    MISSING,
    EmptyValue,
    Field,
    ListType,
    MapType,
    Scalar,
    StructType,
    Type,
    custom_object,
)

__all__ = ["schema_type"]

_KEEP: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_SCALARS: Final = {
    "string": Scalar.TEXT,
    "integer": Scalar.INT64,
    "number": Scalar.NUMBER,
    "boolean": Scalar.BOOLEAN,
}


def schema_type(schema: Mapping[str, Any], name: str) -> StructType:
    """Return the type of the objects of a custom kind."""
    body = _struct(schema, name)
    body.fields |= _head()
    return body


def _head() -> dict[str, Field]:
    return {
        "apiVersion": Field(Scalar.TEXT, EmptyValue.AS_SENT),
        "kind": Field(Scalar.TEXT, EmptyValue.AS_SENT),
        **custom_object().fields,
    }


def _struct(schema: Mapping[str, Any], name: str, *, keep: bool = False) -> StructType:
    keep = keep or bool(schema.get(_KEEP))
    body = StructType(name, atomic=schema.get("x-kubernetes-map-type") == "atomic", extra=DEDUCED if keep else None)
    properties = schema.get("properties") or {}
    body.fields = {key: Field(_type(below, keep=keep), EmptyValue.AS_SENT) for key, below in properties.items()}
    if schema.get(_EMBEDDED):
        body.fields |= _head()
    return body


def _type(schema: Mapping[str, Any], *, keep: bool = False) -> Type:
    """Return the type of a value.

    Args:
        keep: Whether a schema above preserves unknown fields, which counts for all values below it in server-side
            apply, although pruning removes their undeclared fields.
    """
    kind = schema.get("type")
    if kind == "array":
        return _list(schema, keep=keep)
    if kind == "object":
        return _object(schema, keep=keep)
    if kind == "string" and (schema.get("format") or "byte") != "byte":
        # Any scalar: only validation checks these.
        return Scalar.INT_OR_TEXT
    return _SCALARS.get(str(kind), DEDUCED)


def _object(schema: Mapping[str, Any], *, keep: bool) -> Type:
    extra, is_atomic = schema.get("additionalProperties"), schema.get("x-kubernetes-map-type") == "atomic"
    if isinstance(extra, dict):
        return MapType(_type(extra, keep=keep or bool(schema.get(_KEEP))), atomic=is_atomic)
    if extra or not (schema.get("properties") or schema.get(_EMBEDDED)):
        return MapType(DEDUCED, atomic=is_atomic)
    return _struct(schema, "", keep=keep)


def _list(schema: Mapping[str, Any], *, keep: bool) -> ListType:
    items = schema.get("items") or {}
    item = _type(items, keep=keep or bool(schema.get(_KEEP))) if items else ANYTHING
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return ListType(item, ())
        case "map":
            known = items.get("properties") or {}
            # The keys of an item are ordered by name in managed fields.
            names = sorted(schema.get("x-kubernetes-list-map-keys") or ())
            return ListType(item, tuple((name, known.get(name, {}).get("default", MISSING)) for name in names))
        case _:
            return ListType(item, None)
