"""A replay beside its recording: which changes of the replicas are the same, and what the recording lacks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Metric
from ocf.objects.durations import format_duration
from ocf.objects.paths import get_field
from ocf.objects.timestamps import parse_time
from ocf.simulation.recording.format import State, read_states
from ocf.simulation.recording.metric_totals import autoscaler_of, metric_total
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.recorded import replicas_of
from ocf.simulation.scenario.scenario import Scenario

__all__ = ["ReplayComparison", "Resize", "compare_replay"]

# Times of the API have whole seconds.
_SECOND: Final = timedelta(seconds=1)
_CLOCK: Final = "%Y-%m-%d %H:%M:%S"
# The first sync of a controller comes within a period, its status is read within another one, and so is a metric.
_APART: Final = 3


class Resize(NamedTuple):
    """A change of the replicas of a workload."""

    at: datetime
    before: int
    after: int

    def __str__(self) -> str:
        """Return it as text.

        Example:
            >>> print(Resize(parse_time("2026-01-31T12:00:15Z"), 2, 4))
            2 to 4 at 2026-01-31 12:00:15
        """
        return f"{self.before} to {self.after} at {self.at:{_CLOCK}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayComparison:
    """A replay beside its recording.

    Args:
        recorded: The changes of the replicas that were recorded, in their order.
        replayed: Those of the replay.
        same: How many of them, from the first on, are the same in both.
        apart: The longest time between two of these.
        lacking: What the recording does not have, and the replay would need to be the same; empty if it is.
    """

    recorded: tuple[Resize, ...]
    replayed: tuple[Resize, ...]
    same: int
    apart: timedelta
    lacking: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether all changes are the same."""
        return self.same == len(self.recorded) == len(self.replayed)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        found = {"recorded": self.recorded, "replayed": self.replayed}
        return {
            **{
                name: [{"at": each.at.isoformat(), "before": each.before, "after": each.after} for each in resizes]
                for name, resizes in found.items()
            },
            "same": self.same,
            "apart": self.apart.total_seconds(),
            "lacking": list(self.lacking),
        }

    def lines(self) -> Iterator[str]:
        """Yield it as text, one line each."""
        total = max(len(self.recorded), len(self.replayed))
        apart = f", at most {format_duration(self.apart)} apart" if self.apart else ""
        if self.is_same:
            yield f"as recorded: all {total} changes of the replicas are the same{apart}"
            return
        recorded, replayed = (
            str(found[self.same]) if len(found) > self.same else "none" for found in (self.recorded, self.replayed)
        )
        yield f"not as recorded: the first {self.same} of {total} changes of the replicas are the same{apart}"
        yield f"  the next one: recorded {recorded}, replayed {replayed}"
        yield from (f"  the recording lacks: {each}" for each in self.lacking)


@dataclass(slots=True)
class _Seen:
    """What one pass over a recording finds."""

    resizes: list[Resize] = field(default_factory=list)
    scaled: set[tuple[datetime, Any]] = field(default_factory=set)
    """When the HPA scaled, and to how many replicas, by its status."""
    of_cluster: bool = False
    """Whether the recording has these times."""
    before: tuple[datetime, int] | None = None
    between: dict[Resize, datetime] = field(default_factory=dict)
    """The instant before each change."""
    failing: dict[str, list[tuple[datetime, datetime | None]]] = field(default_factory=dict)
    """From when and until when a metric could not be read while others could."""
    without_target: datetime | None = None

    def add(self, state: State) -> None:
        """Add a state."""
        for hpa in state.of("HorizontalPodAutoscaler"):
            # Prometheus has neither of the two; an HPA that has never scaled lacks the second.
            self.of_cluster = self.of_cluster or get_field(hpa, ("metadata", "creationTimestamp")) is not None
            last = get_field(hpa, ("status", "lastScaleTime"))
            if isinstance(last, str):
                self.scaled.add((parse_time(last), get_field(hpa, ("status", "desiredReplicas"))))
        if not state.of("Scale"):
            self.without_target = self.without_target or state.at
            return
        now = replicas_of(state)
        if self.before is not None and self.before[1] != now:
            resize = Resize(state.at, self.before[1], now)
            self.resizes.append(resize)
            self.between[resize] = self.before[0]
        self.before = state.at, now
        self._add_failures(state, now)

    def _add_failures(self, state: State, replicas: int) -> None:
        autoscaler = autoscaler_of(state)
        metrics = autoscaler.metrics if autoscaler is not None and replicas else ()
        failing = {_title(each) for each in metrics if metric_total(state, each) is None}
        alone = failing if len(failing) < len({_title(each) for each in metrics}) else set[str]()
        for name in alone:
            spans = self.failing.setdefault(name, [])
            if not spans or spans[-1][1] is not None:
                spans.append((state.at, None))
        for name, spans in self.failing.items():
            if name not in alone and spans[-1][1] is None:
                spans[-1] = spans[-1][0], state.at

    def of_others(self, resize: Resize) -> bool:
        """Return whether another client has changed the replicas, by the times at which the HPA scaled."""
        since = self.between[resize] - _SECOND
        return self.of_cluster and not any(
            since <= at <= resize.at and desired == resize.after for at, desired in self.scaled
        )


