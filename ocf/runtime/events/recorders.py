"""Recorders that wrap others: one for several recorders, one that rewrites events, and one that folds them."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeAlias

from ocf.concepts import Attempt, Event, Recorder
from ocf.objects import Manifest, ObjectKey

__all__ = ["EventFormatter", "FoldedEvents", "folded", "multi_recorder", "rewrite_events"]

_log: Final = logging.getLogger(__name__)

EventFormatter: TypeAlias = Callable[[Event], Event | None]
"""Rewrites an event in the operator's own terms; returns None to drop it."""


class _MultiRecorder:
    """Forwards everything to several recorders."""

    def __init__(self, recorders: tuple[Recorder, ...]) -> None:
        self._recorders = recorders

    def attempted(self, attempt: Attempt) -> None:
        self._each(lambda recorder: recorder.attempted(attempt))

    def happened(self, event: Event) -> None:
        self._each(lambda recorder: recorder.happened(event))

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        self._each(lambda recorder: recorder.observed(owner, conditions))

    def _each(self, call: Callable[[Recorder], None]) -> None:
        for recorder in self._recorders:
            try:
                call(recorder)
            except Exception:  # noqa: BLE001 (a recorder must not make a reconcile fail)
                _log.exception("%s failed; the reconcile continues", type(recorder).__name__)


def multi_recorder(*recorders: Recorder) -> Recorder:
    """Return a recorder that forwards everything to several others, in the given order.

    An error of one of them is logged, and affects neither the others nor the reconcile.

    Args:
        recorders: Any number; without one, nothing is recorded.

    Returns:
        The recorder for `reconciling`.

    Example:
        >>> from ocf.concepts.recorder import NullRecorder
        >>> owner = ObjectKey("example.com/v1", "Shop", "corner", "town")
        >>> multi_recorder(NullRecorder(), NullRecorder()).observed(owner, [])
    """
    return _MultiRecorder(recorders)


class _RewritingRecorder:
    """Forwards everything, with rewritten events."""

    def __init__(self, recorder: Recorder, formatter: EventFormatter) -> None:
        self._recorder = recorder
        self._formatter = formatter

    def attempted(self, attempt: Attempt) -> None:
        self._recorder.attempted(attempt)

    def happened(self, event: Event) -> None:
        rewritten = self._formatter(event)
        if rewritten is not None:
            self._recorder.happened(rewritten)

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        self._recorder.observed(owner, conditions)


def rewrite_events(recorder: Recorder, formatter: EventFormatter) -> Recorder:
    """Return a recorder that rewrites events, for an operator whose users rely on its reasons and notes.

    Args:
        recorder: The recorder that gets the rewritten events.
        formatter: Returns the rewritten event; None drops it.

    Returns:
        The recorder for `reconciling`.

    Example:
        >>> from dataclasses import replace
        >>> from ocf.concepts.recorder import NullRecorder
        >>> brief = rewrite_events(NullRecorder(), lambda event: replace(event, note=event.resource.name))
    """
    return _RewritingRecorder(recorder, formatter)


# Each of so many events of one sort is posted as it is.
_MOST_ALIKE: Final = 10
_NAMED: Final = 3


class FoldedEvents:
    """Forwards the events of a reconcile at its end: many of one reason become one.

    A reconcile that changes a thousand objects would post as many events about one owner, each of them a write.

    Args:
        recorder: Gets the events.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._held: dict[ObjectKey, list[Event]] = {}

    @contextmanager
    def reconciling(self, owner: ObjectKey) -> Iterator[None]:
        """Hold the events of an owner for as long as the block runs."""
        held = self._held[owner] = []
        try:
            yield
        finally:
            del self._held[owner]
            for event in folded(held):
                self._recorder.happened(event)

    def attempted(self, attempt: Attempt) -> None:
        """Forward an attempt."""
        self._recorder.attempted(attempt)

    def happened(self, event: Event) -> None:
        """Hold an event until the reconcile of its owner ends; without one, forward it."""
        held = self._held.get(event.owner)
        if held is None:
            self._recorder.happened(event)
        else:
            held.append(event)

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Forward the conditions of an owner."""
        self._recorder.observed(owner, conditions)


def folded(events: Sequence[Event]) -> list[Event]:
    """Return events in their order, in which many about different objects, of one reason and action, are one.

    Warnings stay as they are: a user acts upon each of them.

    Args:
        events: The events of one reconcile.

    Example:
        >>> shop, guide = (ObjectKey("example.com/v1", kind, "a", "town") for kind in ("Shop", "Guide"))
        >>> about = {"owner": shop, "owner_uid": "1", "resource": guide, "reason": "CreatedGuide", "action": "Create"}
        >>> [event.note for event in folded([Event(**about, note=f"Created Guide '{at}'") for at in range(500)])]
        ["Created Guide '0'; Created Guide '1'; Created Guide '2'; and 497 more"]
    """
    alike: defaultdict[tuple[str, str, str] | None, list[Event]] = defaultdict(list)
    for event in events:
        alike[_sort(event)].append(event)
    found: list[Event] = []
    done: set[tuple[str, str, str]] = set()
    for event in events:
        sort = _sort(event)
        same = alike[sort]
        if sort is None or len(same) <= _MOST_ALIKE:
            found.append(event)
        elif sort not in done:
            done.add(sort)
            notes = "; ".join(one.note for one in same[:_NAMED])
            found.append(replace(event, resource=event.owner, note=f"{notes}; and {len(same) - _NAMED} more"))
    return found


def _sort(event: Event) -> tuple[str, str, str] | None:
    """Return what events have in common that become one; None for one that stays as it is."""
    is_routine = event.type == "Normal" and event.resource != event.owner
    return (event.owner_uid, event.reason, event.action) if is_routine else None
