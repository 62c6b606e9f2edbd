"""Measurements of the whole workload."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

__all__ = ["Scrape"]


class Scrape(NamedTuple):
    """A measurement of the whole workload.

    Args:
        values: The value of each metric: of every settled pod, or of the workload; thousandths.
        apart: The values of the pods that are not settled, by name.
    """

    at: int
    values: tuple[int, ...]
    apart: Mapping[str, tuple[int, ...]]
    lost: AbstractSet[str]
