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
from ocf.controllers.hpa.dry_run import DryRunResult, Scene, dry_run, followed
from ocf.controllers.hpa.metrics import Monitor
from ocf.controllers.hpa.modes import Mode
from ocf.controllers.hpa.parsed_autoscaler import to_autoscaling_v2
from ocf.controllers.hpa.plan import Plan, State, plan, refuse
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
    observer: SnapshotReader
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

    def __init__(self, around: ReconcilerDeps) -> None:
        self._around = around
        self._teller = Reporter(around.monitor, around.events, rehearsing=not around.mode.writes)
        self.claims: Final = TargetIndex()
        self.memory: Final = StateStore(around.settings)
        self.selectors: Final = around.observer.selectors

    def enqueue_delay(self, manifest: Manifest) -> timedelta:
        """Take notice of an autoscaler that is there, or was changed.

        Args:
            manifest: The autoscaler.

        Returns:
            Its sync period.
        """
        key = ObjectKey.of(manifest)
        self.claims.put(manifest)
        remembered, is_new = self._recalled(key, manifest)
        if is_new:
            self._around.monitor.is_in_state(key.namespace, key.name, State.WAITING)
        return remembered.subject.settings.sync_period

    async def reconcile(self, key: ObjectKey) -> timedelta | None:
        """Make a round of an autoscaler.

        Args:
            key: The autoscaler.

        Returns:
            When to make the next one; None if the autoscaler is gone.

        Raises:
            ApiError: If the autoscaler itself cannot be read.
        """
        began = self._around.clock.elapsed()
        try:
            manifest = await self._around.cluster.get(key)
        except NotFoundError:
            self.forget(key)
            return None
        remembered, _ = self._recalled(key, manifest)
        if self._is_left_alone(manifest, remembered):
            self._around.monitor.is_in_state(key.namespace, key.name, State.LEFT_ALONE)
            return remembered.subject.settings.sync_period
        planned, problem = await self._made(manifest, remembered)
        if self.memory.holds(key, remembered):
            took = self._around.clock.elapsed() - began
            self._teller.report(remembered, planned, problem, seconds=took.total_seconds())
        else:  # it was deleted meanwhile, and what was learnt of it since is to be forgotten, too
            self.forget(key)
        return planned.delay

    def forget(self, key: ObjectKey) -> None:
        """Forget an autoscaler that is gone.

        Args:
            key: The autoscaler.
        """
        self.memory.forget(key)
        self.selectors.forget(key.namespace, key.name)
        self._around.monitor.forget(key.namespace, key.name)

    def _recalled(self, key: ObjectKey, manifest: Manifest) -> tuple[AutoscalerState, bool]:
        remembered, is_new = self.memory.recall(key, manifest)
        if is_new and self._around.take_over:
            remembered.written = last_foreign_write(manifest, FIELD_MANAGER)
        return remembered, is_new

    def _is_left_alone(self, manifest: Manifest, remembered: AutoscalerState) -> bool:
        """Tell whether another controller runs the autoscaler, or may; say so when that is news."""
        if self._around.mode is not Mode.REPLACE:
            return False
        found = last_foreign_write(manifest, FIELD_MANAGER)
        if found is None or found == remembered.written:
            return False
        problem = _left_alone(found.manager, take_over=self._around.take_over)
        if problem != remembered.problem:
            key = remembered.subject.key
            _log.warning("%s/%s is left alone (status of %s): %s", key.namespace, key.name, found.at, problem)
            remembered.problem = problem
        self._reset(remembered)
        return True

    def _reset(self, remembered: AutoscalerState) -> None:
        """Forget what running an autoscaler taught: one that is not run counts no pods, and begins anew one day."""
        key = remembered.subject.key
        self.selectors.forget(key.namespace, key.name)
        remembered.history = History()

    async def _made(self, manifest: Manifest, remembered: AutoscalerState) -> tuple[Plan, str]:
        """Plan the round and carry it out; return what became of it, and what failed."""
        subject, mode = remembered.subject, self._around.mode
        rival = self.claims.conflicting_autoscaler(manifest) if mode is Mode.OWN_KIND else None
        if subject.problem or rival is not None:
            self._reset(remembered)
            planned = refuse(subject, Status.of(manifest.get("status")), rival, now=self._around.clock.now())
            return await self._with_status(manifest, planned) if mode.writes else (planned, subject.problem)
        hpa = to_autoscaling_v2(manifest) if mode is Mode.OWN_KIND else manifest
        seen = await self._around.observer.observe(hpa, settings=subject.settings)
        if not mode.writes:
            return self._rehearsed(remembered, seen)
        planned = plan(subject, seen.snapshot, remembered.history, now=self._around.clock.now())
        planned, decision = await self._with_scale(planned, seen)
        remembered.history = decision.history
        return await self._with_status(manifest, planned)

    async def _with_scale(self, planned: Plan, seen: HpaSnapshot) -> tuple[Plan, Decision]:
        decision = planned.made
        if decision.rescale:
            try:
                target = await self._resolved(seen.target)
                await write_scale(self._around.targets, target, decision.desired, version=_version(seen))
            except ApiError as error:
                decision = decision.after_scale_write_failed(error.message)
        return planned.decided(decision), decision

    async def _resolved(self, target: ObjectKey) -> ObjectKey:
        """Return a target in a version that the API server has."""
        if self._around.kinds is None:
            return target
        found = await self._around.kinds.find(*target.group_kind)
        return ObjectKey(found.api_version, target.kind, target.name, target.namespace)

    async def _with_status(self, manifest: Manifest, planned: Plan) -> tuple[Plan, str]:
        refused = ""
        if planned.status_changed:
            try:
                await write_status(self._around.cluster, manifest, planned.status)
            except ApiError as error:
                refused = error.message
        return planned.status_refused(refused) if refused else (planned, planned.problem)

    def _rehearsed(self, remembered: AutoscalerState, seen: HpaSnapshot) -> tuple[Plan, str]:
        """Plan a round, but remember what happens instead of what would; report what is new."""
        snapshot, scene = seen.snapshot, Scene.of(seen.snapshot)
        history = followed(remembered.history, snapshot.autoscaler, remembered.scene, scene)
        planned = plan(remembered.subject, snapshot, history, now=self._around.clock.now())
        resize = planned.made.pending_rescale
        remembered.history = planned.made.history if resize is None else resize.history
        remembered.scene = scene
        said, told = dry_run(remembered.subject.key, planned), remembered.told
        if self._around.report is not None and (told is None or said != told._replace(at=said.at)):
            self._around.report(said)
        remembered.told = said
        return planned, planned.problem


def _version(seen: HpaSnapshot) -> str:
    return "" if seen.scale is None else str((seen.scale.get("metadata") or {}).get("resourceVersion") or "")


def _left_alone(manager: str, *, take_over: bool) -> str:
    if take_over:
        return f"{manager} has written its status after it was taken over; only one controller may run it"
    return f"{manager} wrote its status last; where that controller is switched off, --take-over lets it be run"
