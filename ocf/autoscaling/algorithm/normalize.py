"""Normalization of a proposal: stabilization first, then the limits."""

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
    """Return the stabilization window for scaling down.

    Args:
        settings: The controller's settings; they apply if the autoscaler does not set a window.
    """
    behavior = autoscaler.behavior
    if behavior is None:
        return settings.downscale_stabilization
    if behavior.down.window is None:
        # The controller truncates its setting to whole seconds here.
        return settings.downscale_stabilization // _SECOND * _SECOND
    return behavior.down.window


def normalize(
    autoscaler: Autoscaler, current: int, wanted: int, history: History, *, settings: Settings, now: datetime
) -> tuple[Stabilization, Limit]:
    """Stabilize and limit a proposal, with or without a `behavior`.

    Args:
        autoscaler: The autoscaler.
        current: `spec.replicas` of the scale.
        wanted: The proposal of the metrics, not negative.
        history: The history of the autoscaler.
        settings: The controller's settings.
        now: Time of the sync.

    Returns:
        The result of the stabilization, and the result of the limits.

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
    # Only the window for scaling down has a flag of the controller behind it; the API server's default for this one is
    # 0.
    up_window = behavior.up.window or timedelta()
    held = stabilize_with_behavior(wanted, current, known, up_window=up_window, down_window=window, now=now)
    limit = apply_behavior_limits(
        current, held.replicas, minimum=minimum, maximum=maximum, behavior=behavior, history=history, now=now
    )
    return held, limit
