"""Simulated runs made by hand."""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import nan
from typing import Any, Final

from ocf.simulation import Scenario
from ocf.simulation.report import Reported
from ocf.simulation.report.rows import COLUMN_NAMES
from ocf.simulation.result import Columns, ConditionChange, GroupColumns, ScalingAction, SimulationResult
from ocf.simulation.scenario.objectives import Objectives
from ocf.simulation.scenario.workload import Workload

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_FLOATS: Final = (
    "time",
    "load",
    "capacity",
    "served",
    "queue",
    "dropped",
    "utilization",
    "node_price",
    "node_cpu",
    "node_memory",
)


def columns(time: Sequence[float], **given: Sequence[float]) -> Columns:
    """Return columns; those that are not given are 0, but each row is a sync, and replicas are the ready pods."""
    zeros = [0] * len(time)
    ready = given.get("ready", zeros)
    rest: dict[str, Sequence[float]] = {"synced": [1] * len(time), "replicas": ready, "time": time, **given}
    rest = {**{name: rest.get("replicas", zeros) for name in ("wanted", "stabilized", "desired")}, **rest}
    values: dict[str, Any] = {
        name: array("d" if name in _FLOATS else "q", rest.get(name, zeros if name in COLUMN_NAMES else ()))
        for name in Columns.__dataclass_fields__
    }
    return Columns(**values)


def run(
    time: Sequence[float], *, duration: float, actions: Sequence[ScalingAction] = (), **given: Sequence[float]
) -> SimulationResult:
    """Return a run with the given columns."""
    return SimulationResult(
        name="web",
        start=START,
        duration=duration,
        columns=columns(time, **given),
        actions=tuple(actions),
        bounds=(1, 20),
    )


def scaled(
    time: float, before: int, after: int, reason: str = "cpu resource utilization above target"
) -> ScalingAction:
    return ScalingAction(time=time, before=before, after=after, reason=reason, rule="Total")


def day(rows: int = 240, *, name: str = "web", more: int = 0) -> SimulationResult:
    """Return a run of some rows of 15 seconds, with a load that rises and falls, and all kinds of data.

    Args:
        rows: Number of rows.
        name: Name of the scenario.
        more: Replicas more than the load needs.
    """
    times = [15.0 * row for row in range(rows)]
    loads = [abs(row % 120 - 60) * 1.5 + row * 7 % 13 for row in range(rows)]
    needed = [max(1, -int(-load // 10)) for load in loads]
    replicas = [needed[max(0, row - 4)] + more for row in range(rows)]
    queue = [max(0.0, (load - 10 * pods) * 15) for load, pods in zip(loads, replicas, strict=True)]
    actions = [
        ScalingAction(
            time=times[row],
            before=replicas[row - 1],
            after=replicas[row],
            reason="cpu resource utilization (percentage of request) above target"
            if replicas[row] > replicas[row - 1]
            else "All metrics below target",
            rule="Total",
            explanation=(f"usage / target = {loads[row]:.1f} / 7 <pods>", f"desired {replicas[row]}"),
        )
        for row in range(1, rows)
        if replicas[row] != replicas[row - 1]
    ]
    changes = [
        ConditionChange(time=0, type="AbleToScale", status="True", reason="ReadyForNewScale", message=""),
        ConditionChange(time=0, type="ScalingActive", status="True", reason="ValidMetricFound", message=""),
        ConditionChange(time=0, type="ScalingLimited", status="False", reason="DesiredWithinRange", message=""),
        ConditionChange(time=rows * 5, type="ScalingLimited", status="True", reason="TooFewReplicas", message=""),
        ConditionChange(
            time=rows * 7, type="ScalingActive", status="False", reason="FailedGetResourceMetric", message=""
        ),
    ]
    made = run(
        times,
        duration=rows * 15.0,
        actions=actions,
        load=loads,
        capacity=[10 * pods for pods in replicas],
        served=[min(load, 10 * pods) for load, pods in zip(loads, replicas, strict=True)],
        queue=queue,
        demand=needed,
        ready=replicas,
        starting=[row % 3 for row in range(rows)],
        terminating=[row % 2 for row in range(rows)],
        utilization=[
            nan if row % 50 == 7 else load / pods / 7
            for row, (load, pods) in enumerate(zip(loads, replicas, strict=True))
        ],
        wanted=[-1 if row % 50 == 7 else pods for row, pods in enumerate(needed)],
    )
    return replace(made, name=name, condition_changes=tuple(changes), syncs=rows, bounds=(1, 12))


def reported(result: SimulationResult, **objectives: Any) -> Reported:
    """Return a run with its measures and verdicts."""
    scenario = Scenario.model_validate(
        {
            "name": result.name,
            "hpa": {},
            "workload": Workload(capacity=10),
            "load": {"type": "Steady", "rate": 1},
            "objectives": Objectives(**objectives),
        }
    )
    return Reported.of(result, scenario)


def with_nodes(result: SimulationResult) -> SimulationResult:
    """Return a run with two node groups, whose nodes boot, drain and are interrupted, and pods that wait for them."""
    count = len(result.columns.time)
    rows = range(count)
    groups = {
        name: GroupColumns(
            booting=array("q", [(row + shift) % 5 == 0 for row in rows]),
            ready=array("q", [2 + row % 3 for row in rows]),
            draining=array("q", [(row + shift) % 7 == 0 for row in rows]),
            price=array("d", [0.25 * (3 + row % 3) for row in rows]),
        )
        for shift, name in enumerate(("workers", "spot"))
    }
    of_groups = list(groups.values())
    columns = replace(
        result.columns,
        pending=array("q", [row % 4 for row in rows]),
        nodes_booting=array("q", map(sum, zip(*(each.booting for each in of_groups), strict=True))),
        nodes_ready=array("q", map(sum, zip(*(each.ready for each in of_groups), strict=True))),
        nodes_draining=array("q", map(sum, zip(*(each.draining for each in of_groups), strict=True))),
        node_price=array("d", map(sum, zip(*(each.price for each in of_groups), strict=True))),
        node_cpu=array("d", [nan if row == 0 else 0.5 + row % 5 / 10 for row in rows]),
        node_memory=array("d", [nan if row == 0 else 0.25 for row in rows]),
    )
    actions = [
        ScalingAction(
            time=90, before=4, after=6, reason="3 pods wait for a node: add 2 small", rule="scale_up", source="spot"
        ),
        ScalingAction(time=600, before=6, after=5, reason="remove node spot-1", rule="underutilized", source="spot"),
        ScalingAction(
            time=900, before=2, after=1, reason="the provider takes it away", rule="interrupted", source="workers"
        ),
    ]
    return replace(result, columns=columns, node_groups=groups, node_actions=tuple(actions))
