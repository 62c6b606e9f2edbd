"""Scenarios with node groups, and what must hold at each instant of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ocf.autoscaling.algorithm import Autoscaler
from ocf.nodegroups import ClusterSnapshot, fits
from ocf.nodegroups.predicates import ClusterState, explain
from ocf.simulation import LoadSeries, Scenario
from ocf.simulation.engine.nodes import NodeCluster
from ocf.simulation.engine.nodes.machines import NodeState
from ocf.simulation.engine.run import Place, Run
from ocf.simulation.engine.simulated_pods import SimulatedPod
from ocf.simulation.engine.together import nodes_of, run_together
from ocf.simulation.result import SimulationResult
from tests.simulation.engine.scenarios import hpa_of, scenario_of

__all__ = ["CheckedRun", "group_of", "node_scenario", "run_of"]


def group_of(name: str = "workers", /, **fields: Any) -> dict[str, Any]:
    """Return a group whose nodes hold four pods, boot in a minute and cost 1 per hour."""
    types = [{"name": "small", "cpu": "4", "memory": "16Gi", "price": 1}]
    return {
        "name": name,
        "maxNodes": 5,
        "instanceTypes": types,
        "boot": {"mean": "1m"},
        "termination": {"mean": "20s"},
        **fields,
    }


def node_scenario(*groups: dict[str, Any], **rest: Any) -> Scenario:
    """Return a scenario of pods that request one cpu, on nodes of groups; by default of one."""
    workload = {"requests": {"cpu": "1", "memory": "1Gi"}, **rest.pop("workload", {})}
    hpa = rest.pop("hpa", None) or hpa_of(maxReplicas=30)
    return scenario_of(hpa, workload=workload, nodeGroups=list(groups or (group_of(),)), **rest)


def run_of(scenario: Scenario, *steps: tuple[float, float], full: bool = False) -> "CheckedRun":
    """Return a run that checks itself at each instant; all neighbors have the same load."""
    scenarios = scenario.services()
    autoscalers = [Autoscaler.of(each.hpa) for each in scenarios if isinstance(each.hpa, dict)]
    nodes = nodes_of(scenarios, autoscalers, full=full)
    load = LoadSeries.of(steps)
    first = CheckedRun(scenario, load, autoscalers[0], full=full, place=Place(nodes))
    first.neighbors = [
        Run(*each, full=full, place=Place(nodes, position, []))
        for position, each in enumerate(zip(scenarios, [load] * len(scenarios), autoscalers, strict=True))
        if position
    ]
    return first


class CheckedRun(Run):
    """A run that compares its nodes and pods with a snapshot made anew, at each instant.

    Attributes:
        neighbors: The runs of the neighbors.
    """

    neighbors: Sequence[Run] = ()

    @property
    def cluster(self) -> NodeCluster:
        """The nodes."""
        assert self._nodes is not None
        return self._nodes

    def run(self) -> SimulationResult:
        """Run to the end."""
        run_together([self, *self.neighbors], self.cluster)
        return replace(self.result(), neighbors=tuple(each.result() for each in self.neighbors))

    def end(self, now: int, *, disturbed: bool, due: bool) -> None:
        """End an instant, and check what holds then."""
        super().end(now, disturbed=disturbed, due=due)
        self._check()

    def _check(self) -> None:
        snapshot = self._rebuilt()
        assert dict(self.cluster.controller.snapshot().pods) == dict(snapshot.pods)
        assert dict(self.cluster.controller.snapshot().on_node) == dict(snapshot.on_node)
        self._check_room(snapshot)
        self._check_waiting(snapshot)
        self._check_counts()

    def _pods_now(self) -> list[SimulatedPod]:
        workloads = self.cluster.fleet.scheduler.workloads
        return [pod for each in workloads for pod in (*each.settled, *each.unsettled, *each.terminating.values())]

    def _rebuilt(self) -> ClusterSnapshot:
        """Return the snapshot of all pods and nodes, without anything that the simulation has kept."""
        controller, scheduler = self.cluster.controller, self.cluster.fleet.scheduler
        kept = {position: [node.name for node in nodes] for position, nodes in enumerate(scheduler.nominated)}
        pods = []
        for pod in self._pods_now():
            node = "" if pod.node is None else pod.node.name
            seen = controller._seen(pod, node)
            assert seen.shape.deleting == (pod.name in scheduler.workloads[pod.workload].terminating)
            if not node and kept[pod.workload]:
                seen = replace(seen, nominated=kept[pod.workload].pop())
            pods.append(seen)
        return ClusterSnapshot.from_values(
            nodes=[each.seen for each in self.cluster.fleet.pool.nodes.values()], pods=pods, budgets=controller._budgets
        )

    def _check_room(self, snapshot: ClusterSnapshot) -> None:
        """Each pod on a node fits there, but for a cordon that came later; nodes that boot have none."""
        for name, pods in snapshot.on_node.items():
            node = snapshot.nodes[name]
            assert not node.in_flight
            alone = ClusterSnapshot.from_values(nodes=[replace(node, unschedulable=False)], pods=pods)
            misfit = fits(pods[0], name, alone)
            assert misfit is None, misfit

    def _check_waiting(self, snapshot: ClusterSnapshot) -> None:
        """No pod waits that a node has room for."""
        scheduler = self.cluster.fleet.scheduler
        waiting = [pod for pod in snapshot.pods.values() if not pod.node_name]
        assert {pod.name for pod in waiting} == {name for each in scheduler.workloads for name in each.waiting}
        if any(scheduler.nominated):
            return  # room that is kept for the pods that others make way for
        state = ClusterState(snapshot)
        for pod in {pod.shape: pod for pod in waiting}.values():
            ready = [index for index, node in enumerate(state.nodes) if not node.in_flight]
            assert None not in [explain(pod.shape, index, state) for index in ready]

    def _check_counts(self) -> None:
        pool, scheduler = self.cluster.fleet.pool, self.cluster.fleet.scheduler
        for position, pods in enumerate(scheduler.workloads):
            found = [pod for node in pool.nodes.values() for pod in node.pods.values() if pod.workload == position]
            assert scheduler.bound[position] == len(found)
            assert len(found) + len(pods.waiting) == pods.count + len(pods.terminating)
            counted = sum(node.counts[position] for node in pool.nodes.values())
            assert counted == len(found) + len(scheduler.nominated[position])
            assert len(scheduler.nominated[position]) <= len(pods.waiting)
        for kind, counts in pool.counts:
            mine = [node.state for node in pool.nodes.values() if node.kind is kind]
            assert counts == [mine.count(state) for state in NodeState]
        for name, settings in self.cluster.fleet.settings.items():
            members = [node for node in pool.nodes.values() if node.kind.template.group == name]
            assert len(members) <= settings.max_nodes
            leaving = [node for node in members if node.state is NodeState.DRAINING]
            if settings.spot is None and not settings.boot_failures and settings.zone is None:
                assert len(members) - len(leaving) >= min(settings.min_nodes, settings.max_nodes)
