"""Recordings of autoscalers: their format, and what they hold."""

from ocf.simulation.recording.format import Change, RecordingWriter
from ocf.simulation.recording.objects import reduced

__all__ = [
    "Change",
    "RecordingWriter",
    "reduced",
]
