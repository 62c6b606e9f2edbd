"""The syncs that follow a decision, and the first of them with another result.

Each sync adds its own recommendation to the history, and a rescale adds a scale event. So the time at which the result
changes cannot be read from the history of this sync; the algorithm runs for the syncs that follow, one sync period
apart. Syncs between which nothing can change are left out: their recommendations equal that of the sync after them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Decision, History, Scale, Settings, Snapshot, decide
from ocf.autoscaling.algorithm.history import ZERO_TIME, window_start
from ocf.autoscaling.algorithm.normalize import downscale_window

__all__ = [
    "LATEST",
    "RUN_OUT",
    "HoldRelease",
    "expiry",
    "first_release",
    "latest_release",
    "next_syncs",
    "recommendation_end",
    "windows",
]

# Without a `behavior`, an entry exactly as old as the window still counts.
_JUST: Final = timedelta(microseconds=1)
_SYNCS_OF_HORIZON: Final = 20
# A rescale may be one of many small ones that policies allow, so what follows is looked at as well.
_RESCALES_OF_HORIZON: Final = 100
LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""The latest instant there is."""

RUN_OUT: Final = History(())
"""The history once all windows and periods have passed."""


class HoldRelease(NamedTuple):
    """The first change of the result by time alone.

    Args:
        at: The sync with another result.
        replicas: The result of that sync.
    """

    at: datetime
    replicas: int


def first_release(
    decision: Decision, settings: Settings, *, then: Snapshot | None = None, direction: int = 0
) -> HoldRelease | None:
    """Return the first sync after this one with another number of replicas.

    Args:
        decision: The decision of this sync.
        settings: The settings that it was made with.
        then: The snapshot that the later syncs use; None for that of this sync, so that only time passes.
        direction: 1 for more replicas than now, -1 for fewer, 0 for either.

    Returns:
        The sync; None if the replicas are not known, or if there is none within twice the longest window or period
        after this sync and after each of the next hundred rescales.
    """
    current = decision.trace.current
    if current is None:
        return None
    for made in next_syncs(decision, settings, then or decision.snapshot):
        change = made.desired - current
        # Without a direction the product is 0, so that either change is accepted.
        if change and change * direction >= 0:
            return HoldRelease(made.trace.now, made.desired)
    return None


def latest_release(
    decisions: Iterable[Decision], settings: Settings, *, then: Snapshot | None = None, direction: int = 0
) -> HoldRelease | None:
    """Return the latest sync by which the number of replicas changes, whichever of several histories is the actual one.

    Args:
        decisions: The decision of this sync with each history, at least one.
        then: The snapshot that the later syncs use; None for that of this sync, so that only time passes.
        direction: 1 for more replicas than now, -1 for fewer, 0 for either.

    Returns:
        The sync, one sync period later than calculated: another controller makes its next sync up to a period after
        this one. None if with one of the histories there is no such sync.
    """
    latest: HoldRelease | None = None
    for decision in decisions:
        found = first_release(decision, settings, then=then, direction=direction)
        if found is None:
            return None
        latest = max(latest or found, found)
    return None if latest is None else latest._replace(at=expiry(latest.at, settings.sync_period))


def next_syncs(decision: Decision, settings: Settings, then: Snapshot) -> Iterator[Decision]:
    """Yield the decisions of the syncs after this one, without those that cannot differ from the one before.

    The target has the desired replicas when the next sync reads it; everything else stays as in the snapshot. A pod is
    measured again with the same value, so that the sample of a pod that was starting counts as soon as it would.

    Args:
        decision: The decision of this sync.
        settings: The settings that it was made with.
        then: The snapshot that the later syncs use.

    Yields:
        Decisions, until nothing changes any more, or until twice the longest window or period has passed since this
        sync and since each of the first hundred rescales.
    """
    start, period = decision.trace.now, settings.sync_period
    length, rescales = _horizon(then.autoscaler, settings), 0
    horizon = expiry(start, length)
    at = expiry(start, period)
    state: tuple[int | None, int] = (None, decision.desired)
    young = _has_young_pods(then, settings, start)
    while at <= horizon:
        decision = _following(decision, _resampled(then, at - start) if young else then, settings, at)
        yield decision
        if decision.rescale and rescales < _RESCALES_OF_HORIZON:
            rescales += 1
            horizon = expiry(at, length)
        before, state = state, (_wanted(decision), decision.desired)
        following = expiry(at, period)
        if state == before:
            end = min(chain(_ends(decision, settings, at), _settled(then, start, at) if young else ()), default=None)
            if end is None:
                return
            # The sync before a change matters as well: its recommendation is the youngest one of its number.
            following = max(following, expiry(_first_sync(start, period, end), -period))
        # At the end of the range of instants time stands still.
        if following <= at:
            return
        at = following


