"""Literals of CEL: numbers, strings with escape sequences, bytes.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax.
"""

import math
import re
import sys
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, Final

from ocf_server.cel.values import Uint

__all__ = ["LITERALS", "RuleSyntaxError"]


class RuleSyntaxError(Exception):
    """An expression has a syntax error or a type error.

    Args:
        at: Position of the error in the expression, from 0.
    """

    def __init__(self, text: str, at: int) -> None:
        super().__init__(text)
        self.text, self.at = text, at


def _integer(text: str, at: int) -> int:
    digits = "".join(text.split())  # spaces may follow the sign
    try:
        value = int(digits, 16 if "x" in digits else 10)
    except ValueError:  # Python limits the number of digits
        value = 2**63
    if not -(2**63) <= value < 2**63:
        raise RuleSyntaxError("invalid int literal", at)
    return value


def _double(text: str, at: int) -> float:
    value = float("".join(text.split()))
    if math.isinf(value):
        raise RuleSyntaxError("invalid double literal", at)
    return value


def _unsigned(text: str, at: int) -> Uint:
    digits = text[:-1]
    try:
        value = int(digits, 16 if "x" in digits else 10)
    except ValueError:  # Python limits the number of digits
        value = 2**64
    if value >= 2**64:
        raise RuleSyntaxError("invalid uint literal", at)
    return Uint(value)


def _string(text: str, at: int) -> str:
    return "".join(map(_character, _body(text), repeat(at)))


def _bytes(text: str, at: int) -> bytes:
    return b"".join(map(_octets, _body(text[1:]), repeat(at)))


def _body(text: str) -> Iterator[str]:
    """Yield the parts between the quotes of a literal: escape sequences, and the texts between them."""
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if text[:3] in ('"""', "'''") else 1
    body = text[width:-width]
    # A raw literal has no escape sequences, so a backslash stands for itself.
    yield from ("\\\\" if char == "\\" else char for char in body) if raw else _PARTS.findall(body)


_PARTS: Final = re.compile(
    r"[^\\]+|\\x[0-9a-fA-F]{2}|\\X[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\[0-3][0-7]{2}|\\.|\\$", re.DOTALL
)
_SURROGATES: Final = range(0xD800, 0xE000)
_PLAIN: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {
    sign: sign for sign in "\\?\"'`"
}


def _code(part: str) -> int | None:
    """Return the number in an escape sequence; None if it has none."""
    if part[0] != "\\" or len(part) < 4:  # noqa: PLR2004
        return None
    return int(part[1:], 8) if part[1].isdecimal() else int(part[1:].lstrip("xXuU"), 16)


def _character(part: str, at: int) -> str:
    code = _code(part)
    if code is not None:
        if code > sys.maxunicode or code in _SURROGATES:
            raise RuleSyntaxError("invalid unicode code point", at)
        return chr(code)
    if part[0] != "\\":
        return part
    if part[1:] not in _PLAIN:
        raise RuleSyntaxError("Syntax error: unable to unescape string", at)
    return _PLAIN[part[1:]]


def _octets(part: str, at: int) -> bytes:
    if part[0] == "\\" and part[1:2] in ("u", "U"):
        raise RuleSyntaxError("unable to unescape string", at)
    code = _code(part)
    return _character(part, at).encode() if code is None else bytes([code])


LITERALS: Final[dict[str, Callable[[str, int], Any]]] = {
    "INT": _integer,
    "UINT": _unsigned,
    "FLOAT": _double,
    "STRING": _string,
    "BYTES": _bytes,
    "BOOL": lambda text, _: text == "true",
    "NULL": lambda _, __: None,
}
"""Parsers of literals by the name of their token; the arguments are the text and the position."""
