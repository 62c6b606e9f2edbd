"""Timestamps of the Kubernetes API: RFC 3339, `metav1.Time` and `metav1.MicroTime`."""

import re
from calendar import monthrange
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

__all__ = ["Fraction", "format_micro_time", "format_time", "parse_micro_time", "parse_rfc3339", "parse_time"]

_RFC3339: Final = re.compile(
    r"""
    (?P<year>\d{4}) - (?P<month>\d\d) - (?P<day>\d\d) T (?P<hour>\d\d) : (?P<minute>\d\d)
    (?P<seconds> : (?P<second>\d\d) (?P<fraction> [.,] \d+ )? )?
    (?: Z | [+-] (?:[01]\d|2[0-3]) : [0-5]\d )
    """,
    re.ASCII | re.VERBOSE,
)
_HIGHEST: Final = {"month": 12, "hour": 23, "minute": 59, "second": 59}
_TIME_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_TIME_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_WHOLE_SECONDS: Final = len("2006-01-02T15:04:05")
_MICROSECONDS: Final = len(".000000")


class Fraction(StrEnum):
    """Digits of the second that a timestamp shows after the decimal point."""

    NONE = "seconds"
    """No digits, as `metav1.Time`; the rest is cut off."""
    MILLISECONDS = "milliseconds"
    """Three digits."""
    MICROSECONDS = "microseconds"
    """Six digits, as `metav1.MicroTime`."""
    NONZERO = "auto"
    """Six digits, or no digits if all would be zero."""


def format_time(instant: datetime, fraction: Fraction = Fraction.NONE) -> str:
    """Return an instant in RFC 3339, in UTC.

    Args:
        instant: An aware instant.
        fraction: The digits to show; by default whole seconds, as `metav1.Time`.

    Raises:
        ValueError: If the instant lies outside of the years 1 to 9999 in UTC.

    Example:
        >>> at = datetime(2026, 1, 31, 12, 0, 0, 999_999, tzinfo=UTC)
        >>> format_time(at), format_time(at, Fraction.MILLISECONDS)
        ('2026-01-31T12:00:00Z', '2026-01-31T12:00:00.999Z')
    """
    return _in_utc(instant).isoformat("T", fraction).replace("+00:00", "Z")


def format_micro_time(instant: datetime) -> str:
    """Return an instant as the API server writes a `metav1.MicroTime`: RFC 3339, in UTC, with microseconds.

    Example:
        >>> format_micro_time(datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC))
        '2026-01-31T12:00:00.000005Z'
    """
    return format_time(instant, Fraction.MICROSECONDS)


def parse_time(text: str) -> datetime:
    """Parse a timestamp that the API server wrote.

    The form is not checked any further: `datetime.fromisoformat` accepts more than RFC 3339, for example a date alone.
    Use `parse_rfc3339` for the input of a user.

    Args:
        text: RFC 3339, for example `2026-01-31T12:00:00Z`.

    Returns:
        An aware instant in UTC.

    Raises:
        ValueError: If the text is not a time.

    Example:
        >>> parse_time("2026-01-31T12:00:00Z")
        datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        # Python's text depends on its version.
        raise ValueError(f'parsing time "{text}": not a time such as 2026-01-31T12:00:00Z') from None
    return _in_utc(found, text)


def parse_rfc3339(
    text: str, *, comma: bool = False, lower_case: bool = False, optional_seconds: bool = False
) -> datetime:
    """Parse a timestamp, and check that it has the form of RFC 3339.

    Readers of Kubernetes differ in what they accept beyond that form; each keyword is one such difference. Digits
    beyond microseconds are cut off.

    Args:
        text: For example `2026-01-31T13:00:00.5+01:00`.
        comma: Whether a comma may precede the fraction, as Go's `time.Parse` and therefore `metav1.Time` allow.
        lower_case: Whether `t` and `z` are accepted, as the format `date-time` of OpenAPI allows.
        optional_seconds: Whether seconds may be missing, as CEL's `date-time` values allow.

    Raises:
        ValueError: If the text does not have this form, or names a day that does not exist; worded as in Go. Or if it
            lies outside of the years 1 to 9999 in UTC, which Go accepts.

    Example:
        >>> parse_rfc3339("2026-01-31T13:00:00+01:00").astimezone(UTC)
        datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    if lower_case:
        text = text.upper()
    match = _RFC3339.fullmatch(text)
    if match is None or not (match["seconds"] or optional_seconds) or ("," in text and not comma):
        raise _unparsed(text, _TIME_LAYOUT, text, "2006")
    # Python's message depends on its version, and from 3.14 on it accepts 24:00.
    for part, highest in _HIGHEST.items():
        if int(match[part] or 0) > highest:
            raise ValueError(f'parsing time "{text}": {part} out of range')
    year, month, day = (int(match[part]) for part in ("year", "month", "day"))
    if not year or not month:
        raise ValueError(f'parsing time "{text}": {"month" if year else "year"} out of range')
    if not 1 <= day <= monthrange(year, month)[1]:
        raise ValueError(f'parsing time "{text}": day out of range')
    found = datetime.fromisoformat(text)
    _in_utc(found, text)
    return found


def parse_micro_time(text: str) -> datetime:
    """Parse a `metav1.MicroTime`: RFC 3339 with exactly six digits after the decimal point, as Go requires.

    Args:
        text: For example `2026-01-31T12:00:00.000005Z`.

    Raises:
        ValueError: If the text does not have this form; worded as in Go.

    Example:
        >>> parse_micro_time("2026-01-31T12:00:00.000005Z").microsecond
        5
    """
    match = _RFC3339.fullmatch(text)
    if match is None or not match["seconds"]:
        raise _unparsed(text, _MICRO_TIME_LAYOUT, text, "2006")
    if len(match["fraction"] or "") != _MICROSECONDS:
        raise _unparsed(text, _MICRO_TIME_LAYOUT, text[_WHOLE_SECONDS:], ".000000")
    return parse_rfc3339(text, comma=True)


def _in_utc(instant: datetime, text: str = "") -> datetime:
    try:
        return instant.astimezone(UTC)
    except (OverflowError, ValueError):  # the second one for a time without a zone
        text = text or instant.isoformat()
        raise ValueError(f'parsing time "{text}": outside of the years 1 to 9999 in UTC') from None


def _unparsed(text: str, layout: str, rest: str, part: str) -> ValueError:
    return ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{part}"')
