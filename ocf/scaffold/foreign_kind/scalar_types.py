"""Types of scalars of a structural schema, with the limits that pydantic checks as the API server does."""

from __future__ import annotations

import math
import re
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
_NUMBERS: Final = {"minimum": "ge", "maximum": "le", "multipleOf": "multiple_of"}
_EXCLUSIVE: Final = {"minimum": ("exclusiveMinimum", "gt"), "maximum": ("exclusiveMaximum", "lt")}
_STRINGS: Final = {"maxLength": "max_length", "minLength": "min_length"}
_LISTS: Final = {"maxItems": "max_length", "minItems": "min_length"}
_MAPS: Final = {"maxProperties": "max_length", "minProperties": "min_length"}
_LIMITS: Final[Mapping[str, Mapping[str, str]]] = {
    "string": _STRINGS,
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "array": _LISTS,
    "object": _MAPS,
}
_LOWER_SIZES: Final = frozenset({"minLength", "minItems", "minProperties"})
# In a class of characters, Rust reads `&&`, `--`, `~~` and a bracket as operations of sets, and Go as characters.
# Classes such as \W and \S and the ends of words are of Unicode in Rust, and of ASCII in Go.
_READ_DIFFERENTLY: Final = re.compile(r"\\[WDSBb]|(?<!\\)\[\^[^\]]*\\[wds]|(?<!\\)\[[^\]]*(?:&&|--|~~|(?<!\\)\[(?!:))")
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
    values = [each for value in schema.get("enum") or () for each in _of_type(schema.get("type"), value)]
    if any(not isinstance(value, str | int) for value in values):
        return ()
    unique: dict[tuple[type, Any], Any] = {(type(value), value): value for value in values}
    return tuple(unique.values())


def _of_type(kind: object, value: Any) -> Iterator[Any]:
    """Yield a value of an enumeration if it is one of the type of the schema: the API server rejects any other."""
    match kind, value:
        case _, None:
            return
        case "string", str():
            yield value
        case ("boolean", bool()) | ("number", int() | float()) if kind == "boolean" or not isinstance(value, bool):
            yield value
        case "integer", int() | float() if not isinstance(value, bool) and float(value).is_integer():
            yield int(value)
        case "string" | "boolean" | "number" | "integer", _:
            return
        case _:
            yield value


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
    kind, found = _kind(schema), dict[str, Any]()
    for part in _parts(schema):
        for keyword, name, value in _limits(kind, part):
            if _is_checked(kind, keyword, value):
                found[name] = _stricter(name, found[name], value) if name in found else value
    return found


def _kind(schema: Mapping[str, Any]) -> str:
    return str(schema.get("type", "string" if schema.get("x-kubernetes-int-or-string") else ""))


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield {key: value for key, value in schema.items() if key not in _COMBINED}
    yield from schema.get("allOf") or ()


def _limits(kind: str, part: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield each limit of a part: its keyword, the argument of `Field`, and its value."""
    for keyword, name in _LIMITS.get(kind, {}).items():
        exclusive, strict = _EXCLUSIVE.get(keyword, ("", ""))
        if part.get(keyword) is not None:
            yield keyword, strict if part.get(exclusive) is True else name, part[keyword]
    if kind == "string" and part.get("pattern"):
        yield "pattern", "pattern", part["pattern"]


def _is_checked(kind: str, keyword: str, value: Any) -> bool:
    """Return whether pydantic accepts a limit, and checks it as the API server does."""
    if keyword == "pattern":
        return _is_supported(value)
    # Of 0.3 and a multiple of 0.1, pydantic computes a remainder, and the API server a quotient that is nearly 3.
    if keyword == "multipleOf":
        return value > 0 and float(value).is_integer()
    return value >= 0 if keyword not in _NUMBERS else kind != "integer" or float(value).is_integer()


def _unchecked(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about limits that pydantic does not check."""
    kind = _kind(schema)
    for place, part in enumerate(_parts(schema)):
        for keyword, _, value in _limits(kind, part):
            if _is_checked(kind, keyword, value) or (keyword in _LOWER_SIZES and value < 0):
                continue
            if keyword == "pattern":
                yield f"Pattern: `{value}`."
            # kube-openapi checks a limit against the type beside it, which `allOf` does not have.
            elif (kind == "integer" and place == 0) or (value <= 0 and keyword not in _EXCLUSIVE):
                yield f"The API server rejects every value, because `{keyword}` is {value}."
            else:
                yield f"Limit: `{keyword}` is {value}."


def _stricter(name: str, one: Any, other: Any) -> Any:
    if name == "multiple_of":
        return math.lcm(int(one), int(other))
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
    yield from _unchecked(schema)
    for keyword, phrase in (("oneOf", "Exactly one of these is set"), ("anyOf", "One of these is set at least")):
        names = [tuple(arm.get("required") or ()) for arm in schema.get(keyword) or ()]
        if names and all(names):
            yield f"{phrase}: {'; '.join(' and '.join(f'`{name}`' for name in each) for each in names)}."
    for rule in schema.get("x-kubernetes-validations") or ():
        yield f"Rule: {rule['message']}" if rule.get("message") else f"Rule: `{rule.get('rule')}`."


def matches(pattern: str, text: str) -> bool:
    """Return whether a text has a pattern; a pattern that pydantic cannot read counts as matched.

    Example:
        >>> matches("^[a-z]+$", "a"), matches("^[a-z]+$", "1"), matches("(?=a)", "b")
        (True, False, True)
    """
    engine = _engine(pattern)
    return engine is None or engine.isinstance_python(text)


def _is_supported(pattern: str) -> bool:
    return _READ_DIFFERENTLY.search(pattern) is None and _engine(pattern) is not None


@cache
def _engine(pattern: str) -> SchemaValidator | None:
    """Return pydantic's reader of a pattern; its syntax is that of Go but for a few rare parts."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None
