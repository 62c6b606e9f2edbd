"""Answers of Prometheus to range queries.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ocf.errors import ConfigError
from ocf.objects.paths import get_field
from ocf.simulation.recording.prometheus.steps import Steps

__all__ = ["Matrix", "Series", "matrix_of"]


@dataclass(frozen=True, slots=True)
class Series:
    """A series at the instants of a range.

    Args:
        values: Its finite values by number of the instant.
    """

    labels: Mapping[str, str]
    values: Mapping[int, float]

    def label(self, *names: str) -> str:
        """Return the value of a label.

        Args:
            *names: Its names, the newest one first; each may have the prefix `exported_`, which Prometheus adds if the
                target of the scrape has a label of that name, too.

        Returns:
            The value; empty if there is no such label.

        Example:
            >>> Series({"pod": "kube-state-metrics-0", "exported_pod": "web-0"}, {}).label("pod")
            'web-0'
        """
        for name in names:
            found = self.labels.get(f"exported_{name}") or self.labels.get(name)
            if found:
                return found
        return ""

    def shifted(self, first: int) -> "Series":
        """Return the series with other numbers of its instants.

        Args:
            first: The new number of the instant 0.
        """
        return Series(self.labels, {first + number: value for number, value in self.values.items()})


@dataclass(frozen=True, slots=True)
class Matrix:
    """The series that a query returned."""

    series: tuple[Series, ...] = ()

    def at(self, number: int) -> Iterator[tuple[Series, float]]:
        """Yield the series that have a value at an instant.

        Args:
            number: The number of the instant.
        """
        for each in self.series:
            value = each.values.get(number)
            if value is not None:
                yield each, value

    def one(self, number: int) -> float | None:
        """Return the value at an instant, of the first series that has one; the others are copies.

        Args:
            number: The number of the instant.
        """
        return next((value for _, value in self.at(number)), None)


def matrix_of(answer: Any, steps: Steps) -> Matrix:
    """Return the series of an answer.

    Args:
        answer: The decoded JSON.
        steps: The instants of the query.

    Raises:
        ConfigError: If the query failed, or it is not such an answer.

    Example:
        >>> from datetime import UTC, datetime, timedelta
        >>> steps = Steps(datetime(1970, 1, 1, tzinfo=UTC), 2, timedelta(seconds=30))
        >>> found = {"metric": {"pod": "web-0"}, "values": [[0, "1"], [30, "2.5"]]}
        >>> answer = {"status": "success", "data": {"resultType": "matrix", "result": [found]}}
        >>> matrix_of(answer, steps).one(1)
        2.5
    """
    status = get_field(answer, ("status",))
    if status == "error":
        raise ConfigError(f"the query failed: {get_field(answer, ('error',), 'without a reason')}")
    result = get_field(answer, ("data", "result"))
    if status != "success" or get_field(answer, ("data", "resultType")) != "matrix" or not isinstance(result, list):
        raise ConfigError("not an answer of Prometheus to a range query")
    try:
        return Matrix(tuple(Series(each["metric"], dict(_values(each["values"], steps))) for each in result))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not an answer of Prometheus to a range query: {error!r}") from None


def _values(pairs: Any, steps: Steps) -> Iterator[tuple[int, float]]:
    for timestamp, text in pairs:
        value = float(text)
        if math.isfinite(value):
            yield steps.number(float(timestamp)), value
