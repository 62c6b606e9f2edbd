"""Events in the words that users of the operator know: `Created Deployment my-cache`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ocf.concepts import Attempt, Event, Recorder
    from ocf.objects import Manifest, ObjectKey

__all__ = ["Told"]

_REASONS: Final = {"Create": "Created", "Update": "Updated"}


class Told:
    """Hands events on to another recorder in the operator's own words; none of deletes, and nothing else.

    Args:
        recorder: Who posts them, as `ocf.runtime.posting` gives it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def attempted(self, attempt: Attempt) -> None:
        """Keep nothing."""

    def happened(self, event: Event) -> None:
        """Put an event into other words.

        Args:
            event: What was done.
        """
        reason = _REASONS.get(event.action)
        if reason:
            note = f"{reason} {event.resource.kind} {event.resource.name}"
            self._recorder.happened(replace(event, reason=reason, action="Reconcile", note=note))

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Keep nothing."""
