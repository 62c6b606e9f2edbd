"""Other releases and feature gates: which fields are stored, which are dropped, and which are not known."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import BadRequestError, ConfigError, InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import struct
from ocf.schema.releases import GATED_FIELDS, Release, read_gates
from ocf.testing.envtest.binaries import Program, Programs
from ocf_server import EmbeddedCluster
from ocf_server.api.write_options import FieldValidation

NAMESPACE: Final = "default"
NO_POD_RESOURCES: Final = {"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False}
"""A gate that another one needs, which is on by default, and that one."""
LABELS: Final = {"app": "web"}
AUTOSCALER: Final[Manifest] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 0,
        "maxReplicas": 3,
        "metrics": [
            {"type": "External", "external": {"metric": {"name": "a"}, "target": {"type": "Value", "value": "1"}}}
        ],
    },
}


def deployment(**fields: Any) -> Manifest:
    pod_spec = {"containers": [{"name": "web", "image": "web:1"}], **fields}
    template = {"metadata": {"labels": LABELS}, "spec": pod_spec}
    spec = {"selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": "web", "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("version", "gates", "is_known", "is_kept"),
    [
        pytest.param("1.31", {}, False, False, id="a release without the field"),
        pytest.param("1.33", {}, True, False, id="a release whose gate is off"),
        pytest.param("1.33", {"PodLevelResources": True}, True, True, id="a gate that is on"),
        pytest.param("1.36", {}, True, True, id="a release whose gate is on"),
        pytest.param("1.36", NO_POD_RESOURCES, True, False, id="a gate that is off"),
        pytest.param("1.33", {"AllAlpha": True}, True, True, id="all gates of a stage"),
        pytest.param("1.33", {"AllAlpha": True, "PodLevelResources": False}, True, False, id="all but one"),
    ],
)
async def test_only_a_field_that_the_release_lacks_is_reported(
    version: str, gates: Mapping[str, bool], *, is_known: bool, is_kept: bool
) -> None:
    cluster = EmbeddedCluster(kubernetes_version=version, feature_gates=gates)
    manifest = deployment(resources={"limits": {"cpu": "1"}})
    warnings: list[str] = []
    await cluster.checking(FieldValidation.WARN, warn=warnings.append).create(manifest, field_manager="test")
    stored = await cluster.get(ObjectKey.of(manifest))
    assert warnings == ([] if is_known else ['unknown field "spec.template.spec.resources"'])
    assert ("resources" in stored["spec"]["template"]["spec"]) is is_kept
    other = {**manifest, "metadata": {"name": "other", "namespace": NAMESPACE}}
    if is_known:
        await cluster.create(other, field_manager="test", strict=True)
    else:
        with pytest.raises(BadRequestError, match=r'unknown field "spec\.template\.spec\.resources"'):
            await cluster.create(other, field_manager="test", strict=True)


async def test_an_update_keeps_a_disabled_field_that_is_stored() -> None:
    cluster = EmbeddedCluster(feature_gates=NO_POD_RESOURCES)
    live = deployment(resources={"limits": {"cpu": "1"}})
    await cluster.restore([live])
    changed = deployment(resources={"limits": {"cpu": "2"}})
    updated = await cluster.update(changed, field_manager="test")
    assert updated["spec"]["template"]["spec"]["resources"]["limits"] == {"cpu": "2"}


@pytest.mark.parametrize(
    ("version", "api_version", "kind", "is_served"),
    [
        ("1.32", "networking.k8s.io/v1", "ServiceCIDR", False),
        ("1.33", "networking.k8s.io/v1", "ServiceCIDR", True),
        ("1.33", "resource.k8s.io/v1", "ResourceClaim", False),
        ("1.34", "resource.k8s.io/v1", "ResourceClaim", True),
        ("1.35", "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", False),
        ("1.36", "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", True),
    ],
)
async def test_kinds_are_served_since_their_release(
    version: str, api_version: str, kind: str, *, is_served: bool
) -> None:
    cluster = EmbeddedCluster(kubernetes_version=version, system_objects=True)
    if is_served:
        assert (await cluster.list(api_version, kind)).resource_version
    else:
        with pytest.raises(NotFoundError):
            await cluster.list(api_version, kind)


@pytest.mark.parametrize(
    ("version", "gates", "is_served"),
    [
        ("1.31", {"InPlacePodVerticalScaling": True}, False),
        ("1.32", {}, False),
        ("1.32", {"InPlacePodVerticalScaling": True}, True),
        ("1.33", {}, True),
        ("1.33", {"InPlacePodVerticalScaling": False}, False),
    ],
)
async def test_pods_are_resized_if_the_release_can(version: str, gates: Mapping[str, bool], *, is_served: bool) -> None:
    cluster = EmbeddedCluster(kubernetes_version=version, feature_gates=gates)
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": NAMESPACE}}
    limits = {"limits": {"cpu": "1"}}
    spec = {"containers": [{"name": "web", "image": "web:1", "resources": limits}]}
    key = ObjectKey.of(await cluster.create({**head, "spec": spec}, field_manager="test"))
    patch = {"spec": {"containers": [{"name": "web", "resources": {"limits": {"cpu": "2"}}}]}}
    options = PatchOptions(patch_type=PatchType.STRATEGIC_MERGE, field_manager="test", subresource=Subresource.RESIZE)
    if is_served:
        resized = await cluster.patch(key, patch, options)
        assert resized["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2"}
    else:
        with pytest.raises(NotFoundError):
            await cluster.patch(key, patch, options)


@pytest.mark.parametrize(("gates", "is_allowed"), [({}, False), ({"HPAScaleToZero": True}, True)])
async def test_an_autoscaler_may_scale_to_zero_if_the_gate_is_on(
    gates: Mapping[str, bool], *, is_allowed: bool
) -> None:
    cluster = EmbeddedCluster(feature_gates=gates)
    if is_allowed:
        assert (await cluster.create(AUTOSCALER, field_manager="test"))["spec"]["minReplicas"] == 0
    else:
        with pytest.raises(InvalidError, match="minReplicas"):
            await cluster.create(AUTOSCALER, field_manager="test")


@pytest.mark.parametrize(
    ("version", "gates", "problem"),
    [
        pytest.param(
            "1.29", {}, "Kubernetes 1.29 is not known to the embedded API server, must be 1.30 to 1.36", id="old"
        ),
        pytest.param("1.99.1", {}, "Kubernetes 1.99.1 is not known .*, must be 1.30 to 1.36", id="new"),
        pytest.param("newest", {}, "'newest' is not a version of Kubernetes: write for example 1.36", id="a word"),
        pytest.param("1.33", {"EnvFile": True}, 'Kubernetes 1.33 has no feature gate "EnvFile"', id="a later gate"),
        pytest.param("", {"EnvFile": True}, 'has no feature gate "EnvFile": did you mean EnvFiles?', id="misspelt"),
        pytest.param(
            "", {"a": True}, "the gates with an effect .* are .*, EnvFiles, .*, PodLevelResources, ", id="known ones"
        ),
        pytest.param(
            "1.36",
            {"PodLevelResources": False},
            "InPlacePodLevelResourcesVerticalScaling is on and needs PodLevelResources: set",
            id="needed",
        ),
        pytest.param(
            "1.36", {"ImageVolume": False}, "ImageVolume cannot be false: it is locked in Kubernetes 1.36", id="locked"
        ),
    ],
)
def test_what_is_not_known_is_an_error_that_names_what_is(
    version: str, gates: Mapping[str, bool], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem.replace("?", r"\?")):
        EmbeddedCluster(kubernetes_version=version, feature_gates=gates)


def test_a_gate_may_be_set_to_its_locked_value() -> None:
    assert Release.of("1.36", {"ImageVolume": True}) == Release()


@pytest.mark.parametrize(
    ("texts", "gates"),
    [
        pytest.param([], {}, id="none"),
        pytest.param([""], {}, id="an empty flag"),
        pytest.param(["A=true,B=F", "C=1"], {"A": True, "B": False, "C": True}, id="several flags"),
        pytest.param(["A=true", "A=false"], {"A": False}, id="the last one counts"),
        pytest.param(["kube:A=true", " kube : B = f "], {"A": True, "B": False}, id="the component, and spaces"),
        pytest.param(["A=true,, ,"], {"A": True}, id="empty parts"),
    ],
)
def test_flags_of_gates_are_read_as_kube_apiserver_does(texts: list[str], gates: dict[str, bool]) -> None:
    assert read_gates(texts) == gates


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((text, "write NAME=true or NAME=false") for text in ("A", "A=", "=true", "A=yes", "A=true;B=true", "kube:A")),
        ("wardle:B=true", 'of the component "wardle": only kube is known'),
        ("kube:A=true,B=true", "with and without kube: write it before each gate, or before none"),
    ],
)
def test_a_malformed_flag_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_gates([text])


def test_each_gated_field_is_one_of_the_newest_release() -> None:
    for gate, fields in GATED_FIELDS.items():
        assert Release().enabled(gate) in (True, False)
        for field in fields:
            name, _, key = field.rpartition(".")
            assert struct(name).fields[key].gate == gate


def test_the_gates_are_those_of_the_real_program(envtest_programs: Programs) -> None:
    program = envtest_programs.path(Program.API_SERVER)
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout  # noqa: S603 (built here)
    shown = re.findall(r"kube:(\w+)=true\|false \((\w+) - default=(\w+)\)", text)
    gates = {name: (stage, default == "true") for name, stage, default in shown if name not in ("AllAlpha", "AllBeta")}
    assert len(gates) > 100
    assert {name: Release().enabled(name) for name in gates} == {name: on for name, (_, on) in gates.items()}
    alpha = Release.of("", {"AllAlpha": True})
    assert {name for name in gates if alpha.enabled(name)} == {
        name for name, (stage, on) in gates.items() if on or stage == "ALPHA"
    }
