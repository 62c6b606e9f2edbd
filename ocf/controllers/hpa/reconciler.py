"""The reconcile of one autoscaler: read, decide, write, report.

The decision is made in `plan`, which is pure. This module has the reads around it, and the two writes, each of which
the API server may reject.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from ocf.autoscaling.algorithm import Decision, History, Settings, Status
from ocf.cluster import Cluster
from ocf.concepts import Clock, Recorder
from ocf.concepts.tracing import (
    SpanAttributes,
    SpanStart,
    annotate_span,
    k8s_attributes,
    object_attributes,
    requeue_attributes,
    spanning,
)
from ocf.controllers.hpa.claim_keeper import ClaimKeeper
from ocf.controllers.hpa.dry_run import DryRunResult, ScaleObservation, dry_run, with_foreign_change
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.hpa.modes import Mode
from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2
from ocf.controllers.hpa.plan import AutoscalerPhase, Plan, plan, reject
from ocf.controllers.hpa.reporter import HpaReporter
from ocf.controllers.hpa.snapshot import HpaSnapshot, SnapshotReader
from ocf.controllers.hpa.state import AutoscalerState, StateStore
from ocf.controllers.hpa.status_writer import write_scale, write_status
from ocf.controllers.hpa.sync_slots import SyncSlots
from ocf.controllers.hpa.take_over import Policy
from ocf.controllers.hpa.target_index import TargetIndex
from ocf.controllers.metrics_client import RESTMapper
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["Reconciler", "ReconcilerDeps", "ReportDryRun"]

_NOT_TAKING_OVER: Final = Policy(take_over=False, delay=timedelta(seconds=30))
ReportDryRun: TypeAlias = Callable[[DryRunResult], None]
"""Receives the result of a dry run for an autoscaler, each time that it differs from the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerDeps:
    """The dependencies of a `Reconciler`.

    Args:
        leases: The cluster from which the Lease of the built-in controller is read.
        targets: The cluster from which `snapshots` reads targets, so that a Scale written to it is visible at once.
        events: The event recorder; None records no events.
        kinds: Finds the resource of a kind whatever version an autoscaler names; None uses the named version.
    """

    cluster: Cluster
    leases: Cluster
    targets: Cluster
    snapshots: SnapshotReader
    clock: Clock
    monitor: HpaMonitor
    mode: Mode
    settings: Settings
    events: Recorder | None = None
    kinds: RESTMapper | None = None
    take_over: Policy = _NOT_TAKING_OVER
    report: ReportDryRun | None = None


