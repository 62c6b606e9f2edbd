"""A write of ours, from before it is sent until its answer is in memory."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ocf.cluster.cached.places import place_of
from ocf.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError, ServerError

if TYPE_CHECKING:
    from ocf.cluster.cached.informer import Informer
    from ocf.cluster.cached.places import Place
    from ocf.cluster.cached.tickets import Ticket
    from ocf.objects import Manifest

__all__ = ["Flight"]

# After these, nothing we know of the object is certain: the write may have happened, or somebody else was faster.
_LEAVE_DOUBT: Final = (AlreadyExistsError, ConflictError, NotFoundError, ServerError)


class Flight:
    """One write under way, as a context: whatever ends it leaves memory right, or in doubt.

    Args:
        informers: Whose objects it may change.
        place: Where the object is; None while its name is not known.
        api_version: The version of the kind in which it is written.
    """

    def __init__(self, informers: Iterable[Informer], place: Place | None, api_version: str) -> None:
        self._informers = tuple(informers)
        self._place = place
        self._api_version = api_version
        self._tickets: dict[Informer, Ticket] = {}

    def __enter__(self) -> Self:
        if self._place is not None:
            self._tickets = {informer: informer.store.begin(self._place) for informer in self._informers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        refused = isinstance(error, ApiError) and not isinstance(error, _LEAVE_DOUBT)
        for informer, ticket in self._tickets.items():
            if error is not None and not refused:
                informer.store.doubt(ticket)
            informer.store.end(ticket)
            informer.relist_if_due()

    def landed(self, answer: Manifest, informers: Iterable[Informer], *, whole: bool) -> None:
        """Take over an answer.

        Args:
            answer: The object as stored, or its Scale.
            informers: Whose object it is, those included that have begun since.
            whole: Whether the answer is the object.
        """
        metadata = answer["metadata"]
        place = place_of(answer)
        for informer in informers:
            ticket = self._tickets.get(informer)
            if ticket is None or ticket.place != place:
                ticket = informer.store.late(place)
            if whole and informer.scope.api_version == self._api_version:
                informer.store.found(ticket, answer)
                if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
                    # The write that took off the last finalizer is the object's end.
                    informer.store.doubt(ticket, uid=str(metadata.get("uid") or ""))
            else:
                informer.store.owes(ticket, str(metadata.get("resourceVersion") or ""))
            informer.relist_if_due()

    def deleted(self, informers: Iterable[Informer], uid: str) -> None:
        """Note that a delete was accepted: when the object ends, or ended, is not said.

        Args:
            informers: Whose object it is.
            uid: The uid that the delete was bound to; empty if it was not.
        """
        if self._place is not None:
            for informer in informers:
                ticket = self._tickets.get(informer) or informer.store.late(self._place)
                informer.store.doubt(ticket, uid=uid)
                informer.relist_if_due()
