"""Public incidents: what was observed appears in a scenario, and a setting that helps is simulated, too.

The sizes of clusters and loads are not in the reports, so the scenarios have their own. Each also runs without the part
of the model that it needs, which shows nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from ocf.objects import Manifest
from ocf.objects.yaml_reader import read_yaml
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.dumped import DumpedAutoscaler, dumped_scenario
from ocf.testing import simulate_autoscaler
from tests.docs.test_words import rows

Parts = Mapping[str, Any]
"""Fields of a scenario; `workload` and `hpa` are merged into those of the incident."""


def utilization(name: str, target: int) -> Manifest:
    wanted = {"type": "Utilization", "averageUtilization": target}
    return {"type": "Resource", "resource": {"name": name, "target": wanted}}


def most_replicas(result: SimulationResult) -> float:
    return max(result.columns.replicas)


def last_replicas(result: SimulationResult) -> float:
    return result.columns.replicas[-1]


def neighbors_ready(result: SimulationResult) -> float:
    return result.neighbors[0].columns.ready[-1]


def waiting_after_fifteen_minutes(result: SimulationResult) -> float:
    columns = result.columns
    return [pods for time, pods in zip(columns.time, columns.pending, strict=True) if time <= 900][-1]


def last_waiting(result: SimulationResult) -> float:
    return result.columns.pending[-1]


def all_waiting(result: SimulationResult) -> float:
    """Return how many pods of all workloads wait for nodes at the end; without nodes, none is counted."""
    return sum(sum(columns.pending[-1:]) for columns in (result.columns, *(each.columns for each in result.neighbors)))


def fewest_ready(result: SimulationResult) -> float:
    """Return 0 if there was a time without a ready pod, otherwise 1."""
    return min(1, *result.columns.ready)


def last_served(result: SimulationResult) -> float:
    return result.columns.served[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A public incident.

    Args:
        name: What happened.
        source: The address of the report.
        parts: The scenario.
        without: The parts that leave out what the model needs for it.
        helped: The parts that people found to help, each alone.
        figure: The figure in which it shows.
        observed: The figure in the incident.
        calm: The figure with the parts that help, and without the part of the model.
    """

    name: str
    source: str
    parts: Parts
    without: Parts
    helped: tuple[Parts, ...]
    figure: Callable[[SimulationResult], float] = most_replicas
    observed: float
    calm: float


STEP: Final = [{"type": "Steady", "rate": 40}, {"type": "Spike", "at": "5m", "peak": 20, "hold": "30m"}]
"""A load of two pods at their capacity, and then of three."""
JVM: Final = {
    "capacity": 20,
    "replicas": 3,
    "requests": {"cpu": "500m"},
    "usage": {"cpu": {"idle": "20m", "busy": "500m", "starting": "2", "startingTime": "90s"}},
    "readiness": {"mean": "15s"},
}
PLAIN_USAGE: Final = {"cpu": {"idle": "20m", "busy": "500m"}}
PULLED: Final = {
    **JVM,
    "usage": {"cpu": {**PLAIN_USAGE["cpu"], "starting": "2"}},
    "imagePull": {"mean": "6m"},
    "readiness": {"mean": "90s"},
}

HEAP: Final = {
    "capacity": 20,
    "replicas": 2,
    "requests": {"memory": "512Mi"},
    "usage": {"memory": {"idle": "100Mi", "busy": "500Mi", "releaseAfter": "24h"}},
}
QUICK_HEAP: Final = {"memory": {"idle": "100Mi", "busy": "500Mi"}}

ROLLED: Final = {
    "capacity": 20,
    "replicas": 6,
    "requests": {"memory": "500Mi"},
    "usage": {"memory": {"idle": "300Mi", "busy": "300Mi"}},
    "readiness": {"mean": "60s"},
    "rollouts": [{"at": "5m"}],
}

NODES: Final[dict[str, Any]] = {
    "name": "workers",
    "maxNodes": 3,
    "instanceTypes": [{"name": "small", "cpu": "2", "memory": "8Gi"}],
}
"""Nodes for four pods each."""
ON_NODES: Final[dict[str, Any]] = {"capacity": 20, "replicas": 2, "requests": {"cpu": "500m"}}
SERVICE: Final[dict[str, Any]] = {
    "name": "dns",
    "hpa": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "dns"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "dns"},
            "maxReplicas": 1,
            "metrics": [utilization("cpu", 80)],
        },
    },
    "workload": {"capacity": 20, "requests": {"cpu": "500m"}, "failures": [{"at": "20m"}]},
    "load": {"type": "Steady", "rate": 5},
}
"""A workload with one pod, which is replaced."""
FILLING: Final[dict[str, Any]] = {
    "hpa": {"metrics": [utilization("cpu", 40)]},
    "workload": ON_NODES,
    "load": [{"type": "Steady", "rate": 20}, {"type": "Spike", "at": "5m", "peak": 300, "hold": "40m"}],
}
"""A load that wants twenty pods."""
MORE: Final[dict[str, Any]] = {**NODES, "maxNodes": 5}
ZONAL: Final[dict[str, Any]] = {**MORE, "zone": "a"}
OUTAGE: Final[dict[str, Any]] = {"zoneOutages": [{"zone": "a", "at": "1m", "nodesLost": False}]}
SPOT: Final[dict[str, Any]] = {**MORE, "name": "spot", "priority": 1, "bootFailures": [{"at": "1m"}]}
LARGE_FIRST: Final = [{"name": "large", "cpu": "8", "memory": "32Gi", "price": 0.4}, *NODES["instanceTypes"]]
REPLACED: Final[dict[str, Any]] = {
    **NODES,
    "initialNodes": 1,
    "instanceTypes": [{"price": 0.1, **each} for each in LARGE_FIRST],
    "scaleDown": {"consolidate": True, "replaceAfter": "10m"},
}


