"""The activator of a simulation: it looks at the triggers, and scales the workload from and to its idle replicas."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ocf.objects.durations import format_duration
from ocf.simulation.engine.autoscaling import HPAController
from ocf.simulation.engine.clock import SECOND, microseconds
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.result import ACTIVATED, DEACTIVATED, Columns
from ocf.simulation.scenario.activator import Activator
from ocf.simulation.scenario.workload import SignalSource

__all__ = ["Activation", "Reading", "zero_warnings"]

_MILLI: Final = 1000


class Reading(NamedTuple):
    """A trigger and its value.

    Args:
        value: The value, in thousandths.
        threshold: The value above which the trigger is active.
    """

    name: str
    value: int
    threshold: float

    @property
    def is_active(self) -> bool:
        """Whether the trigger is active."""
        return self.value > self.threshold * _MILLI

    def __str__(self) -> str:
        return f"{self.name} is {self.value / _MILLI:g}, active above {self.threshold:g}"


class Activation:
    """The activator, with what it remembers between two looks; times are microseconds since the start.

    Attributes:
        due: The next look.
        highest: The highest value of each trigger since the workload was scaled last, by name.
        interrupted: When and from how many replicas it scaled down while load was served.
    """

    __slots__ = (
        "_active_at",
        "_cooldown",
        "_initial",
        "_interval",
        "_pipeline",
        "_settings",
        "due",
        "highest",
        "interrupted",
    )

    def __init__(self, settings: Activator, pipeline: Pipeline) -> None:
        self._settings = settings
        self._pipeline = pipeline
        self._interval = microseconds(settings.polling_interval)
        self._cooldown = microseconds(settings.cooldown_period)
        self._initial = microseconds(settings.initial_cooldown_period)
        self._active_at: int | None = None
        self.due = 0
        self.highest: dict[str, Reading] = {}
        self.interrupted: list[tuple[int, int]] = []

    def poll(self, now: int, controller: HPAController) -> bool:
        """Look at the triggers, and scale the workload if that is due.

        Returns:
            Whether `controller.replicas` has changed.
        """
        self.due += self._interval
        if self._pipeline.is_down(now):
            # On incomplete knowledge KEDA neither scales nor counts the trigger as active.
            return False
        readings = list(self._readings(controller))
        for each in readings:
            self.highest[each.name] = max(each, self.highest.get(each.name, each))
        current, wanted, reason, rule = controller.replicas, None, "", ""
        if active := next((each for each in readings if each.is_active), None):
            self._active_at = now
            if current < max(1, controller.subject.autoscaler.minimum):
                wanted, rule = max(1, controller.subject.autoscaler.minimum), ACTIVATED
                reason = f"trigger {active}"
        elif current > self._settings.idle_replica_count and self._is_over(now):
            wanted, rule, reason = self._settings.idle_replica_count, DEACTIVATED, self._why_idle()
            if self._pipeline.queue.served > 0:
                self.interrupted.append((now, current))
        if wanted is None:
            return False
        self.highest.clear()
        controller.scaled_by_other(now, wanted, reason=reason, rule=rule, explanation=tuple(map(str, readings)))
        return True

    @property
    def counts_only_waiting(self) -> bool:
        """Whether a trigger counts what waits, but not what is in work."""
        return any(each.source is SignalSource.QUEUE for each in self._pipeline.meters)

    @property
    def latest(self) -> float:
        """Seconds after which load that arrives has been seen by a look."""
        times = self._pipeline.times
        return (self._interval + times.period + times.window + times.delay) / SECOND

    def _readings(self, controller: HPAController) -> Iterator[Reading]:
        subject, values = controller.subject, self._pipeline.scrape.values
        for position, meter in enumerate(subject.meters, subject.first):
            if not meter.per_pod:
                name = meter.metric.name
                yield Reading(name, values[position], self._settings.activation_thresholds.get(name, 0.0))

    def _is_over(self, now: int) -> bool:
        """Return whether the time without an active trigger is long enough to scale down."""
        if self._active_at is None:
            return now >= self._initial
        # Real looks come some milliseconds late, so that a cooldown of whole intervals is over at the last of them.
        return now - self._active_at >= self._cooldown

    def _why_idle(self) -> str:
        if self._active_at is None:
            return "no trigger was active since the start"
        return f"no trigger was active for {format_duration(self._settings.cooldown_period)}"


def zero_warnings(
    columns: Columns, duration: float, activation: Activation | None, *, start: datetime | None = None
) -> Iterator[str]:
    """Yield a warning if the workload is scaled down while it serves load, and if it has no replicas at the end.

    Args:
        duration: Length of the run in seconds.
        start: The date of the start; None for a run whose times are those since the start.
    """
    if activation is not None and activation.interrupted:
        yield _interruption(activation, start)
    since = None
    rows = zip(columns.time, columns.replicas, columns.load, columns.queue, strict=True)
    for time, replicas, load, queue in reversed(list(rows)):
        if replicas:
            break
        if load > 0 or queue > 0:
            since = time
    if since is None or (activation is not None and duration - since <= activation.latest):
        return
    begin = _when(since, start)
    if activation is None:
        yield (
            f"from {begin} to the end, load arrives while the workload has no replicas, and nothing scales it up: the"
            " HPA is off at 0 replicas; set `workload.replicas`, or add `activator`"
        )
        return
    seen = "; ".join(
        f"{each.name} was at most {each.value / _MILLI:g}, and is active above {each.threshold:g}"
        for each in activation.highest.values()
    )
    reached = [each for each in activation.highest.values() if each.value > 0]
    lower = ", ".join(f"lower `activator.activationThresholds.{each.name}`" for each in reached)
    yield (
        f"from {begin} to the end, load waits or is dropped while the workload has no replicas, and no trigger is"
        f" active: {seen or 'none could be read'};"
        f" {lower or 'add a trigger that has a value without pods, such as a signal with the source queue or load'}"
    )


def _when(time: float, start: datetime | None) -> str:
    passed = timedelta(seconds=round(time))
    return format_duration(passed) if start is None else f"{start.astimezone(UTC) + passed:%Y-%m-%d %H:%M:%S}"


def _interruption(activation: Activation, start: datetime | None) -> str:
    at, replicas = activation.interrupted[0]
    times = len(activation.interrupted)
    begin = _when(at / SECOND, start)
    often = "" if times == 1 else f", and {times} times in all"
    hint = (
        "the source queue counts only what waits: if the scaler also counts what is in work, set the source backlog"
        if activation.counts_only_waiting
        else "add a trigger that is active under this load, or lower its threshold in `activator.activationThresholds`"
    )
    return (
        f"at {begin}{often}, the activator scales down from {replicas} replicas while load is served, because no"
        f" trigger is active; {hint}"
    )
