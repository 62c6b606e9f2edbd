"""The run of one workload: load to utilization, to samples, to a decision, to pods, and back to utilization."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler
from ocf.errors import ConfigError
from ocf.simulation.engine.activation import Activation, zero_warnings
from ocf.simulation.engine.autoscaling import NOTHING, HPAController, subject_of
from ocf.simulation.engine.clock import NEVER, SECOND, Clock, microseconds
from ocf.simulation.engine.connections import ConnectionQueues
from ocf.simulation.engine.edits import Edit, placed_metrics
from ocf.simulation.engine.forecasts import with_prediction
from ocf.simulation.engine.meters import container_of, meters_of
from ocf.simulation.engine.moments import Memory
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.engine.pods import Pods
from ocf.simulation.engine.queue import FluidQueue
from ocf.simulation.engine.rollouts import Rollouts
from ocf.simulation.engine.rows import Row, Table, arrays_of, demand_of
from ocf.simulation.engine.stretches import Shared, Stretches
from ocf.simulation.load import LoadSeries
from ocf.simulation.result import FAILURE, ROLLOUT, Columns, GroupColumns, ScalingAction, SimulationResult
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.checks import doubts
from ocf.simulation.scenario.workload import Workload

if TYPE_CHECKING:
    from ocf.simulation.engine.nodes import NodeCluster

__all__ = ["Place", "Progress", "Run", "first_replicas"]

Progress = Callable[[float], object]
"""A function that is called now and then with the share of the time that is simulated."""
_CHUNK: Final = 1024
"""Number of rows that become columns at once, and after which progress is reported."""


class Place(NamedTuple):
    """Where a workload runs.

    Args:
        nodes: The nodes that the pods are placed on; None: a pod never waits for a node.
        position: The position of the workload among those that run together.
        callers: The runs whose served load is load of this one, and the load units of this one for each of theirs;
            None: this one runs alone.
    """

    nodes: "NodeCluster | None" = None
    position: int = 0
    callers: "Sequence[tuple[Run, float]] | None" = None


class Run:
    """The run of one workload with its HPA; `ocf.simulation.engine.together` moves it on.

    Args:
        full: Whether every sync runs `decide` on a snapshot of all pods.
        shared: What runs with the same load share; None: nothing.
        place: Where the workload runs.

    Attributes:
        length: The end, in microseconds since the start.
    """

    def __init__(
        self,
        scenario: Scenario,
        load: LoadSeries,
        autoscaler: Autoscaler,
        *,
        edits: Sequence[Edit] = (),
        full: bool = False,
        shared: Shared | None = None,
        place: "Place | None" = None,
    ) -> None:
        place = place or Place()
        workload, seed = scenario.workload, scenario.seed
        clock = Clock(scenario.start)
        replicas = first_replicas(scenario, autoscaler)
        autoscaler, *edited = with_prediction(
            [autoscaler, *(each.autoscaler for each in edits)], scenario.prediction, workload
        )
        edits = [each._replace(autoscaler=changed) for each, changed in zip(edits, edited, strict=True)]
        metrics, places = placed_metrics([autoscaler, *edited])
        name = autoscaler.target or "web"
        self._scenario = scenario
        self._autoscaler = autoscaler
        self.length = _end_of(scenario, load)
        shared = shared or Shared(load)
        self._steps = shared.steps
        self._step = -1
        self._load_due = 0
        self._step_rate = self._rate = 0.0
        self._callers = place.callers or ()
        self._changed = self._synced = False
        self._per_pod = workload.capacity * scenario.objectives.target_utilization
        self._demand = 0
        self._failures = sorted((microseconds(each.at), each.pods) for each in workload.failures)
        self._nodes = nodes = place.nodes
        self._pods = Pods(
            workload,
            replicas,
            # Workloads of several namespaces may have the same name.
            name=f"{scenario.name}/{name}" if place.position else name,
            container=container_of(metrics),
            clock=clock,
            seed=seed,
            scheduler=None if nodes is None else nodes.fleet.scheduler,
        )
        self._queue = _queue_of(workload, self._pods)
        self._rollouts = Rollouts(workload.rollouts, self._pods)
        self._workload_actions: list[ScalingAction] = []
        self._pipeline = Pipeline(
            scenario.metrics,
            meters_of(metrics, workload, clock, shared.forecast(scenario.prediction)),
            pods=self._pods,
            queue=self._queue,
            clock=clock,
            seed=seed,
        )
        settings = scenario.controller.settings()
        self._settings, self._clock, self._full = settings, clock, full
        self._edits = list(zip(edits, places[1:], strict=True))
        subject = subject_of(autoscaler, settings, self._pipeline, clock)
        self._controller = HPAController(subject, self._pipeline, replicas=replicas, edited=bool(edits), full=full)
        self._activation = None if scenario.activator is None else Activation(scenario.activator, self._pipeline)
        self._period = microseconds(settings.sync_period)
        self._sync_due = 0
        self._syncs = 0
        self._numbers = NOTHING
        self._columns = Columns()
        self._groups = {group.name: GroupColumns() for group in scenario.node_groups}
        self._table = Table(arrays_of(self._columns, self._groups.values() if self._groups else None))
        # The list itself, which a flush empties and does not replace: a row costs no look-up.
        self._rows = self._table.rows
        self._report_at = _CHUNK
        self._progress: Progress | None = None
        self._stretches = None
        # With nodes, an activator or other workloads, more happens than the load shows; usage that is kept follows from
        # earlier load. With connections and in rollouts, pods are unsettled.
        is_alone = nodes is None and place.callers is None
        if is_alone and self._activation is None and not full and not self._pipeline.is_kept:
            self._stretches = Stretches(
                shared,
                pipeline=self._pipeline,
                table=self._table,
                report=self.report,
                period=self._period,
                per_pod=self._per_pod,
            )

    def start(self, progress: Progress | None = None) -> None:
        """Set what holds at the start."""
        self._progress = progress
        self._next_load(0)
        self._rebalance(0)
        self._pipeline.start(self._rate)

    @property
    def due(self) -> int:
        """The instant at which something happens next that is not of the nodes or of another workload."""
        failure = self._failures[0][0] if self._failures else NEVER
        due = min(
            self._sync_due,
            self._load_due,
            self._pods.due,
            self._queue.due,
            self._pipeline.due,
            failure,
            self._rollouts.due,
        )
        return due if self._activation is None else min(due, self._activation.due)

    def begin(self, now: int) -> None:
        """Begin an instant that is due, before the nodes change."""
        # The row at 0 is the state before the first sync.
        self._changed = now in (0, self._queue.due)
        self._synced = False
        self._queue.advance(now)

    def process(self, now: int, *, moved: bool) -> bool:
        """Process everything that is due of the workload.

        Args:
            moved: Whether nodes have changed.

        Returns:
            Whether the workload has changed.
        """
        changed = self._changed or moved
        if self._pods.due <= now:
            self._pods.advance(now)
            changed = True
        if self._failures and self._failures[0][0] <= now:
            self._fail(now)
            changed = True
        changed = self._roll(now) or changed
        if self._load_due <= now:
            self._next_load(now)
            changed = True
        if changed or (self._callers and self._offered() != self._rate):
            changed = True
            self._rebalance(now)
        if self._pipeline.due <= now:
            self._pipeline.advance(now)
        changed = self._activate(now) or changed
        if self._sync_due <= now:
            self._synced = True
            self._sync(now)
        self._changed = changed
        return changed or self._synced

    def end(self, now: int, *, disturbed: bool, due: bool) -> None:
        """End an instant.

        Args:
            disturbed: Whether nodes or other workloads have changed.
            due: Whether the workload was processed.
        """
        if disturbed:
            if self._pods.due <= now:  # pods without a start-up time that now have a node
                self._pods.advance(now)
            self._roll(now)
            if not due:
                self._queue.advance(now)
            self._rebalance(now)
        if disturbed or (due and (self._synced or self._changed)):
            self._row(now, int(due and self._synced))

    def stretch(self, now: int) -> None:
        """Run the syncs until something else than the load changes, if there are only such, and continue there."""
        stretches = self._stretches
        if stretches is None or self._pods.unsettled:
            return
        failure = self._failures[0][0] if self._failures else NEVER
        edit = self._edits[0][0].at if self._edits else NEVER
        limit = min(self.length, failure, edit, self._rollouts.due)
        found = stretches.run(now, limit, self._controller, self._numbers)
        if found is not None:
            self._syncs += found.syncs
            self._sync_due += found.syncs * self._period
            self._numbers = found.numbers
            self._step = found.step
            # A step at the end itself is due there, with all else of that instant.
            self._next_load(found.end - 1)

    def report(self, now: int) -> None:
        """Make columns of the rows, and report progress, from time to time."""
        if len(self._table) >= self._report_at:
            self._report_at = len(self._table) + _CHUNK
            self._table.flush()
            if self._progress is not None:
                self._progress(now / self.length)

    def _activate(self, now: int) -> bool:
        """Let the activator look at its triggers, if that is due; return whether it has scaled the workload."""
        activation = self._activation
        if activation is None or activation.due > now or not activation.poll(now, self._controller):
            return False
        self._scale(now)
        return True

    def _sync(self, now: int) -> None:
        """Run a sync of the HPA controller, and scale the pods."""
        while self._edits and self._edits[0][0].at <= now:
            edit, place = self._edits.pop(0)
            self._edit(edit, place)
        self._numbers = self._controller.sync(now)
        self._syncs += 1
        self._sync_due += self._period
        self._scale(now)

    def _scale(self, now: int) -> None:
        """Create or delete pods, if `spec.replicas` has changed."""
        replicas = self._pods.replicas = self._controller.replicas
        if self._rollouts.is_active:
            if self._rollouts.scale(replicas, now):
                self._rebalance(now)
            self._note_end(now)
        elif replicas != self._pods.count:
            self._pods.scale(replicas, now)
            self._rebalance(now)

    def _edit(self, edit: Edit, first: int) -> None:
        """Continue with an HPA that was edited: its status and its history stay, if it is the same one."""
        before = self._controller
        subject = subject_of(edit.autoscaler, self._settings, self._pipeline, self._clock, first=first)
        controller = HPAController(
            subject,
            self._pipeline,
            replicas=before.replicas,
            memory=Memory.empty() if edit.recreated else before.memory(),
            edited=True,
            full=self._full,
        )
        controller.actions, controller.changes = before.actions, before.changes
        self._controller = controller

    def _roll(self, now: int) -> bool:
        """Begin rollouts that are due, and continue; return whether pods were created or deleted."""
        rollouts = self._rollouts
        if rollouts.due > now and not rollouts.is_active:
            return False
        if rollouts.due <= now:
            self._note(now, ROLLOUT, "a rollout begins")
        changed = rollouts.advance(now, self._controller.replicas)
        self._note_end(now)
        return changed

    def _fail(self, now: int) -> None:
        while self._failures and self._failures[0][0] <= now:
            count = self._failures.pop(0)[1]
            self._note(now, FAILURE, f"{count} {'pod fails and is' if count == 1 else 'pods fail and are'} replaced")
            self._pods.fail(count, now)

    def _note_end(self, now: int) -> None:
        if not self._rollouts.is_active:
            self._note(now, ROLLOUT, "the rollout has ended")

    def _note(self, now: int, rule: str, reason: str) -> None:
        """Note what happens to the workload while its replicas stay."""
        replicas = self._controller.replicas
        action = ScalingAction(time=now / SECOND, before=replicas, after=replicas, reason=reason, rule=rule)
        self._workload_actions.append(action)

    def _next_load(self, now: int) -> None:
        """Move on to the step of the load that begins now."""
        begins, step = self._steps.begins, self._step
        while begins[step + 1] <= now:
            step += 1
        self._step = step
        self._load_due = begins[step + 1]
        # No load is 0.0, also where a trace has -0.0.
        self._step_rate = self._steps.rates[step] or 0.0
        self._set_rate(self._offered())

    def _offered(self) -> float:
        """Return the offered load: that of its own, and what the callers serve now."""
        rate = self._step_rate
        for caller, factor in self._callers:
            rate += factor * caller.served
        return rate

    def _set_rate(self, rate: float) -> None:
        if rate != self._rate:
            self._rate = rate
            self._demand = demand_of(rate, self._per_pod)

    @property
    def served(self) -> float:
        """The load that is served now."""
        return self._queue.served

    def _rebalance(self, now: int) -> None:
        """Compute what is served and used from now on."""
        if self._callers:
            self._set_rate(self._offered())
        self._queue.change(now, rate=self._rate, capacity=self._pods.capacity)
        self._pipeline.observe(now, self._rate)
        if self._stretches is not None:
            self._stretches.observe(now, self._rate)

    def _row(self, now: int, synced: int) -> None:
        pods, queue = self._pods, self._queue
        ready = pods.ready
        row: Row = (
            now / SECOND,
            self._rate,
            queue.capacity,
            queue.served,
            queue.length,
            queue.dropped,
            self._demand,
            self._controller.replicas,
            pods.count - ready,
            ready,
            len(pods.terminating),
            *self._numbers,
            synced,
        )
        self._rows.append(row if self._nodes is None else (*row, *self._nodes.numbers(pods)))

    def result(self) -> SimulationResult:
        """Return the result, at the end."""
        self._table.flush()
        if self._progress is not None:
            self._progress(1.0)
        scenario, autoscaler, controller = self._scenario, self._autoscaler, self._controller
        return SimulationResult(
            name=scenario.name,
            start=scenario.start,
            is_dated=scenario.is_dated,
            duration=self.length / SECOND,
            columns=self._columns,
            actions=tuple(controller.actions),
            workload_actions=tuple(self._workload_actions),
            node_actions=() if self._nodes is None else self._nodes.actions,
            node_groups=self._groups,
            condition_changes=tuple(controller.changes),
            syncs=self._syncs,
            bounds=(autoscaler.minimum, autoscaler.maximum),
            warnings=(
                *doubts(scenario, autoscaler),
                *zero_warnings(
                    self._columns,
                    self.length / SECOND,
                    self._activation,
                    start=scenario.start if scenario.is_dated else None,
                ),
            ),
        )


def first_replicas(scenario: Scenario, autoscaler: Autoscaler) -> int:
    """Return `spec.replicas` at the start."""
    replicas = scenario.workload.replicas
    return autoscaler.minimum if replicas is None else replicas


def _queue_of(workload: Workload, pods: Pods) -> FluidQueue:
    """Return the queue in front of the pods, or one in front of each."""
    limit, connections = workload.queue.length, workload.connections
    if connections is None:
        return FluidQueue(limit)
    lifetime = microseconds(connections.lifetime)
    return ConnectionQueues(limit, lifetime=lifetime, pods=pods, pod_capacity=workload.capacity)


def _end_of(scenario: Scenario, load: LoadSeries) -> int:
    if scenario.duration is not None:
        return microseconds(scenario.duration)
    if load.end is None:
        raise ConfigError("the simulation has no end: the load does not end, so set `duration`")
    return round(load.end * SECOND)
