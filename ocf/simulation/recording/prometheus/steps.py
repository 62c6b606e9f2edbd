"""Instants of a range query."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["MOST_POINTS", "Steps"]

MOST_POINTS: Final = 11_000
"""The most points per series that Prometheus returns
(https://github.com/prometheus/prometheus/blob/main/web/api/v1/api.go)."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Equally spaced instants.

    Args:
        start: The first one, with a time zone.
        count: Their number, at least 1.
        step: The time between two of them.
    """

    start: datetime
    count: int
    step: timedelta

    @classmethod
    def between(cls, start: datetime, end: datetime, step: timedelta) -> "Steps":
        """Return the instants of a range; its end is one of them only if it is a whole number of steps after the start.

        Args:
            start: The begin, with a time zone.
            end: The end; not before the begin.
            step: The time between two instants.

        Example:
            >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
            >>> Steps.between(noon, noon + timedelta(minutes=1), timedelta(seconds=25)).count
            3
        """
        return cls(start.astimezone(UTC), (end - start) // step + 1, step)

    @property
    def end(self) -> datetime:
        """The last instant."""
        return self.at(self.count - 1)

    def at(self, number: int) -> datetime:
        """Return an instant.

        Args:
            number: Its number, from 0.
        """
        return self.start + number * self.step

    def number(self, timestamp: float) -> int:
        """Return the number of an instant.

        Args:
            timestamp: The instant in seconds since 1970, as Prometheus returns it: in full milliseconds.
        """
        return round((timestamp - self.start.timestamp()) / self.step.total_seconds())

    def parts(self, most: int) -> Iterator["Steps"]:
        """Yield the instants in parts.

        Args:
            most: The most instants of a part, at most `MOST_POINTS`.
        """
        for first in range(0, self.count, most):
            yield Steps(self.at(first), min(most, self.count - first), self.step)
