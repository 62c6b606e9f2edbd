"""Smallest object that the schema of a custom resource accepts, as a sample to begin with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ocf.objects import Manifest
from ocf.scaffold.foreign_kind.definition import ForeignKind
from ocf.scaffold.foreign_kind.scalar_types import matches

__all__ = ["minimal_sample"]

_TEXTS: Final = (
    "sample",
    "Sample",
    "sample.example.com",
    "https://sample.example.com",
    "oci://sample.example.com/sample",
    "s3://sample",
    "10m",
    "10m0s",
    "1",
    "1Gi",
    "1.0.0",
    "v1.0.0",
    "*",
    "/sample",
    "sample/sample",
    "sample.example.com/sample",
    "sample:sample",
    "10.0.0.0/16",
    "10.0.0.1",
    "fd00::/64",
    "0 0 * * *",
    "2026-01-31T12:00:00Z",
    "a",
    "",
)
"""Texts that are tried for a pattern."""
_MOST: Final = 100
"""Items of the longest list."""
_LONGEST: Final = 10_000
"""Characters of the longest text."""
_FORMATS: Final = {"date-time": "2026-01-31T12:00:00Z", "date": "2026-01-31", "byte": "c2FtcGxl", "duration": "10m"}


def minimal_sample(kind: ForeignKind) -> Manifest:
    """Return an object with the required fields only, in the namespace `default` unless it has none.

    Returns:
        The object; a text whose pattern none of the known texts has is `sample`, and what CEL rules ask for is not
        known, so the API server may reject it.

    Example:
        >>> spec = {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer", "minimum": 1}}}
        >>> schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
        >>> minimal_sample(
        ...     ForeignKind(
        ...         group="example.com", version="v1", kind="Cache", cluster_scoped=False, schema=schema, ready=""
        ...     )
        ... )["spec"]
        {'port': 1}
    """
    place = {} if kind.cluster_scoped else {"namespace": "default"}
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "sample", **place}}
    properties = kind.schema.get("properties") or {}
    wanted = {*(kind.schema.get("required") or ()), *({"spec"} & set(properties))} - {*head, "status"}
    return {**head, **{name: _value(properties[name]) for name in properties if name in wanted}}


def _value(schema: Mapping[str, Any]) -> Any:
    values = [value for value in schema.get("enum") or () if value is not None and value != ""]
    if "default" in schema or values:
        return schema["default"] if "default" in schema else values[0]
    made = _BY_TYPE.get(str(schema.get("type") or ("object" if schema.get("properties") else "integer")))
    return made(schema) if made is not None else None


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    arms: Sequence[Mapping[str, Any]] = schema.get("oneOf") or schema.get("anyOf") or ()
    required = {*(schema.get("required") or ()), *((arms[0].get("required") or ()) if arms else ())}
    head = {"apiVersion": "v1", "kind": "ConfigMap"} if schema.get("x-kubernetes-embedded-resource") else {}
    found = {name: _value(below) for name, below in properties.items() if name in required and "default" not in below}
    values = schema.get("additionalProperties")
    for number in range(_few(schema.get("minProperties")) if not found else 0):
        name = [*properties, *(f"sample{count}" for count in range(number + 1))][number]
        found[name] = _value(properties.get(name) or (values if isinstance(values, Mapping) else {"type": "string"}))
    return {**head, **found}


def _few(number: int | None) -> int:
    return min(max(number or 0, 0), _MOST)


def _true(_schema: Mapping[str, Any]) -> bool:
    return True


def _list(schema: Mapping[str, Any]) -> list[Any]:
    return [_value(schema.get("items") or {}) for _ in range(_few(schema.get("minItems")))]


def _number(schema: Mapping[str, Any]) -> Any:
    step = schema.get("multipleOf") or 1
    low = schema.get("minimum", 0 if schema.get("maximum", 1) >= 1 else schema["maximum"])
    number = -(-low // step) * step
    if not math.isfinite(number):
        return low
    if schema.get("type") == "integer":
        number = math.ceil(number)
    return number + step if schema.get("exclusiveMinimum") and number == low else number


def _text(schema: Mapping[str, Any]) -> str:
    shortest, longest = min(schema.get("minLength") or 0, _LONGEST), schema.get("maxLength")
    texts = [text for known in _TEXTS if (text := known.ljust(shortest, "a") if known else known)]
    first = _FORMATS.get(str(schema.get("format")))
    for text in (first, *texts, "") if first else (*texts, ""):
        if shortest <= len(text) and (longest is None or len(text) <= longest) and _matches(schema, text):
            return text
    return "sample"


def _matches(schema: Mapping[str, Any], text: str) -> bool:
    return all(matches(part["pattern"], text) for part in (schema, *schema.get("allOf", ())) if part.get("pattern"))


_BY_TYPE: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "array": _list,
    "boolean": _true,
    "integer": _number,
    "number": _number,
    "object": _object,
    "string": _text,
}
