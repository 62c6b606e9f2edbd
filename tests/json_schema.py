"""Validation by the part of JSON Schema that recorded schemas use; another keyword is an error of the test."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["problems"]

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "array": list,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}
_KNOWN: Final = frozenset(
    {"$ref", "additionalProperties", "anyOf", "const", "enum", "items", "properties", "required", "type"}
)
_ANNOTATIONS: Final = frozenset({"$comment", "$schema", "definitions"})


def problems(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Return why a value does not match a schema; empty if it does.

    Args:
        schema: The schema, with its `definitions`.
        value: A JSON value.

    Raises:
        NotImplementedError: If the schema has a keyword that is not supported.
    """
    return list(_problems(schema, schema, value, "$"))


def _problems(root: Mapping[str, Any], schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if unknown := schema.keys() - _KNOWN - _ANNOTATIONS:
        raise NotImplementedError(f"{path}: keywords {sorted(unknown)} of the schema")
    if "$ref" in schema:
        yield from _problems(root, root["definitions"][schema["$ref"].removeprefix("#/definitions/")], value, path)
    if "anyOf" in schema:
        tried = [list(_problems(root, each, value, path)) for each in schema["anyOf"]]
        if all(tried):
            yield from min(tried, key=len)
    if not _is_of(schema.get("type"), value):
        yield f"{path}: {value!r} is not of type {schema['type']}"
        return
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if allowed is not None and value not in allowed:
        yield f"{path}: {value!r} is none of {allowed}"
    if isinstance(value, dict):
        yield from _of_object(root, schema, value, path)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from _problems(root, schema["items"], item, f"{path}[{number}]")


def _is_of(types: str | list[str] | None, value: Any) -> bool:
    if types is None:
        return True
    names = [types] if isinstance(types, str) else types
    # In Python a boolean is a number.
    return any(isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool)) for name in names)


def _of_object(
    root: Mapping[str, Any], schema: Mapping[str, Any], value: Mapping[str, Any], path: str
) -> Iterator[str]:
    declared, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: required"
    for name, item in value.items():
        if name in declared:
            yield from _problems(root, declared[name], item, f"{path}.{name}")
        elif others is False:
            yield f"{path}.{name}: not allowed"
        elif isinstance(others, dict):
            yield from _problems(root, others, item, f"{path}.{name}")
