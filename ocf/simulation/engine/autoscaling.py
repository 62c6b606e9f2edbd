"""The HPA controller of a simulation: one sync after the other, with the status and the history that they carry."""

from collections.abc import Iterable, Sequence
from typing import Final

from ocf.autoscaling.algorithm import Autoscaler, History, Rule, Settings
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.autoscaling.algorithm.trace import Trace
from ocf.simulation.engine.clock import SECOND, Clock
from ocf.simulation.engine.known_conditions import KnownConditions
from ocf.simulation.engine.moments import Explained, Memory, Moment, Subject
from ocf.simulation.engine.outcomes import Outcomes
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.engine.proposals import Proposal, Proposals
from ocf.simulation.engine.windows import KeptRecommendations, Windows
from ocf.simulation.result import ConditionChange, ScalingAction

__all__ = ["NOTHING", "HPAController", "Numbers", "subject_of"]

_NAN: Final = float("nan")

Numbers = tuple[float, int, int, int]
"""The numbers of a sync: current value over target value of the metric that decided (NaN if none did), the replicas
that the metrics propose and those after stabilization (-1 without a proposal), and those after the limits."""
NOTHING: Final[Numbers] = (_NAN, -1, -1, -1)
"""The numbers before the first sync."""


class HPAController:
    """The HPA controller.

    A sync is computed from counts of pods, if all its metrics have a value and its conditions are known from earlier
    syncs. Any other one runs `ocf.autoscaling.algorithm.decide` on a snapshot of all pods: the first ones, and those
    with a failed metric, an outage, no replicas, or replicas out of range. Both give the same result.

    Args:
        replicas: `spec.replicas` at the start.
        memory: What a controller carried before; without it, the controller has just started.
    """

    def __init__(
        self,
        subject: Subject,
        pipeline: Pipeline,
        *,
        replicas: int,
        memory: Memory | None = None,
        edited: bool = False,
        full: bool = False,
    ) -> None:
        autoscaler, settings = subject.autoscaler, subject.settings
        self.subject = subject
        self._pipeline = pipeline
        # With the gate, a rescale changes the condition ScaledToZero as well.
        self._zero = settings.features.scale_to_zero
        self._full = full
        # Without replicas the HPA is off or wakes the workload, which only a full sync does.
        self._minimum, self._maximum = max(1, autoscaler.minimum), autoscaler.maximum
        self.proposals = Proposals(subject, pipeline)
        # `Windows` forgets what has expired, which would count again after an edit that makes a window longer.
        self.windows = (KeptRecommendations if edited else Windows)(autoscaler, settings)
        memory = memory or _initial_memory(autoscaler, settings, replicas)
        self._begun = memory.recommendations is not None
        self.windows.restore(memory.recommendations or ())
        self.outcomes = Outcomes(subject, History(scale_ups=memory.scale_ups, scale_downs=memory.scale_downs))
        self.desired = memory.desired
        self._conditions = {each.type: each for each in memory.conditions}
        self.replicas = replicas
        self.actions: list[ScalingAction] = []
        self.changes: list[ConditionChange] = []

    def sync(self, now: int) -> Numbers:
        """Run a sync."""
        if self.may_count():
            current = self.replicas
            found = None if self._pipeline.is_down(now) else self.proposals.choose(current, now)
            if found is not None:
                numbers = self._scale_to(current, found, now)
                if numbers is not None:
                    return numbers
        return self._decide(now)

    @property
    def known(self) -> KnownConditions:
        """The conditions that full syncs have set; those of another controller of the same HPA serve as well."""
        return self.outcomes.known

    @known.setter
    def known(self, known: KnownConditions) -> None:
        self.outcomes.known = known

    def may_count(self) -> bool:
        """Return whether counts of pods may be enough for a sync: what is known before it needs no snapshot."""
        return self._begun and not self._full and self._minimum <= self.replicas <= self._maximum

    def memory(self) -> Memory:
        """Return what another controller needs to continue."""
        return Memory(
            conditions=tuple(self._conditions.values()),
            desired=self.desired,
            recommendations=self.windows.recommendations() if self._begun else None,
            scale_ups=self.outcomes.history.scale_ups,
            scale_downs=self.outcomes.history.scale_downs,
        )

    def _scale_to(self, current: int, found: Proposal, now: int) -> Numbers | None:
        """Stabilize and limit a proposal as `normalize` does; return None where the conditions are not known."""
        wanted, ratio, rule, chosen = found
        outcome = self.outcomes.of(current, chosen, wanted, self.windows.extremes(now, wanted), now)
        held, stabilized, desired, limited, shown = outcome
        rescaled = desired != current
        if shown is None or (rescaled and self._zero):
            return None
        if rescaled:
            reason = self.outcomes.known.reason(chosen, wanted, current)
            self._act(self._moment(now), desired, reason=reason, rule=limited[0] if limited[1] else stabilized or rule)
            self.outcomes.rescale(desired - current, now)
        self.windows.add(now, wanted)
        self.show(shown, now)
        self.desired = desired
        return ratio, wanted, held, desired

    def _decide(self, now: int) -> Numbers:
        """Run a full sync, and learn its conditions."""
        moment = self._moment(now)
        decision, _ = moment.decide(self.subject)
        trace, pending = decision.trace, decision.pending_rescale
        step, known = trace.stabilization, decision.history.recommendations is not None
        # recordInitialRecommendation: the replicas of the first sync count before its own recommendation.
        if known and not self._begun:
            self._begun = True
            self.windows.add(now, self.replicas)
        if step is not None:
            self.windows.add(now, step.wanted)
        self.show(decision.status.conditions, now)
        self._conditions = {each.type: each for each in decision.status.conditions}
        self.desired = decision.status.desired_replicas
        if pending is not None:
            self._act(moment, decision.desired, reason=pending.reason, rule=trace.decided_by)
        self.outcomes.learn(decision, now)
        wanted, held = (-1, -1) if step is None else (step.wanted, step.replicas)
        return _ratio_of(trace), wanted, held, decision.desired

    def show(self, conditions: Iterable[HpaCondition], now: int) -> None:
        """Set conditions, and note those whose status or reason changes."""
        for each in conditions:
            before = self._conditions.get(each.type)
            # A sync from counts sets the same objects again.
            if before is each:
                continue
            self._conditions[each.type] = each
            if before is None or before.reason != each.reason or before.status != each.status:
                change = ConditionChange(
                    time=now / SECOND, type=each.type, status=each.status, reason=each.reason, message=each.message
                )
                self.changes.append(change)

    def _act(self, moment: Moment, desired: int, *, reason: str, rule: Rule) -> None:
        action = ScalingAction(
            time=moment.now / SECOND,
            before=self.replicas,
            after=desired,
            reason=reason,
            rule=rule.value,
            explanation=Explained(moment, self.subject),
        )
        self.actions.append(action)
        self.replicas = desired

    def scaled_by_other(self, now: int, replicas: int, *, reason: str, rule: str, explanation: Sequence[str]) -> None:
        """Note that another controller scales the workload; the HPA controller sees that at its next sync."""
        action = ScalingAction(
            time=now / SECOND, before=self.replicas, after=replicas, reason=reason, rule=rule, explanation=explanation
        )
        self.actions.append(action)
        self.replicas = replicas

    def _moment(self, now: int) -> Moment:
        pipeline, pods = self._pipeline, self._pipeline.pods
        return Moment(
            now=now,
            replicas=self.replicas,
            settled=tuple([pod.seen for pod in pods.settled]),
            unsettled=tuple([pod.seen for pod in pods.unsettled]),
            terminating=tuple([pod.seen for pod in pods.terminating.values()]),
            scrape=pipeline.scrape,
            outage=pipeline.is_down(now),
            memory=self.memory(),
        )


