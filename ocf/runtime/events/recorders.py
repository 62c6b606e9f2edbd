"""Recorders that wrap others: one for several recorders, one that rewrites events, and one that folds them."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeAlias

from ocf.concepts import Attempt, Event, Recorder
from ocf.objects import Manifest, ObjectKey

__all__ = ["FOLDED_REASONS", "EventFormatter", "FoldedEvents", "multi_recorder", "rewrite_events"]

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


# What a reconcile does to objects, by action: the word with which its notes begin.
_DONE: Final = {"Create": "Created", "Update": "Updated", "Delete": "", "Orphan": ""}
_SEVERAL: Final = "Reconciled"
FOLDED_REASONS: Final = frozenset({*filter(None, _DONE.values()), _SEVERAL})
"""The reasons of an event that says what several with different reasons say."""
# A note may have 1024 characters.
_NAMED: Final = 10
_QUOTED: Final = 3


class FoldedEvents:
    """Forwards the events of a reconcile at its end: those about objects that it changed become one.

    Most writes of a reconcile that creates the objects of an owner would be events otherwise.

    Args:
        recorder: Gets the events.
        formatter: Rewrites each event before; see `rewrite_events`.
    """

    def __init__(self, recorder: Recorder, formatter: EventFormatter | None = None) -> None:
        self._recorder = recorder
        self._formatter = formatter
        self._held: dict[ObjectKey, list[tuple[str, Event]]] = {}

    @contextmanager
    def reconciling(self, owner: ObjectKey) -> Iterator[None]:
        """Hold the events of an owner for as long as the block runs."""
        held = self._held[owner] = []
        try:
            yield
        finally:
            del self._held[owner]
            for event in _folded(held):
                self._recorder.happened(event)

    def attempted(self, attempt: Attempt) -> None:
        """Forward an attempt."""
        self._recorder.attempted(attempt)

    def happened(self, event: Event) -> None:
        """Hold an event until the reconcile of its owner ends; without one, forward it."""
        rewritten = event if self._formatter is None else self._formatter(event)
        if rewritten is None:
            return
        held = self._held.get(event.owner)
        if held is None:
            self._recorder.happened(rewritten)
        else:
            held.append((_change(event), rewritten))

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Forward the conditions of an owner."""
        self._recorder.observed(owner, conditions)


def _change(event: Event) -> str:
    """Return the action of an event about a change of another object than the owner; empty for any other event.

    Warnings are no changes: a user acts upon each of them.
    """
    is_change = event.type == "Normal" and event.resource != event.owner and event.action in _DONE
    return event.action if is_change else ""


def _folded(events: Sequence[tuple[str, Event]]) -> list[Event]:
    """Return events in their order; those about objects that were changed are one, where the first of them is.

    Args:
        events: The events of one reconcile, each with the action of its change; empty for one that stays as it is.
    """
    found: list[Event | str] = []
    changes: dict[str, list[tuple[str, Event]]] = {}
    for action, event in events:
        if not action:
            found.append(event)
        elif event.owner_uid in changes:
            changes[event.owner_uid].append((action, event))
        else:
            changes[event.owner_uid] = [(action, event)]
            found.append(event.owner_uid)
    return [_one_of(changes[one]) if isinstance(one, str) else one for one in found]


def _one_of(changes: Sequence[tuple[str, Event]]) -> Event:
    """Return one event that says what several say."""
    first = changes[0][1]
    if len(changes) == 1:
        return first
    by_action = {
        action: notes for action in _DONE if (notes := [event.note for did, event in changes if did == action])
    }
    note = "; ".join(_note_of(_DONE[action], notes) for action, notes in by_action.items())
    reason, action = first.reason, first.action
    if any(event.reason != reason for _, event in changes):
        reason = (len(by_action) == 1 and _DONE[changes[0][0]]) or _SEVERAL
    if len(by_action) > 1:
        action = "Reconcile"
    return replace(first, resource=first.owner, reason=reason, action=action, note=note)


def _note_of(verb: str, notes: Sequence[str]) -> str:
    if len(notes) == 1:
        return notes[0]
    # The author's formatter may write anything.
    is_short = bool(verb) and all(note.startswith(f"{verb} ") for note in notes)
    named = [note.removeprefix(f"{verb} ") for note in notes[:_NAMED]] if is_short else [*notes[:_QUOTED]]
    if notes[len(named) :]:
        named.append(f"and {len(notes) - len(named)} more")
    return f"{verb} {len(notes)} objects: {', '.join(named)}" if is_short else "; ".join(named)
