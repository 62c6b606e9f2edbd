"""Types of scalars of a structural schema, with the limits that pydantic checks as the API server does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from ocf.scaffold.foreign_kind.description import TypeModel

__all__ = ["enumeration", "limits_of", "matches", "notes_of", "scalar"]

_SCALARS: Final = {
    "string": "str",
    "integer": "StrictInt",
    "number": "Number",
    "boolean": "StrictBool",
}
_NUMBERS: Final = {"multipleOf": "multiple_of"}
_STRINGS: Final = {"maxLength": "max_length", "minLength": "min_length"}
_LISTS: Final = {"maxItems": "max_length", "minItems": "min_length"}
_MAPS: Final = {"maxProperties": "max_length", "minProperties": "min_length"}
_CHECKED_FORMATS: Final = {"date-time": "DateTime"}
_QUANTITY: Final = "[KMGTPE]i"
_COMBINED: Final = ("allOf", "anyOf", "oneOf", "not")


def scalar(schema: Mapping[str, Any]) -> TypeModel:
    """Return the type of a scalar; `Any` if the schema does not say one.

    Args:
        schema: A schema that is not an object, a list or an enumeration.

    Example:
        >>> scalar({"type": "integer", "minimum": 1, "format": "int32"})
        TypeModel(text='StrictInt', limits={'ge': 1}, notes=())
        >>> scalar({"x-kubernetes-int-or-string": True}).text
        'IntOrString'
    """
    limits = limits_of(schema)
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string(schema, limits)
    kind = _SCALARS.get(str(schema.get("type")), "Any")
    if kind == "str" and not limits:
        kind = _CHECKED_FORMATS.get(str(schema.get("format")), kind)
    return TypeModel(kind, limits, tuple(notes_of(schema)))


def _int_or_string(schema: Mapping[str, Any], limits: Mapping[str, Any]) -> TypeModel:
    if _QUANTITY in str(schema.get("pattern")):
        return TypeModel("QuantityValue")
    pattern = limits.get("pattern")
    notes = [*notes_of(schema), *([f"Pattern of a string: `{pattern}`."] if pattern else [])]
    return TypeModel("IntOrString", notes=tuple(notes))


def enumeration(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values of an enumeration that Python can name as `Literal`; else none.

    Args:
        schema: Any schema.

    Example:
        >>> enumeration({"type": "string", "enum": ["a", "b", None]}), enumeration({"enum": [0.5]})
        (('a', 'b'), ())
    """
    values = [value for value in schema.get("enum") or () if value is not None]
    if any(not isinstance(value, str | int) for value in values):
        return ()
    unique: dict[tuple[type, Any], Any] = {(type(value), value): value for value in values}
    return tuple(unique.values())


def limits_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a schema and of its `allOf` as arguments of `Field`.

    Args:
        schema: Any schema.

    Example:
        >>> limits_of({"type": "number", "minimum": 0, "exclusiveMinimum": True, "allOf": [{"maximum": 9}]})
        {'gt': 0, 'le': 9}
        >>> limits_of({"type": "array", "maxItems": 4})
        {'max_length': 4}
    """
    kind = schema.get("type", "string" if schema.get("x-kubernetes-int-or-string") else None)
    found: dict[str, Any] = {}
    for part in ({key: value for key, value in schema.items() if key not in _COMBINED}, *schema.get("allOf", ())):
        for name, value in _limits(kind, part):
            found[name] = _stricter(name, found[name], value) if name in found else value
    return found


def _limits(kind: object, part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    names = {"string": _STRINGS, "integer": _NUMBERS, "number": _NUMBERS, "array": _LISTS, "object": _MAPS}
    yield from ((name, part[key]) for key, name in names.get(str(kind), {}).items() if part.get(key) is not None)
    if kind in {"integer", "number"}:
        if "minimum" in part:
            yield ("gt" if part.get("exclusiveMinimum") is True else "ge"), part["minimum"]
        if "maximum" in part:
            yield ("lt" if part.get("exclusiveMaximum") is True else "le"), part["maximum"]
    if kind == "string" and part.get("pattern") and _is_supported(part["pattern"]):
        yield "pattern", part["pattern"]


def _stricter(name: str, one: Any, other: Any) -> Any:
    if name in {"ge", "gt", "min_length"}:
        return max(one, other)
    return min(one, other) if name in {"le", "lt", "max_length"} else one


def notes_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about what pydantic does not check.

    Args:
        schema: Any schema.

    Example:
        >>> list(notes_of({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b", "c"]}]}))
        ['Exactly one of these is set: `a`; `b` and `c`.']
    """
    if schema.get("format") and schema["format"] not in {*_CHECKED_FORMATS, "int32", "int64"}:
        yield f"Format: {schema['format']}."
    if schema.get("pattern") and not _is_supported(schema["pattern"]):
        yield f"Pattern: `{schema['pattern']}`."
    for keyword, phrase in (("oneOf", "Exactly one of these is set"), ("anyOf", "One of these is set at least")):
        names = [tuple(arm.get("required") or ()) for arm in schema.get(keyword) or ()]
        if names and all(names):
            yield f"{phrase}: {'; '.join(' and '.join(f'`{name}`' for name in each) for each in names)}."
    for rule in schema.get("x-kubernetes-validations") or ():
        yield f"Rule: {rule['message']}" if rule.get("message") else f"Rule: `{rule.get('rule')}`."


def matches(pattern: str, text: str) -> bool:
    """Return whether a text has a pattern; a pattern that pydantic cannot read counts as matched.

    Args:
        pattern: The pattern.
        text: The text.

    Example:
        >>> matches("^[a-z]+$", "a"), matches("^[a-z]+$", "1"), matches("(?=a)", "b")
        (True, False, True)
    """
    engine = _engine(pattern)
    return engine is None or engine.isinstance_python(text)


def _is_supported(pattern: str) -> bool:
    return _engine(pattern) is not None


@cache
def _engine(pattern: str) -> SchemaValidator | None:
    """Return pydantic's reader of a pattern; its syntax is that of Go but for a few rare parts."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None
