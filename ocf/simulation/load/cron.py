"""Cron expressions of five fields, as KEDA reads them: those of robfig/cron v3 without descriptors.

Kubernetes' CronJob reads the same fields. The library has no counterpart in Python with its rules: a day of the week is
0 to 6, `5/15` begins at 5, and a step of more than 1 restricts a day field. Where a change of the clock skips midnight
or half an hour, the library leaves out more than what is skipped, which is not done here.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple, Self
from zoneinfo import ZoneInfo

__all__ = ["CronExpression"]

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ANY: Final = frozenset({"*", "?"})
_YEARS: Final = 5
_DAY: Final = timedelta(days=1)


class _Bounds(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        """Return the number of a text: digits, or a name."""
        if text.lower() in self.names:
            return self.names.index(text.lower()) + self.lowest
        if text.isascii() and text.isdigit():
            return int(text)
        examples = f" or {self.names[0].upper()} to {self.names[-1].upper()}" if self.names else ""
        raise ValueError(f"the {self.name} must be {self.lowest} to {self.highest}{examples}, got {text!r}")


_FIELDS: Final = (
    _Bounds("minute", 0, 59),
    _Bounds("hour", 0, 23),
    _Bounds("day of the month", 1, 31),
    _Bounds("month", 1, 12, _MONTHS),
    _Bounds("day of the week", 0, 6, _DAYS),
)


class _Field(NamedTuple):
    numbers: frozenset[int]
    is_any: bool


class CronExpression(NamedTuple):
    """A cron expression: minute, hour, day of the month, month and day of the week.

    Example:
        >>> weekdays = CronExpression.parse("0 8 * * 1-5")
        >>> weekdays.next(datetime(2026, 1, 2, 12, tzinfo=UTC), ZoneInfo("UTC")).isoformat()
        '2026-01-05T08:00:00+00:00'
    """

    minutes: _Field
    hours: _Field
    days: _Field
    months: _Field
    weekdays: _Field

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an expression.

        Raises:
            ValueError: If it is invalid.
        """
        parts = text.split()
        if len(parts) != len(_FIELDS):
            raise ValueError(
                f"must be five fields (minute, hour, day of the month, month, day of the week), got {len(parts)}"
            )
        return cls(*(_field(part, bounds) for part, bounds in zip(parts, _FIELDS, strict=True)))

    def next(self, after: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the first instant of the expression after another one; None if there is none within five years.

        A time that a change of the clock skips is left out, and one that it repeats comes twice.

        Args:
            zone: The time zone of the expression.
        """
        local = after.astimezone(zone)
        day, begin = local.date(), local.hour
        while day.year <= local.year + _YEARS:
            if self._has(day):
                for hour in sorted(self.hours.numbers):
                    found = () if hour < begin else self._instants(datetime.combine(day, time(hour)), zone)
                    later = [each for each in found if each > after]
                    if later:
                        return min(later)
            day, begin = day + _DAY, 0
        return None

    def _has(self, day: date) -> bool:
        if day.month not in self.months.numbers:
            return False
        by_date = day.day in self.days.numbers
        by_weekday = day.isoweekday() % 7 in self.weekdays.numbers
        # Two restricted day fields are alternatives.
        return by_date and by_weekday if self.days.is_any or self.weekdays.is_any else by_date or by_weekday

    def _instants(self, hour: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Yield the instants of an hour of local time, also those of an hour that the clock repeats."""
        for minute in self.minutes.numbers:
            for fold in (0, 1):
                found = hour.replace(minute=minute, fold=fold, tzinfo=zone).astimezone(UTC)
                if found.astimezone(zone).replace(tzinfo=None, fold=0) == hour.replace(minute=minute):
                    yield found


def _field(text: str, bounds: _Bounds) -> _Field:
    numbers: set[int] = set()
    is_any = False
    for part in filter(None, text.split(",")):
        found, star = _range(part, bounds)
        numbers |= found
        is_any |= star
    if not numbers:
        raise ValueError(f"the {bounds.name} is empty")
    return _Field(frozenset(numbers), is_any)


def _range(text: str, bounds: _Bounds) -> tuple[set[int], bool]:
    """Return the numbers of `7`, `1-5`, `*`, `1-5/2`, `5/15` or `*/2`, and whether they are all."""
    written, slash, step_text = text.partition("/")
    low, dash, high = written.partition("-")
    step = 1
    if slash:
        if not (step_text.isascii() and step_text.isdigit() and int(step_text)):
            raise ValueError(f"the step of the {bounds.name} must be a number of at least 1, got {text!r}")
        step = int(step_text)
    if low in _ANY:
        first, last = bounds.lowest, bounds.highest
    else:
        first = bounds.number(low)
        last = bounds.number(high) if dash else bounds.highest if slash else first
    if not bounds.lowest <= first <= last <= bounds.highest:
        raise ValueError(
            f"the {bounds.name} must be {bounds.lowest} to {bounds.highest}, in rising order, got {text!r}"
        )
    return set(range(first, last + 1, step)), low in _ANY and step == 1
