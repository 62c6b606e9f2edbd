"""One round of one autoscaler: look, decide, write, tell.

What a round decides is in `planning`, and pure. Here is what surrounds it: reads, and the two writes, each of which may
be refused.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from ocf.autoscaling.algorithm import Decision, History, Settings, Status
from ocf.cluster import Cluster
from ocf.concepts import Clock, Recorder
from ocf.controllers.hpa.dry_run import DryRunResult, ScaleObservation, dry_run, with_foreign_change
from ocf.controllers.hpa.metrics import Monitor
from ocf.controllers.hpa.modes import Mode
from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2
from ocf.controllers.hpa.plan import AutoscalerPhase, Plan, plan, reject
from ocf.controllers.hpa.reporter import Reporter
from ocf.controllers.hpa.snapshot import HpaSnapshot, SnapshotReader
from ocf.controllers.hpa.state import AutoscalerState, StateStore
from ocf.controllers.hpa.status_writer import FIELD_MANAGER, write_scale, write_status
from ocf.controllers.hpa.status_writers import last_foreign_write
from ocf.controllers.hpa.target_index import TargetIndex
from ocf.controllers.metrics_client import RESTMapper
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["Reconciler", "ReconcilerDeps", "Report"]

_log: Final = logging.getLogger(__name__)

Report: TypeAlias = Callable[[DryRunResult], None]
"""Takes what a dry run says of an autoscaler, each time that this is something new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerDeps:
    """What rounds take place in.

    Args:
        cluster: Where the autoscalers are; refuses writes where we may not write.
        targets: Where the observer reads targets, so that a Scale that is written there is known at once.
        observer: Sees targets, pods and metrics.
        clock: Tells the instant of a round, and how long it took.
        monitor: Counts.
        mode: What is run.
        settings: The controller's settings.
        events: Takes events; None for nobody.
        kinds: What the API server calls its kinds, whatever version an autoscaler names; None takes that version.
        take_over: Whether an autoscaler that somebody else ran is run, unless that one is seen alive.
        report: Takes what a dry run says.
    """

    cluster: Cluster
    targets: Cluster
    snapshots: SnapshotReader
    clock: Clock
    monitor: Monitor
    mode: Mode
    settings: Settings
    events: Recorder | None = None
    kinds: RESTMapper | None = None
    take_over: bool = False
    report: Report | None = None


