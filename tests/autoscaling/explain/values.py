"""Values that the tests of explanations share: a time, a metric, and instants before that time."""

from datetime import UTC, datetime, timedelta
from typing import Final

from ocf.autoscaling.algorithm import Metric, MetricTarget

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
JUST: Final = timedelta(microseconds=1)
QUEUE: Final = Metric("External", "queue", MetricTarget("AverageValue", average=1000))


def ago(seconds: float) -> datetime:
    """Return the time some seconds before noon."""
    return NOON - timedelta(seconds=seconds)
