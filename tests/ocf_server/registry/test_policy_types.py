"""Type errors of policies, as kube-controller-manager reports them in the status."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import pytest

from ocf.cluster import Cluster
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import ApiResource, builtin_plural
from ocf.testing import VirtualClock
from ocf.testing.envtest import ControlPlane
from ocf.testing.plugin import RunControllers
from ocf_server import ControllerSettings, EmbeddedCluster
from ocf_server.apiextensions.served_kinds import established
from ocf_server.registry.policy_types import type_warnings
from tests.support import definition_of, eventually

API: Final = "admissionregistration.k8s.io/v1"
CONTROLLER: Final = "validatingadmissionpolicy-status-controller"
TEXT: Final = {"type": "string"}
SCHEMA: Final[Manifest] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "name": TEXT,
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "either": {"x-kubernetes-int-or-string": True},
                "named": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": TEXT}}},
                "items": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
            },
        }
    },
}
DEFINITION: Final = definition_of("Typed", "types.example.com", SCHEMA)


async def definition() -> Manifest:
    """Return the definition as a server has stored it."""
    cluster = EmbeddedCluster()
    await cluster.create(DEFINITION, field_manager="test")
    return await cluster.get(ObjectKey.of(DEFINITION))


STORED: Final = asyncio.run(definition())


def find(group: str, version: str, plural: str) -> ApiResource | None:
    if group == "types.example.com":
        return next((one for one in established(STORED) if (one.version, one.plural) == (version, plural)), None)
    return builtin_plural(group, version, plural)


def rule(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [*resources]}


DEPLOYMENTS: Final = rule("apps", "deployments")
TYPED: Final = rule("types.example.com", "typeds")


def spec(*expressions: str, rules: tuple[Mapping[str, Any], ...] = (DEPLOYMENTS,), **more: Any) -> dict[str, Any]:
    validations = [{"expression": text} for text in expressions]
    return {"matchConstraints": {"resourceRules": [*rules]}, "validations": validations, **more}


CASES: Final[dict[str, dict[str, Any]]] = {
    "right": spec("object.spec.replicas > 1", "object.metadata.labels.app == 'a'", "has(oldObject.spec.paused)"),
    "misspelt": spec("object.spec.replcas > 1", "has(object.replicas)", "has(oldObject.spec.replcas)"),
    "below-a-list": spec("object.spec.template.spec.containers.all(c, c.imag != '')"),
    "a-wrong-type": spec("object.spec.replicas == '5'"),
    "two-kinds": spec("object.spec.strategy.type == 'x'", rules=(rule("apps", "replicasets", "deployments"),)),
    "wildcards": spec("object.spec.nothing == 'x'", rules=(rule("*", "deployments"), rule("apps", "*"))),
    "a-subresource": spec("object.nothing == 'x'", rules=(rule("apps", "deployments/scale"),)),
    "an-unknown-kind": spec("object.nothing == 'x'", rules=(rule("nowhere.example.com", "deployments"),)),
    "a-message": {
        **spec("true"),
        "validations": [{"expression": "true", "messageExpression": "'a' + object.spec.nothing"}],
    },
    "a-variable": spec("variables.few", variables=[{"name": "few", "expression": "object.spec.replcas < 3"}]),
    "a-right-variable": spec("variables.few == 'a'", variables=[{"name": "few", "expression": "object.spec.replicas"}]),
    "core": spec("object.data.a == 'x'", "object.dat.a == 'x'", rules=(rule("", "configmaps"),)),
    "scalars": spec(
        "object.metadata.creationTimestamp == 'a'",
        "object.metadata.generation == 'a'",
        "object.spec.containers[0].livenessProbe.httpGet.port == 1",
        "object.spec.containers[0].stdin == 'a'",
        rules=(rule("", "pods"),),
    ),
    "bytes": spec("object.data.a == 'x'", "object.stringData.a == 1", rules=(rule("", "secrets"),)),
    "custom": spec(
        "object.spec.sise > 1",
        "object.spec.size == 'a'",
        "object.spec.any.thing == 'a'",
        "object.spec.either == 1",
        "object.spec.named.x.b == 'a'",
        "object.spec.items[0].b == 'a'",
        "object.metadata.labels.a == 'a'",
        "object.metadata.nam == 'a'",
        "object.status.x == 'a'",
        rules=(TYPED,),
    ),
}


async def reported(cluster: Cluster, content: dict[str, Any]) -> list[dict[str, str]]:
    """Return what the controller reports of a new policy."""
    head = {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"generateName": "typed-"}}
    key = ObjectKey.of(await cluster.create({**head, "spec": content}, field_manager="test"))
    live = await eventually(partial(cluster.get, key), lambda one: "typeChecking" in one.get("status", {}))
    await cluster.delete(key)
    found: list[dict[str, str]] = live["status"]["typeChecking"].get("expressionWarnings", [])
    return found


async def test_the_real_controller_reports_the_same(
    envtest_plane: ControlPlane, envtest_controllers: RunControllers
) -> None:
    # The status has only those of validations.
    ours = {
        name: [one for one in type_warnings({"spec": content}, find) if "validations" in one["fieldRef"]]
        for name, content in CASES.items()
    }
    envtest_plane.install_crds(DEFINITION)
    with envtest_controllers(CONTROLLER):
        async with await envtest_plane.cluster() as cluster:
            # It learns of the definition a moment later, and checks each policy only once.
            await eventually(partial(reported, cluster, CASES["custom"]))
            seen = {name: await reported(cluster, content) for name, content in CASES.items()}
    assert ours == {name: [*of_named_groups(found, CASES[name])] for name, found in seen.items()}


@pytest.mark.parametrize("name", CASES)
async def test_the_controller_writes_the_status_of_each_generation(name: str) -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now)
    await cluster.create(DEFINITION, field_manager="test")
    controllers = cluster.controllers(ControllerSettings(names=[CONTROLLER], nodes=0))
    head = {"apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "typed"}}
    key = ObjectKey.of(await cluster.create({**head, "spec": CASES["right"]}, field_manager="test"))
    await controllers.settle()
    assert (await cluster.get(key))["status"] == {"observedGeneration": 1, "typeChecking": {}}

    changed = await cluster.apply({**head, "spec": CASES[name]}, field_manager="test", force=True)
    await controllers.settle()
    live = await cluster.get(key)
    wanted = [one for one in type_warnings({"spec": CASES[name]}, find) if "validations" in one["fieldRef"]]
    assert live["status"] == {
        "observedGeneration": changed["metadata"]["generation"],
        "typeChecking": {"expressionWarnings": wanted} if wanted else {},
    }
    entries = [one for one in live["metadata"]["managedFields"] if one["manager"] == CONTROLLER]
    assert [(one["operation"], one["subresource"]) for one in entries] == [("Apply", "status")]
    version = live["metadata"]["resourceVersion"]
    await controllers.settle()
    assert (await cluster.get(key))["metadata"]["resourceVersion"] == version


def of_named_groups(found: list[dict[str, str]], content: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield warnings without their parts about kinds of other groups, which other tests have defined.

    The empty group stands for all groups that have a resource of the name.
    """
    groups = {group for one in content["matchConstraints"]["resourceRules"] for group in one["apiGroups"]}
    for one in found:
        parts = re.split(r"(?m)^(?=\S*/\w+, Kind=)", one["warning"])
        text = "".join(part for part in parts if part.partition("/")[0] in groups)
        if text:
            # The part after it leaves an empty line.
            yield {**one, "warning": f"{text.rstrip()}\n"}


