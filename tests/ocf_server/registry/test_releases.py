"""Other releases and feature gates: which fields are stored, which are dropped, and which are not known."""

from __future__ import annotations

import copy
import re
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.errors import BadRequestError, ConfigError, InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import struct
from ocf.schema.releases import GATED_FIELDS, Release, read_gates
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Program, Programs
from ocf_server import EmbeddedCluster
from ocf_server.api.write_options import FieldValidation

NAMESPACE: Final = "default"
MERGE_STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="test", subresource=Subresource.STATUS)
LABELS: Final = {"app": "web"}
TERM: Final = {
    "labelSelector": {"matchLabels": LABELS},
    "topologyKey": "zone",
    "matchLabelKeys": ["a"],
    "mismatchLabelKeys": ["b"],
}
CONTAINER: Final[Manifest] = {
    "name": "web",
    "image": "web:1",
    "lifecycle": {"stopSignal": "SIGTERM", "preStop": {"sleep": {"seconds": 1}}},
    "resources": {"claims": [{"name": "gpu"}]},
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "restartPolicy": "Never",
    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
    "volumeMounts": [{"name": "empty", "mountPath": "/a", "readOnly": True, "recursiveReadOnly": "IfPossible"}],
}
SPEC: Final[Manifest] = {
    "containers": [CONTAINER],
    "os": {"name": "linux"},
    "hostUsers": False,
    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
    "securityContext": {"seLinuxChangePolicy": "Recursive", "supplementalGroupsPolicy": "Merge"},
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    "volumes": [
        {"name": "empty", "emptyDir": {}},
        {"name": "all", "projected": {"sources": [{"clusterTrustBundle": {"name": "a", "path": "a"}}]}},
    ],
}
POD: Final = {"apiVersion": "v1", "kind": "Pod", "spec": SPEC}
TEMPLATE: Final[Manifest] = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}
TARGET: Final = {"type": "Value", "value": "1"}
SCALING: Final = {"tolerance": "0.2", "stabilizationWindowSeconds": 5}
FILE: Final = {"fileKeyRef": {"volumeName": "empty", "path": "a", "key": "a"}}


def pod(*volumes: Manifest, **fields: Any) -> Manifest:
    container = {"name": "web", "image": "web:1", **fields}
    spec = {"containers": [container], "volumes": [{"name": "empty", "emptyDir": {}}, *volumes]}
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


OBJECTS: Final[Mapping[str, Manifest]] = {
    "pod": POD,
    "file": pod(env=[{"name": "A", "valueFrom": FILE}]),
    "image": pod({"name": "picture", "image": {"reference": "web:1"}}),
    "deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": SPEC}},
    },
    "stateful-set": {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {
            "selector": {"matchLabels": LABELS},
            "serviceName": "web",
            "template": TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
        },
    },
    "job": {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {
            "completions": 2,
            "parallelism": 1,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
            "maxFailedIndexes": 1,
            "managedBy": "example.com/jobs",
            "podReplacementPolicy": "Failed",
            "successPolicy": {"rules": [{"succeededCount": 1}]},
            "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
        },
    },
    "autoscaler": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 0,
            "maxReplicas": 3,
            "metrics": [{"type": "External", "external": {"metric": {"name": "a"}, "target": TARGET}}],
            "behavior": {"scaleDown": SCALING},
        },
    },
    "lease": {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "spec": {"holderIdentity": "a", "preferredHolder": "b", "strategy": "OldestEmulationVersion"},
    },
    "claim": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            "volumeAttributesClassName": "gold",
        },
    },
    "slice": {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "hints": {"forNodes": [{"name": "a"}]}}],
    },
    "driver": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "gated.example.com"},
        "spec": {
            "attachRequired": True,
            "podInfoOnMount": False,
            "fsGroupPolicy": "File",
            "requiresRepublish": False,
            "storageCapacity": False,
            "volumeLifecycleModes": ["Persistent"],
            "seLinuxMount": True,
            "nodeAllocatableUpdatePeriodSeconds": 60,
            "serviceAccountTokenInSecrets": True,
            "tokenRequests": [{"audience": "a"}],
            "preventPodSchedulingIfMissing": True,
        },
    },
}
STATUSES: Final[Mapping[str, Manifest]] = {
    "pod": {
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}],
        "allocatedResources": {"cpu": "1"},
        "resources": {"requests": {"cpu": "1"}},
        "containerStatuses": [
            {
                "name": "web",
                "image": "web:1",
                "imageID": "",
                "restartCount": 0,
                "ready": True,
                "user": {"linux": {"uid": 0, "gid": 0}},
                "allocatedResources": {"cpu": "1"},
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
    },
    "deployment": {"terminatingReplicas": 1},
}


