"""Schemas of the Kubernetes client's models, completed with quantities and list types of the API."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pydantic.json_schema import JsonSchemaValue

from ocf.lazy_types.pydantic import BaseModel
from ocf.objects.model_fields import holds_quantity
from ocf.runtime.crds.markers import QUANTITY_PATTERN, UNSUPPORTED
from ocf.schema.builtin import MISSING, ListType, StructType, struct

__all__ = ["with_api_semantics"]

# API groups of the structs that specs embed, most likely first.
_GROUPS: Final = ("core", "meta", "autoscaling", "networking", "apps", "policy", "batch", "rbac", "storage", "resource")
_ATTRIBUTES: Final = "\n\nAttributes:\n"


def with_api_semantics(model: type[BaseModel], schema: JsonSchemaValue) -> JsonSchemaValue:
    """Return the schema of a client's model with its quantities and the merge keys of its lists.

    A quantity may be a number, as in the API itself. The client's models read only strings there; `ocf` (operators,
    webhooks, `read_live`) converts numbers before it reads an object.
    """
    known = _struct_of(model.__name__, frozenset(schema.get("properties", {})))
    properties = {
        name: _field(model, name, _with_open_fields(said), known) for name, said in schema.get("properties", {}).items()
    }
    described = {"description": schema["description"].partition(_ATTRIBUTES)[0]} if "description" in schema else {}
    return {**schema, **described, "properties": properties}


def _field(model: type[BaseModel], name: str, said: JsonSchemaValue, known: StructType | None) -> JsonSchemaValue:
    if holds_quantity(model, (name,)):
        return {**_as_quantity(said)}
    found = known.fields[name].type if known is not None and name in known.fields else None
    if not isinstance(found, ListType) or found.keys is None:
        return said
    if not found.keys:
        return said | {"x-kubernetes-list-type": "set"}
    keys = {key: None if default is MISSING else default for key, default in found.keys}
    return said | {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "x-key-defaults": {key: default for key, default in keys.items() if default is not None},
    }


def _with_open_fields(said: Any) -> Any:
    """Preserve values without a schema in the API itself, such as `fieldsV1` of managed fields."""
    if isinstance(said, list):
        return [_with_open_fields(item) for item in said]
    if not isinstance(said, dict):
        return said
    if UNSUPPORTED in said:
        rest = {key: value for key, value in said.items() if key != UNSUPPORTED}
        return rest | {"x-kubernetes-preserve-unknown-fields": True}
    return {key: _with_open_fields(value) if key in _INNER else value for key, value in said.items()}


def _as_quantity(said: Any) -> Any:
    """Replace every string of a schema by a quantity."""
    if isinstance(said, list):
        return [_as_quantity(item) for item in said]
    if not isinstance(said, dict):
        return said
    found: dict[str, Any] = {key: _as_quantity(value) if key in _INNER else value for key, value in said.items()}
    if found.get("type") != "string":
        return found
    del found["type"]
    return found | {"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN}


_INNER: Final = ("additionalProperties", "items", "anyOf")


@cache
def _struct_of(name: str, fields: frozenset[str]) -> StructType | None:
    """Return the API struct of a model: same version and name, and most of its fields, because releases differ."""
    for length in (2, 3, 7, 8):  # V1 V10 V1beta1 V1alpha1
        version, rest = name[:length].lower(), name[length:]
        for group in _GROUPS:
            try:
                found = struct(f"{group}.{version}.{rest}")
            except KeyError:
                continue
            if 2 * len(fields & found.fields.keys()) > len(fields):
                return found
    return None
