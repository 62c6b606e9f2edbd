"""Generated loads that follow the clock of a time zone: daily and weekly patterns."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from ocf.simulation.fields import PositivePeriod, Rate
from ocf.simulation.load.generators import GeneratedLoad, midpoints

__all__ = ["DailyLoad", "TimeZone", "Weekday", "WeeklyLoad"]

_TIME_OF_DAY: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_DAY: Final = 86_400
_DIGITS: Final = 9


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be a time zone of the IANA database such as Europe/Berlin or UTC") from None
    return name


def _time_of_day(text: str) -> str:
    if _TIME_OF_DAY.fullmatch(text) is None:
        raise ValueError("must be a time of day such as 08:30")
    return text


TimeZone = Annotated[str, AfterValidator(_known_zone)]
"""The name of a time zone of the IANA database."""
TimeOfDay = Annotated[str, AfterValidator(_time_of_day)]
"""Hour and minute, `08:30`."""


class Weekday(StrEnum):
    """A day of the week, in the order of `datetime.weekday`."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


_WEEK: Final = tuple(Weekday)


class _Pattern(GeneratedLoad):
    """Base of the patterns.

    Args:
        rates: Load units per second by time of day; evenly rising or falling from each one to the next, also over
            midnight.
        time_zone: The time zone of the times; with summer time, the load follows the clock.
        step: Length of a step.
    """

    rates: Annotated[dict[TimeOfDay, Rate], Field(min_length=1)]
    time_zone: TimeZone = "UTC"
    step: PositivePeriod = timedelta(minutes=1)

    def factor(self, local: datetime) -> float:
        """Return the factor of a day."""
        del local
        return 1.0

    def steps(self, length: float, start: datetime) -> Iterator[tuple[float, float]]:
        """Yield the steps, see the base."""
        zone = ZoneInfo(self.time_zone)
        points = sorted((_seconds(time), rate) for time, rate in self.rates.items())
        times, rates = [time for time, _ in points], [rate for _, rate in points]
        # The first point once more on the next day, and the last one on the day before.
        times = [times[-1] - _DAY, *times, times[0] + _DAY]
        rates = [rates[-1], *rates, rates[0]]
        for time, middle in midpoints(0.0, length, self.step):
            local = (start + timedelta(seconds=middle)).astimezone(zone)
            second = local.hour * 3600 + local.minute * 60 + local.second + local.microsecond / 1e6
            after = bisect_right(times, second)
            share = (second - times[after - 1]) / (times[after] - times[after - 1])
            rate = rates[after - 1] + share * (rates[after] - rates[after - 1])
            yield time, round(rate * self.factor(local), _DIGITS)


def _seconds(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 3600 + int(minute) * 60


class DailyLoad(_Pattern):
    """A load that is the same every day.

    Args:
        type: `Daily`.

    Example:
        >>> from datetime import UTC
        >>> load = DailyLoad.model_validate({"type": "Daily", "rates": {"00:00": 10, "12:00": 130}})
        >>> round(load.series(86_400, datetime(2026, 1, 1, tzinfo=UTC)).at(6 * 3600))
        70
    """

    type: Literal["Daily"]


class WeeklyLoad(_Pattern):
    """A load that is the same every week: a daily one, with a factor for each day.

    Args:
        type: `Weekly`.
        days: Factors by day of the week; a day that is missing here has the factor 1.
    """

    type: Literal["Weekly"]
    days: dict[Weekday, Rate]

    def factor(self, local: datetime) -> float:
        """Return the factor of a day."""
        return self.days.get(_WEEK[local.weekday()], 1.0)
