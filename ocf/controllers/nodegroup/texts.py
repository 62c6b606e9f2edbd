"""Texts of bounded length for the status of objects."""

import re
from typing import Final

__all__ = ["is_same_problem", "shortened"]

_LONGEST: Final = 256
_NUMBERED: Final = re.compile(r"\S*\d\S*")


def is_same_problem(one: str, other: str) -> bool:
    """Return whether two error texts differ at most in words with digits, such as the ids of requests.

    Example:
        >>> is_same_problem("timeout (request-id 4f1)", "timeout (request-id 90c)"), is_same_problem("timeout", "quota")
        (True, False)
    """
    return _NUMBERED.sub("", one) == _NUMBERED.sub("", other)


def shortened(text: str) -> str:
    """Return a text, without its end if it is longer than 256 characters.

    Example:
        >>> shortened("a" * 300) == "a" * 255 + "…"
        True
    """
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
