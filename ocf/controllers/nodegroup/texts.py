"""Texts of bounded length for the status of objects."""

from typing import Final

__all__ = ["shortened"]

_LONGEST: Final = 256


def shortened(text: str) -> str:
    """Return a text, without its end if it is longer than 256 characters.

    Example:
        >>> shortened("a" * 300) == "a" * 255 + "…"
        True
    """
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
