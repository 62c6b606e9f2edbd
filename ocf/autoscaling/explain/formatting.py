"""Text of amounts, numbers, durations and instants."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from ocf.autoscaling.algorithm import Metric, ScalingPolicy
from ocf.autoscaling.explain.last_sync import MOST
from ocf.objects import Quantity
from ocf.objects.timestamps import Fraction, format_time

__all__ = [
    "amount",
    "bounded_amount",
    "clock",
    "duration",
    "instant",
    "known_count",
    "listed",
    "number",
    "percent",
    "policy_text",
    "replica_count",
]

_MILLISECOND: Final = 0.001
_MINUTE: Final = 60
_HOUR: Final = 3600
_SHOWN: Final = 5
_TENTH_OF_MEBIBYTE: Final = 2**20 * 100
"""In thousandths of a byte."""


def amount(milli: int, metric: Metric) -> str:
    """Return thousandths as a quantity, with binary suffixes for memory."""
    return str(Quantity.from_milli(milli, binary=_is_memory(metric)))


def bounded_amount(milli: int, metric: Metric, *, up: bool = False) -> str:
    """Return thousandths as a quantity; an amount of memory in tenths of a mebibyte at most.

    Args:
        up: Whether an amount between two tenths becomes the larger one, for a lower bound; otherwise the smaller one.
    """
    text = amount(milli, metric)
    if text[-1:] not in "0123456789m" or not _is_memory(metric) or milli < _TENTH_OF_MEBIBYTE:
        return text
    tenths = -(-milli // _TENTH_OF_MEBIBYTE) if up else milli // _TENTH_OF_MEBIBYTE
    return f"{tenths / 10:.10g}Mi"


def _is_memory(metric: Metric) -> bool:
    return metric.name == "memory" and metric.type in {"Resource", "ContainerResource"}


def number(value: float) -> str:
    """Return a ratio with four significant digits.

    Example:
        >>> number(1.8), number(1.23456789), number(2.0)
        ('1.8', '1.235', '2')
    """
    return f"{value:.4g}"


def percent(share: float) -> str:
    """Return a share in percent.

    Example:
        >>> percent(0.9), percent(1.1)
        ('90%', '110%')
    """
    return f"{share * 100:.4g}%"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def duration(period: timedelta) -> str:
    """Return a duration with units.

    Example:
        >>> duration(timedelta(seconds=45)), duration(timedelta(seconds=200)), duration(timedelta(hours=1))
        ('45s', '3m20s', '1h')
        >>> duration(timedelta(microseconds=1))
        'under 1ms'
    """
    total = period.total_seconds()
    # The first instant after a window is a microsecond away, which is no number to read.
    if 0 < total < _MILLISECOND:
        return "under 1ms"
    if total < _MINUTE:
        return f"{total:.6g}s"
    hours, rest = divmod(int(total), _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def known_count(count: int) -> str:
    """Return a number of replicas as text; one that stands for any larger number is not known."""
    return "an unknown number" if count >= MOST else str(count)


def replica_count(count: int) -> str:
    """Return a number of replicas as words."""
    return f"{count} replica" if count == 1 else f"{count} replicas"


def policy_text(policy: ScalingPolicy) -> str:
    """Return what a policy allows, such as `2 pods in 1m`."""
    unit = "%" if policy.type == "Percent" else " pods" if policy.value != 1 else " pod"
    return f"{policy.value}{unit} in {duration(policy.period)}"


def clock(at: datetime, now: datetime) -> str:
    """Return the time of day of an instant, with the date if it is not today."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def instant(at: datetime) -> str:
    """Return an instant as RFC 3339, with fractions of a second if there are any."""
    return format_time(at, Fraction.NONZERO)
