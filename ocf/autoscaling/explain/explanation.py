"""Everything that is to be said about a decision, as values."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from ocf.autoscaling.algorithm import Decision, History, Settings, Snapshot, decide
from ocf.autoscaling.explain.stabilization_holds import (
    Hold,
    PolicyAllowance,
    Release,
    first_release,
    hold_of,
    policy_allowances,
)
from ocf.autoscaling.explain.thresholds import MetricThresholds, metric_thresholds
from ocf.autoscaling.explain.uncertainty import DecisionRange, KnownHistory, decision_range

__all__ = ["Explanation", "explain", "explain_unknown"]

_NOTHING: Final = History()
_DEFAULTS: Final = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision, and what is to be said about it.

    Args:
        decision: The decision; its trace holds every number on the way.
        history: What was remembered when it was made.
        settings: The controller's settings.
        hold: The recommendation that keeps the size; None if none does.
        growing: What the policies of growing allow.
        shrinking: What the policies of shrinking allow.
        release: What results later if nothing measured changes; None if time alone changes nothing, or there is a
            change now.
        levers: What each metric would have to be to change something.
        bounds: Between what the result lies, where the history is not known; this is about the fewest replicas then.
        most: The same about the most replicas, where that is anything else.
    """

    decision: Decision
    history: History
    settings: Settings
    hold: Hold | None
    growing: tuple[PolicyAllowance, ...]
    shrinking: tuple[PolicyAllowance, ...]
    release: Release | None
    thresholds: tuple[MetricThresholds, ...]
    range: DecisionRange | None = None
    most: "Explanation | None" = None

    @property
    def exact(self) -> bool:
        """Whether the result is known."""
        return self.range is None or self.range.exact

    @property
    def guesses(self) -> bool:
        """Whether anything that the history says is only possible, and not known."""
        return self.range is not None and bool(self.range.unknown)

    def assumes(self, at: datetime) -> bool:
        """Tell whether what the history says of an instant is only possible, and not known.

        Args:
            at: The instant.
        """
        if self.range is None:
            return False
        # A controller that has just started begins with a recommendation of now.
        return at < self.range.since or (self.guesses and self.history.recommendations is None)


def explain(
    snapshot: Snapshot, history: History = _NOTHING, *, settings: Settings = _DEFAULTS, now: datetime
) -> Explanation:
    """Decide, and find out everything that is to be said about it.

    Args:
        snapshot: What is seen.
        history: What is remembered of the rounds before.
        settings: The controller's settings.
        now: The instant of the round.

    Example:
        >>> from datetime import UTC
        >>> from ocf.autoscaling.algorithm import Autoscaler, Metric, Scale, MetricTarget
        >>> queue = Metric("External", "queue", MetricTarget(average=10_000))
        >>> web = Autoscaler(name="web", maximum=9, metrics=(queue,))
        >>> seen = Snapshot(autoscaler=web, scale=Scale(3, 3, "app=web"), metric_values=((30_000,),))
        >>> [lever] = explain(seen, now=datetime(2026, 1, 31, 12, tzinfo=UTC)).thresholds
        >>> lever.more.low, lever.more.first
        (33001, 4)
    """
    decision = decide(snapshot, history, settings=settings, now=now)
    found = metric_thresholds(snapshot, (history,), settings=settings, now=now, decision=decision)
    return _about(decision, history, settings, tuple(found))


def _about(
    decision: Decision,
    history: History,
    settings: Settings,
    found: tuple[MetricThresholds, ...],
    known: DecisionRange | None = None,
) -> Explanation:
    autoscaler, current, now = decision.snapshot.autoscaler, decision.trace.current or 0, decision.trace.now
    return Explanation(
        decision=decision,
        history=history,
        settings=settings,
        hold=hold_of(decision, settings),
        growing=policy_allowances(autoscaler, current, history, up=True, now=now),
        shrinking=policy_allowances(autoscaler, current, history, up=False, now=now),
        release=None if decision.rescale else first_release(decision, history, settings),
        thresholds=found,
        range=known,
    )


def explain_unknown(
    snapshot: Snapshot, known: KnownHistory, *, settings: Settings = _DEFAULTS, now: datetime
) -> Explanation:
    """Explain what another controller will decide, whose memory nobody can read.

    Args:
        snapshot: What is seen.
        known: What is known of the history.
        settings: The controller's settings, as far as they are known.
        now: The instant of the round.

    Returns:
        An explanation of the fewest replicas that may result; it holds another one of the most, if anything differs.
    """
    found = decision_range(snapshot, known, settings=settings, now=now)
    low, high = (
        tuple(metric_thresholds(snapshot, found.histories, settings=settings, now=now, decision=decision, most=most))
        for decision, most in ((found.low, False), (found.high, True))
    )
    least = _about(found.low, found.low_history, settings, low, found)
    if found.exact and [each.spans for each in low] == [each.spans for each in high]:
        return least
    return replace(least, most=_about(found.high, found.high_history, settings, high, found))
