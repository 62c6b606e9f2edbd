"""Times and values of the rows of a file."""

import math
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from ocf.simulation.load.files import TimeUnit

__all__ = ["FIRST_EPOCH", "TimeParser", "parse_value"]

FIRST_EPOCH: Final = 100_000_000.0
"""Numbers from here on, the year 1973, are seconds since 1970; smaller ones count from any start."""
# The year 5138: a number beyond it is in milliseconds.
_LAST_EPOCH: Final = 100_000_000_000.0
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_value(written: str | float) -> float:
    """Return the value of a row.

    Example:
        >>> parse_value("47.400")
        47.4
    """
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    # Python reads `1_000` as a number, and no other program writes one like that.
    if not 0 <= value < math.inf or (isinstance(written, str) and "_" in written):
        hint = ""
        if math.isnan(value):
            hint = "; leave out rows without a value, and let `gaps` say what fills them"
        raise ValueError(f"must be a finite number of at least 0, got {_shown(written)}{hint}")
    return value


def _shown(written: str | float) -> str:
    return f"{written!r:.60}" if isinstance(written, str) else f"{written:g}"


class TimeParser:
    """Parser of the times of one file, in order.

    Args:
        zone: The time zone of dates without an offset; None if they are an error.

    Example:
        >>> parse = TimeParser(TimeUnit.SECONDS, "Europe/Berlin")
        >>> [parse(f"2026-10-25 {time}") for time in ("02:30", "02:30", "03:30")]
        [1792888200.0, 1792891800.0, 1792895400.0]
    """

    def __init__(self, unit: TimeUnit, zone: str | None) -> None:
        self._unit = unit
        self._factor = unit.seconds
        self._zone = None if zone is None else ZoneInfo(zone)
        self._is_number: bool | None = None
        self._last = -math.inf
        self.absolute = False
        """Whether the times are instants; otherwise they count from any start."""

    def __call__(self, written: str | float) -> float:
        """Return a time in seconds."""
        if self._is_number is None:
            self._is_number = _number(written) is not None
        self._last = self._seconds(written) if self._is_number else self._instant(str(written).strip())
        return self._last

    def _seconds(self, written: str | float) -> float:
        try:
            number = float(written)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"must be a finite number, as the times before it, got {_shown(written)}")
        seconds = number * self._factor
        if not -_LAST_EPOCH < seconds < _LAST_EPOCH:
            detail = "set `timeUnit: Milliseconds`" if self._unit is TimeUnit.SECONDS else "milliseconds are expected"
            raise ValueError(f"{_shown(written)} lies thousands of years after 1970: {detail}")
        self.absolute = seconds >= FIRST_EPOCH
        return seconds

    def _instant(self, text: str) -> float:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            detail = "must be seconds, or a time such as 2026-01-31T12:00:00Z or 2026-01-31 12:00:00"
            raise ValueError(f"{detail}, got {_shown(text)}") from None
        self.absolute = True
        if found.tzinfo is None:
            return self._local(found, text)
        return (found - _EPOCH).total_seconds()

    def _local(self, found: datetime, text: str) -> float:
        if self._zone is None:
            raise ValueError(f"{text!r} has no offset: set `timeZone`, for example to UTC")
        seconds = self._utc(found, text)
        # An hour that summer time repeats: a time that does not come after the one before it is in the second one.
        return seconds if seconds > self._last else self._utc(found.replace(fold=1), text)

    def _utc(self, found: datetime, text: str) -> float:
        instant = found.replace(tzinfo=self._zone).astimezone(UTC)
        # A time that is left out in spring becomes another one on the way to UTC and back.
        if instant.astimezone(self._zone).replace(tzinfo=None, fold=0) != found.replace(fold=0):
            raise ValueError(f"{text!r} does not exist in {self._zone}, where clocks are set forward: write an offset")
        return (instant - _EPOCH).total_seconds()


def _number(written: str | float) -> float | None:
    try:
        return float(written)
    except ValueError:
        return None
