"""Rules of an admission policy from the bounds that a pydantic model states."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from ocf.errors import BuildError
from ocf.runtime.crds.json_schema import json_schema
from ocf.runtime.crds.markers import DECIMAL_PATTERN, DURATION_PATTERN, QUANTITY_PATTERN
from ocf.runtime.crds.structural_schema import StructuralSchemaConverter
from ocf.runtime.crds.versioned_resource import VersionedResource

__all__ = ["BoundRule", "bound_rules"]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_BEING_DELETED: Final = "has(object.metadata.deletionTimestamp)"
_FIELD: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_WORDS: Final = frozenset({"false", "in", "null", "true"})
# Patterns of types, not of authors: the kind's own schema has them.
_OF_TYPES: Final = frozenset({QUANTITY_PATTERN, DECIMAL_PATTERN, DURATION_PATTERN})
_FORMATS: Final = frozenset({"byte", "date", "date-time", "double", "float", "int32", "int64", "password"})
_STRUCTURE: Final = frozenset(
    {"additionalProperties", "default", "description", "items", "nullable", "properties", "required", "type"}
    | {_PRESERVE, _INT_OR_STRING, "x-kubernetes-list-map-keys"}
)
_SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})
_SIZES: Final = {
    "minLength": ("at least", "character"),
    "maxLength": ("at most", "character"),
    "minItems": ("at least", "item"),
    "maxItems": ("at most", "item"),
    "minProperties": ("at least", "entry"),
    "maxProperties": ("at most", "entry"),
}
_PLURALS: Final = {"entry": "entries"}


class BoundRule(NamedTuple):
    """A rule: its expression, its message, and an expression of a message with the value; empty where it has none."""

    expression: str
    message: str
    message_expression: str = ""


def bound_rules(model: type[BaseModel]) -> list[BoundRule]:
    """Return the rules of the bounds of a model.

    Args:
        model: The object, or a part of it from its root on.

    Raises:
        BuildError: If the model has no bounds, declares a custom resource, or has a bound that cannot be a rule.

    Example:
        >>> from pydantic import Field
        >>> class Small(BaseModel):
        ...     replicas: int = Field(1, le=3)
        >>> bound_rules(Small)[0].message
        'replicas: must be at most 3'
    """
    if isinstance(getattr(model, "resource", None), VersionedResource):
        raise BuildError([f"bounds: the definition of {model.__name__} has its bounds already, so it needs no policy"])
    said = json_schema(model, authors_fields=True)
    converter = StructuralSchemaConverter(said.pop("$defs", {}))
    schema = converter.of(said, "")
    walk = _Walk([f"bounds: {problem}" for problem in converter.problems])
    found = list(walk.rules(schema, _Place("object", "", (_BEING_DELETED,))))
    if not found and not walk.problems:
        walk.problems.append(f"bounds: {model.__name__} states no bound of a field, such as Field(le=10)")
    if walk.problems:
        raise BuildError(walk.problems)
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """A value of an object.

    Args:
        value: Its expression.
        path: Its path, as users read it.
        guards: Expressions that are true where there is nothing to check.
        shown: Whether a message can quote it.
    """

    value: str
    path: str
    guards: tuple[str, ...] = ()
    shown: bool = True

    def field(self, name: str) -> _Place:
        value, path = f"{self.value}.{name}", f"{self.path}.{name}" if self.path else name
        return _Place(value, path, (*self.guards, f"!has({value})"), self.shown)

    def rule(self, condition: str, must: str, *guards: str, scalar: bool = False) -> BoundRule:
        message = f"{self.path or 'the object'}: must {must}"
        expression = " || ".join([*self.guards, *guards, condition])
        got = f"{_literal(f'{message}, got ')} + string({self.value})" if scalar and self.shown else ""
        return BoundRule(expression, message, got)


@dataclass(slots=True)
class _Walk:
    """Collects rules, and the problems of bounds that cannot be one."""

    problems: list[str] = field(default_factory=list)
    depth: int = 0

    def rules(self, schema: dict[str, Any], at: _Place) -> Iterator[BoundRule]:
        """Yield the rules of a schema."""
        if schema.get("nullable"):
            at = _Place(at.value, at.path, (*at.guards, f"{at.value} == null"), at.shown)
        known = _STRUCTURE | {*_SIZES, "enum", "format", "maximum", "minimum", "multipleOf", "pattern", _LIST_TYPE}
        for key in sorted({*schema} - known - {"exclusiveMaximum", "exclusiveMinimum"}):
            self._reject(at, f"{key} cannot be a rule of a policy: write a Validation")
        yield from self._scalar_rules(schema, at)
        yield from self._size_rules(schema, at)
        for name, below in schema.get("properties", {}).items():
            if not _FIELD.fullmatch(name) or name in _WORDS:
                self._reject(at, f'the field "{name}" is not an identifier of CEL: write a Validation')
                continue
            inner = at.field(name)
            if name in schema.get("required", ()):
                yield _Place(inner.value, inner.path, at.guards, at.shown).rule(f"has({inner.value})", "be set")
            yield from self.rules(below, inner)
        yield from self._inner_rules(schema, at)

    def _reject(self, at: _Place, detail: str) -> None:
        self.problems.append(f"bounds: {at.path or 'the object'}: {detail}")

    def _scalar_rules(self, schema: dict[str, Any], at: _Place) -> Iterator[BoundRule]:
        mixed = _INT_OR_STRING in schema
        number = (f"type({at.value}) != int",) if mixed else ()
        text = (f"type({at.value}) != string",) if mixed else ()
        scalar = mixed or schema.get("type") in _SCALARS
        for key, sign, must in (("minimum", ">", "at least"), ("maximum", "<", "at most")):
            if key in schema:
                bound = _literal(schema[key])
                condition, text_of = f"{at.value} {sign}= {bound}", f"be {must} {bound}"
                if schema.get(f"exclusive{key.capitalize()}"):
                    condition, text_of = (
                        f"{at.value} {sign} {bound}",
                        f"be {'above' if sign == '>' else 'below'} {bound}",
                    )
                yield at.rule(condition, text_of, *number, scalar=scalar)
        if "multipleOf" in schema:
            step = schema["multipleOf"]
            if schema.get("type") == "integer" and isinstance(step, int):
                yield at.rule(f"{at.value} % {step} == 0", f"be a multiple of {step}", scalar=scalar)
            else:
                self._reject(at, "CEL has no remainder of a number that is not an integer: write a Validation")
        pattern = schema.get("pattern")
        if pattern is not None and pattern not in _OF_TYPES:
            yield at.rule(f"{at.value}.matches({_literal(pattern)})", f"match {pattern}", *text, scalar=scalar)
        if "enum" in schema:
            values = ", ".join(map(_literal, schema["enum"]))
            yield at.rule(f"{at.value} in [{values}]", f"be one of {values}", scalar=scalar)
        if schema.get("format", "date") not in _FORMATS:
            self._reject(at, f'the format "{schema["format"]}" cannot be a rule of a policy: use a pattern')

    def _size_rules(self, schema: dict[str, Any], at: _Place) -> Iterator[BoundRule]:
        text = (f"type({at.value}) != string",) if _INT_OR_STRING in schema else ()
        for key, (must, what) in _SIZES.items():
            if key in schema:
                count = schema[key]
                sign = ">=" if key.startswith("min") else "<="
                named = what if count == 1 else _PLURALS.get(what, f"{what}s")
                yield at.rule(f"size({at.value}) {sign} {count}", f"have {must} {count} {named}", *text)
        if _LIST_TYPE in schema:
            # Comparing each item with each other would soon exceed what a real API server lets a rule cost.
            self._reject(
                at, f"a list of the type {schema[_LIST_TYPE]} cannot be a rule of a policy: write a Validation"
            )

    def _inner_rules(self, schema: dict[str, Any], at: _Place) -> Iterator[BoundRule]:
        """Yield the rules of the items of a list, or of the values of a map."""
        for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
            inner = schema.get(key)
            if not isinstance(inner, dict):
                continue
            self.depth += 1
            name = f"x{self.depth}"
            value = name if key == "items" else f"{at.value}[{name}]"
            for rule in self.rules(inner, _Place(value, f"{at.path}{mark}", shown=False)):
                expression = f"{at.value}.all({name}, {rule.expression})"
                yield BoundRule(" || ".join([*at.guards, expression]), rule.message)
            self.depth -= 1


def _literal(value: Any) -> str:
    """Return a value as CEL has it, whose strings have the escapes of JSON."""
    return json.dumps(value, ensure_ascii=False)
