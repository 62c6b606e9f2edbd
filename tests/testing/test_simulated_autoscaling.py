"""Simulations of the autoscaler of a component."""

from collections.abc import Mapping
from typing import Any

import pytest

from ocf import component
from ocf.errors import ConfigError
from ocf.primitives import deployment, hpa, unstructured
from ocf.simulation import InputError
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.node_groups import NodeGroupSettings
from ocf.testing import assert_measures, simulate_autoscaler
from tests.simulation.engine.nodes.clusters import group_of
from tests.simulation.engine.scenarios import hpa_of


def simulated(*groups: NodeGroupSettings | Mapping[str, Any], **settings: Any) -> SimulationResult:
    """Simulate ten minutes in which four pods become eight; a node of `group_of` holds four."""
    load = [{"type": "Steps", "steps": [{"at": "0s", "rate": 20}, {"at": "2m", "rate": 40}]}]
    workload = {"capacity": 10, "replicas": 4, "requests": {"cpu": "1", "memory": "1Gi"}}
    return simulate_autoscaler(
        hpa_of(maxReplicas=8), workload=workload, load=load, node_groups=groups, duration="10m", **settings
    )


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group_of(), id="a mapping"),
        pytest.param(NodeGroupSettings.model_validate(group_of()), id="a model"),
    ],
)
def test_pods_wait_for_nodes_of_the_groups(group: NodeGroupSettings | Mapping[str, Any]) -> None:
    found = simulated(group)

    assert [(each.source, each.before, each.after) for each in found.node_actions] == [("workers", 1, 2)]
    assert_measures(found, "nodes_max == 2 and nodes_added == 1 and pending_pod_seconds >= 4 * 60 and pending_time > 0")


def test_an_expectation_of_nodes_that_does_not_hold_has_the_values() -> None:
    with pytest.raises(AssertionError, match=r"expected nodes_max < 2: nodes_max is 2$"):
        assert_measures(simulated(group_of()), "nodes_max < 2")


def test_settings_of_the_controller_of_node_groups_are_those_of_the_scenario() -> None:
    slow = simulated(group_of(), nodes={"syncPeriod": "1m"})

    assert slow.node_actions[0].time % 60 == 0
    assert slow.measures["pending_pod_seconds"] > simulated(group_of()).measures["pending_pod_seconds"]


def test_without_node_groups_there_are_no_measures_of_nodes() -> None:
    with pytest.raises(ConfigError, match="the run has no nodes_max: the scenario has no node groups"):
        assert_measures(simulated(), "nodes_max == 0")


def test_a_group_whose_nodes_are_too_small_is_an_error() -> None:
    types = [{"name": "tiny", "cpu": "500m", "memory": "16Gi"}]

    with pytest.raises(InputError, match="nodeGroups"):
        simulated(group_of(instanceTypes=types))


@pytest.mark.parametrize("foreign", [False, True], ids=["alone", "after a Deployment of another group"])
def test_pods_of_a_component_are_placed_by_all_requests_of_their_deployment(*, foreign: bool) -> None:
    requests = {"cpu": "500m", "memory": "8Gi"}
    spec = {"containers": [{"name": "app", "image": "web:1", "resources": {"requests": requests}}]}
    labels = {"app": "web"}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    autoscaler = hpa_of(minReplicas=6)
    autoscaler["metadata"]["namespace"] = "shop"
    builder = component.Builder("web", condition_type="WebReady")
    if foreign:
        other = {"apiVersion": "other.example.com/v1", "kind": "Deployment", "metadata": web["metadata"]}
        builder = builder.with_resource(unstructured.StaticBuilder(other).build())
    built = (
        builder.with_resource(deployment.Builder(web).build()).with_resource(hpa.Builder(autoscaler).build()).build()
    )
    found = simulate_autoscaler(
        built,
        workload={"capacity": 10},
        load={"type": "Steady", "rate": 10},
        node_groups=[group_of()],
        duration="5m",
    )

    # 16Gi of a node are two pods; its cpu would be eight.
    assert_measures(found, "nodes_max == 3 and node_memory_utilization == 1 and node_cpu_utilization == 0.25")
