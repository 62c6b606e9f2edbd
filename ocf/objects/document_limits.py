"""Limits of the size of a document."""

from typing import Any, Final

__all__ = ["MAX_DEPTH", "MAX_VALUES", "is_nested_deeper"]

MAX_DEPTH: Final = 100
"""Maximum nesting of maps and lists; the schema of a large resource type needs about half of it."""

MAX_VALUES: Final = 300_000
"""Maximum number of values in a text, including keys; an alias counts as the values it repeats."""


def is_nested_deeper(value: Any, most: int) -> bool:
    """Return whether a value has more levels of maps and lists; it needs no recursion, and no time for scalars.

    Args:
        value: A JSON value; it must not contain itself.

    Example:
        >>> is_nested_deeper({"a": [1]}, 2), is_nested_deeper({"a": [[]]}, 2)
        (False, True)
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        below = (container.values() if isinstance(container, dict) else container for container in level)
        level = [item for items in below for item in items if isinstance(item, dict | list)]
    return bool(level)
