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


def _struct(schema: Mapping[str, Any], name: str) -> StructType:
    body = StructType(
        name,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        extra=DEDUCED if schema.get("x-kubernetes-preserve-unknown-fields") else None,
    )
    properties = schema.get("properties") or {}
    body.fields = {key: Field(_type(below), EmptyValue.AS_SENT) for key, below in properties.items()}
    if schema.get("x-kubernetes-embedded-resource"):
        body.fields |= _head()
    return body


def _type(schema: Mapping[str, Any]) -> Type:
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return Scalar.INT_OR_TEXT
    if kind == "array":
        return _list(schema)
    if kind == "object":
        return _object(schema)
    return _SCALARS.get(str(kind), DEDUCED)


def _object(schema: Mapping[str, Any]) -> Type:
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return MapType(_type(extra), atomic=schema.get("x-kubernetes-map-type") == "atomic")
    if extra or (schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties")):
        return DEDUCED
    return _struct(schema, "")


def _list(schema: Mapping[str, Any]) -> ListType:
    items = schema.get("items") or {}
    item = _type(items) if items else ANYTHING
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