def places(content: dict[str, Any]) -> list[str]:
    return [one["fieldRef"] for one in type_warnings({"spec": content}, find)]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("right", []),
        (
            "misspelt",
            ["spec.validations[0].expression", "spec.validations[1].expression", "spec.validations[2].expression"],
        ),
        ("wildcards", []),
        ("a-subresource", []),
        ("a-message", ["spec.validations[0].messageExpression"]),
        ("a-variable", ["spec.variables[0].expression"]),
    ],
)
def test_the_place_of_each_misspelt_field(name: str, wanted: list[str]) -> None:
    assert places(CASES[name]) == wanted


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("matchConditions", {"name": "a", "expression": "object.spec.replcas > 1"}),
        ("auditAnnotations", {"key": "a", "valueExpression": "string(object.spec.replcas)"}),
        (
            "mutations",
            {"applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: object.spec.replcas}}"}},
        ),
        ("mutations", {"jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/a', value: object.spec.replcas}]"}}),
    ],
)
def test_every_expression_is_checked(part: str, value: dict[str, Any]) -> None:
    (found,) = type_warnings({"spec": {**spec("true"), part: [value]}}, find)
    assert found["fieldRef"].startswith(f"spec.{part}[0].")
    assert "undefined field 'replcas'" in found["warning"]


@pytest.mark.parametrize(
    ("expression", "rules"),
    [
        pytest.param("object.spec.containers[0].resources.limits['cpu'] == '1'", rule("", "pods"), id="quantities"),
        pytest.param(
            "object.spec.versions[0].schema.openAPIV3Schema.properties.a.type == 'a'",
            rule("apiextensions.k8s.io", "customresourcedefinitions"),
            id="a struct that contains itself",
        ),
    ],
)
def test_what_the_real_controller_reports_by_mistake_is_right(expression: str, rules: dict[str, Any]) -> None:
    assert places(spec(expression, rules=(rules,))) == []
