"""Recorders made of recorders: several behind one, and one that is told events in other words."""

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ocf.concepts import Attempt, Event, Recorder
from ocf.objects import Manifest, ObjectKey

__all__ = ["EventFormatter", "multi_recorder", "rewrite_events"]

_log: Final = logging.getLogger(__name__)

EventFormatter: TypeAlias = Callable[[Event], Event | None]
"""Puts an event into an operator's own words; None keeps it to itself."""


class _MultiRecorder:
    """Hands everything on to several recorders."""

    def __init__(self, recorders: tuple[Recorder, ...]) -> None:
        self._recorders = recorders

    def attempted(self, attempt: Attempt) -> None:
        self._each(lambda recorder: recorder.attempted(attempt))

    def happened(self, event: Event) -> None:
        self._each(lambda recorder: recorder.happened(event))

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        self._each(lambda recorder: recorder.observed(owner, conditions))

    def _each(self, tell: Callable[[Recorder], None]) -> None:
        for recorder in self._recorders:
            try:
                tell(recorder)
            except Exception:  # noqa: BLE001 (whatever it is, it is no reason to fail a pass)
                _log.exception("%s failed; the pass goes on", type(recorder).__name__)


def multi_recorder(*recorders: Recorder) -> Recorder:
    """Put several recorders behind one.

    Each is told everything, in the given order. What one of them raises is logged, and reaches neither the others nor
    the pass: an operator does not fail because it cannot be watched.

    Args:
        recorders: Any number; none is a recorder that keeps nothing.

    Returns:
        The one to hand to `reconciling`.

    Example:
        >>> from ocf.concepts import NullRecorder
        >>> owner = ObjectKey("example.com/v1", "Shop", "corner", "town")
        >>> multi_recorder(NullRecorder(), NullRecorder()).observed(owner, [])
    """
    return _MultiRecorder(recorders)


class _RewritingRecorder:
    """Hands everything on, events in other words."""

    def __init__(self, recorder: Recorder, words: EventFormatter) -> None:
        self._recorder = recorder
        self._words = words

    def attempted(self, attempt: Attempt) -> None:
        self._recorder.attempted(attempt)

    def happened(self, event: Event) -> None:
        said = self._words(event)
        if said is not None:
            self._recorder.happened(said)

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        self._recorder.observed(owner, conditions)


def rewrite_events(recorder: Recorder, words: EventFormatter) -> Recorder:
    """Tell a recorder events in other words: users of an operator may know it by its reasons and notes.

    Args:
        recorder: The recorder.
        words: Returns the event as it is told; None tells nothing.

    Returns:
        The one to hand to `reconciling`.

    Example:
        >>> from dataclasses import replace
        >>> from ocf.concepts import NullRecorder
        >>> brief = rewrite_events(NullRecorder(), lambda event: replace(event, note=event.resource.name))
    """
    return _RewritingRecorder(recorder, words)
