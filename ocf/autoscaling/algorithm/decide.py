"""One sync of the HPA controller as a pure function.

The input is everything that the controller reads: the snapshot, its history, its settings and the time. The output is
everything that it would write. There are no side effects, so a decision can be explained, simulated, compared with
another one, or applied.
"""

from datetime import datetime
from functools import lru_cache
from typing import Final, Literal

from ocf.autoscaling.algorithm.decision import Decision, PendingRescale, SyncError
from ocf.autoscaling.algorithm.early_exit import rule_for_scale, was_scaled_to_zero_by_us
from ocf.autoscaling.algorithm.history import History
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
from ocf.autoscaling.algorithm.status_builder import MESSAGES, HpaEvent, StatusBuilder, rescale_message, rescale_reason
from ocf.autoscaling.algorithm.trace import Trace

__all__ = ["decide", "tolerances_of"]

_DEFAULTS: Final = Settings()
_NO_HISTORY: Final = History()


def tolerances_of(autoscaler: Autoscaler, settings: Settings) -> Tolerances:
    """Return the tolerances of an HPA: those of its `behavior`, otherwise the controller's setting.

    Args:
        settings: The controller's settings.
    """
    behavior = autoscaler.behavior
    down = up = settings.tolerance
    # Each direction alone may replace the controller's setting (horizontal.go, tolerancesForHpa).
    if behavior is not None and settings.features.configurable_tolerance:
        down = down if behavior.down.tolerance is None else behavior.down.tolerance
        up = up if behavior.up.tolerance is None else behavior.up.tolerance
    return _tolerances(down, up, settings.features.tolerance_by_bounds)


@lru_cache(maxsize=1024)
def _tolerances(down: float, up: float, by_bounds: bool) -> Tolerances:  # noqa: FBT001 (a key of the cache)
    return Tolerances(down, up, by_bounds)


