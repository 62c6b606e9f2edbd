"""Conversion of JSON schemas to structural schemas, which CustomResourceDefinitions require.

A structural schema has no references, no alternatives and no keywords that the API server does not know. Equivalent
keywords are translated; everything else is reported with the path of the field, all problems at once.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.runtime.crds.markers import UNSUPPORTED

__all__ = ["StructuralSchemaConverter"]

_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_ANNOTATIONS: Final = frozenset(
    {"contentMediaType", "deprecated", "example", "examples", "readOnly", "title", "writeOnly"}
)
"""Keywords that describe a schema without restricting values."""
_SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})

Json = dict[str, Any]

_KEPT: Final = frozenset(
    {
        "default",
        "description",
        "enum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
        "multipleOf",
        "type",
    }
)
_FORMATS: Final = {
    "base64": "byte",
    "base64url": "",
    "binary": "",
    **{name: name for name in ("byte", "cidr", "date", "date-time", "email", "hostname", "int32", "int64", "ipv4")},
    **{name: name for name in ("double", "float", "ipv6", "mac", "password", "uri", "uuid", "uuid3", "uuid4", "uuid5")},
}
# Neither RE2, which the API server uses, nor pydantic's default engine supports these.
_NOT_REGULAR: Final = re.compile(r"\(\?<?[=!]|\(\?P?[=>(]|\\[1-9]")


@dataclass(slots=True)
class StructuralSchemaConverter:
    """Converts schemas, and collects the problems of those that cannot be converted."""

    definitions: Mapping[str, Json]
    problems: list[FieldProblem] = field(default_factory=list)

    def of(self, schema: Json, path: str, above: tuple[str, ...] = ()) -> Json:
        """Convert a schema.

        Returns:
            The structural schema; incomplete if there are problems.
        """
        schema, above = self._resolved(schema, path, above)
        schema, nullable = _without_null(schema)
        if "anyOf" in schema or "oneOf" in schema:
            schema = self._alternatives(schema, path, above)
        schema, above = self._resolved(schema, path, above)
        if UNSUPPORTED in schema:
            self._reject(path, schema[UNSUPPORTED])
            return {}
        found = {key: value for key, value in schema.items() if key in _KEPT}
        found |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
        found |= _bounds(schema)
        if "const" in schema:
            found["enum"] = [schema["const"]]
        self._text(schema, found, path)
        self._object(schema, found, path, above)
        self._list(schema, found, path, above)
        self._null(found, path, nullable=nullable)
        self._check(schema, found, path)
        return found

    def _reject(self, path: str, detail: str) -> None:
        self.problems.append(FieldProblem(path, detail))

    def _resolved(self, schema: Json, path: str, above: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        """Resolve references: keywords beside a reference override its target, and rules are combined."""
        while "$ref" in schema or len(schema.get("allOf", ())) == 1:
            rest = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
            if "$ref" not in schema:
                target = schema["allOf"][0]
            else:
                name = schema["$ref"].rpartition("/")[2]
                if name in above:
                    self._reject(
                        path,
                        f"{name} contains itself, and a structural schema is finite: annotate this field with "
                        "Annotated[..., Preserve()], so that the API server stores it without a schema",
                    )
                    return {"type": "object", _PRESERVE: True}, above
                target, above = self.definitions[name], (*above, name)
            rules = [*target.get(_RULES, ()), *rest.get(_RULES, ())]
            schema = target | rest | ({_RULES: rules} if rules else {})
        return schema, above

    def _alternatives(self, schema: Json, path: str, above: tuple[str, ...]) -> Json:
        arms = schema.get("anyOf") or schema["oneOf"]
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "discriminator")}
        if len(arms) == 1:
            only: Json = arms[0]
            return only | rest
        known = len(self.problems)
        arms = [self._resolved(arm, path, above)[0] for arm in arms]
        merged = _merged_alternatives(arms)
        if merged is None and len(self.problems) == known:
            self._reject(path, _refused_alternatives(arms))
        return {_PRESERVE: True} | rest if merged is None else merged | rest

    def _text(self, schema: Json, found: Json, path: str) -> None:
        if "format" in schema:
            name = _FORMATS.get(schema["format"], "")
            if name:
                found["format"] = name
            else:
                self._reject(
                    path, f'the API server does not know the format "{schema["format"]}": use a string with a pattern'
                )
        if "pattern" in schema:
            found["pattern"] = schema["pattern"]
            if _NOT_REGULAR.search(schema["pattern"]):
                self._reject(
                    path,
                    f"the API server's RE2 has neither look-around nor back-references, got {schema['pattern']}",
                )

    def _object(self, schema: Json, found: Json, path: str, above: tuple[str, ...]) -> None:
        if "properties" in schema:
            found["properties"] = {
                name: self.of(said, f"{path}.{name}" if path else name, above)
                for name, said in schema["properties"].items()
            }
        if schema.get("required"):
            found["required"] = list(schema["required"])
        values = schema.get("additionalProperties", False)
        if isinstance(values, dict) and values:
            if "properties" in schema:
                self._reject(path, "a structural schema has fields or a map, not both")
            found["additionalProperties"] = self.of(values, f"{path}.*", above)
        elif values is not False:
            found[_PRESERVE] = True
        if "propertyNames" in schema or "patternProperties" in schema:
            self._reject(path, "a structural schema cannot restrict the keys of a map: use a ValidationRule")

    def _list(self, schema: Json, found: Json, path: str, above: tuple[str, ...]) -> None:
        if schema.get("uniqueItems"):
            found.setdefault("x-kubernetes-list-type", "set")
        if "prefixItems" in schema:
            self._reject(path, "a structural schema has no tuples: use an object, or a list of one type")
        if found.get("type") == "array":
            items = schema.get("items")
            found["items"] = self.of(items, f"{path}[]", above) if isinstance(items, dict) else {}
            if not items and "prefixItems" not in schema:
                self._reject(path, "a list needs a type for its items")
        if found.get("x-kubernetes-list-type") == "map":
            self._keyed(schema, found, path)
        elif found.get("x-kubernetes-list-type") == "set" and found.get("items", {}).get("type") not in _SCALARS:
            self._reject(path, "a set holds scalars only: use a list, for objects Annotated[list[...], ListMap(key)]")

    def _keyed(self, schema: Json, found: Json, path: str) -> None:
        """Check the merge keys of a list: each must be a scalar that is required or has a default."""
        item = found.get("items", {})
        for key in found["x-kubernetes-list-map-keys"]:
            said = item.get("properties", {}).get(key)
            if said is None:
                self._reject(path, f'the key "{key}" is not a field of the items')
                continue
            required = key in item.get("required", ())
            if key in schema.get("x-key-defaults", {}) and not required:
                said.setdefault("default", schema["x-key-defaults"][key])
            if said.get("type") not in _SCALARS:
                self._reject(path, f'the key "{key}" is not a scalar')
            elif not required and "default" not in said:
                self._reject(path, f'the key "{key}" must be required, or have a default')

    def _null(self, found: Json, path: str, *, nullable: bool) -> None:
        """Convert null: it means absent if it is the default, else the field is nullable."""
        if nullable and found.get("default", _NOTHING) is None:
            del found["default"]
        elif nullable:
            found["nullable"] = True
            if "enum" in found:
                self._reject(path, "the API server rejects null as a value of an enum: make None the default")

    def _check(self, schema: Json, found: Json, path: str) -> None:
        if found.get("type") == "null":
            self._reject(path, "null is the only value: remove the field, or give it a type, such as str | None")
        unknown = sorted(set(schema) - _KNOWN - {key for key in schema if key.startswith("x-kubernetes-")})
        if unknown:
            self._reject(path, f"a structural schema does not support {', '.join(unknown)}")
        elif not ({"type", _INT_OR_STRING, _PRESERVE} & set(found)):
            self._reject(path, "values of different types have no structural schema: use one type")


_RULES: Final = "x-kubernetes-validations"
_NOTHING: Final = object()
_KNOWN: Final = (
    _KEPT
    | _ANNOTATIONS
    | {"additionalProperties", "anyOf", "const", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maximum"}
    | {"minimum", "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "required"}
    | {"uniqueItems", "x-key-defaults"}
)


def _without_null(schema: Json) -> tuple[Json, bool]:
    """Remove null from the alternatives; return whether it was one of them."""
    arms: Sequence[Json] = schema.get("anyOf", ())
    others = [arm for arm in arms if arm.get("type") != "null"]
    if len(others) == len(arms):
        return schema, False
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(others) > 1:
        return rest | {"anyOf": others}, True
    both = [*others[0].get(_RULES, ()), *rest.get(_RULES, ())]
    return others[0] | rest | ({_RULES: both} if both else {}), True


def _bounds(schema: Json) -> Json:
    """Convert bounds to those of the API, where an exclusive bound is a bound with a boolean keyword."""
    found: Json = {}
    for name, tighter in (("minimum", max), ("maximum", min)):
        mark = f"exclusive{name.capitalize()}"
        given = [schema[key] for key in (name, mark) if key in schema]
        if given:
            found[name] = tighter(given)
        if mark in schema and found[name] == schema[mark]:
            found[mark] = True
    return found


_DESCRIPTIONS: Final = _ANNOTATIONS | {"type", "description"}
_LIMITS: Final[dict[str, frozenset[str]]] = {
    "integer": frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"}),
    "string": frozenset({"maxLength", "minLength", "pattern"}),
}
"""Keywords that the API server applies to values of one type only, so those of an integer do not affect a string."""


def _merged_alternatives(arms: Sequence[Json]) -> Json | None:
    """Return the schema of the values that any of the alternatives accepts.

    Args:
        arms: Schemas without references, at least two.

    Returns:
        The schema: of an integer or a string, each with its limits; of a number; or of an enumeration. None if a
        structural schema cannot express the alternatives.

    Example:
        >>> _merged_alternatives([{"type": "integer", "minimum": 0}, {"type": "string", "enum": ["auto"]}])
        {'x-kubernetes-int-or-string': True, 'minimum': 0, 'pattern': '^(auto)$'}
    """
    limits = [{key: value for key, value in arm.items() if key not in _DESCRIPTIONS} for arm in arms]
    types = [arm.get("type") for arm in arms]
    if sorted(map(str, types)) == ["integer", "string"]:
        found = [_limited(kind, limit) for kind, limit in zip(types, limits, strict=True)]
        merged = {key: value for each in found for key, value in (each or {}).items()}
        return None if None in found else {_INT_OR_STRING: True, **merged}
    if set(types) == {"integer", "number"} and not any(limits):
        return {"type": "number"}
    values = [_values(limit) for limit in limits]
    if len(set(types)) == 1 and types[0] in _SCALARS and all(values):
        return {"type": types[0], "enum": list(dict.fromkeys(value for each in values for value in each))}
    return None


def _refused_alternatives(arms: Sequence[Json]) -> str:
    """Return why alternatives have no structural schema, with what to use instead."""
    reason = "a structural schema has no alternatives other than int | str"
    types = {arm.get("type") for arm in arms}
    if types == {"object"}:
        return f"{reason}: use one object with an optional field for each, and a ValidationRule that one of them is set"
    if "array" in types:
        return f"{reason}: use the list, also for a single value"
    return f"{reason}: use one type with optional fields"


def _limited(kind: str | None, limits: Json) -> Json | None:
    """Return the limits of one type of two; None if they would affect the other type, too."""
    values = _values(limits)
    if kind == "string" and values:
        return {"pattern": f"^({'|'.join(map(re.escape, values))})$"}
    return limits if set(limits) <= _LIMITS.get(str(kind), frozenset()) else None


def _values(limits: Json) -> list[Any]:
    """Return the values of an enumeration; empty if it is not one."""
    if set(limits) == {"const"}:
        return [limits["const"]]
    return list(limits["enum"]) if set(limits) == {"enum"} else []
