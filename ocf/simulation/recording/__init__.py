"""Recordings of autoscalers: their format, and what they hold."""

from ocf.simulation.recording.format import Change, RecordingHeader, RecordingWriter, State, is_recording, read_states
from ocf.simulation.recording.objects import reduced

__all__ = [
    "Change",
    "RecordingHeader",
    "RecordingWriter",
    "State",
    "is_recording",
    "read_states",
    "reduced",
]