def scaled(name: str, cpu: str, most: int) -> DumpedAutoscaler:
    """Return an HPA of a cluster and its workload, as they are read."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": reference, "maxReplicas": most, "minReplicas": 2, "metrics": [utilization("cpu", 70)]}
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec}
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    target = {**reference, "metadata": {"name": name}, "spec": {"replicas": 2, "template": template}}
    return DumpedAutoscaler(hpa=hpa, target=target)


def read_from_cluster(main: int, webhook: int) -> dict[str, Any]:
    """Return the scenario that is written for a cluster with two HPAs and all six nodes that it may have.

    Args:
        main: Largest number of replicas of the one HPA; a pod requests 1.5 CPUs, that of its sidecar included.
        webhook: Largest number of replicas of the other.
    """
    labels = {"node.kubernetes.io/instance-type": "t3.xlarge"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "58"}
    nodes: list[Manifest] = [
        {
            "kind": "Node",
            "metadata": {"name": f"n-{number}", "labels": labels},
            "status": {"allocatable": amounts, **ready},
        }
        for number in range(6)
    ]
    both = [scaled("main", "1500m", main), scaled("webhook", "500m", webhook)]
    [found] = read_yaml(dumped_scenario(both, nodes=nodes), "dump")
    # The load is what only its users know.
    [neighbor] = found["neighbors"]
    rising = {"type": "Spike", "at": "5m", "hold": "35m"}
    return {
        "hpa": found["hpa"]["spec"],
        "workload": found["workload"],
        "load": [found["load"], {**rising, "peak": 1500}],
        "node_groups": found["nodeGroups"],
        "neighbors": [{**neighbor, "load": [neighbor["load"], {**rising, "peak": 1200}]}],
    }


DUMPED: Final = read_from_cluster(20, 50)

INCIDENTS: Final = (
    Incident(
        name="a scale-up causes the next one, because pods that are ready still use the CPU of their start",
        source="https://github.com/kubernetes/kubernetes/issues/28692",
        parts={"workload": JVM, "load": STEP},
        without={"workload": {"usage": PLAIN_USAGE}},
        # A readiness probe that succeeds after the start is over, as kubernetes/website#50558 advises.
        helped=({"workload": {"readiness": {"mean": "100s"}}},),
        observed=20,
        calm=4,
    ),
    Incident(
        name="the CPU of the start counts, because the initialization period does not cover the start",
        source="https://github.com/kubernetes/website/issues/12657",
        parts={
            "workload": {**JVM, "usage": PULLED["usage"], "readiness": {"mean": "90s"}},
            "load": STEP,
            "metrics": {"window": "60s"},
            "controller": {"cpuInitializationPeriod": "30s"},
        },
        without={"workload": {"usage": PLAIN_USAGE}},
        helped=({"controller": {"cpuInitializationPeriod": "5m"}},),
        observed=20,
        calm=4,
    ),
    Incident(
        name="the initialization period is over when the container begins, because it counts from the start time",
        source="https://github.com/kubernetes/website/issues/12657",
        parts={"workload": PULLED, "load": STEP, "metrics": {"window": "60s"}},
        without={"workload": {"imagePull": {"mean": "0s"}}},
        helped=({"controller": {"cpuInitializationPeriod": "10m"}},),
        observed=20,
        calm=4,
    ),
    Incident(
        name="an HPA on memory never scales down, because the heap keeps what the load has needed",
        source="https://github.com/cloudfoundry/app-autoscaler/issues/745",
        parts={
            "hpa": {"metrics": [utilization("memory", 70)]},
            "workload": HEAP,
            "load": [{"type": "Steady", "rate": 20}, {"type": "Spike", "at": "5m", "peak": 80, "hold": "5m"}],
        },
        without={"workload": {"usage": QUICK_HEAP}},
        # A garbage collector that gives memory back.
        helped=({"workload": {"usage": {"memory": {**QUICK_HEAP["memory"], "releaseAfter": "5m"}}}},),
        figure=last_replicas,
        observed=17,
        calm=2,
    ),
    Incident(
        name="a rollout without load scales up, because the HPA counts the pods of the surge, which grows with it",
        source="https://github.com/kubernetes/kubernetes/issues/98914",
        # The strategy of the report, which is the default: 25 % of both.
        parts={
            "hpa": {"metrics": [utilization("memory", 70)]},
            "workload": ROLLED,
            "load": {"type": "Steady", "rate": 1},
        },
        without={"workload": {"rollouts": []}},
        helped=(
            {"workload": {"rollouts": [{"at": "5m", "maxSurge": 0}]}},
            {"hpa": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 180}}}},
        ),
        observed=20,
        calm=6,
    ),
    Incident(
        name="a new pod gets no load, because connections last, and the mean of both pods is below the target",
        source="https://github.com/cilium/cilium/issues/12551",
        parts={
            "hpa": {"minReplicas": 1},
            "workload": {
                "capacity": 20,
                "replicas": 1,
                "requests": {"cpu": "500m"},
                "connections": {"lifetime": "24h"},
            },
            "load": [{"type": "Steady", "rate": 10}, {"type": "Spike", "at": "5m", "peak": 20, "hold": "35m"}],
        },
        without={"workload": {"connections": None}},
        # A maximum age of connections, as elixir-grpc/grpc#355 and istio/istio#22635 ask for.
        helped=({"workload": {"connections": {"lifetime": "1m"}}},),
        figure=last_served,
        observed=20,
        calm=30,
    ),
    Incident(
        name="a pod that is replaced finds no room, because another workload has been scaled up and fills the nodes",
        source="https://github.com/kubernetes/autoscaler/issues/1946",
        parts={**FILLING, "node_groups": [NODES], "neighbors": [SERVICE]},
        without={"neighbors": [{**SERVICE, "workload": {**SERVICE["workload"], "failures": []}}]},
        helped=({"neighbors": [{**SERVICE, "workload": {**SERVICE["workload"], "priority": 1000}}]},),
        figure=neighbors_ready,
        observed=0,
        calm=1,
    ),
    Incident(
        name="pods wait for nodes that never join, until the autoscaler gives them up and takes another group",
        source="https://github.com/kubernetes/autoscaler/issues/3490",
        parts={**FILLING, "node_groups": [SPOT, MORE]},
        without={"node_groups": [{**SPOT, "bootFailures": []}, MORE]},
        helped=({"node_groups": [{**SPOT, "bootTimeout": "5m"}, MORE]},),
        figure=waiting_after_fifteen_minutes,
        observed=6,
        calm=0,
    ),
    Incident(
        name="no node can be had in the only zone of a node group, and pods wait",
        source="https://github.com/2i2c-org/infrastructure/issues/3334",
        parts={**FILLING, "node_groups": [ZONAL], "nodes": OUTAGE},
        without={"nodes": {}},
        helped=({"node_groups": [ZONAL, {**ZONAL, "name": "zone-b", "zone": "b"}]},),
        figure=last_waiting,
        observed=6,
        calm=0,
    ),
    Incident(
        name="removing a node takes all pods of a service at once, because they are on the same node",
        source="https://github.com/kubernetes/autoscaler/issues/2045",
        parts={
            "hpa": {"maxReplicas": 2},
            "workload": ON_NODES,
            "load": {"type": "Steady", "rate": 10},
            "node_groups": [REPLACED],
        },
        without={"node_groups": [{**REPLACED, "scaleDown": {"enabled": False}}]},
        helped=({"workload": {"disruptionBudget": {"minAvailable": 1}}},),
        figure=fewest_ready,
        observed=0,
        calm=1,
    ),
    Incident(
        name="two workloads of a recorded cluster may scale up to more pods than all of its nodes can take",
        source="https://github.com/n8n-io/terraform-aws-n8n/issues/51",
        parts=DUMPED,
        without={"node_groups": []},
        helped=(read_from_cluster(6, 8),),
        figure=all_waiting,
        observed=12,
        calm=0,
    ),
)


def simulated(incident: Incident, changes: Parts) -> SimulationResult:
    """Simulate an incident with some parts changed."""
    parts = {**incident.parts, **changes}
    hpa = {**incident.parts.get("hpa", {}), **changes.get("hpa", {})}
    manifest: Manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 20,
            "metrics": [utilization("cpu", 80)],
            **hpa,
        },
    }
    workload = {**incident.parts["workload"], **changes.get("workload", {})}
    names = ("metrics", "controller", "node_groups", "nodes", "neighbors")
    settings = {name: parts[name] for name in names if name in parts}
    return simulate_autoscaler(manifest, workload=workload, load=parts["load"], duration="40m", **settings)


@pytest.mark.parametrize("incident", [pytest.param(each, id=each.name) for each in INCIDENTS])
def test_what_was_observed_appears_and_what_helped_helps(incident: Incident) -> None:
    observed, *calm = (
        incident.figure(simulated(incident, changes)) for changes in ({}, incident.without, *incident.helped)
    )

    assert observed == incident.observed
    assert calm == [incident.calm] * (1 + len(incident.helped))


def test_the_page_lists_the_incidents() -> None:
    listed = [(name, source) for name, _, source in rows("docs/autoscaling/simulation-model.md", "incident")]

    assert listed == [(each.name, f"<{each.source}>") for each in INCIDENTS]
