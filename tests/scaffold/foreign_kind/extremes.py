"""A definition with everything that makes generated code hard to lay out: long texts, quotes, odd characters."""

from __future__ import annotations

from typing import Any, Final

from ocf.scaffold.foreign_kind import ForeignKind

__all__ = ["EXTREME"]

_LONG: Final = "AnExtraordinarilyLongKindOfResource" + "X" * 28
_QUOTES: Final = 'He said "don\'t"; see C:\\new\\path. \'\'\' and """.'
_DESCRIPTION: Final = (
    f"{_QUOTES}\n\nArgs:\n  first: \u201cone\u201d \u2013 two\u2026\n\n- a list\n- of \u200bitems \u00d7 3\n\n"
    f"https://example.com/{'x' * 130}\n\nEnds with a backslash \\"
)
_TEXT: Final[dict[str, Any]] = {"type": "string", "description": _DESCRIPTION}
_PATTERN: Final = r"^(\"|'|\\d{1,3}|[a-z]\.)*" + "|".join(f"name-{number}" for number in range(30)) + "$"
_FIELDS: Final[dict[str, Any]] = {
    "text": _TEXT,
    "quoted": {"type": "string", "description": 'ends with "quotes"', "default": 'a"b\\c\n'},
    "pattern": {"type": "string", "pattern": _PATTERN, "nullable": True},
    "patterns": {"type": "array", "items": {"type": "string", "pattern": _PATTERN, "description": _DESCRIPTION}},
    "lookahead": {"type": "string", "pattern": "^(?=a)b$"},
    "mode": {
        "type": "string",
        "enum": ["a", "Any", "it's", 'say "x"', "\u00e9", "\U0001f600", "tab\t", "back\\slash", ""],
    },
    "modes": {"type": "array", "items": {"type": "string", "enum": [f"mode-{number}" for number in range(40)]}},
    "numbers": {"type": "array", "items": {"type": "integer", "enum": list(range(100))}},
    "flag": {"type": "boolean", "enum": [True]},
    "any": {"x-kubernetes-preserve-unknown-fields": True, "description": "\t"},
    "a" + "VeryLongNameOfAField" * 4: {"type": "object", "properties": {"b" + "VeryLongNameOfAField" * 4: _TEXT}},
    "list" + "OfLongNames" * 5: {
        "type": "array",
        "items": {"type": "object", "properties": {"c" + "VeryLongNameOfAField" * 3: {**_TEXT, "nullable": True}}},
    },
    "deep": {
        "type": "array",
        "items": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": _TEXT}}},
        },
    },
    "resource": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
    "choice": {
        "type": "object",
        "properties": {"a": _TEXT, "b": _TEXT},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "x-kubernetes-validations": [{"rule": "self.a.matches('\\\\d')"}, {"rule": "true", "message": 'no "quotes"'}],
    },
    **dict.fromkeys(("class", "l", "Any", "Field", "int", "_x", "\u00fc", "nullableFields", "1a", "\x00\n"), _TEXT),
    **{f"nullable{number}": {**_TEXT, "nullable": True} for number in range(12)},
}

EXTREME: Final = ForeignKind(
    group="extreme.example.com",
    version="v1",
    kind=_LONG,
    cluster_scoped=True,
    schema={
        "type": "object",
        "description": _DESCRIPTION,
        "properties": {"spec": {"type": "object", "properties": _FIELDS, "required": sorted(_FIELDS)[:9]}},
    },
    ready="Ready",
)
"""A kind with the longest name that the API allows."""
