"""From a JSON schema to a structural one, which is all that a definition may hold.

A structural schema has no references, no alternatives and no keyword that the server does not know. What has an equal
in it is translated; everything else is refused with the path of the field, all problems together.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.runtime.crds.markers import UNSAID

__all__ = ["Structural"]

Json = dict[str, Any]

_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
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
# Words about the schema that hold no value to anything.
_TALK: Final = frozenset({"contentMediaType", "deprecated", "example", "examples", "readOnly", "title", "writeOnly"})
_FORMATS: Final = {
    "base64": "byte",
    "base64url": "",
    "binary": "",
    **{name: name for name in ("byte", "cidr", "date", "date-time", "email", "hostname", "int32", "int64", "ipv4")},
    **{name: name for name in ("double", "float", "ipv6", "mac", "password", "uri", "uuid", "uuid3", "uuid4", "uuid5")},
}
_SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})
# Neither RE2, which the server uses, nor the engine that pydantic uses by default knows these.
_NOT_REGULAR: Final = re.compile(r"\(\?<?[=!]|\(\?P?[=>(]|\\[1-9]")


@dataclass(slots=True)
class Structural:
    """Translates schemas, and gathers what cannot be translated.

    Args:
        definitions: The schemas that others refer to, by name.
        problems: What was refused.
    """

    definitions: Mapping[str, Json]
    problems: list[FieldProblem] = field(default_factory=list)

    def of(self, schema: Json, path: str, above: tuple[str, ...] = ()) -> Json:
        """Translate a schema.

        Args:
            schema: The schema.
            path: Where it is, in API spelling.
            above: Names of the definitions that it is a part of.

        Returns:
            The structural schema; of what is refused, a part.
        """
        schema, above = self._resolved(schema, path, above)
        schema, nullable = _without_null(schema)
        if "anyOf" in schema or "oneOf" in schema:
            schema = self._alternatives(schema, path)
        schema, above = self._resolved(schema, path, above)
        if UNSAID in schema:
            self._refuse(path, schema[UNSAID])
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

    def _refuse(self, path: str, detail: str) -> None:
        self.problems.append(FieldProblem(path, detail))

    def _resolved(self, schema: Json, path: str, above: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        """Put in what a schema refers to; what stands beside the reference goes before it, and rules add up."""
        while "$ref" in schema or len(schema.get("allOf", ())) == 1:
            rest = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
            if "$ref" not in schema:
                target = schema["allOf"][0]
            else:
                name = schema["$ref"].rpartition("/")[2]
                if name in above:
                    self._refuse(path, f"{name} contains itself, and a structural schema ends somewhere")
                    return {"type": "object", _PRESERVE: True}, above
                target, above = self.definitions[name], (*above, name)
            rules = [*target.get(_RULES, ()), *rest.get(_RULES, ())]
            schema = target | rest | ({_RULES: rules} if rules else {})
        return schema, above

    def _alternatives(self, schema: Json, path: str) -> Json:
        arms = schema.get("anyOf") or schema["oneOf"]
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        if len(arms) == 1:
            only: Json = arms[0]
            return only | rest
        bare = all(set(arm) <= {"type", *_TALK} for arm in arms)
        types = {arm.get("type") for arm in arms}
        if bare and types == {"integer", "string"}:
            return rest | {_INT_OR_STRING: True}
        if bare and types == {"integer", "number"}:
            return rest | {"type": "number"}
        self._refuse(path, "a structural schema knows no alternatives but int | str: use one type with optional fields")
        return rest | {_PRESERVE: True}

    def _text(self, schema: Json, found: Json, path: str) -> None:
        if "format" in schema:
            name = _FORMATS.get(schema["format"], "")
            if name:
                found["format"] = name
            else:
                self._refuse(path, f'no server checks the format "{schema["format"]}": use a text with a pattern')
        if "pattern" in schema:
            found["pattern"] = schema["pattern"]
            if _NOT_REGULAR.search(schema["pattern"]):
                self._refuse(path, f"the server knows no look-around and no back-reference: {schema['pattern']}")

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
                self._refuse(path, "a structural schema has fields or a map, not both")
            found["additionalProperties"] = self.of(values, f"{path}.*", above)
        elif values is not False:
            found[_PRESERVE] = True
        if "propertyNames" in schema or "patternProperties" in schema:
            self._refuse(path, "a structural schema says nothing about the keys of a map: use a rule")

    def _list(self, schema: Json, found: Json, path: str, above: tuple[str, ...]) -> None:
        if schema.get("uniqueItems"):
            self._refuse(path, "a set is a list in the API: Annotated[list[...], ListSet()]")
        if "prefixItems" in schema:
            self._refuse(path, "a structural schema knows no tuples: use an object, or a list of one type")
        if found.get("type") == "array":
            items = schema.get("items")
            found["items"] = self.of(items, f"{path}[]", above) if isinstance(items, dict) else {}
            if not items and "prefixItems" not in schema:
                self._refuse(path, "a list needs a type for its items")
        if found.get("x-kubernetes-list-type") == "map":
            self._keyed(schema, found, path)
        elif found.get("x-kubernetes-list-type") == "set" and found.get("items", {}).get("type") not in _SCALARS:
            self._refuse(path, "a set holds scalars only; for objects there is ListMap(key)")

    def _keyed(self, schema: Json, found: Json, path: str) -> None:
        """Check the keys of a list that merges by key: each is a scalar that is always there."""
        item = found.get("items", {})
        for key in found["x-kubernetes-list-map-keys"]:
            said = item.get("properties", {}).get(key)
            if said is None:
                self._refuse(path, f'the key "{key}" is no field of the items')
                continue
            required = key in item.get("required", ())
            if key in schema.get("x-key-defaults", {}) and not required:
                said.setdefault("default", schema["x-key-defaults"][key])
            if said.get("type") not in _SCALARS:
                self._refuse(path, f'the key "{key}" is no scalar')
            elif not required and "default" not in said:
                self._refuse(path, f'the key "{key}" must be required, or have a default')

    def _null(self, found: Json, path: str, *, nullable: bool) -> None:
        """Say what null means: absent where that is the default, else a value of its own."""
        if nullable and found.get("default", _NOTHING) is None:
            del found["default"]
        elif nullable:
            found["nullable"] = True
            if "enum" in found:
                self._refuse(path, "a server takes no null for a value of an enum: make None its default")

    def _check(self, schema: Json, found: Json, path: str) -> None:
        unknown = sorted(set(schema) - _KNOWN - {key for key in schema if key.startswith("x-kubernetes-")})
        if unknown:
            self._refuse(path, f"a structural schema does not know {', '.join(unknown)}")
        elif not ({"type", _INT_OR_STRING, _PRESERVE} & set(found)):
            self._refuse(path, "values of different types have no structural schema: use one type")


_RULES: Final = "x-kubernetes-validations"
_NOTHING: Final = object()
_KNOWN: Final = (
    _KEPT
    | _TALK
    | {"additionalProperties", "anyOf", "const", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maximum"}
    | {"minimum", "oneOf", "pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "required"}
    | {"uniqueItems", "x-key-defaults"}
)


def _without_null(schema: Json) -> tuple[Json, bool]:
    """Take null out of the alternatives."""
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
    """Write bounds as the API does, where a bound that is excluded is a bound with a mark."""
    found: Json = {}
    for name, tighter in (("minimum", max), ("maximum", min)):
        mark = f"exclusive{name.capitalize()}"
        given = [schema[key] for key in (name, mark) if key in schema]
        if given:
            found[name] = tighter(given)
        if mark in schema and found[name] == schema[mark]:
            found[mark] = True
    return found
