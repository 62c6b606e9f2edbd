"""Kubernetes Events: series of equal events, rate limits, and the recorders that send them."""

from ocf.runtime.events.poster import Drop, EventBroadcaster, broadcasting_events
from ocf.runtime.events.recorders import EventFormatter, multi_recorder, rewrite_events

__all__ = ["Drop", "EventBroadcaster", "EventFormatter", "broadcasting_events", "multi_recorder", "rewrite_events"]
