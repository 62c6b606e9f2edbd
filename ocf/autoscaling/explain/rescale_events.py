"""The direction of the last rescale, from the events about an autoscaler."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

__all__ = ["RescaleEvent", "scaled_up"]

_UP: Final = ("above target", "Current number of replicas below Spec.MinReplicas")
_DOWN: Final = ("below target", "Current number of replicas above Spec.MaxReplicas")
_RESCALED: Final = "SuccessfulRescale"
# The controller posts the event before it takes the time for the status; both are written with whole seconds.
_APART: Final = timedelta(seconds=2)


class RescaleEvent(NamedTuple):
    """An event about an autoscaler.

    Args:
        at: When it was last posted.
    """

    reason: str
    message: str
    at: datetime


def scaled_up(events: Iterable[RescaleEvent], last_scale_time: datetime | None) -> bool | None:
    """Return whether the rescale at `lastScaleTime` added replicas.

    The reason in the message is about what the metrics want. With a `behavior`, that is the direction of the rescale.

    Args:
        events: The events about the autoscaler.
        last_scale_time: `lastScaleTime` of its status; None if it was never scaled.

    Returns:
        Whether replicas were added; None if no event, or events of both directions, are from that time.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        >>> message = "New size: 5; reason: cpu resource utilization (percentage of request) above target"
        >>> scaled_up([RescaleEvent("SuccessfulRescale", message, noon)], noon)
        True
    """
    if last_scale_time is None:
        return None
    near = [each.message for each in events if each.reason == _RESCALED and abs(each.at - last_scale_time) <= _APART]
    found = {end is _UP for end in (_UP, _DOWN) if any(message.endswith(end) for message in near)}
    return found.pop() if len(found) == 1 else None
