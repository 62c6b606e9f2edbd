"""Objects of a recording at an instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["RecordedObjects", "recorded_objects"]

_SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True, slots=True)
class RecordedObjects:
    """The objects of a recording at an instant."""

    objects: tuple[Manifest, ...]
    at: datetime
    location: str


def recorded_objects(path: str, now: datetime | None) -> RecordedObjects | None:
    """Return the objects of a recording as they were at an instant.

    Args:
        now: The instant, or the first one of the recording if that is later; None for the last one.

    Returns:
        The objects; None if the file is not a recording.
    """
    # JSON Lines have no other name, so that files of other kinds are explained without loading the format.
    if not path.endswith(_SUFFIXES):
        return None
    from ocf.simulation.recording.format import is_recording, read_states

    if not is_recording(path):
        return None
    found: RecordedObjects | None = None
    for state in read_states(path):
        if found is not None and now is not None and state.at > now:
            break
        found = RecordedObjects(tuple(state.objects.values()), state.at, f"{path}: line {state.line}")
    return found
