"""Equality of JSON values."""

from typing import Any

__all__ = ["equal_json"]


def equal_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal; unlike with `==`, a boolean does not equal a number.

    Example:
        >>> equal_json({"on": True}, {"on": 1}), equal_json([1], [1.0])
        (False, True)
    """
    # Most values differ or are the same object; only equal ones have to be traversed.
    return left is right or (left == right and _same_booleans(left, right))


def _same_booleans(left: Any, right: Any) -> bool:
    """Return whether equal values have booleans in the same places; strings need no check."""
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
