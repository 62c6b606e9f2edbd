"""The value of a metric that follows a schedule, in virtual time."""

from datetime import datetime
from zoneinfo import ZoneInfo

from ocf.simulation.engine.clock import NEVER, Clock, microseconds
from ocf.simulation.load.cron import CronExpression
from ocf.simulation.scenario.schedule import Schedule

__all__ = ["Scheduled"]


class Scheduled:
    """A schedule in virtual time.

    As in KEDA, it is active if its next end comes before its next start, or with it.

    Example:
        >>> from datetime import UTC
        >>> from ocf.simulation.engine.clock import SECOND
        >>> office = Schedule.model_validate({"start": "0 8 * * *", "end": "0 18 * * *", "desired_replicas": 5})
        >>> found = Scheduled(office, Clock(datetime(2026, 1, 1, 7, 59, tzinfo=UTC)))
        >>> found.at(59 * SECOND), found.at(60 * SECOND)
        (0, 5)
    """

    __slots__ = ("_clock", "_end", "_known", "_replicas", "_start", "_zone", "parameters")

    def __init__(self, schedule: Schedule, clock: Clock) -> None:
        self._clock = clock
        self._zone = ZoneInfo(schedule.time_zone)
        self._start, self._end = CronExpression.parse(schedule.start), CronExpression.parse(schedule.end)
        self._replicas = schedule.desired_replicas
        # The last value, and the instants from which and until which it holds.
        self._known = 0, 0, 0
        self.parameters: tuple[object, ...] = (*schedule.model_dump().values(), clock.at(0))
        """What decides the values: equal for equal ones."""

    def at(self, now: int) -> int:
        """Return the value at an instant, in microseconds since the start."""
        begin, end, value = self._known
        if not begin <= now < end:
            at = self._clock.at(now)
            starts, ends = self._since_start(self._start, at), self._since_start(self._end, at)
            value = 0 if starts < ends else self._replicas
            self._known = now, min(starts, ends), value
        return value

    def _since_start(self, expression: CronExpression, after: datetime) -> int:
        """Return the next instant of an expression, in microseconds since the start."""
        found = expression.next(after, self._zone)
        return NEVER if found is None else microseconds(found - self._clock.at(0))
