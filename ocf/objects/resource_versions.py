"""Comparison of resource versions.

Resource versions of one kind can be compared where both are decimal numbers
(https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5504-comparable-resource-version). Any
other version is opaque: it can only be tested for equality.
"""

from functools import lru_cache
from typing import Final

__all__ = ["is_newer", "is_older", "number_of"]

# A uint64 has 20 digits; anything much longer is not a version and would be slow to parse.
_MAX_DIGITS: Final = 40


# While an object is written, the same few versions are compared again and again.
@lru_cache(maxsize=1024)
def number_of(version: str) -> int | None:
    """Parse a version as a number.

    Args:
        version: A resource version.

    Returns:
        The number; None for an opaque version.

    Example:
        >>> number_of("42"), number_of("v42"), number_of("")
        (42, None, None)
    """
    if version.isascii() and version.isdecimal() and len(version) <= _MAX_DIGITS:
        return int(version)
    return None


def is_older(version: str, than: str) -> bool:
    """Return whether a version is known to be older than another.

    Args:
        version: A resource version.
        than: The resource version to compare it with.

    Returns:
        False if the versions are equal, or one of them is opaque.

    Example:
        >>> is_older("9", "10"), is_older("10", "10"), is_older("a", "b")
        (True, False, False)
    """
    mine, other = number_of(version), number_of(than)
    return mine is not None and other is not None and mine < other


def is_newer(version: str, than: str) -> bool:
    """Return whether a version is known to be newer than another; False if one of them is opaque."""
    return is_older(than, version)
