"""Differences between two values as messages of the API server print them."""

import difflib
import json
from typing import Any, Final

__all__ = ["unified_diff"]

_HEADER_LINES: Final = 2


def unified_diff(old: Any, new: Any) -> str:
    """Return the unified diff of two values, as `Diff` in `pkg/util/diff` of apimachinery does.

    Args:
        old: The value before, with the names of the Go fields in the order of the Go type.
        new: The value after.

    Returns:
        The diff without file names, with three lines of context; empty if the values are equal.

    Example:
        >>> print(unified_diff({"VolumeName": "a"}, {"VolumeName": "b"}), end="")
        @@ -1,3 +1,3 @@
         {
        - "VolumeName": "a"
        + "VolumeName": "b"
         }
    """
    lines = [[f"{line}\n" for line in _pretty(value).split("\n")] for value in (old, new)]
    return "".join(list(difflib.unified_diff(*lines))[_HEADER_LINES:])


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
