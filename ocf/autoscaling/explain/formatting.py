"""Text of amounts, numbers, durations and instants."""

from datetime import UTC, datetime, timedelta
from typing import Final

from ocf.autoscaling.algorithm import Metric
from ocf.objects import Quantity
from ocf.objects.timestamps import Fraction, format_time

__all__ = ["amount", "clock", "duration", "instant", "number"]

_MINUTE: Final = 60
_HOUR: Final = 3600


def amount(milli: int, metric: Metric) -> str:
    """Return thousandths as a quantity, with binary suffixes for memory."""
    binary = metric.name == "memory" and metric.type in {"Resource", "ContainerResource"}
    return str(Quantity.from_milli(milli, binary=binary))


def number(value: float) -> str:
    """Return a ratio with four significant digits.

    Example:
        >>> number(1.8), number(1.23456789), number(2.0)
        ('1.8', '1.235', '2')
    """
    return f"{value:.4g}"


def duration(period: timedelta) -> str:
    """Return a duration with units.

    Example:
        >>> duration(timedelta(seconds=45)), duration(timedelta(seconds=200)), duration(timedelta(hours=1))
        ('45s', '3m20s', '1h')
    """
    total = period.total_seconds()
    if total < _MINUTE:
        return f"{total:.6g}s"
    hours, rest = divmod(int(total), _HOUR)
    minutes, seconds = divmod(rest, _MINUTE)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def clock(at: datetime, now: datetime) -> str:
    """Return the time of day of an instant, with the date if it is not today."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def instant(at: datetime) -> str:
    """Return an instant as RFC 3339, with fractions of a second if there are any."""
    return format_time(at, Fraction.NONZERO)