def decide(
    snapshot: Snapshot,
    history: History = _NO_HISTORY,
    *,
    settings: Settings = _DEFAULTS,
    now: datetime,
    history_now: datetime | None = None,
) -> Decision:
    """Decide how many replicas a workload should have.

    Args:
        snapshot: The HPA, its scale, pods and metric values.
        history: The history that the previous sync returned.
        settings: The controller's settings.
        now: Time of the sync, with a time zone.
        history_now: Time of the sync on the time axis of `history`, with a time zone; None if that is the axis of
            `now`. A live controller passes a time that never jumps, because Go's controller measures windows and
            policy periods with a monotonic clock. Ages of pods and samples, and times in the status, follow `now`.

    Returns:
        The number of replicas, whether it has to be written to the Scale, and the status, events and history that
        apply once that write succeeded.

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
    return _Sync(snapshot, history, settings, now, history_now or now).decide()


class _Sync:
    """A sync in progress: its inputs, and the conditions, events and history so far."""

    __slots__ = ("autoscaler", "builder", "history", "history_now", "now", "settings", "snapshot", "tolerances")

    def __init__(
        self, snapshot: Snapshot, history: History, settings: Settings, now: datetime, history_now: datetime
    ) -> None:
        self.snapshot = snapshot
        self.autoscaler = snapshot.autoscaler
        self.history = history
        self.settings = settings
        self.now = now
        self.history_now = history_now
        self.builder = StatusBuilder(snapshot.status.conditions, now)
        self.tolerances = tolerances_of(snapshot.autoscaler, settings)

    def decide(self) -> Decision:
        scale = self.snapshot.scale
        # The controller parses the group version before it asks for the Scale, so this error wins over an unreadable
        # scale.
        if self.autoscaler.api_version.count("/") > 1:
            message = f"unexpected GroupVersion string: {self.autoscaler.api_version}"
            return self._scale_unreadable(
                message, SyncError("spec", f"invalid API version in scale target reference: {message}")
            )
        if isinstance(scale, Unavailable):
            error = f"failed to query scale subresource for {self.autoscaler.reference}: {scale.message}"
            return self._scale_unreadable(scale.message, SyncError("spec" if scale.spec else "internal", error))
        message = "the HPA controller was able to get the target's current scale"
        self.builder.set("AbleToScale", "True", "SucceededGetScale", message)
        # Before the early exits: a workload that is disabled or out of range gets its first recommendation as well
        # (horizontal.go, recordInitialRecommendation). See kubernetes/kubernetes#68826 for what went wrong without one.
        self.history = self.history.with_first_recommendation(scale.replicas, self.history_now)
        rule = rule_for_scale(self.autoscaler, scale, self.snapshot.status.conditions, self.settings)
        if rule is None:
            return self._scale_by_metrics(scale)
        if rule is Rule.DISABLED:
            return self._scaling_disabled()
        bound = self.autoscaler.maximum if rule is Rule.ABOVE_MAXIMUM else self.autoscaler.minimum
        return self._scale_into_range(scale.replicas, bound, rule)

    def _scale_unreadable(self, message: str, error: SyncError) -> Decision:
        self.builder.warn("FailedGetScale", message)
        sentence = f"the HPA controller was unable to get the target's current scale: {message}"
        self.builder.set("AbleToScale", "False", "FailedGetScale", sentence)
        before = self.snapshot.status
        # The controller changes nothing but the condition: current and desired replicas stay those of an earlier sync.
        status = before._replace(conditions=self.builder.conditions)
        trace = self._early_exit_trace(None, before.desired_replicas, Rule.UNREADABLE, problem=message)
        return self._decision(before.desired_replicas, status, trace, error=error)

    def _scaling_disabled(self) -> Decision:
        self.builder.set("ScalingActive", "False", "ScalingDisabled", MESSAGES[Rule.DISABLED])
        # A condition that was left behind when the gate was switched off would permit to scale from zero once it is on
        # again.
        if self.settings.features.remembered_zero and not self.settings.features.scale_to_zero:
            self.builder.remove("ScaledToZero")
        trace = self._early_exit_trace(0, 0, Rule.DISABLED)
        return self._decision(0, self._status(0, 0), trace)

    def _scale_into_range(self, current: int, desired: int, rule: Rule) -> Decision:
        trace = self._early_exit_trace(current, desired, rule)
        return self._rescale(current, desired, reason=MESSAGES[rule], trace=trace)

    def _scale_by_metrics(self, scale: Scale) -> Decision:
        # An invalid selector ends the sync without the status of a single metric, unlike failed metrics.
        problem = self._selector_problem(scale.selector)
        if problem:
            return self._no_proposal(scale.replicas, problem, None)
        inputs = CalculatorInputs(
            scale.replicas, scale.observed, self.snapshot.pods, self.tolerances, self.settings, self.now
        )
        autoscaler = self.autoscaler
        found = choose_proposal(autoscaler.metrics, self.snapshot.metric_values, inputs, autoscaler.namespace)
        self._set_metric_conditions(found)
        if found.replicas is None:
            return self._no_proposal(scale.replicas, found.error, found)
        return self._scale_to_proposal(scale.replicas, found.replicas, found)

    def _selector_problem(self, text: str) -> str:
        """Set the conditions for an unusable selector, and return the problem; empty if the selector is usable."""
        if not text:
            # Event and condition differ in reason and text (horizontal.go, validateAndParseSelector); the condition has
            # no reason of its own for a missing selector.
            self.builder.warn("SelectorRequired", "selector is required")
            message = "the HPA target's scale is missing a selector"
            self.builder.set("ScalingActive", "False", "InvalidSelector", message)
            return "selector is required"
        selector = parse_selector(text)
        if isinstance(selector, str):
            reason = "InvalidSelector"
            problem = f"couldn't convert selector into a corresponding internal selector object: {selector}"
        elif others := self._overlapping_hpas():
            reason, namespace = "AmbiguousSelector", self.autoscaler.namespace
            # From 1.37 the controller names two of them; before, all, in the random order of a Go map. Sorted, the
            # message of an unchanged cluster does not change.
            shown = 2 if self.settings.features.causes_kept else None
            names = sorted({*others, self.autoscaler.name})[:shown]
            named = " ".join(f"{namespace}/{name}" for name in names)
            problem = f"pods by selector {text} are controlled by multiple HPAs: [{named}]"
            if self.settings.features.causes_kept:
                problem = f"pods by selector {text} are controlled by more than one HPA (e.g. [{named}])"
        else:
            return ""
        self.builder.warn(reason, problem)
        self.builder.set("ScalingActive", "False", reason, problem)
        return problem

    def _overlapping_hpas(self) -> list[str]:
        others = self.snapshot.others
        return overlapping_hpas((pod.labels for pod in self.snapshot.pods), others) if others else []

    def _set_metric_conditions(self, found: Combination) -> None:
        failure = found.first_failure
        # One event per failed metric, also if others succeed: the condition below names only the first failure.
        for outcome in found.outcomes if failure is not None else ():
            if isinstance(outcome.result, Failure):
                self.builder.warn(outcome.result.reason, outcome.result.message)
        if found.replicas is not None:
            message = f"the HPA was able to successfully calculate a replica count from {found.name}"
            self.builder.set("ScalingActive", "True", "ValidMetricFound", message)
        elif failure is not None:
            message = f"the HPA was unable to compute the replica count: {failure.message}"
            self.builder.set("ScalingActive", "False", failure.reason, message)

    def _no_proposal(self, current: int, problem: str, found: Combination | None) -> Decision:
        """Return the decision of a sync in which no metric made a usable proposal."""
        self.builder.warn("FailedComputeMetricsReplicas", problem)
        # `desiredReplicas` and `lastScaleTime` stay as they were read; only the current replicas and the metrics are
        # new (horizontal.go, setCurrentReplicasAndMetricsInStatus).
        desired = self.snapshot.status.desired_replicas
        target = self.autoscaler.reference
        error = f"failed to compute desired number of replicas based on listed metrics for {target}: {problem}"
        trace = self._trace(current, current, combination=found, problem=problem)
        status = self._status(current, desired, _metric_statuses(found))
        return self._decision(current, status, trace, error=SyncError(self._error_kind(found), error))

    def _error_kind(self, found: Combination | None) -> Literal["spec", "internal"]:
        """Return the kind of the error of failed metrics: the first failure decides it, if errors keep their cause."""
        failure = None if found is None else found.first_failure
        of_spec = self.settings.features.causes_kept and failure is not None and failure.spec
        return "spec" if of_spec else "internal"

    def _scale_to_proposal(self, current: int, proposed: int, found: Combination) -> Decision:
        """Stabilize and limit the proposal of the metrics, and decide by the result."""
        # The controller starts from 0 desired replicas and takes a proposal only if it is larger: a negative metric
        # value proposes less than nothing.
        wanted = max(0, proposed)
        held, limit = self._normalize(current, wanted)
        desired = limit.replicas
        # With a `behavior` the minimum limits only scaling down, so a raised `minReplicas` needs this on the way up
        # from zero.
        raised = current == 0 and self._is_below_minimum(desired)
        if raised:
            desired = self.autoscaler.minimum
        trace = self._trace(
            current, desired, combination=found, stabilization=held, limit=limit, raised_to_minimum=raised
        )
        error = SyncError(self._error_kind(found), found.error, ended=False) if found.error else None
        if desired != current:
            # From the proposal, before stabilization and limits, as in reconcileAutoscaler: "All metrics below target"
            # may well stand in the event of a scale-up to an earlier, higher recommendation.
            reason = rescale_reason(found.name, wanted, current)
            if raised:
                reason = reason or MESSAGES[Rule.BELOW_MINIMUM]
            metrics = _metric_statuses(found)
            return self._rescale(current, desired, reason=reason, trace=trace, metrics=metrics, error=error)
        # `desiredReplicas` repeats the current replicas, not the proposal that stabilization held back.
        status = self._status(current, current, _metric_statuses(found))
        return self._decision(current, status, trace, error=error)

    def _is_below_minimum(self, desired: int) -> bool:
        """Return whether a workload that is scaled up from zero would stay below the minimum."""
        ours = was_scaled_to_zero_by_us(self.builder.conditions, self.settings.features)
        return ours and self.autoscaler.minimum != 0 and desired < self.autoscaler.minimum

    def _normalize(self, current: int, wanted: int) -> tuple[Stabilization, Limit]:
        held, limit = normalize(
            self.autoscaler, current, wanted, self.history, settings=self.settings, now=self.history_now
        )
        _, scale_ups, scale_downs = self.history
        self.history = History(held.recommendations, scale_ups, scale_downs)
        if held.rule is None:
            self.builder.set("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
        else:
            self.builder.set("AbleToScale", "True", held.rule, MESSAGES[held.rule])
        # Compared with the stabilized number, not with the proposal: stabilization alone does not make `ScalingLimited`
        # true.
        changed = "True" if limit.replicas != limit.wanted else "False"
        self.builder.set("ScalingLimited", changed, limit.rule, MESSAGES[limit.rule])
        return held, limit

    def _rescale(
        self,
        current: int,
        desired: int,
        *,
        reason: str,
        trace: Trace,
        metrics: tuple[MetricStatus, ...] = (),
        error: SyncError | None = None,
    ) -> Decision:
        builder = self.builder
        # Kept because the API server may still reject the write; what follows describes a rescale that succeeded.
        pending = PendingRescale(
            reason=reason, conditions=builder.conditions, events=tuple(builder.events), history=self.history
        )
        builder.set("AbleToScale", "True", "SucceededRescale", rescale_message(desired))
        builder.events.append(HpaEvent("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {reason}"))
        self.history = self.history.with_rescale(desired - current, self.autoscaler.behavior, self.history_now)
        self._set_scaled_to_zero(current, desired)
        status = self._status(current, desired, metrics, scaled=True)
        return self._decision(desired, status, trace, error=error, pending_rescale=pending)

    def _set_scaled_to_zero(self, current: int, desired: int) -> None:
        if not self.settings.features.remembered_zero:
            return
        if not self.settings.features.scale_to_zero:
            self.builder.remove("ScaledToZero")
        # The controller's own mark, set anew by every rescale: only with it does a later sync scale up from zero.
        # Without it, 0 replicas mean that a user has switched the workload off.
        elif current > 0 and desired == self.autoscaler.minimum == 0 and self.autoscaler.has_podless_metric:
            self.builder.set("ScaledToZero", "True", "ScaledToZero", "the HPA controller scaled the workload to zero")
        else:
            message = "the HPA controller did not scale the workload to zero"
            self.builder.set("ScaledToZero", "False", "NotScaledToZero", message)

    def _status(
        self, current: int, desired: int, metrics: tuple[MetricStatus, ...] = (), *, scaled: bool = False
    ) -> Status:
        generation = self.autoscaler.generation if self.settings.features.observed_generation else None
        last = self.now if scaled else self.snapshot.status.last_scale_time
        return Status(current, desired, last, metrics, self.builder.conditions, generation)

    def _early_exit_trace(self, current: int | None, desired: int, rule: Rule, *, problem: str = "") -> Trace:
        return Trace(
            now=self.now,
            current=current,
            minimum=self.autoscaler.minimum,
            maximum=self.autoscaler.maximum,
            desired=desired,
            tolerances=self.tolerances,
            early_exit=rule,
            problem=problem,
        )

    def _trace(
        self,
        current: int,
        desired: int,
        *,
        combination: Combination | None,
        stabilization: Stabilization | None = None,
        limit: Limit | None = None,
        raised_to_minimum: bool = False,
        problem: str = "",
    ) -> Trace:
        # By position, like the other values of a sync: creating a named tuple by keyword takes 1.6 times as long.
        return Trace(
            self.now,
            current,
            self.autoscaler.minimum,
            self.autoscaler.maximum,
            desired,
            self.tolerances,
            None,
            combination,
            stabilization,
            limit,
            raised_to_minimum,
            problem,
        )

    def _decision(
        self,
        desired: int,
        status: Status,
        trace: Trace,
        *,
        error: SyncError | None = None,
        pending_rescale: PendingRescale | None = None,
    ) -> Decision:
        events = tuple(self.builder.events)
        return Decision(self.snapshot, desired, status, events, self.history, error, trace, pending_rescale)


def _metric_statuses(found: Combination | None) -> tuple[MetricStatus, ...]:
    return () if found is None else tuple([outcome.status for outcome in found.outcomes])
