"""Names that a user may have meant, for messages about unknown ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["nearest", "suggestions"]

_CLOSE: Final = 0.7
"""How alike names are, from 0 to 1. At 0.6, the default of difflib, `failures` was suggested for `value`."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most likely meant; empty without a likely one.

    Example:
        >>> nearest("max_replica", ["minReplicas", "maxReplicas"])
        'maxReplicas'
    """
    return next(iter(suggestions(name, known, most=1)), "")


def suggestions(name: str, known: Iterable[str], *, most: int) -> list[str]:
    """Return the known names that are likely meant, the likeliest first.

    Upper case and separators do not count, so that `max_replicas` is `maxReplicas`. A name may also be cut off, as in
    `deploy`.

    Args:
        most: The largest number of names.
    """
    from difflib import get_close_matches  # an error is rare, and commands start faster without it

    spelled: dict[str, list[str]] = {}
    for one in known:
        spelled.setdefault(_plain(one), []).append(one)
    wanted = _plain(name)
    exact = [wanted] if wanted in spelled else []
    begun = [one for one in spelled if one.startswith(wanted)] if len(wanted) > len("ab") else []
    # Of short names with two letters swapped, a third of the letters differs.
    swapped = [one for one in spelled if sorted(one) == sorted(wanted)] if wanted else []
    close = get_close_matches(wanted, spelled, n=most, cutoff=_CLOSE)
    return [one for each in dict.fromkeys([*exact, *swapped, *close, *begun]) for one in spelled[each]][:most]


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
