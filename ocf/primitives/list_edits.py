"""Categories that add and remove entries of a list: containers, volume claim templates of a StatefulSet."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from ocf.editors import KeyedList
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import copy_model
from ocf.primitives.mutator import BoundRecorder, CategoryDescriptor, SubObject

__all__ = ["ListEdits", "ListEditsRecorder"]

EntryT = TypeVar("EntryT", bound="BaseModel")


class ListEdits(CategoryDescriptor["ListEditsRecorder[EntryT]"], Generic[EntryT]):
    """A category that adds and removes entries of a list, in order of recording.

    Args:
        entries: The list to change, with the key of its entries.
        path: Path of the part that has the list.
    """

    def __init__(self, entries: KeyedList[Any, EntryT], path: str) -> None:
        super().__init__(ListEditsRecorder)
        self._entries = entries
        self._part = SubObject(path)

    def apply(self, target: Any, records: list[_Record]) -> None:
        """Add and remove entries, in order of recording."""
        owner = self._part.of(target)
        for record in records:
            if record.entry is not None:
                self._entries.ensure(owner, record.entry)
            else:
                self._entries.remove(owner, *record.removed)
        self._part.keep(target, owner)


class _Record(NamedTuple):
    """Either an entry to ensure, or keys to remove."""

    entry: Any
    removed: tuple[str, ...] = ()


class ListEditsRecorder(BoundRecorder, Generic[EntryT]):
    """Records entries to ensure and keys to remove."""

    __slots__ = ()

    def ensure(self, entry: EntryT) -> None:
        """Record an entry that the list must contain."""
        # Copied now, so that later changes by the caller have no effect.
        self._record(_Record(copy_model(entry)))

    def remove(self, *keys: str) -> None:
        """Record the keys of entries that the list must not contain."""
        self._record(_Record(None, keys))
