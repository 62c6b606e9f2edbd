"""Explanation of a decision."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from ocf.autoscaling.algorithm import Decision, History, Settings, Snapshot, decide
from ocf.autoscaling.explain.formatting import clock
from ocf.autoscaling.explain.later_changes import LaterLever, later_levers
from ocf.autoscaling.explain.levers import Lever, levers
from ocf.autoscaling.explain.next_syncs import HoldRelease, first_release, latest_release
from ocf.autoscaling.explain.owner_fields import owned_field
from ocf.autoscaling.explain.stabilization_holds import Hold, PolicyAllowance, hold_of, policy_allowances
from ocf.autoscaling.explain.thresholds import MetricThresholds, metric_thresholds
from ocf.autoscaling.explain.uncertainty import DecisionRange, KnownHistory, decision_range

__all__ = ["Explanation", "explain", "explain_decision", "explain_unknown"]

_NO_HISTORY: Final = History()
_DEFAULTS: Final = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision and its explanation.

    Args:
        decision: The decision; its trace holds all intermediate numbers.
        history: The history that the decision used.
        settings: The controller's settings.
        hold: The recommendation that holds the number of replicas, if any.
        scale_up_allowances: What the scale-up policies allow.
        scale_down_allowances: What the scale-down policies allow.
        release: The first sync after this one with another result if no measurement changes; None without one, or if
            the decision changes the replicas now. If another controller runs the autoscaler, it is the latest sync
            that is possible.
        thresholds: For each metric, the values at which the replicas change.
        levers: The fields of the spec with which the replicas would differ.
        later_levers: The fields with which they would differ at a later sync, if no measurement changes.
        range: The range of possible results, if the history is not known. The other fields then describe the lower end.
        most: The explanation of the upper end of that range, if it differs.
        owner: Kind and name of the object that controls the HPA, whose fields a user changes; empty without one.
        written_by: Who wrote the replicas last, if that was not the HPA controller; empty otherwise.
    """

    decision: Decision
    history: History
    settings: Settings
    hold: Hold | None
    scale_up_allowances: tuple[PolicyAllowance, ...]
    scale_down_allowances: tuple[PolicyAllowance, ...]
    release: HoldRelease | None
    thresholds: tuple[MetricThresholds, ...]
    levers: tuple[Lever, ...] = ()
    later_levers: tuple[LaterLever, ...] = ()
    range: DecisionRange | None = None
    most: "Explanation | None" = None
    owner: str = ""
    written_by: str = ""

    @property
    def exact(self) -> bool:
        """Whether the result is known."""
        return self.range is None or self.range.exact

    @property
    def has_unknown_history(self) -> bool:
        """Whether the history is partly assumed."""
        return self.range is not None and bool(self.range.unknown)

    def named(self, at: datetime) -> str:
        """Return the text of the sync of a release: its time of day, and whether that is the latest possible one.

        Args:
            at: The instant.
        """
        return clock(at, self.decision.trace.now) + ("" if self.range is None else " at the latest")

    def among(self, *, owner: str, written_by: str) -> "Explanation":
        """Return the explanation of an HPA that is controlled by an object, or whose target another client scales."""
        most = None if self.most is None else self.most.among(owner=owner, written_by=written_by)
        return replace(self, owner=owner, written_by=written_by, most=most)

    def field(self, name: str) -> str:
        """Return the name of a field as a user changes it."""
        return owned_field(name, self.owner, self.decision.snapshot.autoscaler.metrics)

    def is_assumed(self, at: datetime) -> bool:
        """Return whether the history at an instant is assumed, not known.

        Args:
            at: The instant.
        """
        if self.range is None:
            return False
        # A controller that has just started adds a recommendation of its own at the instant of the sync.
        return at < self.range.since or (self.has_unknown_history and self.history.recommendations is None)


