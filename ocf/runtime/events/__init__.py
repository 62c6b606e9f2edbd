"""Kubernetes Events: series of equal events, rate limits, and the recorders that send them."""

from ocf.runtime.events.poster import EventBroadcaster, broadcasting_events
from ocf.runtime.events.recorders import multi_recorder

__all__ = [
    "EventBroadcaster",
    "broadcasting_events",
    "multi_recorder",
]
