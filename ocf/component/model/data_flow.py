"""Flow of data cells between the resources of a component, and its validation at build time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ocf.component.model.resource_options import Lifecycle

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration
    from ocf.concepts import Data

__all__ = ["DataFlow", "data_flows", "data_problems", "independence_problems", "rollout_problems"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFlow:
    """The resources that fill and read one data cell, by identity.

    Args:
        data: Name of the cell.
        producers: Resources that fill it, in order; the last one wins.
        guarded: Resources that are blocked while it is empty.
        optional: Resources that read it, but do not need it.
    """

    data: str
    producers: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def data_flows(entries: Sequence[Registration]) -> tuple[DataFlow, ...]:
    """Return the flow of each data cell, in the order in which the cells are first used."""
    reached = list(_reached(entries))
    cells = dict.fromkeys(cell for entry in reached for cell in (*_reads(entry), *_writes(entry)))
    return tuple(
        DataFlow(
            data=cell.name,
            producers=tuple(entry.identity for entry in reached if cell in _writes(entry)),
            guarded=tuple(entry.identity for entry in reached if _reads(entry).get(cell) is False),
            optional=tuple(entry.identity for entry in reached if _reads(entry).get(cell)),
        )
        for cell in cells
    )


def data_problems(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield reads of cells that no earlier resource fills, and names that two cells share.

    Resources that are deleted or orphaned neither fill nor read cells.
    """
    produced: set[Data[Any]] = set()
    by_name: dict[str, Data[Any]] = {}
    for entry in _reached(entries):
        reads, writes = _reads(entry), _writes(entry)
        if None in reads or None in writes:
            yield f'resource "{entry.identity}" in component "{component}" declares None as a data cell'
            continue
        for cell in reads:
            if cell not in produced:
                yield f'resource "{entry.identity}" reads data "{cell.name}" but no earlier resource produces it'
        produced.update(writes)
        for cell in dict.fromkeys([*reads, *writes]):
            if by_name.setdefault(cell.name, cell) is not cell:
                rule = "a distinct cell already uses that name; data names must be unique within a component"
                yield f'resource "{entry.identity}" in component "{component}" declares data "{cell.name}", but {rule}'


def independence_problems(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield independent resources that are not independent, because data flows from or to them."""
    reached = list(_reached(entries))
    read = {cell for entry in reached for cell in _reads(entry)}
    for entry in reached:
        if not entry.options.independent:
            continue
        # A cell that is None was reported before.
        for cell in filter(None, _reads(entry)):
            reason = f'reads data "{cell.name}", and so waits for the resource that produces it'
            yield f'resource "{entry.identity}" in component "{component}" is independent, but {reason}'
        for cell in read.intersection(filter(None, _writes(entry))):
            reason = f'produces data "{cell.name}", for which others wait'
            yield f'resource "{entry.identity}" in component "{component}" is independent, but {reason}'


def rollout_problems(component: str, entries: Sequence[Registration]) -> Iterator[str]:
    """Yield members of rollouts that report no status, or that read data of each other."""
    members = [(entry, rollout) for entry in entries if (rollout := entry.options.rollout) is not None]
    for entry, rollout in members:
        place = f'resource "{entry.identity}" in component "{component}" cannot be in a rollout'
        if not (entry.alive or entry.operational or entry.completable):
            yield f"{place}: it reports no status to wait for; register it with with_resource"
        filled = {cell for other, same in members if same is rollout for cell in other.cells_filled}
        for cell in sorted(entry.cells_read & filled, key=lambda one: one.name):
            yield f'{place}: it reads data "{cell.name}" of another member, and members may be changed in any order'


def _reached(entries: Sequence[Registration]) -> Iterator[Registration]:
    return (entry for entry in entries if entry.options.lifecycle in {Lifecycle.MANAGED, Lifecycle.READ_ONLY})


def _reads(entry: Registration) -> dict[Data[Any], bool]:
    """Return the cells that a resource reads, and whether each read is optional."""
    reads: dict[Data[Any], bool] = {}
    for read in entry.consumer.consumed_data if entry.consumer else ():
        reads[read.cell] = read.optional and reads.get(read.cell, True)
    return reads


def _writes(entry: Registration) -> Sequence[Data[Any]]:
    return entry.producer.produced_data if entry.producer else ()
