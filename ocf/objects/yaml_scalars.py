"""Unquoted scalars of YAML with the meaning they have in Kubernetes.

Kubernetes parses YAML 1.1 with a few changes: dates and sexagesimal numbers are strings, `1e3` is a number, `0o14` is
octal like `014`, and `y` is a boolean. All Python libraries differ from this in some way, so the rules are implemented
here, for parsing and for quoting. Numbers are then converted to JSON, where a whole number has no fraction: `1.0` is 1.
"""

import math
import re
from typing import Final, TypeAlias

__all__ = ["Scalar", "read_plain", "whole"]

Scalar: TypeAlias = str | int | float | bool | None

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
_BASES: Final = {"x": 16, "b": 2, "o": 8}
# The longest integer of 64 bits, in base two; a longer text is read as a float, which takes linear time.
_MAX_DIGITS: Final = 66
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**64 - 1
# From here on JSON is written with an exponent.
_WHOLE_FLOATS_END: Final = 1e21


def read_plain(text: str) -> Scalar:
    """Parse an unquoted scalar.

    Args:
        text: The scalar, without surrounding spaces.

    Returns:
        Its value; infinities and "not a number" as floats.

    Example:
        >>> [read_plain(text) for text in ("on", "0755", "1e3", "2001-12-14", "12:30:45", "~")]
        [True, 493, 1000, '2001-12-14', '12:30:45', None]
    """
    if text in _WORDS:
        return _WORDS[text]
    number = None
    if text[0] in "+-0123456789":
        digits = text.replace("_", "")
        number = _integer(digits) if _INTEGER.fullmatch(digits) else _float(digits)
    elif text[0] == ".":
        number = _float(text)
    return text if number is None else number


def whole(number: float) -> int | float:
    """Return a whole number as an integer, as JSON does."""
    return int(number) if number.is_integer() and abs(number) < _WHOLE_FLOATS_END else number


def _integer(digits: str) -> int | float | None:
    if len(digits) > _MAX_DIGITS:
        return _float(digits)
    magnitude = digits.lstrip("+-")
    base = 10
    if magnitude.startswith("0") and magnitude != "0":
        base = _BASES.get(magnitude[1].lower(), 8)
    number = int(magnitude, base)
    number = -number if digits.startswith("-") else number
    return number if _SMALLEST <= number <= _LARGEST else _float(digits)


def _float(digits: str) -> int | float | None:
    """Return a float; None for a text that is not a float, or too large."""
    number = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    return None if math.isinf(number) else whole(number)
