"""The HPA controller of a simulation: one sync after the other, with the status and the history that they carry."""

from typing import NamedTuple

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Decision,
    History,
    HpaCondition,
    Rule,
    Scale,
    Settings,
    Snapshot,
    Status,
    apply_behavior_limits,
    apply_limits,
    decide,
    hold,
)
from ocf.autoscaling.algorithm.status_builder import StatusBuilder
from ocf.simulation.engine.clock import SECOND, Clock
from ocf.simulation.engine.explanations import Explained
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.engine.proposals import Proposals
from ocf.simulation.engine.windows import Windows
from ocf.simulation.result import Action, ConditionChange

__all__ = ["NOTHING", "Controller", "Synced"]

_NAN = float("nan")
_EVERY_SYNC = frozenset({"AbleToScale", "ScalingActive", "ScalingLimited"})

_Key = tuple[Rule | None, Rule, bool, int]


class Synced(NamedTuple):
    """The numbers of a sync.

    Args:
        desired: Replicas after the limits.
        ratio: Current value over target value of the metric that decided; NaN if none did.
        wanted: Replicas that the metrics propose; -1 without a proposal.
        stabilized: Replicas after stabilization; -1 without a proposal.
    """

    desired: int
    ratio: float
    wanted: int
    stabilized: int


NOTHING = Synced(-1, _NAN, -1, -1)
"""The numbers before the first sync."""


