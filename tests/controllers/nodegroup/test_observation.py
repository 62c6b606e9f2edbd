"""What the algorithm sees: nodes in flight, nodes that are leaving, and which Node belongs to which machine."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.controllers.nodegroup.observation import ClusterView, view_of
from ocf.nodegroups import Catalog, Machine, MachineState
from ocf.objects import Manifest
from tests.controllers.nodegroup.conftest import API, SMALL

LABEL: Final = "autoscaling.ocf.dev/node-group"
GROUP: Final[Manifest] = {
    "apiVersion": API,
    "kind": "NodeGroup",
    "metadata": {"name": "workers", "namespace": "default"},
    "spec": {
        "minNodes": 0,
        "maxNodes": 5,
        "datacenterID": "fra",
        "offeringIDs": ["small"],
        "labels": {"tier": "web"},
    },
}


def node(name: str, *, ready: bool = True, **spec: Any) -> Manifest:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"conditions": conditions, "allocatable": {"cpu": "1", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def vpsie_node(phase: str, instance_type: str = "small", *, deleted: bool = False, **status: Any) -> Manifest:
    metadata = {"name": "workers-1", "namespace": "default"}
    return {
        "apiVersion": API,
        "kind": "VPSieNode",
        "metadata": {**metadata, **({"deletionTimestamp": "2026-01-01T12:00:00Z"} if deleted else {})},
        "spec": {"nodeGroupName": "workers", "instanceType": instance_type, "datacenterID": "fra"},
        "status": {"phase": phase, **status},
    }


def seen(*manifests: Manifest) -> dict[str, Any]:
    return dict(view_of([GROUP, *manifests]).snapshot(Catalog.of([SMALL])).nodes)


@pytest.mark.parametrize("phase", ["Pending", "Provisioning", "Joining"])
def test_a_node_on_its_way_looks_like_its_type(phase: str) -> None:
    found = seen(vpsie_node(phase))["workers-1"]
    assert (found.in_flight, found.allocatable.cpu) == (True, 2000)
    assert (found.labels[LABEL], found.labels["tier"]) == ("default.workers", "web")


def test_a_node_of_an_unknown_type_counts_but_takes_nothing() -> None:
    found = seen(vpsie_node("Joining", "huge"))["workers-1"]
    assert (found.in_flight, found.allocatable.cpu, found.labels[LABEL]) == (True, 0, "default.workers")


def test_a_node_that_was_ready_and_is_missing_is_on_its_way_again() -> None:
    assert seen(vpsie_node("Ready", nodeName="n1"))["n1"].in_flight


def test_a_node_counts_for_its_group_before_its_labels_are_set() -> None:
    found = seen(node("n1"), vpsie_node("Ready", nodeName="n1"))["n1"]
    assert (found.in_flight, found.labels[LABEL], found.unschedulable) == (False, "default.workers", False)


DRAIN: Final = {"startedAt": "2026-01-01T12:00:00Z", "phase": "cordon"}


@pytest.mark.parametrize(
    "leaving",
    [
        pytest.param(vpsie_node("Ready", nodeName="n1", drain=DRAIN), id="drain"),
        pytest.param(vpsie_node("Failed", nodeName="n1"), id="failed"),
        pytest.param(vpsie_node("Ready", nodeName="n1", deleted=True), id="deleted"),
    ],
)
def test_a_node_that_is_leaving_takes_no_pods_from_the_decision_on(leaving: Manifest) -> None:
    view = view_of([GROUP, node("n1"), leaving])
    assert view.snapshot(Catalog()).nodes["n1"].unschedulable
    assert view.draining("default/workers") == {"n1"}


def test_a_node_that_is_leaving_while_it_boots_is_not_on_its_way() -> None:
    assert seen(vpsie_node("Joining", deleted=True)) == {}


MACHINE: Final = Machine("m", MachineState.RUNNING)


@pytest.mark.parametrize(
    ("machine", "keeps_names", "expected"),
    [
        pytest.param(Machine("m", MachineState.RUNNING, node_name="n1"), False, "n1", id="by its name"),
        pytest.param(Machine("m", MachineState.RUNNING, provider_id="cloud://2"), False, "n2", id="by its provider id"),
        pytest.param(Machine("m", MachineState.RUNNING, addresses=("10.0.0.3",)), False, "n3", id="by its address"),
        pytest.param(MACHINE, True, "workers-1", id="by the name of its object"),
        pytest.param(MACHINE, False, "", id="not by the name of its object"),
    ],
)
def test_the_node_of_a_machine_is_found(machine: Machine, keeps_names: bool, expected: str) -> None:
    third = node("n3")
    third["status"]["addresses"] = [{"type": "InternalIP", "address": "10.0.0.3"}]
    view: ClusterView = view_of(
        [GROUP, node("n1"), node("n2", providerID="cloud://2"), third, node("workers-1"), vpsie_node("Provisioning")]
    )
    (owner,) = view.nodes.values()
    assert view.index.find(owner, machine, keeps_names=keeps_names) == expected
