"""Lines of values in a JSON text."""

import json
import re
from collections.abc import Sequence
from typing import Final

__all__ = ["line_of"]

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[\s,:]*")


def line_of(text: str, path: Sequence[str | int]) -> int:
    r"""Return the line of a value.

    Args:
        path: Keys and positions that lead to the value; it must exist.

    Example:
        >>> line_of('{"a": [1,\n2]}', ("a", 1))
        2
    """
    at = _skip(text, 0)
    for part in path:
        at = _skip(text, at + 1)
        if isinstance(part, str):
            key, at = _DECODER.raw_decode(text, at)
            while key != part:
                _, at = _DECODER.raw_decode(text, _skip(text, at))
                key, at = _DECODER.raw_decode(text, _skip(text, at))
            at = _skip(text, at)
        else:
            for _ in range(part):
                _, end = _DECODER.raw_decode(text, at)
                at = _skip(text, end)
    return text.count("\n", 0, at) + 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
