"""Scenarios with node groups, and what must hold at each instant of a run."""

from dataclasses import replace
from typing import Any

from ocf.autoscaling.algorithm import Autoscaler
from ocf.nodegroups import ClusterSnapshot, fits
from ocf.nodegroups.predicates import ClusterState, explain
from ocf.simulation import LoadSeries, Scenario
from ocf.simulation.engine.nodes import NodeCluster
from ocf.simulation.engine.nodes.machines import NodeState
from ocf.simulation.engine.run import Run
from ocf.simulation.engine.simulated_pods import SimulatedPod
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
    """Return a run that checks itself at each instant."""
    assert isinstance(scenario.hpa, dict)
    return CheckedRun(scenario, LoadSeries.of(steps), Autoscaler.of(scenario.hpa), full=full)


class CheckedRun(Run):
    """A run that compares its nodes and pods with a snapshot made anew, at each instant."""

    @property
    def cluster(self) -> NodeCluster:
        """The nodes."""
        assert self._nodes is not None
        return self._nodes

    def _process(self, now: int) -> None:
        super()._process(now)
        self._check()

    def _process_nodes(self, now: int) -> None:
        super()._process_nodes(now)
        self._check()

    def _check(self) -> None:
        snapshot = self._rebuilt()
        assert dict(self.cluster.controller.snapshot().pods) == dict(snapshot.pods)
        assert dict(self.cluster.controller.snapshot().on_node) == dict(snapshot.on_node)
        self._check_room(snapshot)
        self._check_waiting(snapshot)
        self._check_counts()

    def _pods_now(self) -> list[SimulatedPod]:
        pods = self._pods
        return [*pods.settled, *pods.unsettled, *pods.terminating.values()]

    def _rebuilt(self) -> ClusterSnapshot:
        """Return the snapshot of all pods and nodes, without anything that the simulation has kept."""
        controller = self.cluster.controller
        pods = []
        for pod in self._pods_now():
            node = "" if pod.node is None else pod.node.name
            seen = controller._seen(pod, node)
            assert seen.shape.deleting == (pod.name in self._pods.terminating)
            pods.append(seen)
        return ClusterSnapshot.from_values(
            nodes=[each.seen for each in self.cluster.fleet.pool.nodes.values()], pods=pods
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
        waiting = [pod for pod in snapshot.pods.values() if not pod.node_name]
        assert {pod.name for pod in waiting} == set(self._pods.waiting)
        state = ClusterState(snapshot)
        for pod in waiting[:1]:
            ready = [index for index, node in enumerate(state.nodes) if not node.in_flight]
            assert None not in [explain(pod.shape, index, state) for index in ready]

    def _check_counts(self) -> None:
        pods, pool = self._pods, self.cluster.fleet.pool
        on_nodes = sum(len(node.pods) for node in pool.nodes.values())
        assert self.cluster.fleet.scheduler.bound == on_nodes
        assert on_nodes + len(pods.waiting) == pods.count + len(pods.terminating)
        for kind, counts in pool.counts:
            mine = [node.state for node in pool.nodes.values() if node.kind is kind]
            assert counts == [mine.count(state) for state in NodeState]
        for name, settings in self.cluster.fleet.settings.items():
            members = [node for node in pool.nodes.values() if node.kind.template.group == name]
            assert len(members) <= settings.max_nodes
            leaving = [node for node in members if node.state is NodeState.DRAINING]
            if settings.spot is None:
                assert len(members) - len(leaving) >= min(settings.min_nodes, settings.max_nodes)
