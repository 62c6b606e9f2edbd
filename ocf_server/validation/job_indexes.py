"""Texts with the indexes of a Job, such as `0,2-4`.

Source: `validateIndexesFormat` and `parseIndexInterval` in `pkg/apis/batch/validation/validation.go` of Kubernetes.
"""

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["IndexesError", "index_interval", "index_intervals"]

_LIMITS: Final = 2
_is_number: Final = re.compile("[+-]?[0-9]+").fullmatch


class IndexesError(Exception):
    """A text of indexes is malformed; the message is that of the API server."""


def index_intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each interval of a text.

    Args:
        completions: Number of indexes of the Job.

    Raises:
        IndexesError: If the text is malformed.

    Example:
        >>> list(index_intervals("0,2-4", 5))
        [(0, 0), (2, 4)]
    """
    last: int | None = None
    for part in text.split(",") if text else ():
        first, end = index_interval(part, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        last = end
        yield first, end


def index_interval(text: str, completions: int) -> tuple[int, int]:
    """Return the first and the last index of one interval.

    Args:
        completions: Number of indexes of the Job.

    Raises:
        IndexesError: If the text is malformed.
    """
    limits = text.split("-")
    if len(limits) > _LIMITS:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f'the fragment "{text}" {rule}')
    numbers = [_number(limit, completions) for limit in limits]
    if len(numbers) == _LIMITS and numbers[0] >= numbers[1]:
        raise IndexesError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _number(text: str, completions: int) -> int:
    if not _is_number(text):
        raise IndexesError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise IndexesError(f'too large index: "{text}"')
    return int(text)
