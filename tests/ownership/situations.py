"""A situation in which an owner is not ready, and the objects that many situations have."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ocf.objects import Manifest
from tests.ownership.world import (
    ago,
    cluster_scoped,
    condition,
    container,
    event,
    obj,
    pod,
    shop,
    template,
    waiting,
    workload,
    written,
)


class Situation(NamedTuple):
    """A situation.

    Args:
        expected: Parts of the first sentence, in order.
        report: A public report of it.
    """

    name: str
    expected: tuple[str, ...]
    objects: list[Manifest]
    report: str


GITHUB: Final = "https://github.com"
SHOP: Final = shop()
STORAGE: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
STATEFUL: Final = workload(
    "StatefulSet", SHOP, spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": STORAGE}]}
)
DEPLOYMENT: Final = workload("Deployment", SHOP)
REPLICAS: Final = workload("ReplicaSet", DEPLOYMENT, name="web-7d4")
POD_OF_SET: Final = pod(STATEFUL)
WEB: Final = [SHOP, DEPLOYMENT, REPLICAS]
CLAIM: Final = obj(
    "v1", "PersistentVolumeClaim", "data-web-0", spec={"storageClassName": "fast"}, status={"phase": "Pending"}
)
# The last words of the message are those of kube-scheduler 1.36, about preemption.
UNBOUND: Final = condition(
    "PodScheduled",
    reason="Unschedulable",
    message="0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
)
UNSCHEDULED: Final = pod(
    STATEFUL,
    spec={"nodeName": "", "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]},
    conditions=[UNBOUND],
)
FAST: Final = cluster_scoped("storage.k8s.io/v1", "StorageClass", "fast", provisioner="example.com/disk")
JOB_SPEC: Final = {"template": template(restartPolicy="Never"), "selector": {"matchLabels": {"app": "web"}}}


def with_pod(**status: Any) -> list[Manifest]:
    """Return an owner with a Deployment whose pod has a status."""
    return [*WEB, pod(REPLICAS, "web-7d4-x", **status)]


def with_claim(*more: Manifest) -> list[Manifest]:
    return [SHOP, STATEFUL, UNSCHEDULED, CLAIM, *more]


def with_refused_pods(message: str, kind: str = "ReplicaSet") -> list[Manifest]:
    """Return an owner with a workload whose pods the API server refuses."""
    if kind == "ReplicaSet":
        empty = workload("ReplicaSet", DEPLOYMENT, name="web-7d4", status={"replicas": 0})
        return [SHOP, DEPLOYMENT, empty, event(empty, "FailedCreate", f"Error creating: {message}")]
    owned = workload(kind, SHOP, status={"replicas": 0, "updatedReplicas": 0, "currentNumberScheduled": 0})
    text = f"create Pod web-0 in StatefulSet web failed error: {message}"
    return [SHOP, owned, event(owned, "FailedCreate", text)]


def with_event(pod_status: Manifest, reason: str, message: str) -> list[Manifest]:
    found = with_pod(containerStatuses=[container(pod_status)])
    return [*found, event(found[-1], reason, message)]


def service(**fields: Any) -> Manifest:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}], **fields}
    return obj("v1", "Service", "web", SHOP, spec=spec)


def ingress(**spec: Any) -> Manifest:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    return obj("networking.k8s.io/v1", "Ingress", "web", SHOP, spec={"rules": [rule], **spec})


def deleted_shop(name: str, *, minutes: float = 120, **fields: Any) -> Manifest:
    metadata = {"deletionTimestamp": ago(minutes), "finalizers": [name], "managedFields": written("kubectl")}
    return shop(metadata=metadata, **fields)


def unseen_shop(**metadata: Any) -> Manifest:
    return shop(condition("Ready", "True"), metadata={"generation": 3, "managedFields": written("kubectl"), **metadata})


RUNNING: Final = {"running": {"startedAt": ago(12)}}
OOM: Final = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(3), "finishedAt": ago(2)}}
EXIT: Final = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": ago(3), "finishedAt": ago(2)}}
CRASH: Final = waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container=app pod=web-7d4-x")
NOT_READY: Final = ("so Shop corner is not ready",)
OF_DEPLOYMENT: Final = ("so Deployment web has 0 of 1 pods ready", *NOT_READY)


def reporting(reason: str, message: str) -> list[Manifest]:
    return [shop(condition("Ready", reason=reason, message=message))]
