"""Literals of CEL: numbers, strings with escape sequences, bytes.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax.
"""

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from ocf.embedded.cel.unsupported import unsupported_feature

__all__ = ["LITERALS", "NO_POSITION", "RuleSyntaxError"]

NO_POSITION: Final = -1
"""The position of an error that concerns the whole expression."""


class RuleSyntaxError(Exception):
    """An expression has a syntax error or a type error.

    Args:
        text: The error text.
        at: Position of the error in the expression, from 0; or `NO_POSITION`.
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


def _unsigned(_: str, __: int) -> int:
    raise unsupported_feature("unsigned numbers")


def _string(text: str, at: int) -> str:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if text[:3] in ('"""', "'''") else 1
    return text[width:-width] if raw else "".join(_unescaped(text[width:-width], at))


_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.)|$)", re.DOTALL
)
_SURROGATES: Final = range(0xD800, 0xE000)
_PLAIN: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {
    sign: sign for sign in "\\?\"'`"
}


def _unescaped(text: str, at: int) -> Iterator[str]:
    end = 0
    for found in _ESCAPE.finditer(text):
        yield text[end : found.start()]
        *codes, octal, plain = found.groups()
        code = next((int(digits, 16) for digits in codes if digits), None)
        if code is not None or octal:
            code = int(octal, 8) if code is None else code
            if code > sys.maxunicode or code in _SURROGATES:
                raise RuleSyntaxError("invalid unicode code point", at)
            yield chr(code)
        elif plain in _PLAIN:
            yield _PLAIN[plain]
        else:
            raise RuleSyntaxError("Syntax error: unable to unescape string", at)
        end = found.end()
    yield text[end:]


def _bytes(text: str, at: int) -> bytes:
    body = text[1:]
    if "\\" in body and body[0] not in "rR":
        raise unsupported_feature("escapes in bytes")
    return _string(body, at).encode()


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
