"""Recordings of autoscalers: their format, and scenarios that replay them."""

from ocf.simulation.recording.format import Change, Recorder, RecordingHeader, State, is_recording, read_states
from ocf.simulation.recording.objects import reduced
from ocf.simulation.recording.replay import recorded_scenario

__all__ = [
    "Change",
    "Recorder",
    "RecordingHeader",
    "State",
    "is_recording",
    "read_states",
    "recorded_scenario",
    "reduced",
]
