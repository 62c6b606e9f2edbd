"""The diagram of what an operator's code declares, alone and with what was observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from ocf.component import Builder, Component, Participation, depends_on
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.feature import BooleanGate, VersionGate
from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerSnapshot, explain_owner
from ocf.ownership.diagram import Box, Diagram, diagram_of
from ocf.ownership.tree import State
from ocf.primitives import deployment, hpa, secret
from ocf.runtime.component_diagram import component_diagram, with_declared
from tests.ownership.situations import SHOP
from tests.ownership.test_picture import applied
from tests.ownership.world import NOW, obj, pod, workload

BASE: Final = """
metadata: {name: web, namespace: town}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: web}]}
"""
PASSWORD: Final = Data[str]("password")


def web() -> deployment.Builder:
    return deployment.Builder(BASE)


def login() -> secret.Builder:
    return secret.Builder("metadata: {name: login, namespace: town}").extract_into(PASSWORD, lambda _: "x")


def mutation(name: str, gate: Any = None) -> deployment.Mutation:
    return deployment.Mutation(name, lambda m: m.ensure_replicas(3), feature=gate)


def guarded(answer: Callable[[], StatusReport[GuardStatus]]) -> deployment.Builder:
    return web().with_guard(lambda _: answer())


def failing() -> StatusReport[GuardStatus]:
    raise ValueError("no such plan")


def component(*resources: Any, name: str = "web", **options: Any) -> Component:
    builder = Builder(name, condition_type=f"{name.capitalize()}Ready")
    for one in resources:
        builder.with_resource(one, **options)
    return builder.build()


def notes(resource: Any, **options: Any) -> tuple[str, ...]:
    [_, _, *boxes] = component_diagram("Shop corner", [component(*resource, **options)]).root.walk()
    return boxes[-1].notes


@pytest.mark.parametrize(
    ("resources", "options", "expected"),
    [
        pytest.param([web()], {}, [], id="nothing special"),
        pytest.param(
            [web().with_mutation(mutation("size"), mutation("more", VersionGate("2.4.0", ">= 2")))],
            {},
            ["mutations: size, more"],
            id="open gates",
        ),
        pytest.param(
            [web().with_mutation(mutation("size", VersionGate("2.3.0", ">= 2.4")))],
            {},
            ['mutation size: gate closed, version 2.3.0 is not ">= 2.4"'],
            id="a version",
        ),
        pytest.param(
            [web().with_mutation(mutation("size", BooleanGate(False)))],
            {},
            ["mutation size: gate closed, switched off"],
            id="a switch",
        ),
        pytest.param(
            [web().with_mutation(mutation("size", VersionGate("newest", ">= 2.4")))],
            {},
            ["mutations: a gate cannot be evaluated: "],
            id="a gate that fails",
        ),
        pytest.param([login(), web().with_data_guard(PASSWORD)], {}, ["needs password"], id="data that it needs"),
        pytest.param([login(), web().with_optional_data(PASSWORD)], {}, ["reads password"], id="data that it reads"),
        pytest.param([login()], {}, ["fills password"], id="data that it fills"),
        pytest.param(
            [login(), web().with_data_guard(PASSWORD).with_guard(lambda _: failing())],
            {},
            ["needs password", "guard: asked once its data is there"],
            id="a guard behind data",
        ),
        pytest.param([guarded(failing)], {}, ["guard: fails: "], id="a guard that fails"),
        pytest.param(
            [guarded(lambda: StatusReport(GuardStatus.UNBLOCKED))], {}, ["guard: open"], id="a guard that is open"
        ),
        pytest.param(
            [guarded(lambda: StatusReport(GuardStatus.BLOCKED, "no license"))],
            {},
            ["guard: blocked: no license"],
            id="a guard that blocks",
        ),
        pytest.param([web()], {"gated_by": BooleanGate(False)}, ["gate: closed: the object is deleted"], id="its gate"),
        pytest.param([web()], {"delete_when": True}, ["is deleted"], id="deleted"),
        pytest.param([web()], {"orphan_when": True}, ["is released, and kept"], id="orphaned"),
        pytest.param(
            [web()],
            {"read_only": True, "block_on_absence": True},
            ["only read", "blocks while it does not exist"],
            id="only read",
        ),
        pytest.param(
            [web()],
            {"participation": Participation.AUXILIARY, "independent": True},
            ["does not count for the condition", "reconciled beside the others"],
            id="beside the others",
        ),
    ],
)
def test_a_resource_has_notes(resources: Sequence[Any], options: dict[str, Any], expected: list[str]) -> None:
    found = notes(resources, **options)
    assert len(found) == len(expected)
    assert all(one.startswith(start) for one, start in zip(found, expected, strict=True))


def arrows(found: Diagram) -> list[str]:
    names = {box.identity: box.name for box in found.root.walk()}
    return [f"{names[one.source]} -{one.label}-> {names[one.target]}" for one in found.arrows]


def test_components_are_in_order_with_their_gates_and_prerequisites() -> None:
    first = component(login(), name="database")
    gate = VersionGate("1.0.0", ">= 2")
    second = (
        Builder("web", condition_type="WebReady")
        .with_resource(web())
        .with_prerequisite(depends_on("DatabaseReady"))
        .with_feature_gate(gate)
        .suspend(True)
        .build()
    )
    found = component_diagram("Shop corner", [first, second])
    assert [box.title for box in found.root.walk()] == [
        "Shop corner",
        "1. component database",
        "1. Secret login",
        "2. component web",
        "1. Deployment web",
    ]
    assert arrows(found) == ["component database -DatabaseReady-> component web"]
    assert found.root.children[1].notes == (
        "condition WebReady",
        "waits for condition DatabaseReady",
        'gate: closed, version 1.0.0 is not ">= 2": its objects are deleted',
        "suspended",
    )


def test_data_and_autoscalers_are_arrows() -> None:
    target = "{apiVersion: apps/v1, kind: Deployment, name: web}"
    scaler = hpa.Builder(
        f"metadata: {{name: web, namespace: town}}\nspec: {{scaleTargetRef: {target}, maxReplicas: 3}}"
    )
    found = component_diagram("Shop corner", [component(login(), web().with_optional_data(PASSWORD), scaler)])
    assert arrows(found) == [
        "Secret login -password-> Deployment web",
        "HorizontalPodAutoscaler web -scales-> Deployment web",
    ]
    assert [one.is_required for one in found.arrows] == [False, True]


def test_an_object_of_two_components_has_two_boxes_and_an_arrow() -> None:
    reads = component(web(), name="other", read_only=True)
    found = component_diagram("Shop corner", [reads, component(web())])
    assert len({box.identity for box in found.root.walk()}) == 5
    assert arrows(found) == ["Deployment web -read-> Deployment web"]
    source = {box.identity: box for box in found.root.walk()}[found.arrows[0].source]
    assert "only read" not in source.notes


def observed(*objects: Manifest) -> Diagram:
    return diagram_of(explain_owner(OwnerSnapshot(objects=objects, now=NOW), ObjectKey.of(objects[0])))


def named(found: Diagram, name: str) -> Box:
    [box] = [box for box in found.root.walk() if box.name == name]
    return box


def test_what_is_declared_has_the_state_that_was_observed() -> None:
    live = applied(workload("Deployment", SHOP))
    replicas = workload("ReplicaSet", live, name="web-7d4")
    former = applied(obj("v1", "ConfigMap", "former", SHOP))
    crashed = pod(replicas, "web-x")
    other = obj("v1", "Service", "unrelated", SHOP)
    declared = component_diagram("Shop corner", [component(login(), web().with_data_guard(PASSWORD))])
    found = with_declared(observed(SHOP, live, replicas, crashed, former, other), declared)
    assert [box.title for box in found.root.walk()] == [
        "Shop corner",
        "1. component web",
        "1. Secret login",
        "2. Deployment web",
        "ReplicaSet web-7d4",
        "Pod web-x",
        "ConfigMap former",
        "Service unrelated",
    ]
    assert (named(found, "Secret login").state, named(found, "Secret login").notes[-1]) == (None, "does not exist")
    assert (named(found, "Deployment web").state, named(found, "Deployment web").notes) == (
        State.PROGRESSING,
        ("needs password",),
    )
    assert arrows(found) == ["Secret login -password-> Deployment web"]
    assert "does not exist" not in named(found, "component web").notes


def test_what_another_component_applied_before_is_where_it_is_declared() -> None:
    moved = applied(workload("Deployment", SHOP), "former")
    found = with_declared(observed(SHOP, moved), component_diagram("Shop corner", [component(web())]))
    assert [box.name for box in found.root.walk()] == [
        "Shop corner",
        "component web",
        "Deployment web",
        "component former",
    ]
    assert named(found, "component web").state is None