def compare_replay(path: str | Path, scenario: Scenario, result: SimulationResult) -> ReplayComparison:
    """Compare a replay with its recording.

    A recording has an instant for each `--every`, and the replay has a sync for each period, so the same change may be
    up to three periods apart.

    Args:
        path: The recording.
        scenario: The scenario that `read_scenario` returned for it.
        result: Its result.

    Raises:
        InputError: If the file is not a recording.
    """
    seen = _Seen()
    for state in read_states(path):
        seen.add(state)
    recorded, replayed = tuple(seen.resizes), tuple(_resizes(result, scenario.workload.replicas))
    same, apart = 0, timedelta()
    for one, other in zip(recorded, replayed, strict=False):
        if one[1:] != other[1:] or abs(one.at - other.at) > _APART * scenario.controller.sync_period:
            break
        same, apart = same + 1, max(apart, abs(one.at - other.at))
    rest = (*recorded[same : same + 1], *replayed[same : same + 1])
    lacking = tuple(_lacking(seen, scenario, result.start, rest)) if rest else ()
    return ReplayComparison(recorded=recorded, replayed=replayed, same=same, apart=apart, lacking=lacking)


def _resizes(result: SimulationResult, before: int | None) -> Iterator[Resize]:
    # The first row has the replicas after the first sync.
    columns = result.columns
    for time, replicas in zip(columns.time, columns.replicas, strict=True):
        if before is not None and before != replicas:
            yield Resize(result.start + timedelta(seconds=time), before, replicas)
        before = replicas


def _lacking(seen: _Seen, scenario: Scenario, start: datetime, differing: Sequence[Resize]) -> Iterator[str]:
    """Yield what the recording lacks that a replay needs, up to the first change that differs."""
    first = min(each.at for each in differing)
    for resize in seen.resizes:
        if resize.at <= first and seen.of_others(resize):
            yield f"who changed the replicas from {resize}: not the HPA, by its lastScaleTime"
    for name, spans in seen.failing.items():
        for since, until in spans:
            if since <= first:
                end = f"until {until:{_CLOCK}}" if until is not None else "to the end"
                yield (
                    f"the {name} metric from {since:{_CLOCK}} {end}, while others were read: in a simulation all fail"
                    " together"
                )
    if seen.without_target is not None and seen.without_target <= first:
        yield f"the target at {seen.without_target:{_CLOCK}}: it did not exist, or could not be read"
    # Only a scenario that is not read yet has the name of a file here.
    behavior = None if isinstance(scenario.hpa, str) else Autoscaler.of(scenario.hpa).behavior
    window = behavior.down.window if behavior is not None else None
    window = scenario.controller.downscale_stabilization if window is None else window
    if first - start < window and any(each.after < each.before for each in differing):
        yield (
            f"what was recommended before {start:{_CLOCK}}: the HPA stabilizes scaling down for"
            f" {format_duration(window)}"
        )
    yield "the flags of the controller, which are taken to be the defaults, and the times of its syncs"


def _title(metric: Metric) -> str:
    return f"{metric.type} {metric.name}"