class Controller:
    """The HPA controller.

    A sync that does what an earlier one did, with other numbers, is computed from counts of pods. Any other sync runs
    `ocf.autoscaling.algorithm.decide` on a snapshot of all pods: one that scales, one that sets conditions for the
    first time, and one with a failure, an outage or no replicas. Both give the same result.

    Args:
        autoscaler: The autoscaler.
        settings: The controller's settings.
        pipeline: The metrics pipeline, with the pods.
        clock: The clock.
        replicas: `spec.replicas` at the start.
        full: Whether every sync runs `decide`.

    Attributes:
        replicas: `spec.replicas`.
        actions: The scaling actions so far.
        changes: The changes of conditions so far.
    """

    def __init__(
        self,
        autoscaler: Autoscaler,
        settings: Settings,
        pipeline: Pipeline,
        *,
        clock: Clock,
        replicas: int,
        full: bool = False,
    ) -> None:
        self._autoscaler = autoscaler
        self._settings = settings
        self._pipeline = pipeline
        self._clock = clock
        self._full = full
        self._proposals = Proposals(autoscaler, settings, pipeline, clock)
        self._windows = Windows(autoscaler, settings)
        self._history = History()
        self._status = _initial_status(autoscaler, settings, replicas)
        self._known: dict[_Key, tuple[HpaCondition, ...]] = {}
        self._last: _Key | None = None
        self.replicas = replicas
        self.actions: list[Action] = []
        self.changes: list[ConditionChange] = []

    def sync(self, now: int) -> Synced:
        """Run a sync.

        Args:
            now: Its time, in microseconds since the start.

        Returns:
            Its numbers; `replicas` has its result.
        """
        current, autoscaler, key = self.replicas, self._autoscaler, None
        in_range = 0 < current <= autoscaler.maximum and current >= autoscaler.minimum
        # The first sync adds a recommendation of its own.
        begun = self._history.recommendations is not None
        if not self._full and begun and in_range and not self._pipeline.is_down(now):
            found = self._proposals.choose(current, now)
            if found is not None:
                wanted, chosen, ratio = found
                held, desired, key = self._normalize(current, wanted, chosen, now)
                if desired == current and key in self._known:
                    self._windows.add(now, wanted)
                    if key != self._last:
                        self._repeat(key, now)
                    return Synced(current, ratio, wanted, held)
        return self._decide(now, key)

    def _normalize(self, current: int, wanted: int, chosen: int, now: int) -> tuple[int, int, _Key]:
        """Stabilize and limit a proposal as `normalize` does."""
        autoscaler, behavior = self._autoscaler, self._autoscaler.behavior
        lowest, highest = self._windows.extremes(now, wanted)
        if behavior is None:
            held, rule = highest, None if highest == wanted else Rule.SCALE_DOWN_STABILIZED
        else:
            held, rule = hold(wanted, current, lowest=lowest, highest=highest)
        if held == current:
            return held, held, (rule, Rule.WITHIN_RANGE, False, chosen)
        minimum, maximum = autoscaler.minimum, autoscaler.maximum
        if behavior is None:
            limit = apply_limits(current, held, minimum=minimum, maximum=maximum, settings=self._settings)
        else:
            limit = apply_behavior_limits(
                current,
                held,
                minimum=minimum,
                maximum=maximum,
                behavior=behavior,
                history=self._history,
                now=self._clock.at(now),
            )
        return held, limit.replicas, (rule, limit.rule, limit.replicas != limit.wanted, chosen)

    def _repeat(self, key: _Key, now: int) -> None:
        """Set the conditions that an earlier sync set in the same case."""
        self._last = key
        builder = StatusBuilder(self._status.conditions, self._clock.at(now))
        for each in self._known[key]:
            builder.set(each.type, each.status, each.reason, each.message)
        self._carry(now, self._status._replace(conditions=builder.conditions, desired_replicas=self.replicas))

    def _decide(self, now: int, key: _Key | None) -> Synced:
        decision, history = self._decision(now)
        trace, current = decision.trace, self.replicas
        step = trace.stabilization
        if self._history.recommendations is None and decision.history.recommendations is not None:
            self._windows.add(now, current)
        if step is not None:
            self._windows.add(now, step.wanted)
        # The recommendations stay in the windows.
        self._history = decision.history._replace(recommendations=())
        self._carry(now, decision.status)
        self._last = None
        if decision.rescale:
            self._scaled(now, decision, history)
        elif key is not None:
            self._last = key
            self._known[key] = tuple(each for each in decision.status.conditions if each.type in _EVERY_SYNC)
        chosen = trace.chosen
        ratio = _NAN if chosen is None else getattr(chosen.result, "ratio", _NAN)
        wanted, held = (-1, -1) if step is None else (step.wanted, step.replicas)
        return Synced(decision.desired, ratio, wanted, held)

    def _decision(self, now: int) -> tuple[Decision, History]:
        """Run a full sync; return its decision and the history that it used."""
        pods = self._pipeline.pods
        history = self._history
        if history.recommendations is not None:
            history = history._replace(recommendations=self._windows.recommendations(self._clock))
        snapshot = Snapshot(
            autoscaler=self._autoscaler,
            status=self._status,
            scale=Scale(self.replicas, len(pods), f"app={self._autoscaler.target}"),
            pods=pods.seen(),
            metric_values=self._pipeline.read(now),
        )
        return decide(snapshot, history, settings=self._settings, now=self._clock.at(now)), history

    def _carry(self, now: int, status: Status) -> None:
        """Keep the status for the next sync, and note the conditions that it changes."""
        before = {each.type: (each.status, each.reason) for each in self._status.conditions}
        for each in status.conditions:
            if before.get(each.type) != (each.status, each.reason):
                change = ConditionChange(
                    time=now / SECOND, type=each.type, status=each.status, reason=each.reason, message=each.message
                )
                self.changes.append(change)
        self._status = status

    def _scaled(self, now: int, decision: Decision, history: History) -> None:
        pending = decision.pending_rescale
        action = Action(
            time=now / SECOND,
            before=self.replicas,
            after=decision.desired,
            reason="" if pending is None else pending.reason,
            rule=decision.trace.decided_by.value,
            explanation=Explained(decision, history, self._settings),
        )
        self.actions.append(action)
        self.replicas = decision.desired


def _initial_status(autoscaler: Autoscaler, settings: Settings, replicas: int) -> Status:
    """Return the status at the start; a workload without replicas was scaled to zero by the controller, if it may."""
    conditions: tuple[HpaCondition, ...] = ()
    features = settings.features
    if replicas == autoscaler.minimum == 0 and features.remembered_zero and features.scale_to_zero:
        message = "the HPA controller scaled the workload to zero"
        conditions = (HpaCondition("ScaledToZero", "True", "ScaledToZero", message),)
    return Status(current_replicas=replicas, desired_replicas=replicas, conditions=conditions)
