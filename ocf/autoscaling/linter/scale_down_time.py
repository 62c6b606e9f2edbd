"""How long an autoscaler takes from its largest size to its smallest, once nothing is left to do.

The policies for scaling down bound how many pods may go within their periods, so the answer is found by playing the
controller's loop on an idle target: every sync period it removes what the policies allow by then.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["DEFAULT_WINDOW", "SYNC_SECONDS", "scale_down_seconds", "shown_duration"]

SYNC_SECONDS: Final = 15
"""How often the controller looks, unless it was set up otherwise."""

DEFAULT_WINDOW: Final = 300
"""The window for scaling down of a controller that was not set up otherwise, in seconds."""

_MOST_STEPS: Final = 20_000
_MINUTE: Final = 60
_HOUR: Final = 3600


def scale_down_seconds(rules: Mapping[str, Any], largest: int, smallest: int) -> int | None:
    """Return how long it takes from the largest to the smallest size.

    Args:
        rules: The rules for scaling down, with their defaults.
        largest: Number of pods at the beginning.
        smallest: Number of pods at the end.

    Returns:
        Seconds from when the load ended, window included, in steps of the controller's sync period; None if it is
        never reached, or takes more than three days.

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
    """Yield the size after each look of the controller."""
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
    """Return how small a policy lets it become, counting from the size at the beginning of its period.

    Args:
        kind: `Pods` or `Percent`.
        value: How many.
        period: Seconds.
        before: The size before each look of the controller; this one comes last.
        step: The number of this look.
    """
    looks = -(-period // SYNC_SECONDS)
    start = before[max(0, step - looks + 1)]
    return start - value if kind == "Pods" else int(start * (1 - value / 100))


def shown_duration(seconds: int) -> str:
    """Write a duration for a person.

    Args:
        seconds: The duration.

    Returns:
        Hours and minutes.

    Example:
        >>> shown_duration(14700), shown_duration(300), shown_duration(20)
        ('4 h 5 min', '5 min', '20 s')
    """
    if seconds < _MINUTE:
        return f"{seconds} s"
    hours, rest = divmod(seconds, _HOUR)
    minutes = f"{rest // _MINUTE} min"
    return f"{hours} h {minutes}" if hours else minutes
