"""Schedules of triggers: a number of replicas from one cron expression to the other."""

from datetime import UTC, datetime
from typing import Annotated, Final, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from ocf.simulation.fields import Model
from ocf.simulation.load.cron import CronExpression
from ocf.simulation.load.patterns import TimeZone

__all__ = ["Schedule"]

_MOST: Final = 1_000_000
_ANY_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _cron(text: str) -> str:
    if CronExpression.parse(text).next(_ANY_TIME, ZoneInfo("UTC")) is None:
        raise ValueError(f"has no instant within five years, got {text!r}: is there such a day in its months?")
    return text


CronText = Annotated[str, AfterValidator(_cron)]
"""A cron expression of five fields."""


class Schedule(Model):
    """A schedule, as in a trigger of type `cron` of KEDA.

    Args:
        start: Cron expression of the instants at which the schedule becomes active.
        end: Cron expression of the instants at which it ends.
        desired_replicas: The value of the metric while the schedule is active; otherwise it is 0.
        time_zone: The time zone of both expressions.
    """

    start: CronText
    end: CronText
    desired_replicas: Annotated[int, Field(ge=1, le=_MOST)]
    time_zone: TimeZone = "UTC"

    @model_validator(mode="after")
    def _changes(self) -> Self:
        if self.start == self.end:
            raise ValueError(f"start and end must differ, got {self.start!r} for both")
        return self
