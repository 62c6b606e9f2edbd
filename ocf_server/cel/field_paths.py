"""Paths in `fieldPath` of a rule, the field of its violations: `.spec.size` or `['spec']['size']`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["field_path"]

_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def field_path(path: str, schema: Mapping[str, Any]) -> str | None:
    """Return a path in the format of violations.

    Args:
        path: The `fieldPath` of a rule.

    Returns:
        The path; None if the schema does not have the field.

    Example:
        >>> schema = {"properties": {"labels": {"additionalProperties": {"type": "string"}}}}
        >>> field_path(".labels['app']", schema), field_path(".label", schema)
        ('labels[app]', None)
    """
    shown = ""
    steps = _steps(path)
    if steps is None:
        return None
    for name in steps:
        known, extra = schema.get("properties"), schema.get("additionalProperties")
        if known:
            if name not in known:
                return None
            shown, schema = f"{shown}.{name}" if shown else name, known[name]
        elif isinstance(extra, dict):
            shown, schema = f"{shown}[{name}]", extra
        else:
            return None
    return shown


def _steps(path: str) -> list[str] | None:
    found = [*_STEP.finditer(path)]
    if "".join(match.group() for match in found) != path:
        return None
    return [*_names(found)]


def _names(found: list[re.Match[str]]) -> Iterator[str]:
    for match in found:
        yield match[1] if match[1] is not None else re.sub(r"\\(.)", lambda sign: _ESCAPES.get(sign[1], ""), match[2])
