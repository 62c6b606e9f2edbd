"""What pydantic says of a model, with everything that its JSON schemas leave out.

pydantic walks the types; this keeps it from losing what a definition needs (defaults from factories, rules of models)
and from giving up at the first type without a schema: what cannot be said is marked, and found with its path later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, core_schema, to_jsonable_python

from ocf.runtime.crds.client_models import is_client_model, with_built_in
from ocf.runtime.crds.markers import UNSAID, rules_of

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

__all__ = ["json_schema"]


def json_schema(model: type[BaseModel]) -> JsonSchemaValue:
    """Return the JSON schema of a model, in API spelling.

    Args:
        model: The model.
    """
    return model.model_json_schema(by_alias=True, schema_generator=_Generator, mode="validation")


class _Generator(GenerateJsonSchema):
    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        del schema
        return {UNSAID: f"no schema can say this type ({error_info})"}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        if "default_factory" in schema:
            return inner | _from_factory(schema)
        return inner | _encoded(schema["default"]) if "default" in schema else inner

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        values = schema.get("values_schema", {"type": "any"})
        if values["type"] == "any":
            return {UNSAID: "a map of anything has no schema: name the type of its values, or mark it with Preserve()"}
        return super().dict_schema(schema)

    def any_schema(self, schema: core_schema.AnySchema) -> JsonSchemaValue:
        del schema
        return {UNSAID: 'anything at all has no schema: name a type, or mark it with Preserve() or Preserve(kind="")'}

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        del schema
        return {UNSAID: "durations are written differently in Python and in the API: use a text with a pattern"}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model: type[BaseModel] = schema["cls"]
        found = super().model_schema(schema)
        if is_client_model(model):
            found = with_built_in(model, found)
        for key, written in _misread(model, found):
            found["properties"][key] = {UNSAID: f'it is read as "{key}" but written as "{written}": give it one alias'}
        given = [rule.manifest() for rule in rules_of(model)]
        return found | {"x-kubernetes-validations": given} if given else found


def _misread(model: type[BaseModel], schema: JsonSchemaValue) -> list[tuple[str, str]]:
    """Return the fields that are not written as they are read, by both names."""
    written = {info.serialization_alias or info.alias or name for name, info in model.model_fields.items()}
    read = set(schema.get("properties", {}))
    return list(zip(sorted(read - written), sorted(written - read), strict=False))


def _from_factory(schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
    if schema.get("default_factory_takes_data"):
        return {UNSAID: "a default that depends on other fields has no schema"}
    factory: Any = schema.get("default_factory")
    first, second = _encoded(factory()), _encoded(factory())
    if first != second:
        return {UNSAID: "a default that is another one each time has no schema"}
    return first


def _encoded(value: object) -> dict[str, Any]:
    try:
        return {"default": _plain(value)}
    except PydanticSerializationError:
        return {UNSAID: f"a default of type {type(value).__name__} is no JSON"}


def _plain(value: object) -> Any:
    """Write a default as JSON, in full: the server holds it to the rules before it fills in anything."""
    if isinstance(value, BaseModel):
        dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True)
        for name, info in type(value).model_fields.items():
            key = info.serialization_alias or info.alias or name
            inner = getattr(value, name)
            if inner is None and info.default is None:
                del dumped[key]
            elif isinstance(inner, BaseModel | list | tuple | dict):
                dumped[key] = _plain(inner)
        return dumped
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return to_jsonable_python(value)
