"""Values as literals of Python."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["literal"]


def literal(value: Any) -> str:
    r"""Return a value as a literal, spelled as ruff spells it.

    Args:
        value: A text, a number or a boolean.

    Example:
        >>> [literal(value) for value in ("a", 'a"b', r"^\d+$", 3, 0.5, True)]
        ['"a"', '\'a"b\'', 'r"^\\d+$"', '3', '0.5', 'True']
    """
    if not isinstance(value, str):
        return (
            repr(int(value))
            if isinstance(value, float) and value.is_integer() and math.isfinite(value)
            else repr(value)
        )
    plain = value.isascii() and value.isprintable()
    quote = "'" if value.count('"') > value.count("'") else '"'
    if plain and "\\" in value and quote not in value and not value.endswith("\\"):
        return f"r{quote}{value}{quote}"
    encoded = value.encode("unicode_escape").decode("ascii")
    return quote + encoded.replace(quote, f"\\{quote}") + quote
