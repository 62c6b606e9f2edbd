"""A write of ours, from before it is sent until its answer is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ocf.cluster.cache.keys import namespaced_name
from ocf.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError, ServerError

if TYPE_CHECKING:
    from ocf.cluster.cache.in_flight import WriteSnapshot
    from ocf.cluster.cache.informer import Informer
    from ocf.cluster.cache.keys import NamespacedName
    from ocf.objects import Manifest

__all__ = ["InFlightWrite"]

# After these, nothing we know of the object is certain: the write may have happened, or somebody else was faster.
_LEAVE_DOUBT: Final = (AlreadyExistsError, ConflictError, NotFoundError, ServerError)


class InFlightWrite:
    """One write under way, as a context: whatever ends it leaves memory right, or in doubt.

    Args:
        concerned: Returns the informers that hold the objects of a namespace, those that have begun since included.
        place: Where the object is; None while its name is not known.
        api_version: The version of the kind in which it is written.
    """

    def __init__(
        self, concerned: Callable[[str], Iterable[Informer]], place: NamespacedName | None, api_version: str
    ) -> None:
        self._concerned = concerned
        self._place = place
        self._api_version = api_version
        self._tickets: dict[Informer, WriteSnapshot] = {}

    def __enter__(self) -> Self:
        if self._place is not None:
            self._tickets = {
                informer: informer.store.begin(self._place) for informer in self._concerned(self._place[0])
            }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        refused = isinstance(error, ApiError) and not isinstance(error, _LEAVE_DOUBT)
        if error is not None and not refused:
            self.in_doubt()
        for informer, ticket in self._tickets.items():
            informer.store.end(ticket)

    def completed(self, answer: Manifest, *, whole: bool) -> None:
        """Take over an answer.

        Args:
            answer: The object as stored, or its Scale.
            whole: Whether the answer is the object.
        """
        metadata, place = answer["metadata"], namespaced_name(answer)
        for informer in self._concerned(place[0]):
            ticket = self._ticket(informer, place)
            if whole and informer.scope.api_version == self._api_version:
                informer.store.found(ticket, answer)
                if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
                    # The write that took off the last finalizer is the object's end.
                    informer.store.mark_stale(ticket, uid=str(metadata.get("uid") or ""))
            else:
                informer.store.expect_version(ticket, str(metadata.get("resourceVersion") or ""))
            informer.relist_if_due()

    def in_doubt(self, uid: str = "") -> None:
        """Note that something may have been done, and that nobody says what came of it or when.

        Args:
            uid: The uid that a delete was bound to; empty if it was not, or was no delete.
        """
        if self._place is not None:
            for informer in self._concerned(self._place[0]):
                informer.store.mark_stale(self._ticket(informer, self._place), uid=uid)
                informer.relist_if_due()

    def _ticket(self, informer: Informer, place: NamespacedName) -> WriteSnapshot:
        ticket = self._tickets.get(informer)
        return ticket if ticket is not None and ticket.place == place else informer.store.late(place)
