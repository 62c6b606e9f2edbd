"""Unified diffs of two texts."""

import difflib

__all__ = ["unified"]


def unified(before: str, after: str, *, before_name: str, after_name: str) -> str:
    r"""Return the differences of two texts.

    Args:
        before_name: Name of `before` in the header of the diff.
        after_name: Name of `after` in the header of the diff.

    Returns:
        A unified diff with three lines of context; empty for equal texts.

    Example:
        >>> print(unified("a: 1\n", "a: 2\n", before_name="golden", after_name="rendered"))
        --- golden
        +++ rendered
        @@ -1 +1 @@
        -a: 1
        +a: 2
    """
    found = difflib.unified_diff(_lines(before), _lines(after), before_name, after_name, lineterm="")
    return "\n".join(found)


def _lines(text: str) -> list[str]:
    # Split at line feeds only: other line separators may be part of a value.
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last, "(no line feed at the end)"] if last else lines