class Reconciler:
    """Makes rounds, and remembers from one to the next.

    Args:
        around: What they take place in.

    Attributes:
        claims: Who names which target; whoever watches autoscalers keeps it up to date.
        memory: What is remembered.
        selectors: Which pods the autoscalers count.
    """

    def __init__(self, deps: ReconcilerDeps) -> None:
        self._deps = deps
        self._reporter = Reporter(deps.monitor, deps.events, dry_run=not deps.mode.writes)
        self.target_index: Final = TargetIndex()
        self.states: Final = StateStore(deps.settings)
        self.selectors: Final = deps.snapshots.selectors

    def track(self, manifest: Manifest) -> timedelta:
        """Take notice of an autoscaler that is there, or was changed.

        Args:
            manifest: The autoscaler.

        Returns:
            Its sync period.
        """
        key = ObjectKey.of(manifest)
        self.target_index.put(manifest)
        state, is_new = self._get_state(key, manifest)
        if is_new:
            self._deps.monitor.set_state(key.namespace, key.name, AutoscalerPhase.WAITING)
        return state.parsed.settings.sync_period

    async def reconcile(self, key: ObjectKey) -> timedelta | None:
        """Make a round of an autoscaler.

        Args:
            key: The autoscaler.

        Returns:
            When to make the next one; None if the autoscaler is gone.

        Raises:
            ApiError: If the autoscaler itself cannot be read.
        """
        began = self._deps.clock.elapsed()
        try:
            manifest = await self._deps.cluster.get(key)
        except NotFoundError:
            self.forget(key)
            return None
        state, _ = self._get_state(key, manifest)
        if self._is_left_alone(manifest, state):
            self._deps.monitor.set_state(key.namespace, key.name, AutoscalerPhase.LEFT_ALONE)
            return state.parsed.settings.sync_period
        planned, problem = await self._execute(manifest, state)
        if self.states.is_current(key, state):
            took = self._deps.clock.elapsed() - began
            self._reporter.report(state, planned, problem, seconds=took.total_seconds())
        else:  # it was deleted meanwhile, and what was learnt of it since is to be forgotten, too
            self.forget(key)
        return planned.delay

    def forget(self, key: ObjectKey) -> None:
        """Forget an autoscaler that is gone.

        Args:
            key: The autoscaler.
        """
        self.states.forget(key)
        self.selectors.forget(key.namespace, key.name)
        self._deps.monitor.forget(key.namespace, key.name)

    def _get_state(self, key: ObjectKey, manifest: Manifest) -> tuple[AutoscalerState, bool]:
        state, is_new = self.states.get_or_create(key, manifest)
        if is_new and self._deps.take_over:
            state.foreign_write = last_foreign_write(manifest, FIELD_MANAGER)
        return state, is_new

    def _is_left_alone(self, manifest: Manifest, state: AutoscalerState) -> bool:
        """Tell whether another controller runs the autoscaler, or may; say so when that is news."""
        if self._deps.mode is not Mode.REPLACE:
            return False
        found = last_foreign_write(manifest, FIELD_MANAGER)
        if found is None or found == state.foreign_write:
            return False
        problem = _left_alone_message(found.manager, take_over=self._deps.take_over)
        if problem != state.problem:
            key = state.parsed.key
            _log.warning("%s/%s is left alone (status of %s): %s", key.namespace, key.name, found.at, problem)
            state.problem = problem
        self._reset(state)
        return True

    def _reset(self, state: AutoscalerState) -> None:
        """Forget what running an autoscaler taught: one that is not run counts no pods, and begins anew one day."""
        key = state.parsed.key
        self.selectors.forget(key.namespace, key.name)
        state.history = History()

    async def _execute(self, manifest: Manifest, state: AutoscalerState) -> tuple[Plan, str]:
        """Plan the round and carry it out; return what became of it, and what failed."""
        parsed, mode = state.parsed, self._deps.mode
        conflicting = self.target_index.conflicting_autoscaler(manifest) if mode is Mode.OWN_KIND else None
        if parsed.problem or conflicting is not None:
            self._reset(state)
            planned = reject(parsed, Status.of(manifest.get("status")), conflicting, now=self._deps.clock.now())
            return await self._apply_status(manifest, planned) if mode.writes else (planned, parsed.problem)
        hpa = to_autoscaling_v2(manifest) if mode is Mode.OWN_KIND else manifest
        seen = await self._deps.snapshots.observe(hpa, settings=parsed.settings)
        if not mode.writes:
            return self._dry_run(state, seen)
        planned = plan(parsed, seen.snapshot, state.history, now=self._deps.clock.now())
        planned, decision = await self._apply_scale(planned, seen)
        state.history = decision.history
        return await self._apply_status(manifest, planned)

    async def _apply_scale(self, planned: Plan, seen: HpaSnapshot) -> tuple[Plan, Decision]:
        decision = planned.required_decision
        if decision.rescale:
            try:
                target = await self._resolve(seen.target)
                await write_scale(self._deps.targets, target, decision.desired, version=_version(seen))
            except ApiError as error:
                decision = decision.after_scale_write_failed(error.message)
        return planned.with_decision(decision), decision

    async def _resolve(self, target: ObjectKey) -> ObjectKey:
        """Return a target in a version that the API server has."""
        if self._deps.kinds is None:
            return target
        found = await self._deps.kinds.find(*target.group_kind)
        return ObjectKey(found.api_version, target.kind, target.name, target.namespace)

    async def _apply_status(self, manifest: Manifest, planned: Plan) -> tuple[Plan, str]:
        refused = ""
        if planned.status_changed:
            try:
                await write_status(self._deps.cluster, manifest, planned.status)
            except ApiError as error:
                refused = error.message
        return planned.after_status_write_failed(refused) if refused else (planned, planned.problem)

    def _dry_run(self, state: AutoscalerState, seen: HpaSnapshot) -> tuple[Plan, str]:
        """Plan a round, but remember what happens instead of what would; report what is new."""
        snapshot, seen_scale = seen.snapshot, ScaleObservation.of(seen.snapshot)
        history = with_foreign_change(state.history, snapshot.autoscaler, state.observed, seen_scale)
        planned = plan(state.parsed, snapshot, history, now=self._deps.clock.now())
        resize = planned.required_decision.pending_rescale
        state.history = planned.required_decision.history if resize is None else resize.history
        state.observed = seen_scale
        said, told = dry_run(state.parsed.key, planned), state.reported
        if self._deps.report is not None and (told is None or said != told._replace(at=said.at)):
            self._deps.report(said)
        state.reported = said
        return planned, planned.problem


def _version(seen: HpaSnapshot) -> str:
    return "" if seen.scale is None else str((seen.scale.get("metadata") or {}).get("resourceVersion") or "")


def _left_alone_message(manager: str, *, take_over: bool) -> str:
    if take_over:
        return f"{manager} has written its status after it was taken over; only one controller may run it"
    return f"{manager} wrote its status last; where that controller is switched off, --take-over lets it be run"
