"""JSON schema of a model by pydantic, with details that pydantic omits.

It adds what a CustomResourceDefinition needs (defaults from factories, rules of models). Instead of failing at the
first type without a schema it marks unsupported types, so that all of them are reported with their paths.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, SchemaSerializer, core_schema, to_jsonable_python

from ocf.objects.model_fields import is_client_model
from ocf.runtime.crds.client_models import with_api_semantics
from ocf.runtime.crds.markers import DECIMAL_PATTERN, DURATION_PATTERN, UNSUPPORTED, rules_of

__all__ = ["json_schema"]

_Definitions: TypeAlias = tuple[core_schema.CoreSchema, ...]
"""Schemas that others refer to."""

_TEXT_BOUNDS: Final = frozenset({"decimal_places", "ge", "gt", "le", "lt", "max_digits", "multiple_of"})


def json_schema(model: type[BaseModel], *, authors_fields: bool = False) -> JsonSchemaValue:
    """Return the JSON schema of a model, in API spelling.

    Args:
        authors_fields: Whether to leave out what models of the Kubernetes client declare.
    """
    generator = _AuthorsFields if authors_fields else _Generator
    return model.model_json_schema(by_alias=True, schema_generator=generator, mode="validation")


class _Generator(GenerateJsonSchema):
    _known: _Definitions = ()

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        del schema
        return {UNSUPPORTED: f"no schema can express this type ({error_info})"}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        if "default_factory" in schema:
            return inner | _from_factory(schema, self._known)
        return inner | _encoded(schema["default"], schema["schema"], self._known) if "default" in schema else inner

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> JsonSchemaValue:
        self._known = (*self._known, *schema["definitions"])
        return super().definitions_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        values = schema.get("values_schema", {"type": "any"})
        if values["type"] == "any":
            return {UNSUPPORTED: "a map of any values has no schema: set the type of its values, or add Preserve()"}
        return super().dict_schema(schema)

    def any_schema(self, schema: core_schema.AnySchema) -> JsonSchemaValue:
        del schema
        return {UNSUPPORTED: 'a value of any type has no schema: set a type, or add Preserve() or Preserve(kind="")'}

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        if self._config.ser_json_timedelta != "iso8601":
            return {
                UNSUPPORTED: "a duration that is written as a number is read as another one: use the default, ISO 8601"
            }
        return _without_bounds(schema, "duration") or {"type": "string", "pattern": DURATION_PATTERN}

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        number = {"x-kubernetes-int-or-string": True, "pattern": DECIMAL_PATTERN}
        return _without_bounds(schema, "Decimal") or number

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model: type[BaseModel] = schema["cls"]
        found = super().model_schema(schema)
        if is_client_model(model):
            found = with_api_semantics(model, found)
        for key, written in _misread(model, found):
            found["properties"][key] = {
                UNSUPPORTED: f'it is read as "{key}" but written as "{written}": give it one alias'
            }
        given = [rule.manifest() for rule in rules_of(model)]
        return found | {"x-kubernetes-validations": given} if given else found


class _AuthorsFields(_Generator):
    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model: type[BaseModel] = schema["cls"]
        if is_client_model(model):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        found = super().model_schema(schema)
        if not any(map(is_client_model, model.__mro__)):
            return found
        authors = [one for one in model.__mro__ if issubclass(one, BaseModel) and one is not BaseModel]
        own = {name for one in authors if not is_client_model(one) for name in one.__annotations__}
        keys = {field.alias or name for name, field in model.model_fields.items() if name in own}
        properties = {key: value for key, value in found.get("properties", {}).items() if key in keys}
        required = [key for key in found.get("required", ()) if key in keys]
        return {**found, "properties": properties, "required": required}


def _without_bounds(schema: core_schema.TimedeltaSchema | core_schema.DecimalSchema, name: str) -> JsonSchemaValue:
    """Return the refusal of a text with bounds, which the API server could not compare; empty if there are none."""
    bounds = sorted(_TEXT_BOUNDS & set(schema))
    if not bounds:
        return {}
    reason = (
        f"a {name} is a string in the API, and a schema has no {', '.join(bounds)} for strings: use a ValidationRule"
    )
    return {UNSUPPORTED: reason}


def _misread(model: type[BaseModel], schema: JsonSchemaValue) -> list[tuple[str, str]]:
    """Return the fields that are read and written under different names, as pairs of both."""
    written = {info.serialization_alias or info.alias or name for name, info in model.model_fields.items()}
    read = set(schema.get("properties", {}))
    return list(zip(sorted(read - written), sorted(written - read), strict=False))


def _from_factory(schema: core_schema.WithDefaultSchema, known: _Definitions) -> dict[str, Any]:
    if schema.get("default_factory_takes_data"):
        return {UNSUPPORTED: "a default that depends on other fields has no schema"}
    factory: Any = schema.get("default_factory")
    first, second = (_encoded(factory(), schema["schema"], known) for _ in range(2))
    if first != second:
        return {UNSUPPORTED: "a default that differs each time has no schema"}
    return first


def _encoded(value: object, schema: core_schema.CoreSchema, known: _Definitions) -> dict[str, Any]:
    try:
        return {"default": _complete(value, _serialized(value, schema, known))}
    except PydanticSerializationError:
        return {UNSUPPORTED: f"a default of type {type(value).__name__} cannot be written as JSON"}


def _serialized(value: object, schema: core_schema.CoreSchema, known: _Definitions) -> Any:
    """Return a default as the serializer of its field writes it, which is what the model reads."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    serializer: Any = schema.get("serialization", {})
    if serializer.get("is_field_serializer"):  # a method of the model, which has no instance yet
        return to_jsonable_python(value)
    if not serializer and isinstance(value, str | int | float | None):
        return to_jsonable_python(value)
    written = SchemaSerializer(core_schema.definitions_schema(schema, list(known)))
    return written.to_python(value, mode="json", by_alias=True, warnings="none")


def _complete(value: object, written: Any) -> Any:
    """Return a written default as complete JSON, because the API server validates it before it sets nested defaults.

    Args:
        value: The default.
        written: The default as JSON, with the same structure.
    """
    if isinstance(value, BaseModel):
        found = dict(written)
        for name, info in type(value).model_fields.items():
            key = info.serialization_alias or info.alias or name
            inner = getattr(value, name)
            if inner is None and info.default is None:
                found.pop(key, None)
            elif key in found:
                found[key] = _complete(inner, found[key])
        return found
    if isinstance(value, list | tuple | set | frozenset) and isinstance(written, list):
        items = [_complete(inner, item) for inner, item in zip(value, written, strict=True)]
        # The order of a set differs between processes, and a definition must not.
        return sorted(items, key=json.dumps) if isinstance(value, set | frozenset) else items
    if isinstance(value, dict) and isinstance(written, dict):
        pairs = zip(value.values(), written.items(), strict=True)
        return {key: _complete(inner, item) for inner, (key, item) in pairs}
    return written
