"""A server with gates off stores the same of objects as kube-apiserver does: in each kind, template and subresource."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.errors import ConfigError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.releases import GATED_FIELDS, Release
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf_server import EmbeddedCluster

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
    "securityContext": {"procMount": "Unmasked"},
    "volumeMounts": [{"name": "empty", "mountPath": "/a", "readOnly": True, "recursiveReadOnly": "IfPossible"}],
}
CLAIM: Final = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "fast",
    "volumeAttributesClassName": "gold",
}
ELSEWHERE: Final = {"kind": "Backup", "apiGroup": "example.com", "name": "a", "namespace": "other"}
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


TOLERANCES: Final = (
    '{"ScaleUp":{"Tolerance":"100m","Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":60}]},'
    '"ScaleDown":{"Tolerance":"200m","Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":60}]}}'
)
JOB: Final = {
    "completions": 2,
    "parallelism": 1,
    "completionMode": "Indexed",
    "backoffLimitPerIndex": 1,
    "maxFailedIndexes": 1,
    "managedBy": "example.com/jobs",
    "podReplacementPolicy": "Failed",
    "successPolicy": {"rules": [{"succeededCount": 1}]},
    "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
}
WORKLOAD: Final = {"selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": SPEC}}
OBJECTS: Final[Mapping[str, Manifest]] = {
    "pod": POD,
    "file": pod(env=[{"name": "A", "valueFrom": FILE}]),
    "image": pod({"name": "picture", "image": {"reference": "web:1"}}),
    "deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": WORKLOAD},
    "stateful-set": {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {
            "selector": {"matchLabels": LABELS},
            "serviceName": "web",
            "template": TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {**CLAIM, "dataSourceRef": ELSEWHERE}}],
        },
    },
    "job": {"apiVersion": "batch/v1", "kind": "Job", "spec": JOB},
    "cron-job": {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {**JOB, "template": {"spec": {**SPEC, "restartPolicy": "Never"}}}},
        },
    },
    "daemon-set": {"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": WORKLOAD},
    "replica-set": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": WORKLOAD},
    "template": {"apiVersion": "v1", "kind": "PodTemplate", "template": WORKLOAD["template"]},
    "sleep": pod(lifecycle={"preStop": {"sleep": {"seconds": 1}}}),
    "volume-of-claim": pod({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}),
    "old-autoscaler": {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/behavior": TOLERANCES}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
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
    "claim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {**CLAIM, "dataSourceRef": ELSEWHERE}},
    "volume": {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "a.example.com", "volumeHandle": "a"},
            "volumeAttributesClassName": "gold",
        },
    },
    "attachment": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "spec": {"attacher": "a.example.com", "nodeName": "a", "source": {"persistentVolumeName": "a"}},
    },
    "node": {
        "apiVersion": "v1",
        "kind": "Node",
        "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
        "status": {"features": {"supplementalGroupsPolicy": True}},
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
    "replica-set": {"replicas": 0, "terminatingReplicas": 1},
    "node": {"features": {"supplementalGroupsPolicy": True}},
    "attachment": {
        "attached": False,
        "attachError": {"message": "a", "errorCode": 5},
        "detachError": {"message": "a", "errorCode": 6},
    },
    "claim": {
        "phase": "Bound",
        "allocatedResources": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": "NodeResizePending"},
        "currentVolumeAttributesClassName": "silver",
        "modifyVolumeStatus": {"status": "Pending", "targetVolumeAttributesClassName": "gold"},
    },
}
CLUSTER_SCOPED: Final = ("attachment", "driver", "node", "volume")
EPHEMERAL: Final[Manifest] = {
    "name": "shell",
    "image": "shell:1",
    "env": [{"name": "A", "valueFrom": FILE}],
    "securityContext": {"procMount": "Unmasked"},
    "volumeMounts": CONTAINER["volumeMounts"],
}
EPHEMERAL_CONTAINERS: Final = PatchOptions(
    patch_type=PatchType.STRATEGIC_MERGE, field_manager="test", subresource=Subresource.EPHEMERAL_CONTAINERS
)
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="test")
LATER: Final[Mapping[str, Manifest]] = {
    "backoffLimitPerIndex": {"backoffLimitPerIndex": 1},
    "managedBy": {"managedBy": "example.com/jobs"},
    "podReplacementPolicy": {"podReplacementPolicy": "Failed"},
}
"""What an update sets of a suspended Job."""


def content(manifest: Manifest) -> Any:
    """Return what servers that do the same store alike."""
    kept = copy.deepcopy({part: value for part, value in manifest.items() if part not in ("metadata", "status")})
    spec = kept.get("spec", {})
    # What generates a label or a selector has another uid on each server.
    spec.pop("selector", None)
    spec.get("template", {}).pop("metadata", None)
    # Admission plugins add these.
    for field in ("tolerations", "priority", "preemptionPolicy"):
        spec.pop(field, None)
    if manifest["apiVersion"] == "autoscaling/v1":
        kept["annotations"] = manifest["metadata"]["annotations"]
    return kept


def named(name: str, manifest: Manifest) -> Manifest:
    metadata = {"name": f"gated-{name}", **manifest.get("metadata", {})}
    return {**manifest, "metadata": metadata if name in CLUSTER_SCOPED else {**metadata, "namespace": NAMESPACE}}


async def answer(writing: Awaitable[Manifest], part: str = "") -> Any:
    """Return what a write stores, or the fields that it refuses; the texts are those of 1.36."""
    try:
        stored = await writing
    except InvalidError as error:
        return [cause.field for cause in error.causes]
    return stored[part] if part else content(stored)


async def stored(cluster: Cluster) -> dict[str, Any]:
    """Return what a server stores of the objects, of their statuses and of updates."""
    found: dict[str, Any] = {}
    for name, manifest in OBJECTS.items():
        sent = named(name, manifest)
        found[name] = await answer(cluster.create(copy.deepcopy(sent), field_manager="test"))
        if isinstance(found[name], list):
            continue
        key = ObjectKey.of(sent)
        if name in STATUSES:
            patch = {"status": STATUSES[name]}
            found[f"{name}, status"] = await answer(cluster.patch(key, patch, MERGE_STATUS), "status")
        if name == "file":
            patch = {"spec": {"ephemeralContainers": [EPHEMERAL]}}
            found["ephemeral containers"] = await answer(cluster.patch(key, patch, EPHEMERAL_CONTAINERS))
        elif name not in ("node", "volume", "job") and sent["kind"] != "Pod":
            sent["metadata"]["labels"] = {"changed": "true"}
            found[f"{name}, update"] = await answer(cluster.update(copy.deepcopy(sent), field_manager="test"))
    plain = {"suspend": True, "template": JOB["template"]}
    sent = named("plain", {"apiVersion": "batch/v1", "kind": "Job", "spec": plain})
    key = ObjectKey.of(await cluster.create(sent, field_manager="test"))
    for name, fields in LATER.items():
        found[f"later: {name}"] = await answer(cluster.patch(key, {"spec": fields}, MERGE))
    return found


ALPHA: Final = (
    "ContainerStopSignals",
    "CrossNamespaceVolumeDataSource",
    "MaxUnavailableStatefulSet",
    "VolumeLimitScaling",
)
CLOSED: Final = ("ContainerRestartRules", "EnvFiles", "RestartAllContainersOnContainerExits")


def all_off(version: str) -> dict[str, bool]:
    """Return the gates of fields that a release lets be turned off, with what needs them."""
    release, found = Release(version), {"PodLifecycleSleepActionAllowZero": False}
    for gate in GATED_FIELDS:
        if release.enabled(gate):
            with suppress(ConfigError):
                Release.of(version, {gate: False})
                found[gate] = False
    return found


CHOICES: Final[Mapping[str, tuple[str, Mapping[str, bool]]]] = {
    "1.33 without gates": ("1.33", all_off("1.33")),
    "1.34": ("1.34", {}),
    "1.35": ("1.35", {}),
    "1.36": ("1.36", {}),
    "1.34 with gates": ("1.34", {"HPAConfigurableTolerance": True, "PodLevelResources": False, "ImageVolume": True}),
    "1.36 with gates": ("1.36", {**dict.fromkeys(ALPHA, True), **dict.fromkeys(CLOSED, False)}),
}


@pytest.mark.parametrize("choice", CHOICES)
async def test_a_real_server_of_the_release_stores_the_same(choice: str, envtest_programs: Programs) -> None:
    version, gates = CHOICES[choice]
    seen = await stored(EmbeddedCluster(kubernetes_version=version, feature_gates=gates))
    emulated = None if version == "1.36" else version
    plane = ControlPlane(envtest_programs, feature_gates=gates, server_arguments={"emulated-version": emulated})
    async with plane, await plane.cluster() as real:
        assert seen == await stored(real)
