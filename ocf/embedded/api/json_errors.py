"""Texts of Go's JSON decoder, in which API servers are written."""

import json
import re
from typing import Any, Final

from ocf.embedded.api.status_errors import go_shape
from ocf.objects.go_strings import go_quoted

__all__ = ["UNREADABLE_HEAD", "go_problem", "untyped_problem"]

UNREADABLE_HEAD: Final = "couldn't get version/kind; json parse error: "
"""Start of the message where `apiVersion` and `kind` of an object cannot be read."""


def untyped_problem(value: Any) -> str:
    """Return the text for JSON that is not an object, so that it has no `apiVersion` and `kind`.

    Args:
        value: The value.

    Example:
        >>> untyped_problem([])[:48]
        'json: cannot unmarshal array into Go value of ty'
    """
    head = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    return f"json: cannot unmarshal {go_shape(value)} into Go value of type {head}"


def go_problem(error: json.JSONDecodeError) -> str:
    """Return the text of Go's decoder for malformed JSON.

    Args:
        error: The error of Python's decoder, about a text whose bytes that are not UTF-8 are escaped as surrogates.

    Example:
        >>> try:
        ...     json.loads("[1")
        ... except json.JSONDecodeError as error:
        ...     print(go_problem(error))
        unexpected end of JSON input
    """
    text = error.doc
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return "unexpected end of JSON input"
    where, shift = next((found for start, found in _GO_PROBLEMS if error.msg.startswith(start)), ("", 0))
    at = min(error.pos + shift, len(text) - 1)
    if error.msg.startswith("Expecting ','"):
        where = "after array element" if _is_in_array(text[: error.pos]) else "after object key:value pair"
    # Go reads bytes, and shows each as the character of that number.
    shown = go_quoted(chr(text[at].encode(errors="surrogateescape")[0]))[1:-1].replace('\\"', '"')
    return f"invalid character '{shown}' {where or 'looking for beginning of value'}"


_GO_PROBLEMS: Final = (
    ("Extra data", ("after top-level value", 0)),
    ("Expecting ':'", ("after object key", 0)),
    ("Expecting property name", ("looking for beginning of object key string", 0)),
    ("Illegal trailing comma", ("looking for beginning of object key string", 1)),
    ("Invalid control character", ("in string literal", 0)),
    ("Invalid \\escape", ("in string escape code", 1)),
    ("Invalid \\u", ("in \\u hexadecimal character escape", 1)),
)
"""Problems of Python's decoder, those of Go's, and how many characters later Go sees them."""


def _is_in_array(text: str) -> bool:
    """Return whether the innermost value that JSON has opened and not closed is an array."""
    opened: list[str] = []
    for found in _MARKS.findall(text):
        if found in "[{":
            opened.append(found)
        elif found in "]}":
            opened.pop()
    return opened[-1:] == ["["]


_MARKS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
