"""Time that an autoscaler takes to scale down from its maximum to its minimum when the load has ended.

The scale-down policies limit how many pods may be removed within their periods. The time is found by simulating the
controller with an idle target: every sync removes as many pods as the policies allow by then.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["DEFAULT_WINDOW", "SYNC_SECONDS", "scale_down_seconds", "shown_duration"]

SYNC_SECONDS: Final = 15
"""Default sync period of the controller."""

DEFAULT_WINDOW: Final = 300
"""Default scale-down stabilization window of the controller, in seconds."""

# Syncs of more than three days; a slower scale-down is reported without a number.
_MOST_STEPS: Final = 20_000
_MINUTE: Final = 60
_HOUR: Final = 3600


def scale_down_seconds(rules: Mapping[str, Any], largest: int, smallest: int) -> int | None:
    """Return how long it takes to scale from the largest to the smallest size.

    Args:
        rules: The scale-down rules, with their defaults.

    Returns:
        Seconds from the end of the load, including the window, in steps of the sync period; None if the smallest size
        is never reached, or not within three days.

    Example:
        >>> rules = {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}]}
        >>> scale_down_seconds(rules, 50, 1) // 60
        245
    """
    window: int = rules.get("stabilizationWindowSeconds", DEFAULT_WINDOW)
    if largest <= smallest:
        return 0
    for step, size in enumerate(_sizes(rules, largest, smallest)):
        if size <= smallest:
            return window + step * SYNC_SECONDS
    return None


def _sizes(rules: Mapping[str, Any], largest: int, smallest: int) -> Iterator[int]:
    """Yield the size after each sync."""
    policies = {(each["type"], each["value"], each["periodSeconds"]) for each in rules.get("policies") or ()}
    if rules.get("selectPolicy") == "Disabled" or not policies:
        return
    choose = max if rules.get("selectPolicy") == "Min" else min
    before = [largest]
    for step in range(_MOST_STEPS):
        limit = choose(_limit(*policy, before, step) for policy in policies)
        before.append(max(min(limit, before[-1]), smallest))
        yield before[-1]


def _limit(kind: str, value: int, period: int, before: Sequence[int], step: int) -> int:
    """Return the lowest size that a policy allows, relative to the size at the start of its period.

    Args:
        kind: `Pods` or `Percent`.
        period: Seconds.
        before: The size before each sync, this one last.
    """
    # Rounded up: a change still counts at a sync that is less than the period later.
    syncs = -(-period // SYNC_SECONDS)
    start = before[max(0, step - syncs + 1)]
    return start - value if kind == "Pods" else int(start * (1 - value / 100))


def shown_duration(seconds: int) -> str:
    """Return a duration as text.

    Example:
        >>> shown_duration(14700), shown_duration(300), shown_duration(20)
        ('4 h 5 min', '5 min', '20 s')
    """
    if seconds < _MINUTE:
        return f"{seconds} s"
    hours, rest = divmod(seconds, _HOUR)
    minutes = f"{rest // _MINUTE} min"
    return f"{hours} h {minutes}" if hours else minutes
