"""What is remembered about the writes of one object, to detect another writer that reverts them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ocf.component.model.ownership import version_of
from ocf.component.model.write_backoff import (
    EXISTENCE,
    OWNER_REFERENCE,
    is_older,
    record_revert,
    revert_message,
    written,
)
from ocf.objects import Manifest, ObjectKey

if TYPE_CHECKING:
    from ocf.cluster.apply_cache import ApplyCache, LastWrite
    from ocf.component.context import ReconcileContext
    from ocf.component.model.ownership import Owner
    from ocf.component.status.results import Drift

__all__ = ["WriteLog", "reverted_parts"]


class WriteLog:
    """The writes of one object by one field manager, kept in the apply cache of the cluster."""

    def __init__(self, context: ReconcileContext, cache: ApplyCache, key: ObjectKey, manager: str) -> None:
        self._context = context
        self._cache = cache
        self._key = key
        self._manager = manager

    @property
    def last(self) -> LastWrite | None:
        """The last write; None if there was none."""
        return self._cache.last_write(self._key, self._manager)

    def last_with(self, live: Manifest | None, intent: bytes, reverted: Collection[str]) -> LastWrite | None:
        """Return the last write of a desired state, updated for the drift that was found."""
        last = self.last
        if last is not None and live is not None and is_older(version_of(live), last):
            return last
        last = record_revert(last, intent, self._context.elapsed, reverted)
        if last is not None:
            self._cache.note_write(self._key, self._manager, last)
        return last

    def note(self, intent: bytes, answer: Manifest) -> None:
        """Remember a write and its answer."""
        if intent:
            owner = self._context.owned_by.key
            write = written(self.last, intent, self._context.elapsed, version_of(answer), owner)
            self._cache.note_write(self._key, self._manager, write)

    def revert_message(self, live: Manifest) -> str:
        """Return the message about the field manager that reverts the writes."""
        return revert_message(live, self._manager, self._context.owned_by.key, self._cache)


def reverted_parts(desired: Manifest, live: Manifest | None, reasons: Collection[Drift], owner: Owner) -> list[str]:
    """Return what of the last write does not hold any more; each counts by itself for the write backoff."""
    if live is None:
        return [EXISTENCE]
    paths = [drift.path for drift in reasons]
    return [*paths, OWNER_REFERENCE] if owner.references(desired) and not owner.references(live) else paths
