"""What syncs do with a proposal of the metrics: stabilize it, limit it, and set conditions."""

from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Decision, History, Rule, apply_behavior_limits, apply_limits, hold
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.simulation.engine.clock import NEVER, microseconds
from ocf.simulation.engine.known_conditions import KnownConditions, Limited
from ocf.simulation.engine.moments import Subject

__all__ = ["Outcome", "Outcomes"]

_UNLIMITED: Final = (Rule.WITHIN_RANGE, False)
# A limit of the memory. All outcomes are dropped at once, as the order of their use is not worth its time.
_REMEMBERED: Final = 1 << 16


class Outcome(NamedTuple):
    """What a sync does with a proposal.

    Args:
        held: The replicas after stabilization.
        stabilized: The rule of the stabilization; None if it changed nothing.
        desired: The replicas after the limits.
        shown: The conditions that are set; None if no full sync has set them yet.
    """

    held: int
    stabilized: Rule | None
    desired: int
    limited: Limited
    shown: tuple[HpaCondition, ...] | None


class Outcomes:
    """What syncs do with proposals, as `ocf.autoscaling.algorithm` does; equal outcomes are computed once.

    Args:
        history: The history, whose recommendations are not used.
    """

    __slots__ = ("_behavior", "_found", "_longest", "_rescaled_until", "_subject", "history", "known")

    def __init__(self, subject: Subject, history: History) -> None:
        self._subject = subject
        self._behavior = subject.autoscaler.behavior
        self._longest = _longest_period(subject.autoscaler)
        # Until then, policies remember a rescale. When an earlier controller rescaled is not known.
        self._rescaled_until = NEVER if history.scale_ups or history.scale_downs else -1
        self._found: dict[tuple[int, int, int, int, int], Outcome] = {}
        self.history = history
        self.known = KnownConditions()

    def of(self, current: int, chosen: int, wanted: int, extremes: tuple[int, int], now: int) -> Outcome:
        """Return the outcome of a proposal.

        Args:
            chosen: Position of the metric that decided.
            extremes: The lowest and the highest recommendation of the windows, with this one.
        """
        lowest, highest = extremes
        key = current, chosen, wanted, lowest, highest
        found = self._found.get(key)
        if found is None:
            found = self._computed(current, chosen, wanted, extremes, now)
            # Policies depend on the time while they remember a rescale.
            is_fixed = found.held == current or self._behavior is None or now > self._rescaled_until
            if is_fixed and found.shown is not None:
                if len(self._found) >= _REMEMBERED:
                    self._found.clear()
                self._found[key] = found
        return found

    def rescale(self, change: int, now: int) -> None:
        """Note a rescale in the history."""
        self._replace(self.history.with_rescale(change, self._behavior, self._subject.clock.at(now)), now)

    def learn(self, decision: Decision, now: int) -> None:
        """Continue from a full sync."""
        # The recommendations are kept elsewhere.
        history = decision.history._replace(recommendations=None)
        if decision.pending_rescale is not None:
            self._replace(history, now)
        self.history = history
        self.known.learn(decision)
        self._found.clear()

    def _replace(self, history: History, now: int) -> None:
        self.history = history
        if self._behavior is not None:
            self._rescaled_until = now + self._longest
            self._found.clear()

    def _computed(self, current: int, chosen: int, wanted: int, extremes: tuple[int, int], now: int) -> Outcome:
        lowest, highest = extremes
        if self._behavior is None:
            held, stabilized = highest, None if highest == wanted else Rule.SCALE_DOWN_STABILIZED
        else:
            held, stabilized = hold(wanted, current, lowest=lowest, highest=highest)
        desired, limited = (held, _UNLIMITED) if held == current else self._limit(current, held, now)
        shown = self.known.of(chosen, stabilized, limited, rescaled_to=None if desired == current else desired)
        return Outcome(held, stabilized, desired, limited, shown)

    def _limit(self, current: int, held: int, now: int) -> tuple[int, Limited]:
        autoscaler, behavior = self._subject.autoscaler, self._behavior
        minimum, maximum = autoscaler.minimum, autoscaler.maximum
        if behavior is None:
            settings = self._subject.settings
            limit = apply_limits(current, held, minimum=minimum, maximum=maximum, settings=settings)
        else:
            limit = apply_behavior_limits(
                current,
                held,
                minimum=minimum,
                maximum=maximum,
                behavior=behavior,
                history=self.history,
                now=self._subject.clock.at(now),
            )
        return limit.replicas, (limit.rule, limit.replicas != limit.wanted)


def _longest_period(autoscaler: Autoscaler) -> int:
    """Return the longest period of the policies of an HPA, in microseconds."""
    behavior = autoscaler.behavior
    rules = () if behavior is None else (behavior.up, behavior.down)
    return max((microseconds(policy.period) for each in rules for policy in each.policies), default=0)
