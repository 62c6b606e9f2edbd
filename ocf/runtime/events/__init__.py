"""Kubernetes Events: series of equal events, rate limits, and the recorders that send them."""

from ocf.runtime.events.poster import Drop, EventPoster, posting
from ocf.runtime.events.recorders import Words, combined, worded

__all__ = ["Drop", "EventPoster", "Words", "combined", "posting", "worded"]
