"""One round of the controller, as a function.

Everything that the controller reads goes in: what it sees, what it remembers, how it is set, what time it is.
Everything that it would write comes out. Nothing else happens, so the same decision can be explained, simulated,
compared with another one, or carried out.
"""

from datetime import datetime
from typing import Final

from ocf.autoscaling.algorithm.decision import Decision, PendingRescale, SyncError
from ocf.autoscaling.algorithm.early_exit import early_exit_rule, was_scaled_to_zero_by_us
from ocf.autoscaling.algorithm.history import History, add_scale_event
from ocf.autoscaling.algorithm.hpa_spec import Autoscaler
from ocf.autoscaling.algorithm.metric_proposals import Combination, Failure, choose_proposal
from ocf.autoscaling.algorithm.normalize import normalize
from ocf.autoscaling.algorithm.pod_selectors import overlapping_hpas, parse_selector
from ocf.autoscaling.algorithm.replica_calculator import CalculatorInputs, Tolerances
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.scaling_policies import Limit
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Scale, Snapshot, Unavailable
from ocf.autoscaling.algorithm.stabilization import Stabilization
from ocf.autoscaling.algorithm.status import MetricStatus, Status
from ocf.autoscaling.algorithm.status_builder import MESSAGES, HpaEvent, StatusBuilder
from ocf.autoscaling.algorithm.trace import Trace

__all__ = ["decide", "tolerances_of"]

_DEFAULTS: Final = Settings()
_NO_HISTORY: Final = History()


def tolerances_of(autoscaler: Autoscaler, settings: Settings) -> Tolerances:
    """Return what difference has no consequence: the controller's setting, or what the HPA says instead.

    Args:
        autoscaler: The autoscaler.
        settings: The controller's settings.
    """
    behavior = autoscaler.behavior
    down = up = settings.tolerance
    if behavior is not None and settings.features.configurable_tolerance:
        down = down if behavior.down.tolerance is None else behavior.down.tolerance
        up = up if behavior.up.tolerance is None else behavior.up.tolerance
    return Tolerances(down, up)


def decide(
    snapshot: Snapshot, history: History = _NO_HISTORY, *, settings: Settings = _DEFAULTS, now: datetime
) -> Decision:
    """Decide how many replicas a workload should have.

    Args:
        snapshot: What is seen.
        history: What is remembered of the rounds before.
        settings: The controller's settings.
        now: The instant of the round, aware.

    Returns:
        The number, whether it is to be written to the Scale, and everything that is said and remembered if that
        succeeds.

    Example:
        >>> from datetime import UTC
        >>> from ocf.autoscaling.algorithm import Metric, MetricTarget
        >>> queue = Metric("External", "queue", MetricTarget(value=10_000))
        >>> web = Autoscaler(name="web", maximum=9, metrics=(queue,))
        >>> seen = Snapshot(autoscaler=web, scale=Scale(11, 11, "app=web"))
        >>> decision = decide(seen, now=datetime(2026, 1, 31, 12, tzinfo=UTC))
        >>> decision.desired, decision.trace.decided_by.value
        (9, 'above the maximum')
    """
    return _Sync(snapshot, history, settings, now).decide()