def _following(before: Decision, then: Snapshot, settings: Settings, at: datetime) -> Decision:
    scale = before.snapshot.scale
    if isinstance(scale, Scale) and scale.replicas != before.desired:
        # Pods that are just starting or ending stay as many: only the rescale itself changes the observed replicas.
        scale = Scale(before.desired, scale.observed + before.desired - scale.replicas, scale.selector)
    return decide(replace(then, scale=scale, status=before.status), before.history, settings=settings, now=at)


def _has_young_pods(snapshot: Snapshot, settings: Settings, now: datetime) -> bool:
    """Return whether the age of a sample can matter: only that of a pod within its initialization period does."""
    start = window_start(now, settings.cpu_initialization_period)
    return any(each.started is not None and each.started > start for each in snapshot.pods)


def _resampled(snapshot: Snapshot, elapsed: timedelta) -> Snapshot:
    """Return a snapshot in which each pod has been measured again, with the same value."""
    values = [
        {name: sample._replace(at=expiry(sample.at, elapsed)) for name, sample in each.items()}
        if isinstance(each, Mapping)
        else each
        for each in snapshot.metric_values
    ]
    return replace(snapshot, metric_values=values)


def _settled(snapshot: Snapshot, start: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the instants from which on the window of a sample begins after its pod became ready."""
    ready = {each.name: each.ready.since for each in snapshot.pods if each.ready is not None and each.ready.since}
    for values in snapshot.metric_values:
        if isinstance(values, Mapping):
            for name, sample in values.items():
                if name in ready:
                    end = expiry(start, ready[name] + sample.window - sample.at)
                    if end > now:
                        yield end


def _wanted(decision: Decision) -> int | None:
    step = decision.trace.stabilization
    return None if step is None else step.wanted


def _horizon(autoscaler: Autoscaler, settings: Settings) -> timedelta:
    behavior = autoscaler.behavior
    periods = () if behavior is None else (behavior.up.longest_period, behavior.down.longest_period)
    longest = max(*windows(autoscaler, settings), *periods, settings.cpu_initialization_period)
    try:
        # Windows and periods may be 0, so some syncs are added.
        return 2 * longest + _SYNCS_OF_HORIZON * settings.sync_period
    except OverflowError:
        return timedelta.max


def _ends(decision: Decision, settings: Settings, now: datetime) -> Iterator[datetime]:
    """Yield the instants from which on an entry of the history, or the youth of a pod, no longer counts."""
    autoscaler, history, wanted = decision.snapshot.autoscaler, decision.history, _wanted(decision)
    both = windows(autoscaler, settings)
    recommended = (
        recommendation_end(each.at, window, autoscaler)
        for each in history.recommendations or ()
        # One that equals the proposal holds nothing, and this sync's own is younger.
        if each.replicas != wanted
        for window in both
    )
    behavior = autoscaler.behavior
    policies = () if behavior is None else (*behavior.up.policies, *behavior.down.policies)
    changed = (
        expiry(event.at, policy.period) for policy in policies for event in (*history.scale_ups, *history.scale_downs)
    )
    started = (
        expiry(pod.started, settings.cpu_initialization_period)
        for pod in decision.snapshot.pods
        if pod.started is not None
    )
    return (each for each in chain(recommended, changed, started) if each > now)


def windows(autoscaler: Autoscaler, settings: Settings) -> tuple[timedelta, timedelta]:
    """Return the stabilization windows for scaling down and up."""
    behavior = autoscaler.behavior
    up = timedelta() if behavior is None or behavior.up.window is None else behavior.up.window
    return downscale_window(autoscaler, settings), up


def recommendation_end(at: datetime, window: timedelta, autoscaler: Autoscaler) -> datetime:
    """Return the first instant at which a recommendation no longer counts."""
    end = expiry(at, window)
    return expiry(end, _JUST) if autoscaler.behavior is None else end


def expiry(at: datetime, period: timedelta) -> datetime:
    """Return the instant a period later, within the range of instants."""
    try:
        return at + period
    except OverflowError:
        return LATEST if period > timedelta() else ZERO_TIME


def _first_sync(start: datetime, period: timedelta, at: datetime) -> datetime:
    """Return the first sync at or after an instant."""
    # Rounded up: floor division of the negated distance.
    return expiry(start, -((start - at) // period) * period)
