"""The loop over the instants of a simulation, of one workload or of several that share nodes or call each other.

The clock jumps from one instant at which something happens to the next. What happens at one instant comes in a fixed
order: nodes change, pods change, load changes, the pipeline measures, the activator looks at its triggers, the
autoscaler syncs, the controller of node groups syncs. Workloads come in their order, so that a workload gets what those
before it serve at the same instant.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ocf.autoscaling.algorithm import Autoscaler
from ocf.simulation.engine.clock import Clock, microseconds
from ocf.simulation.engine.run import Progress, Run, first_replicas
from ocf.simulation.scenario import Scenario

if TYPE_CHECKING:
    from ocf.simulation.engine.nodes import NodeCluster

__all__ = ["nodes_of", "run_together"]


def run_together(runs: Sequence[Run], nodes: "NodeCluster | None" = None, progress: Progress | None = None) -> None:
    """Run workloads to their end.

    Args:
        runs: The runs; all of them end with the first one.
        nodes: The nodes that they share; None for none.
        progress: Called now and then with the share of the time that is simulated.
    """
    first, alone = runs[0], len(runs) == 1
    for run in runs:
        run.start(progress if run is first else None)
    now, dues = 0, [0] * len(runs)
    while now < first.length:
        pairs = [(run, due <= now) for run, due in zip(runs, dues, strict=True)]
        for run, due in pairs:
            if due:
                run.begin(now)
        moved = nodes is not None and nodes.advance(now)
        changed = False
        for run, due in pairs:
            if due:
                changed = run.process(now, moved=moved) or changed
        acted = nodes is not None and nodes.sync(now)
        # Nodes that boot at once, and zones that are out from now on: an instant has one row.
        while nodes is not None and nodes.fleet.pool.due <= now:
            acted = nodes.advance(now) or acted
        # The pods of a workload may have got the room that those of another one left, and all have the same nodes.
        acted = acted or (changed and not alone)
        for run, due in pairs:
            run.end(now, disturbed=acted or (moved and not due), due=due)
            run.report(now)
        if alone:
            first.stretch(now)
        dues = [run.due for run in runs]
        now = min(dues) if nodes is None else min(*dues, nodes.due_after(now))


def nodes_of(
    scenarios: Sequence[Scenario], autoscalers: Sequence[Autoscaler], *, full: bool = False
) -> "NodeCluster | None":
    """Return the nodes that workloads share; None without node groups, whose algorithm is only loaded where it is used.

    Args:
        scenarios: The scenarios; the node groups are those of the first one.
        autoscalers: The HPA of each one.
        full: Whether every sync of node groups decides.
    """
    scenario = scenarios[0]
    if not scenario.node_groups:
        return None
    from ocf.simulation.engine.nodes import NodeCluster, NodeFleet

    clock = Clock(scenario.start)
    replicas = [first_replicas(*each) for each in zip(scenarios, autoscalers, strict=True)]
    fleet = NodeFleet.of(scenarios, clock=clock, replicas=replicas)
    return NodeCluster(fleet, clock=clock, period=microseconds(scenario.nodes.sync_period), full=full)