def subject_of(
    autoscaler: Autoscaler, settings: Settings, pipeline: Pipeline, clock: Clock, *, first: int = 0
) -> Subject:
    """Return what is the same in all syncs of an HPA.

    Args:
        first: Position of the first metric of the HPA among the meters of the pipeline.
    """
    meters = pipeline.meters[first : first + len(autoscaler.metrics)]
    return Subject(
        autoscaler=autoscaler, settings=settings, meters=meters, window=pipeline.window, clock=clock, first=first
    )


def _ratio_of(trace: Trace) -> float:
    chosen = trace.chosen
    return chosen.result.ratio if chosen is not None and isinstance(chosen.result, Calculation) else _NAN


def _initial_memory(autoscaler: Autoscaler, settings: Settings, replicas: int) -> Memory:
    """Return the memory at the start: without replicas, the controller scaled to zero, if it may."""
    features = settings.features
    conditions: tuple[HpaCondition, ...] = ()
    if replicas == autoscaler.minimum == 0 and features.remembered_zero and features.scale_to_zero:
        message = "the HPA controller scaled the workload to zero"
        conditions = (HpaCondition("ScaledToZero", "True", "ScaledToZero", message),)
    return Memory(conditions=conditions, desired=replicas, recommendations=None, scale_ups=(), scale_downs=())
