"""Alternatives of a JSON schema as one schema, where a structural schema has one for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ocf.runtime.crds.schema_keywords import ANNOTATIONS, INT_OR_STRING, SCALARS

__all__ = ["merged_alternatives", "refused_alternatives"]

Json = dict[str, Any]

_DESCRIPTIONS: Final = ANNOTATIONS | {"type", "description"}
_LIMITS: Final[dict[str, frozenset[str]]] = {
    "integer": frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"}),
    "string": frozenset({"maxLength", "minLength", "pattern"}),
}
"""Keywords that the API server applies to values of one type only, so those of an integer do not affect a string."""


def merged_alternatives(arms: Sequence[Json]) -> Json | None:
    """Return the schema of the values that any of the alternatives accepts.

    Args:
        arms: Schemas without references, at least two.

    Returns:
        The schema: of an integer or a string, each with its limits; of a number; or of an enumeration. None if a
        structural schema cannot express the alternatives.

    Example:
        >>> merged_alternatives([{"type": "integer", "minimum": 0}, {"type": "string", "enum": ["auto"]}])
        {'x-kubernetes-int-or-string': True, 'minimum': 0, 'pattern': '^(auto)$'}
    """
    limits = [{key: value for key, value in arm.items() if key not in _DESCRIPTIONS} for arm in arms]
    types = [arm.get("type") for arm in arms]
    if sorted(map(str, types)) == ["integer", "string"]:
        found = [_limited(kind, limit) for kind, limit in zip(types, limits, strict=True)]
        merged = {key: value for each in found for key, value in (each or {}).items()}
        return None if None in found else {INT_OR_STRING: True, **merged}
    if set(types) == {"integer", "number"} and not any(limits):
        return {"type": "number"}
    values = [_values(limit) for limit in limits]
    if len(set(types)) == 1 and types[0] in SCALARS and all(values):
        return {"type": types[0], "enum": list(dict.fromkeys(value for each in values for value in each))}
    return None


def refused_alternatives(arms: Sequence[Json]) -> str:
    """Return why alternatives have no structural schema, with what to use instead.

    Args:
        arms: Schemas without references.
    """
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
