"""How data flows between the resources of a component, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ocf.component.options import Fate

if TYPE_CHECKING:
    from ocf.component.entries import Entry
    from ocf.concepts import Data

__all__ = ["data_problems"]


def data_problems(component: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Find reads that no earlier resource can satisfy, and names that two cells share.

    Resources that are deleted or orphaned are not reached, so they produce and read nothing.

    Args:
        component: Name of the component.
        entries: Its resources, in order of registration.

    Yields:
        One sentence per problem.
    """
    produced: set[Data[Any]] = set()
    by_name: dict[str, Data[Any]] = {}
    for entry in entries:
        if entry.fate not in {Fate.MANAGED, Fate.READ_ONLY}:
            continue
        reads = [read.cell for read in entry.consumer.consumed_data] if entry.consumer else []
        writes = list(entry.producer.produced_data) if entry.producer else []
        for cell in reads:
            if cell not in produced:
                yield f'resource "{entry.identity}" reads data "{cell.name}" but no earlier resource produces it'
        produced.update(writes)
        for cell in dict.fromkeys([*reads, *writes]):
            if by_name.setdefault(cell.name, cell) is not cell:
                rule = "a distinct cell already uses that name; data names must be unique within a component"
                yield f'resource "{entry.identity}" in component "{component}" declares data "{cell.name}", but {rule}'
