"""Numbers, durations and instants as people read them."""

from datetime import UTC, datetime, timedelta
from typing import Final

from ocf.autoscaling.algorithm import Metric
from ocf.objects import Quantity
from ocf.objects.timestamps import Fraction, format_time

__all__ = ["amount", "clock", "duration", "instant", "number"]

_MINUTE: Final = 60
_HOUR: Final = 3600


def amount(milli: int, metric: Metric) -> str:
    """Write thousandths as a quantity; memory in powers of 1024.

    Args:
        milli: Thousandths.
        metric: What was measured.
    """
    binary = metric.name == "memory" and metric.type in {"Resource", "ContainerResource"}
    return str(Quantity.from_milli(milli, binary=binary))


def number(value: float) -> str:
    """Write a ratio.

    Example:
        >>> number(1.8), number(1.23456789), number(2.0)
        ('1.8', '1.235', '2')
    """
    return f"{value:.4g}"


def duration(period: timedelta) -> str:
    """Write a period.

    Example:
        >>> duration(timedelta(seconds=45)), duration(timedelta(seconds=200)), duration(timedelta(hours=1))
        ('45s', '3m20s', '1h')
    """
    seconds = period.total_seconds()
    if seconds < _MINUTE:
        return f"{seconds:.6g}s"
    hours, rest = divmod(int(seconds), _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def clock(at: datetime, now: datetime) -> str:
    """Write an instant near another one: the time of day, with the day if it is another one.

    Args:
        at: The instant.
        now: The other one.
    """
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def instant(at: datetime) -> str:
    """Write an instant for programs: RFC 3339, with fractions where there are any."""
    return format_time(at, Fraction.NONZERO)