async def stored(cluster: Cluster, name: str) -> tuple[Any, Any]:
    """Return what a server stores of an object, and of its status; the error, if it refuses it."""
    manifest = copy.deepcopy(dict(OBJECTS[name]))
    manifest["metadata"] = {"name": f"gated-{name}", **manifest.get("metadata", {})}
    if name != "driver":
        manifest["metadata"]["namespace"] = NAMESPACE
    try:
        created = await cluster.create(manifest, field_manager="test")
    except InvalidError as error:
        # The texts are those of 1.36.
        return [cause.field for cause in error.causes], None
    key = ObjectKey.of(created)
    content = {part: value for part, value in created.items() if part not in ("metadata", "status")}
    # What generates a label or a selector has another uid on each server.
    content.get("spec", {}).pop("selector", None)
    content.get("spec", {}).get("template", {}).pop("metadata", None)
    # Admission plugins add these.
    for field in ("tolerations", "priority", "preemptionPolicy"):
        content.get("spec", {}).pop(field, None)
    status = None
    if name in STATUSES:
        status = (await cluster.patch(key, {"status": STATUSES[name]}, MERGE_STATUS))["status"]
    return content, status


ALPHA: Final = (
    "ContainerStopSignals",
    "HPAScaleToZero",
    "MaxUnavailableStatefulSet",
    "VolumeLimitScaling",
)
CLOSED: Final = ("ContainerRestartRules", "EnvFiles", "RestartAllContainersOnContainerExits")
CHOICES: Final[Mapping[str, tuple[str, Mapping[str, bool]]]] = {
    "1.33": ("1.33", {}),
    "1.34": ("1.34", {}),
    "1.35": ("1.35", {}),
    "1.36": ("1.36", {}),
    "1.34 with gates": ("1.34", {"HPAConfigurableTolerance": True, "PodLevelResources": False, "ImageVolume": True}),
    "1.36 with gates": ("1.36", {**dict.fromkeys(ALPHA, True), **dict.fromkeys(CLOSED, False)}),
}


@pytest.mark.parametrize("choice", CHOICES)
async def test_a_real_server_of_the_release_stores_the_same(choice: str, envtest_programs: Programs) -> None:
    version, gates = CHOICES[choice]
    ours = EmbeddedCluster(kubernetes_version=version, feature_gates=gates)
    seen = {name: await stored(ours, name) for name in OBJECTS}
    emulated = None if version == "1.36" else version
    plane = ControlPlane(envtest_programs, feature_gates=gates, server_arguments={"emulated-version": emulated})
    async with plane, await plane.cluster() as real:
        wanted = {name: await stored(real, name) for name in OBJECTS}
    assert seen == wanted


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
        pytest.param("1.36", {"PodLevelResources": False}, True, False, id="a gate that is off"),
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
    cluster = EmbeddedCluster(feature_gates={"PodLevelResources": False})
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
    manifest = {**OBJECTS["autoscaler"], "metadata": {"name": "web", "namespace": NAMESPACE}}
    if is_allowed:
        assert (await cluster.create(manifest, field_manager="test"))["spec"]["minReplicas"] == 0
    else:
        with pytest.raises(InvalidError, match="minReplicas"):
            await cluster.create(manifest, field_manager="test")


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
        pytest.param(["kube:A=true,wardle:B=true"], {"A": True}, id="components"),
    ],
)
def test_flags_of_gates_are_read_as_kube_apiserver_does(texts: list[str], gates: dict[str, bool]) -> None:
    assert read_gates(texts) == gates


@pytest.mark.parametrize("text", ["A", "A=", "=true", "A=yes", "A=true;B=true"])
def test_a_malformed_flag_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="write NAME=true or NAME=false"):
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