class Reconciler:
    """Reconciles autoscalers, and keeps the state of each from one reconcile to the next.

    Attributes:
        target_index: The target of every autoscaler; the controller keeps it up to date from its watches.
    """

    def __init__(self, deps: ReconcilerDeps) -> None:
        self._deps = deps
        self._reporter = HpaReporter(deps.monitor, deps.events, dry_run=not deps.mode.writes)
        self._claims = ClaimKeeper(
            deps.cluster,
            self._reporter,
            leases=deps.leases,
            policy=deps.take_over,
            clock=deps.clock,
            release=self._reset,
        )
        self.target_index: Final = TargetIndex()
        self.states: Final = StateStore(deps.settings)
        self._slots = SyncSlots()
        self.selectors: Final = deps.snapshots.selectors
        # Times of histories are on an axis that starts at the wall clock and then only follows elapsed time.
        self._epoch: Final = deps.clock.now() - deps.clock.elapsed()

    def track(self, manifest: Manifest) -> timedelta:
        """Record an autoscaler that was created or changed."""
        key = ObjectKey.of(manifest)
        state, is_new = self.states.get_or_create(key, manifest)
        if state.parsed.problem:  # it scales nothing, so it claims nothing
            self.target_index.drop(manifest)
        else:
            self.target_index.put(manifest)
        if is_new:
            self._deps.monitor.set_state(key.namespace, key.name, AutoscalerPhase.WAITING)
        return state.parsed.settings.sync_period

    async def reconcile(self, key: ObjectKey) -> timedelta | None:
        """Reconcile an autoscaler.

        Returns:
            The delay until the next reconcile; None if the autoscaler is deleted.
        """
        with spanning(_sync_span, key):
            delay = await self._reconcile(key)
            annotate_span(requeue_attributes, delay)
            return delay

    async def _reconcile(self, key: ObjectKey) -> timedelta | None:
        began = self._deps.clock.elapsed()
        try:
            manifest = await self._deps.cluster.get(key)
        except NotFoundError:
            self.forget(key)
            return None
        state, _ = self.states.get_or_create(key, manifest)
        # No other controller runs our own kind, and a dry run writes nothing that has to be claimed.
        if self._deps.mode is Mode.REPLACE:
            delay = await self._claims.hold(manifest, state)
            if delay is not None:
                if state.claim.scales_up and not state.parsed.problem:
                    await self._scale_up(manifest, state)
                return delay
        planned, problem = await self._execute(manifest, state)
        if self.states.is_current(key, state):
            took = self._deps.clock.elapsed() - began
            self._reporter.report(state, planned, problem, seconds=took.total_seconds())
            annotate_span(_sync_attributes, planned)
        else:  # it was deleted meanwhile; drop what this reconcile has recorded since
            self.forget(key)
            return planned.delay
        return self._slots.delay(key, planned.delay, now=self._deps.clock.elapsed())

    def forget(self, key: ObjectKey) -> None:
        """Drop the state of a deleted autoscaler."""
        self.states.forget(key)
        self._slots.forget(key)
        self.selectors.forget(key.namespace, key.name)
        self._deps.monitor.forget(key.namespace, key.name)

    def _times(self) -> tuple[datetime, datetime]:
        """Return the time of the wall clock, and the time on the axis of histories, which never jumps."""
        return self._deps.clock.now(), self._epoch + self._deps.clock.elapsed()

    def _reset(self, state: AutoscalerState) -> None:
        """Drop the history and selector of an autoscaler that is not run; it would start again without them."""
        key = state.parsed.key
        self.selectors.forget(key.namespace, key.name)
        state.history = History()

    async def _execute(self, manifest: Manifest, state: AutoscalerState) -> tuple[Plan, str]:
        """Plan a reconcile and carry it out; return the plan as it was carried out, and what failed."""
        parsed, mode = state.parsed, self._deps.mode
        conflicting = None
        # Of several HorizontalPodAutoscalers with one target the built-in controller runs all, so in the other modes
        # none is rejected.
        if mode is Mode.OWN_KIND and not parsed.problem:
            conflicting = self.target_index.conflicting_autoscaler(manifest)
        if parsed.problem or conflicting is not None:
            self._reset(state)
            planned = reject(parsed, Status.of(manifest.get("status")), conflicting, now=self._deps.clock.now())
            return await self._apply_status(manifest, planned) if mode.writes else (planned, parsed.problem)
        hpa = to_autoscaling_v2(manifest) if mode is Mode.OWN_KIND else manifest
        seen = await self._deps.snapshots.observe(hpa, settings=parsed.settings, autoscaler=parsed.autoscaler)
        if not mode.writes:
            return self._dry_run(state, seen)
        now, history_now = self._times()
        planned = plan(parsed, seen.snapshot, state.history, now=now, history_now=history_now)
        planned, decision = await self._apply_scale(planned, seen)
        # After the write of the Scale, whose failure takes the scale event back, and before that of the status, whose
        # failure does not.
        state.history = decision.history
        return await self._apply_status(manifest, planned)

    async def _scale_up(self, manifest: Manifest, state: AutoscalerState) -> None:
        """Scale an autoscaler up while its claim grows old; its status stays as it is, and with it the claim."""
        seen = await self._deps.snapshots.observe(
            manifest, settings=state.parsed.settings, autoscaler=state.parsed.autoscaler
        )
        now, history_now = self._times()
        planned = plan(state.parsed, seen.snapshot, state.history, now=now, history_now=history_now)
        if planned.required_decision.action == "scale_up":
            planned, decision = await self._apply_scale(planned, seen)
            state.history = decision.history
            self._reporter.scaled(state, planned)

    async def _apply_scale(self, planned: Plan, seen: HpaSnapshot) -> tuple[Plan, Decision]:
        decision = planned.required_decision
        if decision.rescale:
            try:
                target = await self._resolve(seen.target)
                retry = self._deps.settings.features.conflicts_retried
                await write_scale(self._deps.targets, target, decision.desired, version=_version(seen), retry=retry)
            except ApiError as error:
                decision = decision.after_scale_write_failed(error.message)
        return planned.with_decision(decision), decision

    async def _resolve(self, target: ObjectKey) -> ObjectKey:
        """Return a target in a version that the API server serves."""
        if self._deps.kinds is None:
            return target
        found = await self._deps.kinds.find(*target.group_kind)
        return ObjectKey(found.api_version, target.kind, target.name, target.namespace)

    async def _apply_status(self, manifest: Manifest, planned: Plan) -> tuple[Plan, str]:
        error_message = ""
        if planned.status_changed:
            try:
                await write_status(self._deps.cluster, manifest, planned.status)
            except ApiError as error:
                error_message = error.message
        if error_message:
            return planned.after_status_write_failed(error_message)
        return planned, planned.problem

    def _dry_run(self, state: AutoscalerState, seen: HpaSnapshot) -> tuple[Plan, str]:
        """Plan a reconcile, keep what really happened instead of the plan, and report a changed result."""
        snapshot, seen_scale = seen.snapshot, ScaleObservation.of(seen.snapshot)
        now, history_now = self._times()
        ahead = history_now - now
        history = with_foreign_change(state.history, snapshot.autoscaler, state.observed, seen_scale, ahead=ahead)
        planned = plan(state.parsed, snapshot, history, now=now, history_now=history_now)
        resize = planned.required_decision.pending_rescale
        # Without the scale event of a rescale that did not happen; recommendations do not depend on it.
        state.history = planned.required_decision.history if resize is None else resize.history
        state.observed = seen_scale
        result, before = dry_run(state.parsed.key, planned), state.reported
        if self._deps.report is not None and (before is None or result != before._replace(at=result.at)):
            self._deps.report(result)
        state.reported = result
        return planned, planned.problem


def _version(seen: HpaSnapshot) -> str:
    return "" if seen.scale is None else str((seen.scale.get("metadata") or {}).get("resourceVersion") or "")


def _sync_span(key: ObjectKey) -> SpanStart:
    """Return the span of one sync."""
    hpa = k8s_attributes("autoscaling", "horizontalpodautoscalers", key.namespace, key.name)
    return SpanStart(name=f"sync {key.kind}", attributes={**object_attributes("ocf.hpa", key), **hpa})


def _sync_attributes(planned: Plan) -> SpanAttributes:
    """Return what a sync decided."""
    decision = planned.decision
    attributes: dict[str, str | int | None] = {"ocf.hpa.phase": str(planned.phase)}
    if decision is not None:
        attributes |= {
            "ocf.hpa.current_replicas": decision.trace.current,
            "ocf.hpa.desired_replicas": decision.desired,
            "ocf.hpa.action": decision.action,
            "ocf.hpa.error": None if decision.error is None else decision.error.kind,
        }
    return attributes
