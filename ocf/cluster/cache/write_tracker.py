"""Writes through the cache, from before the request is sent until its answer is in the store."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ocf.cluster.cache.keys import namespaced_name
from ocf.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError, ServerError

if TYPE_CHECKING:
    from ocf.cluster.cache.informer import Informer
    from ocf.cluster.cache.keys import NamespacedName
    from ocf.cluster.cache.store import WriteSnapshot
    from ocf.objects import Manifest

__all__ = ["InFlightWrite"]

# After these the state of the object is unknown: the write may have been applied, or another client wrote first.
_OUTCOME_UNKNOWN: Final = (AlreadyExistsError, ConflictError, NotFoundError, ServerError)


class InFlightWrite:
    """One write in flight, as a context manager: at its end the store is up to date, or the object is marked stale.

    Args:
        informers: The informers of the kind, in any version; those that are started while the write is in flight are
            added to it.
        name: Namespace and name of the object; None if the name is not known before the answer.
    """

    def __init__(self, informers: Sequence[Informer], name: NamespacedName | None, api_version: str) -> None:
        self._informers = informers
        self._name = name
        self._api_version = api_version
        self._snapshots: dict[Informer, WriteSnapshot] = {}

    def __enter__(self) -> Self:
        if self._name is not None:
            self._snapshots = {informer: informer.store.begin(self._name) for informer in self._covering(self._name)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        rejected = isinstance(error, ApiError) and not isinstance(error, _OUTCOME_UNKNOWN)
        if error is not None and not rejected:
            self.mark_stale()
        for informer, snapshot in self._snapshots.items():
            informer.store.end(snapshot)

    def completed(self, answer: Manifest, *, whole: bool) -> None:
        """Record the answer of the write in the store."""
        metadata, name = answer["metadata"], namespaced_name(answer)
        for informer in self._covering(name):
            snapshot = self._snapshot(informer, name)
            is_selected = informer.selection is None or informer.selection.selects(answer)
            if not whole or informer.scope.api_version != self._api_version or is_selected is None:
                informer.store.expect_version(snapshot, str(metadata.get("resourceVersion") or ""))
            elif not is_selected:
                # Its watch will never report this version.
                informer.store.missed(snapshot, str(metadata.get("resourceVersion") or ""))
            else:
                informer.store.found(snapshot, answer)
                if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
                    # The write that removed the last finalizer ends the deletion.
                    informer.store.mark_stale(snapshot, uid=str(metadata.get("uid") or ""))
            informer.relist_if_due()

    def mark_stale(self, uid: str = "") -> None:
        """Record that the write may have been applied but its outcome is unknown.

        Args:
            uid: The uid in the precondition of a delete; empty if it had none, or the write is not a delete.
        """
        if self._name is not None:
            for informer in self._covering(self._name):
                informer.store.mark_stale(self._snapshot(informer, self._name), uid=uid)
                informer.relist_if_due()

    def _covering(self, name: NamespacedName) -> list[Informer]:
        """Return the informers that hold an object if it is selected."""
        return [each for each in self._informers if each.covers(name) and not each.ended]

    def _snapshot(self, informer: Informer, name: NamespacedName) -> WriteSnapshot:
        snapshot = self._snapshots.get(informer)
        return snapshot if snapshot is not None and snapshot.name == name else informer.store.empty_snapshot(name)
