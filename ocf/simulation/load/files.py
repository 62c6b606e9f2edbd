"""Loads that are read from files: CSV, JSON, and answers of Prometheus."""

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from ocf.objects.durations import format_duration, parse_duration
from ocf.objects.timestamps import parse_rfc3339
from ocf.simulation.fields import Model, Period, Positive, PositivePeriod
from ocf.simulation.load.patterns import TimeZone

__all__ = [
    "CsvLoad",
    "Cut",
    "FileLoad",
    "Gaps",
    "JsonLoad",
    "PrometheusLoad",
    "RecordingLoad",
    "Row",
    "TimeUnit",
    "Unit",
]


class Unit(StrEnum):
    """What the values of a file count."""

    PER_SECOND = "PerSecond"
    """Load units per second."""
    PER_MINUTE = "PerMinute"
    """Load units per minute."""
    PER_HOUR = "PerHour"
    """Load units per hour."""
    PER_STEP = "PerStep"
    """Load units from one row to the next, in total."""


class TimeUnit(StrEnum):
    """The unit of times that are numbers."""

    SECONDS = "Seconds"
    """Seconds."""
    MILLISECONDS = "Milliseconds"
    """Thousandths of a second."""

    @property
    def seconds(self) -> float:
        """The unit in seconds."""
        return 1.0 if self is TimeUnit.SECONDS else 1e-3


class Gaps(StrEnum):
    """What fills a gap: a step of more than one and a half times the usual one, the median."""

    REJECT = "Reject"
    """Nothing: a gap is an error."""
    HOLD = "Hold"
    """The value before the gap."""
    ZERO = "Zero"
    """No load."""
    INTERPOLATE = "Interpolate"
    """Values that rise or fall evenly from the one before the gap to the one after it."""


_INSTANT: Final = re.compile(r"\d{4}-")


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return parse_rfc3339(value).astimezone(UTC) if _INSTANT.match(value) else parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    return value


def _written(value: timedelta | datetime) -> str:
    return format_duration(value) if isinstance(value, timedelta) else value.isoformat()


Cut = Annotated[
    timedelta | datetime,
    BeforeValidator(_cut),
    PlainSerializer(_written, return_type=str, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}], "examples": ["2h", "36h30m"]}),
]
"""A place in a file: the time since its first row, such as `90m`, or an instant in RFC 3339."""


class FileLoad(Model):
    """Base of the loads that are read from a file.

    Args:
        path: The file, relative to the file of the scenario; one that ends in `.gz` is decompressed.
        unit: What the values count; None: load units per second.
        factor: What the values are multiplied by.
        time_factor: What times are multiplied by: 0.5 replays the load at double speed. Values are not changed by it.
        from_: Where in the file the load begins; None: with its first row.
        to: Where in the file the load ends; None: one usual step after its last row.
        at: When the load begins, as time since the start of the simulation.
        gaps: What fills gaps.
        time_unit: The unit of times that are numbers.
        time_zone: The time zone of times that are dates without an offset.
    """

    path: Annotated[str, Field(min_length=1)]
    unit: Unit | None = None
    factor: Positive = 1.0
    time_factor: Positive = 1.0
    from_: Annotated[Cut | None, Field(alias="from")] = None
    to: Cut | None = None
    at: Period = timedelta()
    gaps: Gaps = Gaps.REJECT
    time_unit: TimeUnit = TimeUnit.SECONDS
    time_zone: TimeZone | None = None

    @model_validator(mode="after")
    def _cut_is_in_order(self) -> Self:
        begin, end = self.from_, self.to
        both = (isinstance(begin, timedelta) and isinstance(end, timedelta)) or (
            isinstance(begin, datetime) and isinstance(end, datetime)
        )
        if both and end <= begin:  # type: ignore[operator]  # of the same type
            raise ValueError(f"`to` must be after `from`: {end} is not after {begin}")
        return self

    def columns(self) -> tuple[str, str]:
        """Return the names of the time and of the value, for errors."""
        return "time", "value"


Row = tuple[int, str | float, str | float]
"""The number of a row in its file, its time and its value."""
Column = Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1)]
"""The name of a column, or its position from 1."""


class CsvLoad(FileLoad):
    """A load from a CSV file.

    Blank lines and lines that start with `#` are skipped. The first row is a header if a column is chosen by name, or
    if its value is not a number.

    Args:
        type: `Csv`.
        time: The column with the times: numbers, RFC 3339, or dates in `timeZone`.
        value: The column with the values.
        delimiter: The character between columns.
    """

    type: Literal["Csv"]
    time: Column = 1
    value: Column = 2
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","

    def columns(self) -> tuple[str, str]:
        """Return the names of the columns, see the base."""
        return _column(self.time), _column(self.value)


def _column(column: str | int) -> str:
    return f"column {column}" if isinstance(column, int) else column


class JsonLoad(FileLoad):
    """A load from a JSON file: a list, or JSON Lines (`.jsonl`, `.ndjson`).

    An entry is a list of time and value, or an object with both. With `step`, entries may be numbers alone.

    Args:
        type: `Json`.
        time: The key of the time in an object.
        value: The key of the value in an object.
        items: The keys that lead to the list, joined by dots; empty: the file is the list.
        step: Time from one number to the next.
    """

    type: Literal["Json"]
    time: str = "time"
    value: str = "value"
    items: str = ""
    step: PositivePeriod | None = None

    def columns(self) -> tuple[str, str]:
        """Return the names of the keys, see the base."""
        return self.time, self.value


class PrometheusLoad(FileLoad):
    """A load from a saved answer of `/api/v1/query_range` of Prometheus.

    Args:
        type: `Prometheus`.
        labels: Labels that a series must have to count.
        sum: Whether several series are added up; otherwise they are an error.
    """

    type: Literal["Prometheus"]
    labels: dict[str, str] = Field(default_factory=dict)
    sum: bool = False


class RecordingLoad(FileLoad):
    """The load of a recording: the total of a metric over all pods or series.

    Args:
        type: `Recording`.
        metric: Position of the metric in `spec.metrics` of the HPA that was recorded, from 0.
        gaps: What fills times without a value; by default the value before.
    """

    type: Literal["Recording"]
    metric: Annotated[int, Field(ge=0)] = 0
    gaps: Gaps = Gaps.HOLD
