"""Validation of schemas in CustomResourceDefinitions, which must be structural.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
#specifying-a-structural-schema; the error texts are those of a real API server.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf_server.api.status_errors import go_json
from ocf_server.apiextensions.object_validation import schema_faults
from ocf_server.apiextensions.pruning import undeclared

__all__ = ["schema_problems"]

_Schema = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_JUNCTORS: Final = ("anyOf", "allOf", "oneOf")
_NESTED: Final = {
    "type": "must be empty to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "default": "must be undefined to be structural",
    "additionalProperties": "must be undefined to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_FORBIDDEN: Final = {
    "$ref": "$ref is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "id": "id is not supported",
    "patternProperties": "patternProperties is not supported",
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def schema_problems(schema: _Schema, path: str) -> list[FieldProblem]:
    """Validate a schema.

    Returns:
        The violations; empty if the schema is valid.

    Example:
        >>> print(schema_problems({"properties": {}}, "schema")[0])
        schema.type: Required value: must not be empty at the root
    """
    supported = list(_support(schema, path))
    # The other checks read the schema as a structural one, which these problems prevent.
    if supported:
        return supported
    problems = [*_node(schema, path, "root"), *_defaults(schema, path)]
    return sorted(problems, key=str)


def _below(schema: _Schema, path: str) -> Iterator[tuple[str, str, _Schema]]:
    """Yield level, path and schema of the items, fields and additional properties that a schema specifies."""
    items, extra = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        yield "item", f"{path}.items", items
    for name, below in (schema.get("properties") or {}).items():
        yield "field", f"{path}.properties[{name}]", below
    if isinstance(extra, dict):
        yield "extra", f"{path}.additionalProperties", extra


def _support(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    """Yield unsupported fields of a schema, and fields that contradict each other."""
    for name, text in _FORBIDDEN.items():
        if schema.get(name):
            yield FieldProblem(f"{path}.{name}", f"Forbidden: {text}")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield FieldProblem(f"{path}.uniqueItems", f"Forbidden: {text}")
    if schema.get("properties") and schema.get("additionalProperties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield FieldProblem(f"{path}.additionalProperties", f"Forbidden: {text}")
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        listed = ", ".join(f'"{name}"' for name in _TYPES)
        yield FieldProblem(f"{path}.type", f"Unsupported value: {go_json(kind)}: supported values: {listed}")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        text = "Invalid value: false: must be true or undefined"
        yield FieldProblem(f"{path}.x-kubernetes-preserve-unknown-fields", text)
    yield from _list_rules(schema, path)
    yield from _map_rules(schema, path)
    for _, where, below in _below(schema, path):
        yield from _support(below, where)


def _list_rules(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    kind, names = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    if names and kind != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield FieldProblem(f"{path}.x-kubernetes-list-type", f"Required value: {text}")
    if kind is None:
        return
    if kind not in ("atomic", "set", "map"):
        text = f'Unsupported value: {go_json(kind)}: supported values: "atomic", "set", "map"'
        yield FieldProblem(f"{path}.x-kubernetes-list-type", text)
    if schema.get("type") != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        yield FieldProblem(f"{path}.type", f"Invalid value: {go_json(schema.get('type') or '')}: {text}")
    items = schema.get("items")
    items = items if isinstance(items, dict) else {}
    if kind in ("set", "map") and items.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {kind}"
        yield FieldProblem(f"{path}.items.nullable", f"Forbidden: {text}")
    if kind == "set":
        yield from _set_items(items, path)
    elif kind == "map":
        yield from _keyed_items(items, names, path)


def _set_items(items: _Schema, path: str) -> Iterator[FieldProblem]:
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        shown = go_json(items.get("x-kubernetes-map-type"))
        yield FieldProblem(f"{path}.items.x-kubernetes-map-type", f"Invalid value: {shown}: {text}")
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        shown = go_json(items.get("x-kubernetes-list-type"))
        yield FieldProblem(f"{path}.items.x-kubernetes-list-type", f"Invalid value: {shown}: {text}")


def _keyed_items(items: _Schema, names: list[str], path: str) -> Iterator[FieldProblem]:
    if not names:
        text = "must not be empty if x-kubernetes-list-type is map"
        yield FieldProblem(f"{path}.x-kubernetes-list-map-keys", f"Required value: {text}")
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield FieldProblem(f"{path}.items.type", f"Invalid value: {go_json(items.get('type') or '')}: {text}")
        return
    known, required = items.get("properties") or {}, items.get("required") or ()
    for name in names:
        if known.get(name, {}).get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield FieldProblem(f"{path}.items.properties[{name}].type", f'Invalid value: "object": {text}')
        if name in known:
            continue
        text = "entries must all be names of item properties"
        yield FieldProblem(f"{path}.x-kubernetes-list-map-keys", f"Invalid value: {go_json(names)}: {text}")
    if len(set(names)) != len(names):
        text = "must not contain duplicate entries"
        yield FieldProblem(f"{path}.x-kubernetes-list-map-keys", f"Invalid value: {go_json(names)}: {text}")
    for name in names:
        if name in known and name not in required and known[name].get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield FieldProblem(f"{path}.items.properties[{name}].default", f"Required value: {text}")
        if name in known and known[name].get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield FieldProblem(f"{path}.items.properties[{name}].nullable", f"Forbidden: {text}")


def _map_rules(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    kind = schema.get("x-kubernetes-map-type")
    if kind is None:
        return
    if kind not in ("atomic", "granular"):
        text = f'Unsupported value: {go_json(kind)}: supported values: "atomic", "granular"'
        yield FieldProblem(f"{path}.x-kubernetes-map-type", text)
    if schema.get("type") != "object":
        text = "must be object if x-kubernetes-map-type is specified"
        yield FieldProblem(f"{path}.type", f"Invalid value: {go_json(schema.get('type') or '')}: {text}")


_EMPTY: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
    "extra": "must not be empty for specified object fields",
}


def _node(schema: _Schema, path: str, level: str) -> Iterator[FieldProblem]:
    """Check that a schema declares the type of every value."""
    kind, embedded = schema.get("type"), schema.get("x-kubernetes-embedded-resource")
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield FieldProblem(f"{path}.items", "Required value: must be specified")
    for below_level, where, below in _below(schema, path):
        yield from _node(below, where, below_level)
    if schema.get("additionalProperties") and level == "root":
        yield FieldProblem(f"{path}.additionalProperties", "Forbidden: must not be used at the root")
    if embedded:
        yield from _embedded(schema, path)
    elif not kind and not schema.get("x-kubernetes-int-or-string"):
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield FieldProblem(f"{path}.type", f"Required value: {_EMPTY[level]}")
    elif level == "root" and kind != "object":
        yield FieldProblem(f"{path}.type", f"Invalid value: {go_json(kind)}: must be object at the root")
    if level == "root":
        yield from _root_metadata(schema, path)
    yield from _values(schema, path)


def _embedded(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    kind = schema.get("type")
    if kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        detail = f"Invalid value: {go_json(kind)}: {text}" if kind else f"Required value: {text}"
        yield FieldProblem(f"{path}.type", detail)
    if not schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield FieldProblem(f"{path}.properties", f"Required value: {text}")


def _root_metadata(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    metadata = (schema.get("properties") or {}).get("metadata")
    if metadata is None:
        return
    kind = metadata.get("type")
    if kind != "object":
        yield FieldProblem(f"{path}.properties[metadata].type", f"Invalid value: {go_json(kind or '')}: must be object")
    beyond = set(metadata.get("properties") or ()) - {"name", "generateName"}
    if beyond or set(metadata) - {"type", "properties"}:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield FieldProblem(f"{path}.properties[metadata]", f"Forbidden: {text}")


def _values(schema: _Schema, path: str, *, nested: bool = False) -> Iterator[FieldProblem]:
    """Check the parts of a schema that only restrict values, such as `pattern` and `anyOf`."""
    pattern = schema.get("pattern")
    if pattern:
        # Imported on first use: few definitions have patterns.
        from ocf_server.cel.regexp import Regexp
        from ocf_server.cel.regexp_syntax import RegexpSyntaxError

        try:
            Regexp.parse(pattern)
        except RegexpSyntaxError as error:
            text = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
            yield FieldProblem(f"{path}.pattern", f"Invalid value: {go_json(pattern)}: {text}")
    either = not nested and schema.get("x-kubernetes-int-or-string")
    for junctor in _JUNCTORS:
        for index, below in enumerate(schema.get(junctor) or ()):
            if junctor == "anyOf" and either and schema[junctor] == _INT_OR_STRING:
                continue
            first = either and junctor == "allOf" and index == 0 and below.get("anyOf") == _INT_OR_STRING
            if not first:
                yield from _nested(below, f"{path}.{junctor}[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], f"{path}.not")


def _nested(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    for name, text in _NESTED.items():
        if schema.get(name):
            yield FieldProblem(f"{path}.{name}", f"Forbidden: {text}")
    if "metadata" in (schema.get("properties") or {}):
        yield FieldProblem(f"{path}.properties[metadata]", "Forbidden: must not be specified in a nested context")
    # It is forbidden there, and was reported as a whole.
    for _, where, below in _below({**schema, "additionalProperties": None}, path):
        yield from _nested(below, where)
    yield from _values(schema, path, nested=True)


def _defaults(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    for _, where, below in _below(schema, path):
        default = below.get("default")
        if default is not None:
            yield from _default(default, below, f"{where}.default")
        yield from _defaults(below, where)


def _default(value: Any, schema: _Schema, path: str) -> Iterator[FieldProblem]:
    if isinstance(value, dict) and undeclared({"value": value}, {"properties": {"value": schema}}):
        yield FieldProblem(path, f"Invalid value: {go_json(value)}: must not have unknown fields")
        return
    yield from (fault.problem for fault in schema_faults(value, schema, path=path, name=""))
