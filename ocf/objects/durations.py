"""Durations in Go's format, `1m30s`, as used in flags of Kubernetes and in responses of the metrics APIs."""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

__all__ = ["format_duration", "parse_duration"]

_SHAPE: Final = re.compile(r"0|(?:[0-9.]+(?:h|ms|m|s|us|µs|ns))+")
_PART: Final = re.compile(r"([0-9.]+)(h|ms|m|s|us|µs|ns)")
_MICROSECONDS: Final = {
    "h": Fraction(3_600_000_000),
    "m": Fraction(60_000_000),
    "s": Fraction(1_000_000),
    "ms": Fraction(1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "ns": Fraction(1, 1000),
}
_MINUTE: Final = 60


def parse_duration(text: str) -> timedelta:
    """Parse a duration, as Go's `time.ParseDuration` does; a sign is rejected.

    Args:
        text: Numbers with units, `1m30s` or `0.5h`; or `0`.

    Returns:
        The duration, in whole microseconds.

    Raises:
        ValueError: If the text is not a duration, or the duration is too long.

    Example:
        >>> parse_duration("1m30s").total_seconds(), parse_duration("15ms").total_seconds()
        (90.0, 0.015)
    """
    if not _SHAPE.fullmatch(text):
        raise ValueError(f"must be a duration like 1m30s, not {text!r}")
    try:
        # A float has not enough digits for the microseconds of a century.
        total = sum(Fraction(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(text))
        return timedelta(microseconds=round(total))
    except OverflowError:
        raise ValueError(f"must be a duration like 1m30s, and {text!r} is too long") from None
    except ValueError:
        raise ValueError(f"must be a duration like 1m30s, not {text!r}") from None


def format_duration(duration: timedelta) -> str:
    """Return a duration in Go's format.

    Example:
        >>> format_duration(timedelta(minutes=5)), format_duration(timedelta(seconds=1.5))
        ('5m0s', '1.5s')
    """
    minutes, rest = divmod(duration, timedelta(minutes=1))
    hours, minutes = divmod(minutes, _MINUTE)
    seconds = f"{rest.total_seconds():.6f}".rstrip("0").removesuffix(".")
    return f"{f'{hours}h' if hours else ''}{f'{minutes}m' if hours or minutes else ''}{seconds or '0'}s"