def explain(
    snapshot: Snapshot, history: History = _NO_HISTORY, *, settings: Settings = _DEFAULTS, now: datetime
) -> Explanation:
    """Decide, and explain the decision.

    Args:
        snapshot: The snapshot.
        history: The history of previous syncs.
        settings: The controller's settings.
        now: The instant of the sync.

    Example:
        >>> from datetime import UTC
        >>> from ocf.autoscaling.algorithm import Autoscaler, Metric, Scale, MetricTarget
        >>> queue = Metric("External", "queue", MetricTarget(average=10_000))
        >>> web = Autoscaler(name="web", maximum=9, metrics=(queue,))
        >>> snapshot = Snapshot(autoscaler=web, scale=Scale(3, 3, "app=web"), metric_values=((30_000,),))
        >>> [thresholds] = explain(snapshot, now=datetime(2026, 1, 31, 12, tzinfo=UTC)).thresholds
        >>> thresholds.more.low, thresholds.more.first
        (33001, 4)
    """
    decision = decide(snapshot, history, settings=settings, now=now)
    changes = tuple(levers(decision, (history,), settings=settings, now=now))
    return replace(
        explain_decision(decision, history, settings=settings),
        # After a rescale the next sync finds other replicas and other measurements, so nothing can be said about time
        # alone.
        release=None if decision.rescale else first_release(decision, settings),
        thresholds=tuple(metric_thresholds(snapshot, (history,), settings=settings, now=now, decision=decision)),
        levers=changes,
        later_levers=tuple(later_levers((decision,), changes, settings, elsewhere=False)),
    )


def explain_decision(decision: Decision, history: History, *, settings: Settings = _DEFAULTS) -> Explanation:
    """Explain how a decision was made, without what would change it.

    Args:
        decision: The decision. Its trace is explained, so that the pods and samples of its snapshot may be left out.
        history: The history that it used.
        settings: The controller's settings.
    """
    autoscaler, current, now = decision.snapshot.autoscaler, decision.trace.current or 0, decision.trace.now
    return Explanation(
        decision=decision,
        history=history,
        settings=settings,
        hold=hold_of(decision, settings),
        scale_up_allowances=policy_allowances(autoscaler, current, history, up=True, now=now),
        scale_down_allowances=policy_allowances(autoscaler, current, history, up=False, now=now),
        release=None,
        thresholds=(),
    )


def explain_unknown(
    snapshot: Snapshot, known: KnownHistory, *, settings: Settings = _DEFAULTS, now: datetime
) -> Explanation:
    """Explain what another controller will decide whose history is not known.

    Args:
        snapshot: The snapshot.
        known: The known part of the history.
        settings: The controller's settings, as far as they are known.
        now: The instant of the sync.

    Returns:
        The explanation of the fewest replicas that may result. Its `most` explains the most replicas, if that differs.
    """
    found = decision_range(snapshot, known, settings=settings, now=now)
    low = _bound(found, found.low, found.low_history, settings, most=False)
    high = _bound(found, found.high, found.high_history, settings, most=True)
    # Histories with the same result now may still differ in what would change it; then both are shown.
    if found.exact and _changes(low) == _changes(high):
        return low
    return replace(low, most=high)


def _changes(bound: Explanation) -> tuple[object, ...]:
    return (bound.levers, bound.later_levers, *(each.ranges for each in bound.thresholds))


def _bound(
    found: DecisionRange, decision: Decision, history: History, settings: Settings, *, most: bool
) -> Explanation:
    """Explain one end of the range."""
    now, snapshot, histories = decision.trace.now, decision.snapshot, found.histories
    thresholds = metric_thresholds(
        snapshot, histories, settings=settings, now=now, decision=decision, most=most, elsewhere=True
    )
    changes = tuple(levers(decision, histories, settings=settings, now=now, most=most))
    same = [each for each in found.decisions if each.desired == decision.desired]
    return replace(
        explain_decision(decision, history, settings=settings),
        release=_latest(found, decision, settings),
        thresholds=tuple(thresholds),
        levers=changes,
        later_levers=tuple(later_levers(same, changes, settings, elsewhere=True)),
        range=found,
    )


def _latest(found: DecisionRange, bound: Decision, settings: Settings) -> HoldRelease | None:
    """Return the latest release of all histories with the result of a bound."""
    if bound.rescale:
        return None
    return latest_release([each for each in found.decisions if each.desired == bound.desired], settings)