class _Sync:
    """A round under way: what was found so far, and what was said about it."""

    __slots__ = ("autoscaler", "board", "history", "now", "settings", "snapshot", "tolerances")

    def __init__(self, snapshot: Snapshot, history: History, settings: Settings, now: datetime) -> None:
        self.snapshot = snapshot
        self.autoscaler = snapshot.autoscaler
        self.history = history
        self.settings = settings
        self.now = now
        self.board = StatusBuilder(snapshot.status.conditions, now)
        self.tolerances = tolerances_of(snapshot.autoscaler, settings)

    def decide(self) -> Decision:
        scale = self.snapshot.scale
        if self.autoscaler.api_version.count("/") > 1:
            message = f"unexpected GroupVersion string: {self.autoscaler.api_version}"
            return self._scale_unreadable(
                message, SyncError("spec", f"invalid API version in scale target reference: {message}")
            )
        if isinstance(scale, Unavailable):
            error = f"failed to query scale subresource for {self.autoscaler.reference}: {scale.message}"
            return self._scale_unreadable(scale.message, SyncError("spec" if scale.spec else "internal", error))
        message = "the HPA controller was able to get the target's current scale"
        self.board.set("AbleToScale", "True", "SucceededGetScale", message)
        self.history = self.history.with_first_recommendation(scale.replicas, self.now)
        rule = early_exit_rule(self.autoscaler, scale, self.snapshot.status.conditions, self.settings)
        if rule is Rule.DISABLED:
            return self._scaling_disabled()
        if rule is not None:
            bound = self.autoscaler.maximum if rule is Rule.ABOVE_MAXIMUM else self.autoscaler.minimum
            return self._scale_into_range(scale.replicas, bound, rule)
        return self._scale_by_metrics(scale)

    def _scale_unreadable(self, message: str, error: SyncError) -> Decision:
        self.board.warn("FailedGetScale", message)
        sentence = f"the HPA controller was unable to get the target's current scale: {message}"
        self.board.set("AbleToScale", "False", "FailedGetScale", sentence)
        before = self.snapshot.status
        status = before._replace(conditions=self.board.conditions)
        trace = Trace(*self._trace_header(None, before.desired_replicas), early_exit=Rule.UNREADABLE, problem=message)
        return self._decision(before.desired_replicas, status, trace, error=error)

    def _scaling_disabled(self) -> Decision:
        self.board.set("ScalingActive", "False", "ScalingDisabled", MESSAGES[Rule.DISABLED])
        if self.settings.features.remembered_zero and not self.settings.features.scale_to_zero:
            self.board.remove("ScaledToZero")
        trace = Trace(*self._trace_header(0, 0), early_exit=Rule.DISABLED)
        return self._decision(0, self._status(0, 0), trace)

    def _scale_into_range(self, current: int, desired: int, rule: Rule) -> Decision:
        trace = Trace(*self._trace_header(current, desired), early_exit=rule)
        return self._rescale(current, desired, MESSAGES[rule], (), trace, None)

    def _scale_by_metrics(self, scale: Scale) -> Decision:
        problem = self._selector_problem(scale.selector)
        if problem:
            return self._no_proposal(scale.replicas, problem, None)
        count = CalculatorInputs(
            scale.replicas, scale.observed, self.snapshot.pods, self.tolerances, self.settings, self.now
        )
        found = choose_proposal(self.autoscaler.metrics, self.snapshot.metric_values, count, self.autoscaler.namespace)
        self._set_metric_conditions(found)
        if found.replicas is None:
            return self._no_proposal(scale.replicas, found.error, found)
        return self._scale_to_proposal(scale.replicas, found.replicas, found)

    def _selector_problem(self, text: str) -> str:
        """Return why the selector cannot be used, after saying so; empty if it can."""
        if not text:
            self.board.warn("SelectorRequired", "selector is required")
            message = "the HPA target's scale is missing a selector"
            self.board.set("ScalingActive", "False", "InvalidSelector", message)
            return "selector is required"
        selector = parse_selector(text)
        if isinstance(selector, str):
            reason = "InvalidSelector"
            problem = f"couldn't convert selector into a corresponding internal selector object: {selector}"
        elif others := self._overlapping_hpas():
            reason, namespace = "AmbiguousSelector", self.autoscaler.namespace
            named = " ".join(f"{namespace}/{name}" for name in sorted({*others, self.autoscaler.name}))
            problem = f"pods by selector {text} are controlled by multiple HPAs: [{named}]"
        else:
            return ""
        self.board.warn(reason, problem)
        self.board.set("ScalingActive", "False", reason, problem)
        return problem

    def _overlapping_hpas(self) -> list[str]:
        others = self.snapshot.others
        return overlapping_hpas((pod.labels for pod in self.snapshot.pods), others) if others else []

    def _set_metric_conditions(self, found: Combination) -> None:
        for outcome in found.outcomes:
            if isinstance(outcome.result, Failure):
                self.board.warn(outcome.result.reason, outcome.result.message)
        failure = found.first_failure
        if found.replicas is not None:
            message = f"the HPA was able to successfully calculate a replica count from {found.name}"
            self.board.set("ScalingActive", "True", "ValidMetricFound", message)
        elif failure is not None:
            message = f"the HPA was unable to compute the replica count: {failure.message}"
            self.board.set("ScalingActive", "False", failure.reason, message)

    def _no_proposal(self, current: int, problem: str, found: Combination | None) -> Decision:
        """End the round without a number."""
        self.board.warn("FailedComputeMetricsReplicas", problem)
        desired = self.snapshot.status.desired_replicas
        target = self.autoscaler.reference
        error = f"failed to compute desired number of replicas based on listed metrics for {target}: {problem}"
        trace = Trace(*self._trace_header(current, current), combination=found, problem=problem)
        status = self._status(current, desired, _metric_statuses(found))
        return self._decision(current, status, trace, error=SyncError("internal", error))

    def _scale_to_proposal(self, current: int, proposed: int, found: Combination) -> Decision:
        """Go from what the metrics want to what the workload gets."""
        wanted = max(0, proposed)
        reason = ""
        if wanted > current:
            reason = f"{found.name if proposed > 0 else ''} above target"
        elif wanted < current:
            reason = "All metrics below target"
        held, limit = self._normalize(current, wanted)
        desired = limit.replicas
        raised = current == 0 and self._is_below_minimum(desired)
        if raised:
            desired, reason = self.autoscaler.minimum, reason or MESSAGES[Rule.BELOW_MINIMUM]
        trace = Trace(
            *self._trace_header(current, desired),
            combination=found,
            stabilization=held,
            limit=limit,
            raised_to_minimum=raised,
        )
        error = SyncError("internal", found.error) if found.error else None
        if desired != current:
            return self._rescale(current, desired, reason, _metric_statuses(found), trace, error)
        status = self._status(current, current, _metric_statuses(found))
        return self._decision(current, status, trace, error=error)

    def _is_below_minimum(self, desired: int) -> bool:
        """Tell whether a workload on its way back from zero would stay below the minimum."""
        ours = was_scaled_to_zero_by_us(self.board.conditions, self.settings.features)
        return ours and self.autoscaler.minimum != 0 and desired < self.autoscaler.minimum

    def _normalize(self, current: int, wanted: int) -> tuple[Stabilization, Limit]:
        held, limit = normalize(self.autoscaler, current, wanted, self.history, settings=self.settings, now=self.now)
        self.history = History(held.recommendations, self.history.scale_ups, self.history.scale_downs)
        if held.rule is None:
            self.board.set("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
        else:
            self.board.set("AbleToScale", "True", held.rule.value, MESSAGES[held.rule])
        changed = "True" if limit.replicas != limit.wanted else "False"
        self.board.set("ScalingLimited", changed, limit.rule.value, MESSAGES[limit.rule])
        return held, limit

    def _rescale(  # noqa: PLR0917 (what both ways of resizing hand over)
        self,
        current: int,
        desired: int,
        reason: str,
        metrics: tuple[MetricStatus, ...],
        trace: Trace,
        error: SyncError | None,
    ) -> Decision:
        board = self.board
        unwritten = PendingRescale(reason, board.conditions, tuple(board.events), self.history)
        message = f"the HPA controller was able to update the target scale to {desired}"
        board.set("AbleToScale", "True", "SucceededRescale", message)
        board.events.append(HpaEvent("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {reason}"))
        self._add_scale_event(desired - current)
        self._set_scaled_to_zero(current, desired)
        status = self._status(current, desired, metrics, scaled=True)
        return self._decision(desired, status, trace, error=error, resize=unwritten)

    def _add_scale_event(self, change: int) -> None:
        behavior, known = self.autoscaler.behavior, self.history
        if behavior is None:
            return
        if change > 0:
            events = add_scale_event(known.scale_ups, change, longest=behavior.up.longest_period, now=self.now)
            self.history = History(known.recommendations, events, known.scale_downs)
        else:
            events = add_scale_event(known.scale_downs, -change, longest=behavior.down.longest_period, now=self.now)
            self.history = History(known.recommendations, known.scale_ups, events)

    def _set_scaled_to_zero(self, current: int, desired: int) -> None:
        if not self.settings.features.remembered_zero:
            return
        if not self.settings.features.scale_to_zero:
            self.board.remove("ScaledToZero")
        elif current > 0 and desired == self.autoscaler.minimum == 0 and self.autoscaler.has_podless_metric:
            self.board.set("ScaledToZero", "True", "ScaledToZero", "the HPA controller scaled the workload to zero")
        else:
            message = "the HPA controller did not scale the workload to zero"
            self.board.set("ScaledToZero", "False", "NotScaledToZero", message)

    def _status(
        self, current: int, desired: int, metrics: tuple[MetricStatus, ...] = (), *, scaled: bool = False
    ) -> Status:
        generation = self.autoscaler.generation if self.settings.features.observed_generation else None
        last = self.now if scaled else self.snapshot.status.last_scale_time
        return Status(current, desired, last, metrics, self.board.conditions, generation)

    def _trace_header(
        self, current: int | None, desired: int
    ) -> tuple[datetime, int | None, int, int, int, Tolerances]:
        """Return what every trace begins with."""
        autoscaler = self.autoscaler
        return self.now, current, autoscaler.minimum, autoscaler.maximum, desired, self.tolerances

    def _decision(
        self,
        desired: int,
        status: Status,
        trace: Trace,
        *,
        error: SyncError | None = None,
        resize: PendingRescale | None = None,
    ) -> Decision:
        events = tuple(self.board.events)
        return Decision(self.snapshot, desired, status, events, self.history, error, trace, resize)


def _metric_statuses(found: Combination | None) -> tuple[MetricStatus, ...]:
    return () if found is None else tuple([outcome.status for outcome in found.outcomes])
