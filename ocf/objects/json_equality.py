"""Equality of JSON values."""

from typing import Any

__all__ = ["equal_json"]


def equal_json(left: Any, right: Any) -> bool:
    """Compare JSON values; unlike `==`, a boolean is no number.

    Args:
        left: A JSON value.
        right: Another one.

    Returns:
        Whether they are the same value; 1 and 1.0 are.

    Example:
        >>> equal_json({"on": True}, {"on": 1}), equal_json([1], [1.0])
        (False, True)
    """
    # Most values differ, or are the same object; only equal ones are worth the walk.
    return left is right or (left == right and _same_booleans(left, right))


def _same_booleans(left: Any, right: Any) -> bool:
    """Say whether what is equal is also equal where it is a boolean; texts need no look."""
    if left is right or left.__class__ is str:
        return True
    if left.__class__ is dict:
        for key, value in left.items():
            if value.__class__ is not str and not _same_booleans(value, right[key]):
                return False
        return True
    if left.__class__ is list:
        return all(map(_same_booleans, left, right))
    return isinstance(left, bool) == isinstance(right, bool)
