"""The HPA controller of a simulation: one sync after the other, with the status and the history that they carry."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Calculation,
    History,
    HpaCondition,
    Rule,
    Settings,
    Trace,
    apply_behavior_limits,
    apply_limits,
    hold,
)
from ocf.simulation.engine.calm import TOO_MUCH
from ocf.simulation.engine.clock import NEVER, SECOND, Clock, microseconds
from ocf.simulation.engine.explanations import Explained
from ocf.simulation.engine.known_conditions import KnownConditions, Limited
from ocf.simulation.engine.moments import Memory, Moment, Subject
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.engine.proposals import Proposal, Proposals
from ocf.simulation.engine.scrapes import Scrape
from ocf.simulation.engine.windows import KeptRecommendations, Windows
from ocf.simulation.result import Action, ConditionChange

__all__ = ["NOTHING", "Controller", "Numbers", "Stay", "subject_of"]

_NAN: Final = float("nan")
_UNLIMITED: Final = (Rule.WITHIN_RANGE, False)

Numbers = tuple[float, int, int, int]
"""The numbers of a sync: current value over target value of the metric that decided (NaN if none did), the replicas
that the metrics propose and those after stabilization (-1 without a proposal), and those after the limits."""
NOTHING: Final[Numbers] = (_NAN, -1, -1, -1)
"""The numbers before the first sync."""
_REMEMBERED: Final = 1 << 16


class Stay(NamedTuple):
    """The numbers of syncs that leave the replicas as they are, see `Numbers`.

    Args:
        ratios: Current value over target value of the metric that decided, one for each sync.
        wanted: The replicas that the metrics propose.
        held: The replicas after stabilization.
    """

    ratios: list[float]
    wanted: list[int]
    held: list[int]


class _Outcome(NamedTuple):
    """What a sync that leaves the replicas as they are does.

    Args:
        held: The replicas after stabilization.
        shown: The conditions that it sets.
    """

    held: int
    shown: tuple[HpaCondition, ...]


class Controller:
    """The HPA controller.

    A sync is computed from counts of pods, if all its metrics have a value and its conditions are known from earlier
    syncs. Any other one runs `ocf.autoscaling.algorithm.decide` on a snapshot of all pods: the first ones, and those
    with a failed metric, an outage, no replicas, or replicas out of range. Both give the same result.

    Args:
        subject: The HPA, and what else is the same in all syncs.
        pipeline: The metrics pipeline, with the pods.
        replicas: `spec.replicas` at the start.
        memory: What a controller carried before; without it, the controller has just started.
        edited: Whether another controller continues from this one, or this one from another, after an edit of the HPA.
        full: Whether every sync runs `decide`.

    Attributes:
        replicas: `spec.replicas`.
        known: The conditions that full syncs have set; those of another controller of the same HPA serve as well.
        actions: The scaling actions so far.
        changes: The changes of conditions so far.
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
        self._subject = subject
        self._pipeline = pipeline
        # With the gate, a rescale changes the condition ScaledToZero as well.
        self._zero = settings.features.scale_to_zero
        self._full = full
        self._minimum, self._maximum = max(1, autoscaler.minimum), autoscaler.maximum
        self._proposals = Proposals(subject, pipeline)
        self._choose = self._proposals.chooser()
        self._behavior = autoscaler.behavior
        self._longest = _longest_period(autoscaler)
        self._windows = (KeptRecommendations if edited else Windows)(autoscaler, settings)
        memory = memory or _initial_memory(autoscaler, settings, replicas)
        self._begun = memory.recommendations is not None
        self._windows.restore(memory.recommendations or ())
        self._history = History(scale_ups=memory.scale_ups, scale_downs=memory.scale_downs)
        self._desired = memory.desired
        self._conditions = {each.type: each for each in memory.conditions}
        # The conditions of the last sync, if it left the replicas as they are.
        self._shown: tuple[HpaCondition, ...] | None = None
        self._outcomes: dict[tuple[int, int, int, int, int], _Outcome] = {}
        self._proposed: dict[tuple[int, int, int], dict[Hashable, Proposal]] = {}
        # Until then, policies of the behavior remember a rescale. It is not known when an earlier controller rescaled.
        self._rescaled_until = NEVER if self._history.scale_ups or self._history.scale_downs else -1
        self.known = KnownConditions()
        self.replicas = replicas
        self.actions: list[Action] = []
        self.changes: list[ConditionChange] = []

    def sync(self, now: int) -> Numbers:
        """Run a sync.

        Args:
            now: Its time, in microseconds since the start.

        Returns:
            Its numbers. `replicas` has its result.
        """
        current = self.replicas
        if self._begun and not self._full and self._minimum <= current <= self._maximum:
            found = None if self._pipeline.is_down(now) else self._choose(current, now)
            if found is not None:
                numbers = self._scale_to(current, found, now)
                if numbers is not None:
                    return numbers
        return self._decide(now)

    def can_stay(self) -> bool:
        """Return whether `stay` may be called: no sync needs a snapshot for what is known before it."""
        return self._begun and not self._full and self._minimum <= self.replicas <= self._maximum

    def stay(self, syncs: Sequence[int], values: Sequence[Sequence[int]]) -> Stay:
        """Run syncs as long as they leave the replicas as they are, and their conditions are known.

        All pods are settled, no sample is lost, and metrics can be read.

        Args:
            syncs: The syncs, in microseconds since the start.
            values: The samples of each meter of the pipeline at the syncs.

        Returns:
            The numbers of the syncs that have run; the next one has to run by itself.
        """
        current, shown, outcomes = self.replicas, self._shown, self._outcomes
        proposals = self._all_proposed(syncs, values)
        wants = [proposal[0] for proposal in proposals]
        holds: list[int] = []
        extremes = self._windows.follow(zip(syncs, wants, strict=False))
        # The extremes come first: they also end the sync before.
        for (lowest, highest), now, (wanted, _, _, chosen) in zip(extremes, syncs, proposals, strict=False):
            outcome = outcomes.get((current, chosen, wanted, lowest, highest))
            if outcome is None:
                outcome = self._outcome(current, chosen, wanted, (lowest, highest), now)
                if outcome is None:
                    break
            if outcome.shown is not shown:
                shown = outcome.shown
                self._show(shown, now)
            holds.append(outcome.held)
        count = len(holds)
        if count:
            self._shown, self._desired = shown, current
        return Stay([ratio for _, ratio, _, _ in proposals[:count]], wants[:count], holds)

    def _all_proposed(self, syncs: Sequence[int], values: Sequence[Sequence[int]]) -> list[Proposal]:
        """Return the proposals of the metrics for some samples, up to the first for which a sync needs a snapshot."""
        pipeline, current = self._pipeline, self.replicas
        keys = self._proposals.decisive(values)
        place = current, len(pipeline.pods.settled), pipeline.pods.ready_to_count()
        known = self._proposed.setdefault(place, {})
        unknown = {key: at for at, key in enumerate(keys) if key not in known}
        if unknown:
            scrape = pipeline.scrape
            for key, at in unknown.items():
                read = tuple(each[at] for each in values)
                pipeline.scrape = Scrape(syncs[at], read, {}, frozenset())
                found = None if max(read, default=0) >= TOO_MUCH else self._choose(current, syncs[at])
                if found is not None:
                    known[key] = found
            pipeline.scrape = scrape
            if any(key not in known for key in unknown):
                keys = keys[: next(at for at, key in enumerate(keys) if key not in known)]
        proposals = [known[key] for key in keys]
        if sum(map(len, self._proposed.values())) > _REMEMBERED:
            self._proposed.clear()
        return proposals

    def memory(self) -> Memory:
        """Return what another controller needs to continue."""
        return Memory(
            conditions=tuple(self._conditions.values()),
            desired=self._desired,
            recommendations=self._windows.recommendations() if self._begun else None,
            scale_ups=self._history.scale_ups,
            scale_downs=self._history.scale_downs,
        )

    def _scale_to(self, current: int, found: Proposal, now: int) -> Numbers | None:
        """Stabilize and limit a proposal as `normalize` does; return None where the conditions are not known."""
        wanted, ratio, rule, chosen = found
        lowest, highest = self._windows.extremes(now, wanted)
        outcome = self._outcomes.get((current, chosen, wanted, lowest, highest))
        outcome = outcome or self._outcome(current, chosen, wanted, (lowest, highest), now)
        if outcome is not None:
            if self._shown is not outcome.shown:
                self._show(outcome.shown, now)
                self._shown = outcome.shown
            self._desired = current
            self._windows.add(now, wanted)
            return ratio, wanted, outcome.held, current
        held, stabilized = self._hold(wanted, current, lowest=lowest, highest=highest)
        desired, limited = self._limit(current, held, now)
        if desired == current or self._zero:
            return None
        shown = self.known.of(chosen, stabilized, limited, rescaled_to=desired)
        if shown is None:
            return None
        reason = self.known.reason(chosen, wanted, current)
        self._act(self._moment(now), desired, reason=reason, rule=limited[0] if limited[1] else stabilized or rule)
        self._history = self._history.with_rescale(desired - current, self._behavior, self._subject.clock.at(now))
        self._rescaled(now)
        self._windows.add(now, wanted)
        self._show(shown, now)
        self._shown, self._desired = None, desired
        return ratio, wanted, held, desired

    def _outcome(
        self, current: int, chosen: int, wanted: int, extremes: tuple[int, int], now: int
    ) -> _Outcome | None:
        """Return what a sync does that leaves the replicas as they are; None for any other sync."""
        lowest, highest = extremes
        held, stabilized = self._hold(wanted, current, lowest=lowest, highest=highest)
        desired, limited = (held, _UNLIMITED) if held == current else self._limit(current, held, now)
        shown = self.known.of(chosen, stabilized, limited, rescaled_to=None) if desired == current else None
        if shown is None:
            return None
        found = _Outcome(held, shown)
        # Policies depend on the time while they remember a rescale.
        if held == current or self._behavior is None or now > self._rescaled_until:
            if len(self._outcomes) >= _REMEMBERED:
                self._outcomes.clear()
            self._outcomes[current, chosen, wanted, lowest, highest] = found
        return found

    def _hold(self, wanted: int, current: int, *, lowest: int, highest: int) -> tuple[int, Rule | None]:
        if self._behavior is None:
            return highest, None if highest == wanted else Rule.SCALE_DOWN_STABILIZED
        return hold(wanted, current, lowest=lowest, highest=highest)

    def _rescaled(self, now: int) -> None:
        """Forget outcomes that depend on the scale events of the history."""
        if self._behavior is not None:
            self._rescaled_until = now + self._longest
            self._outcomes.clear()

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
                history=self._history,
                now=self._subject.clock.at(now),
            )
        return limit.replicas, (limit.rule, limit.replicas != limit.wanted)

    def _decide(self, now: int) -> Numbers:
        """Run a full sync, and learn its conditions."""
        moment = self._moment(now)
        decision, _ = moment.decide(self._subject)
        trace, pending = decision.trace, decision.pending_rescale
        step, known = trace.stabilization, decision.history.recommendations is not None
        if known and not self._begun:
            self._begun = True
            self._windows.add(now, self.replicas)
        if step is not None:
            self._windows.add(now, step.wanted)
        # The recommendations stay in the windows.
        self._history = decision.history._replace(recommendations=None)
        self._show(decision.status.conditions, now)
        self._conditions = {each.type: each for each in decision.status.conditions}
        self._shown = None
        self._outcomes.clear()
        self.known.learn(decision)
        self._desired = decision.status.desired_replicas
        if pending is not None:
            self._act(moment, decision.desired, reason=pending.reason, rule=trace.decided_by)
            self._rescaled(now)
        wanted, held = (-1, -1) if step is None else (step.wanted, step.replicas)
        return _ratio_of(trace), wanted, held, decision.desired

    def _show(self, conditions: Iterable[HpaCondition], now: int) -> None:
        """Set conditions, and note those whose status or reason changes."""
        for each in conditions:
            before = self._conditions.get(each.type)
            if before is each:
                continue
            self._conditions[each.type] = each
            if before is None or before.reason != each.reason or before.status != each.status:
                change = ConditionChange(
                    time=now / SECOND, type=each.type, status=each.status, reason=each.reason, message=each.message
                )
                self.changes.append(change)

    def _act(self, moment: Moment, desired: int, *, reason: str, rule: Rule) -> None:
        action = Action(
            time=moment.now / SECOND,
            before=self.replicas,
            after=desired,
            reason=reason,
            rule=rule.value,
            explanation=Explained(moment, self._subject),
        )
        self.actions.append(action)
        self.replicas = desired

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
        autoscaler: The autoscaler.
        settings: The controller's settings.
        pipeline: The metrics pipeline.
        clock: The clock.
        first: Position of the first metric of the HPA among the meters of the pipeline.
    """
    meters = pipeline.meters[first : first + len(autoscaler.metrics)]
    return Subject(
        autoscaler=autoscaler, settings=settings, meters=meters, window=pipeline.window, clock=clock, first=first
    )


def _longest_period(autoscaler: Autoscaler) -> int:
    """Return the longest period of the policies of an HPA, in microseconds."""
    behavior = autoscaler.behavior
    rules = () if behavior is None else (behavior.up, behavior.down)
    return max((microseconds(policy.period) for each in rules for policy in each.policies), default=0)


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
