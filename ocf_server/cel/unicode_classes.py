r"""Classes of characters that `\p{NAME}` selects: general categories and scripts of Unicode.

Names and members are those of Go's regular expressions; `scripts/generate/unicode_classes.py` writes the table. Source:
https://pkg.go.dev/regexp/syntax.
"""

import gzip
import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate

__all__ = ["UnicodeClass", "unicode_class"]


@dataclass(frozen=True, slots=True)
class UnicodeClass:
    """A class of characters.

    Args:
        bounds: Code points at which ranges begin and end, in turn, in order; an end does not belong to its range.
    """

    bounds: tuple[int, ...]

    def has(self, char: str) -> bool:
        """Return whether a character belongs to the class."""
        return bisect_right(self.bounds, ord(char)) % 2 == 1


def unicode_class(name: str) -> UnicodeClass | None:
    """Return a class by its name, without regard to case, spaces, underscores and hyphens.

    Args:
        name: A category (`Lu`, `Letter`), a script (`Greek`), `ASCII` or `Assigned`.

    Returns:
        The class; None if Go has none of that name, as for scripts of several words.

    Example:
        >>> greek = unicode_class("greek")
        >>> assert greek is not None
        >>> greek.has("\u03b1"), greek.has("a"), unicode_class("Klingon")
        (True, False, None)
    """
    return _classes().get(_canonical(name))


def _canonical(name: str) -> str:
    words = "".join(char for char in name if char not in "_- ")
    # Of ASCII letters only: no name has others, and `str.capitalize` maps some of them to ASCII.
    return words.capitalize() if words.isascii() else words


@cache
def _classes() -> Mapping[str, UnicodeClass]:
    table = files("ocf_server.cel").joinpath("unicode_classes.json.gz").read_bytes()
    found: dict[str, UnicodeClass] = {}
    for names, differences in json.loads(gzip.decompress(table)):
        members = UnicodeClass(tuple(accumulate(differences)))
        found |= {_canonical(name): members for name in names}
    return found
