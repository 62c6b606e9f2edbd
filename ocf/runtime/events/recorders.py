"""Recorders that wrap others: one for several recorders, and one that rewrites events."""

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ocf.concepts import Attempt, Event, Recorder
from ocf.objects import Manifest, ObjectKey

__all__ = ["EventFormatter", "multi_recorder", "rewrite_events"]

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
