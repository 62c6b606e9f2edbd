"""From what the metrics want to what the workload gets: the windows first, then the limits."""

from datetime import datetime, timedelta
from typing import Final

from ocf.autoscaling.algorithm.history import History
from ocf.autoscaling.algorithm.hpa_spec import Autoscaler
from ocf.autoscaling.algorithm.scaling_policies import Limit, apply_behavior_limits, apply_limits
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.stabilization import Stabilization, stabilize, stabilize_with_behavior

__all__ = ["downscale_window", "normalize"]

_SECOND: Final = timedelta(seconds=1)


def downscale_window(autoscaler: Autoscaler, settings: Settings) -> timedelta:
    """Return how far back shrinking looks.

    Args:
        autoscaler: The autoscaler.
        settings: The controller's settings, for an autoscaler that says nothing itself.
    """
    behavior = autoscaler.behavior
    if behavior is None:
        return settings.downscale_stabilization
    if behavior.down.window is None:
        # The controller's setting counts in whole seconds here.
        return settings.downscale_stabilization // _SECOND * _SECOND
    return behavior.down.window


def normalize(
    autoscaler: Autoscaler, current: int, wanted: int, history: History, *, settings: Settings, now: datetime
) -> tuple[Stabilization, Limit]:
    """Stabilize and limit a number, by the rules of the `behavior` or without one.

    Args:
        autoscaler: The autoscaler.
        current: What the workload should have now.
        wanted: What the metrics want, not negative.
        history: What is remembered.
        settings: The controller's settings.
        now: The instant of the round.

    Returns:
        What the windows made of the number, and what the limits made of that.

    Example:
        >>> from datetime import UTC
        >>> held, limit = normalize(
        ...     Autoscaler(name="web", maximum=9), 3, 20, History(), settings=Settings(), now=datetime.now(UTC)
        ... )
        >>> held.replicas, limit.replicas
        (20, 6)
    """
    behavior, minimum, maximum = autoscaler.behavior, autoscaler.minimum, autoscaler.maximum
    known = history.recommendations or ()
    window = downscale_window(autoscaler, settings)
    if behavior is None:
        held = stabilize(wanted, known, window=window, now=now)
        return held, apply_limits(current, held.replicas, minimum=minimum, maximum=maximum, settings=settings)
    up_window = behavior.up.window or timedelta()
    held = stabilize_with_behavior(wanted, current, known, up_window=up_window, down_window=window, now=now)
    limit = apply_behavior_limits(
        current, held.replicas, minimum=minimum, maximum=maximum, behavior=behavior, history=history, now=now
    )
    return held, limit
