"""While nodes start, repeated decisions ask for nothing more, whatever rules pods have about each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.controllers.nodegroup.carry_out import new_node_specs
from ocf.controllers.nodegroup.objects import node_name
from ocf.controllers.nodegroup.observation import ClusterView, view_of
from ocf.controllers.nodegroup.plan import NodeGroupPlan, make_plan
from ocf.nodegroups import Catalog, InstanceType, Offering
from ocf.objects import Manifest, Quantity
from tests.controllers.nodegroup.conftest import API

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
CATALOG: Final = Catalog.of(
    [
        InstanceType(
            "small",
            {"cpu": Quantity.parse(2), "memory": Quantity.parse("8Gi"), "pods": Quantity.parse(110)},
            offerings=(Offering("a", 0.1), Offering("b", 0.1)),
        )
    ]
)


def group(zone: str) -> Manifest:
    spec = {"minNodes": 0, "maxNodes": 20, "datacenterID": zone, "offeringIDs": ["small"]}
    metadata = {"name": f"workers-{zone}", "namespace": "default", "uid": zone}
    return {"apiVersion": API, "kind": "NodeGroup", "metadata": metadata, "spec": spec}


def node(name: str, zone: str, cpu: str = "1") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone}},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def rule(kind: str, key: str, app: str) -> dict[str, Any]:
    """Return the part of a pod's spec with one rule about the pods of an app."""
    selector = {"matchLabels": {"app": app}}
    term = {"topologyKey": key, "labelSelector": selector}
    match kind:
        case "spread":
            constraint = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term}
            return {"topologySpreadConstraints": [constraint]}
        case "affinity":
            return {"affinity": {"podAffinity": {REQUIRED: [term]}}}
        case "anti-affinity":
            return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
        case "volume":
            claim = {"persistentVolumeClaim": {"claimName": f"data-{app}"}}
            return {"volumes": [{"name": "data", **claim}]}
        case _:
            return {}


def claims() -> list[Manifest]:
    """Return a volume in each zone, bound to the claim of an app."""
    found: list[Manifest] = []
    for app, zone in (("x", "a"), ("y", "b")):
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        found += [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": f"data-{app}",
                    "namespace": "shop",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {"volumeName": f"pv-{app}", "accessModes": ["ReadWriteMany"]},
                "status": {"phase": "Bound"},
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"pv-{app}"},
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "claimRef": {"namespace": "shop", "name": f"data-{app}"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                },
                "status": {"phase": "Bound"},
            },
        ]
    return found


@st.composite
def pods(draw: st.DrawFn) -> list[Manifest]:
    found: list[Manifest] = []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["none", "spread", "affinity", "anti-affinity", "volume"]))
        key, about = draw(st.sampled_from([ZONE, HOST])), draw(st.sampled_from("xy"))
        container: dict[str, Any] = {"name": "app", "resources": {"requests": {"cpu": draw(CPU)}}}
        if draw(st.booleans()):
            container["ports"] = [{"containerPort": 80, "hostPort": draw(st.sampled_from([80, 81]))}]
        metadata = {"name": f"p-{number}", "namespace": "shop", "labels": {"app": draw(st.sampled_from("xy"))}}
        spec = {"containers": [container], **rule(kind, key, about)}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return found


CPU: Final = st.sampled_from(["400m", "900m", "1500m"])
NODES: Final = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(
    lambda zones: [node(f"old-{number}", zone) for number, zone in enumerate(zones)]
)


def requested(view: ClusterView, plan: NodeGroupPlan) -> list[Manifest]:
    """Return the objects that the controller creates for a plan."""
    found = []
    for name, decided in plan.groups.items():
        known = view.groups[name]
        assert known.spec is not None
        for number, spec in enumerate(new_node_specs(known.key.name, known.spec, decided)):
            metadata = {"name": node_name(known, NOW, number), "namespace": "default"}
            body = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
            found.append({"apiVersion": API, "kind": "VPSieNode", "metadata": metadata, "spec": body})
    return found


def in_phase(manifest: Manifest, phase: str, **status: Any) -> Manifest:
    return {**manifest, "status": {"phase": phase, **status}}


def added(objects: list[Manifest], seconds: float) -> list[str]:
    plan = make_plan(view_of(objects), CATALOG, NOW + timedelta(seconds=seconds))
    return [decided.text for decided in plan.groups.values() if decided.add]


@pytest.mark.promise("node-groups-booting", runs="100 clusters with rules about zones, nodes, ports and volumes")
@given(pods(), NODES)
def test_nothing_more_is_asked_for_while_nodes_start(waiting: list[Manifest], nodes: list[Manifest]) -> None:
    objects = [group("a"), group("b"), *claims(), *nodes, *waiting]
    view = view_of(objects)
    created = requested(view, make_plan(view, CATALOG, NOW))
    assert added([*objects, *created], 10) == []
    booting = [in_phase(each, "Joining", requestedAt="2026-01-31T12:00:10Z") for each in created]
    assert added([*objects, *booting], 60) == []
    for ready in range(len(created)):
        done = [
            in_phase(each, "Ready", nodeName=each["metadata"]["name"], readyAt="2026-01-31T12:01:30Z")
            for each in created[: ready + 1]
        ]
        joined = [node(each["metadata"]["name"], each["spec"]["datacenterID"], "2") for each in created[: ready + 1]]
        assert added([*objects, *joined, *done, *booting[ready + 1 :]], 100) == []
