"""Tables of mistakes, and the cases that are drawn from them.

A module of this package declares its tables in `TABLES`; `scripts/record/validation.py` finds them. Two invalid
entries in one map are not a useful mistake: the API server reports them in a random order.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.ocf_server.validation.corpus import REMOVED, Case, Edit, Json, NotApplicableError, edited

__all__ = ["LONG", "REMOVED", "Mistake", "Table", "at", "cases", "together"]

Mistake = tuple[Edit, ...]
"""Edits that belong together; some mistakes are none, so that valid values are recorded as well."""

LONG: Final = "a" * 300
_MOST: Final = 3  # mistakes in one object
_NAMES: Final = ("metadata.name", "metadata.generateName")


def at(path: str, *values: Any) -> tuple[Mistake, ...]:
    """Return one mistake for each value of a field.

    Args:
        path: The field, see `tests.ocf_server.validation.corpus.edited`.
        *values: The values; `REMOVED` removes the field.
    """
    return tuple(((path, value),) for value in values)


def together(*edits: Edit) -> tuple[Mistake, ...]:
    """Return one mistake that consists of several edits."""
    return (edits,)


@dataclass(frozen=True, slots=True)
class Table:
    """Valid objects of a kind, and the mistakes in them.

    Args:
        kind: The kind; the name of the recorded file.
        bases: Valid objects to create, by name. Namespaced ones are in `default`.
        stored: Valid objects that are created for real, so that updates can start from them. Their names must differ
            from those of `bases`. A `status` is stored as well.
        mistakes: Edits of objects to create; a sample of them is used for updates too.
        changes: Edits of stored objects only.
        pairs: Number of created, and of updated, objects with two or three mistakes.
    """

    kind: str
    bases: Mapping[str, Json]
    mistakes: Sequence[Mistake]
    stored: Mapping[str, Json] = field(default_factory=dict)
    changes: Sequence[Mistake] = ()
    pairs: int = 20


def cases(table: Table, seed: int = 1) -> Iterator[Case]:
    """Yield the cases of a table: each object, each mistake in one object, and several mistakes at once.

    Args:
        table: The table.
        seed: Seed of the draw; the same table and seed give the same cases.
    """
    draw = random.Random(f"{seed} {table.kind}")  # noqa: S311 (a sample)
    seen = set()
    for case in _all(table, draw):
        if str(case) not in seen:
            seen.add(str(case))
            yield case


def _all(table: Table, draw: random.Random) -> Iterator[Case]:
    yield from (Case(name, update=False, edits=()) for name in table.bases)
    for mistake in table.mistakes:
        yield from _fitting(table.bases, mistake, draw, update=False)
    yield from _several(table.bases, table.mistakes, table.pairs, draw, update=False)
    if table.stored:
        yield from (Case(name, update=True, edits=()) for name in table.stored)
        # An update is addressed to the name, so it cannot change it.
        others = [mistake for mistake in table.mistakes if all(path not in _NAMES for path, _ in mistake)]
        for change in (*table.changes, *draw.sample(others, len(others) // 4)):
            yield from _fitting(table.stored, change, draw, update=True)
        both = [*table.changes, *table.changes, *others]
        yield from _several(table.stored, both, table.pairs, draw, update=True)


def _several(
    objects: Mapping[str, Json], mistakes: Sequence[Mistake], count: int, draw: random.Random, *, update: bool
) -> Iterator[Case]:
    for _ in range(count):
        chosen = draw.sample(mistakes, min(len(mistakes), draw.randint(2, _MOST)))
        yield from _fitting(objects, tuple(edit for mistake in chosen for edit in mistake), draw, update=update)


def _fitting(objects: Mapping[str, Json], edits: Mistake, draw: random.Random, *, update: bool) -> Iterator[Case]:
    """Yield the case for a drawn object that the edits fit."""
    for name in draw.sample(list(objects), len(objects)):
        try:
            edited(objects[name], edits)
        except NotApplicableError:
            continue
        yield Case(name, update, edits)
        return
