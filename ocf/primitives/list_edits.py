"""Categories that say which entries of a list are there: containers, claims of a StatefulSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ocf.objects import copy_model
from ocf.primitives.mutator import BoundRecorder, CategoryDescriptor, SubObject

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ocf.editors import KeyedList

__all__ = ["ListEdits", "ListEditsRecorder"]

EntryT = TypeVar("EntryT", bound="BaseModel")


class ListEdits(CategoryDescriptor["ListEditsRecorder[EntryT]"], Generic[EntryT]):
    """A category that adds and removes entries of a list, in order of recording.

    Args:
        entries: The list that is changed, and how its entries are known.
        path: Where the part is that has the list.
    """

    def __init__(self, entries: KeyedList[Any, EntryT], path: str) -> None:
        super().__init__(ListEditsRecorder)
        self._entries = entries
        self._part = SubObject(path)

    def apply(self, target: Any, records: list[_Record]) -> None:
        """Add and remove, in order."""
        owner = self._part.of(target)
        for record in records:
            if record.entry is not None:
                self._entries.ensure(owner, record.entry)
            else:
                self._entries.remove(owner, *record.removed)
        self._part.keep(target, owner)


class _Record(NamedTuple):
    """Either an entry to be there, or keys not to be there."""

    entry: Any
    removed: tuple[str, ...] = ()


class ListEditsRecorder(BoundRecorder, Generic[EntryT]):
    """Records which entries are there."""

    __slots__ = ()

    def ensure(self, entry: EntryT) -> None:
        """Record that an entry is there."""
        # Copied now: what the caller does to it after recording is not part of the plan.
        self._record(_Record(copy_model(entry)))

    def remove(self, *keys: str) -> None:
        """Record that entries of these keys are not there."""
        self._record(_Record(None, keys))
