"""Bisection of whole numbers."""

from collections.abc import Callable

__all__ = ["first_holding"]


def first_holding(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first number for which a condition holds.

    Args:
        high: The end; the condition is not evaluated for it.
        holds: The condition; from the first number for which it holds, it holds for all larger ones.

    Returns:
        The number; `high` if the condition holds for none below.

    Example:
        >>> first_holding(0, 100, lambda number: number * number >= 50)
        8
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
