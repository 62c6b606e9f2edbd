"""Scenarios that run beside the real controllers and beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.cluster import DeleteOptions, Propagation
from ocf.cluster.protocol import DEFAULT_DELETE_OPTIONS
from ocf.objects import Manifest
from ocf_server.controllers.kubelet import EXIT_CODE, READY_AFTER

__all__ = ["NODES", "SCENARIOS", "Delete", "Patch", "Step"]


@dataclass(frozen=True, slots=True)
class Patch:
    """A JSON merge patch of one object."""

    api_version: str
    kind: str
    name: str
    patch: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delete:
    """A delete of one object."""

    api_version: str
    kind: str
    name: str
    options: DeleteOptions = DEFAULT_DELETE_OPTIONS


@dataclass(frozen=True, slots=True)
class Step:
    """Requests, after which the controllers come to rest; a manifest stands for its creation.

    Args:
        requests: The requests.
        wait: Seconds that pass at least until the controllers are at rest.
    """

    requests: Sequence[Manifest | Patch | Delete]
    wait: float = 0


def _node(name: str, zone: str, *taints: Manifest) -> Manifest:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "zone": zone}
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "200"}
    status = {"capacity": capacity, "allocatable": capacity}
    spec = {"taints": list(taints)} if taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def _pod(name: str) -> Manifest:
    labelled = {"name": name, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": labelled, "spec": _template()["spec"]}


_ORPHANING: Final = DeleteOptions(propagation=Propagation.ORPHAN)
NODES: Final = (
    _node("n1", "a"),
    _node("n2", "b"),
    _node("n3", "b", {"key": "dedicated", "value": "db", "effect": "NoSchedule"}),
)


def _template(image: str = "web:1", *, app: str = "web", never: bool = False, **spec: Any) -> Manifest:
    annotations = {"annotations": {READY_AFTER: "never"}} if never else {}
    container = {"name": "main", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}
    return {"metadata": {"labels": {"app": app}, **annotations}, "spec": {"containers": [container], **spec}}


def _workload(kind: str, template: Manifest, **spec: Any) -> Manifest:
    selector = {"matchLabels": {"app": template["metadata"]["labels"]["app"]}}
    body = {"selector": selector, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": body}


def _deployment(template: Manifest | None = None, **spec: Any) -> Manifest:
    return _workload("Deployment", template or _template(), **spec)


def _stateful(template: Manifest | None = None, **spec: Any) -> Manifest:
    return _workload("StatefulSet", template or _template(), **{"serviceName": "web", **spec})


def _daemon(template: Manifest | None = None, **spec: Any) -> Manifest:
    return _workload("DaemonSet", template or _template(), **spec)


def _job(*, code: int = 0, policy: str = "Never", **spec: Any) -> Manifest:
    annotations = {"annotations": {EXIT_CODE: str(code)}} if code else {}
    pod = {"restartPolicy": policy, "containers": [{"name": "main", "image": "task:1"}]}
    template = {"metadata": annotations, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "task"},
        "spec": {"template": template, **spec},
    }


def _service(**spec: Any) -> Manifest:
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    body = {"selector": {"app": "web"}, "ports": ports, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "labels": {"team": "shop"}},
        "spec": body,
    }


def _budget(**spec: Any) -> Manifest:
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": body}


def _patch(kind: str, **spec: Any) -> Patch:
    return Patch("batch/v1" if kind == "Job" else "apps/v1", kind, "task" if kind == "Job" else "web", {"spec": spec})


def _image(kind: str, image: str, **annotations: str) -> Patch:
    return _patch(
        kind, template=_template(image) | {"metadata": {"labels": {"app": "web"}, "annotations": annotations}}
    )


def _no_surge(unavailable: int | str = 1) -> Manifest:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": unavailable}}


SCENARIOS: Final[Mapping[str, Sequence[Step]]] = {
    "deployment-created": [Step([_deployment(replicas=3)])],
    "deployment-without-replicas": [Step([_deployment(replicas=0)])],
    "deployment-scaled": [
        Step([_deployment(replicas=2)]),
        Step([_patch("Deployment", replicas=5)]),
        Step([_patch("Deployment", replicas=1)]),
        Step([_patch("Deployment", replicas=0)]),
    ],
    "deployment-rolled-out": [
        Step([_deployment(replicas=4)]),
        Step([_image("Deployment", "web:2")]),
        Step([_image("Deployment", "web:3")]),
    ],
    "deployment-without-surge": [
        Step([_deployment(replicas=3, strategy=_no_surge())]),
        Step([_image("Deployment", "web:2")]),
    ],
    "deployment-rolled-back": [
        Step([_deployment(replicas=2)]),
        Step([_image("Deployment", "web:2")]),
        Step([_image("Deployment", "web:1")]),
    ],
    "deployment-recreated": [
        Step([_deployment(replicas=2, strategy={"type": "Recreate"})]),
        Step([_image("Deployment", "web:2")]),
    ],
    "deployment-with-short-history": [
        Step([_deployment(replicas=1, revisionHistoryLimit=1)]),
        Step([_image("Deployment", "web:2")]),
        Step([_image("Deployment", "web:3")]),
        Step([_image("Deployment", "web:4")]),
    ],
    "deployment-never-ready": [
        Step([_deployment(_template(never=True), replicas=2, progressDeadlineSeconds=3)], wait=6)
    ],
    "rollout-stuck": [
        Step([_deployment(replicas=4, progressDeadlineSeconds=3)]),
        Step([_image("Deployment", "web:2", **{READY_AFTER: "never"})], wait=6),
        Step([_image("Deployment", "web:3")]),
    ],
    "rollout-stuck-and-scaled": [
        Step([_deployment(replicas=10)]),
        Step([_image("Deployment", "web:2", **{READY_AFTER: "never"})]),
        Step([_patch("Deployment", replicas=20)]),
        Step([_patch("Deployment", replicas=6)]),
    ],
    "deployment-paused": [
        Step([_deployment(replicas=2)]),
        Step([_patch("Deployment", paused=True)]),
        Step([_image("Deployment", "web:2")]),
        Step([_patch("Deployment", paused=False)]),
    ],
    "deployment-without-deadline": [Step([_deployment(replicas=1, progressDeadlineSeconds=2**31 - 1)])],
    "deployment-with-annotations": [
        Step([_deployment(replicas=1)]),
        Step([Patch("apps/v1", "Deployment", "web", {"metadata": {"annotations": {"team": "shop"}}})]),
    ],
    "deployment-deleted": [
        Step([_deployment(replicas=2)]),
        Step([Delete("apps/v1", "Deployment", "web")]),
    ],
    "replica-set-alone": [
        Step([_workload("ReplicaSet", _template(), replicas=2)]),
        Step([_patch("ReplicaSet", replicas=1)]),
    ],
    "pods-adopted": [
        Step([_pod("first")]),
        Step([_workload("ReplicaSet", _template(), replicas=2)]),
        Step([Patch("v1", "Pod", "first", {"metadata": {"labels": {"app": "other"}}})]),
    ],
    "stateful-set-orphaned-and-created-again": [
        Step([_stateful(replicas=2)]),
        Step([Delete("apps/v1", "StatefulSet", "web", _ORPHANING)]),
        Step([_stateful(replicas=2, serviceName="other")]),
        Step([_image("StatefulSet", "web:2")]),
    ],
    "daemon-set-orphaned-and-created-again": [
        Step([_daemon()]),
        Step([Delete("apps/v1", "DaemonSet", "web", _ORPHANING)]),
        Step([_daemon(minReadySeconds=1)], wait=2),
    ],
    "deployment-orphaned-and-created-again": [
        Step([_deployment(replicas=2)]),
        Step([Delete("apps/v1", "Deployment", "web", _ORPHANING)]),
        Step([_deployment(replicas=2, revisionHistoryLimit=3)]),
    ],
    # It adopts pods that are named as its own, also with another number than it would make, and no others.
    "stateful-set-pods-adopted": [
        Step([_pod("first"), _pod("other-0"), _pod("web-x"), _pod("web-0"), _pod("web-5"), _pod("web-007")]),
        Step([_stateful(replicas=2)]),
        Step([_patch("StatefulSet", replicas=1)]),
    ],
    "stateful-set-created": [Step([_stateful(replicas=3)])],
    "stateful-set-scaled": [
        Step([_stateful(replicas=1)]),
        Step([_patch("StatefulSet", replicas=3)]),
        Step([_patch("StatefulSet", replicas=1)]),
    ],
    "stateful-set-updated": [
        Step([_stateful(replicas=3)]),
        Step([_image("StatefulSet", "web:2")]),
    ],
    "stateful-set-with-partition": [
        Step([_stateful(replicas=3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})]),
        Step([_image("StatefulSet", "web:2")]),
        Step([_patch("StatefulSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})]),
    ],
    "stateful-set-with-partition-from-five": [
        Step(
            [
                _stateful(
                    replicas=3,
                    ordinals={"start": 5},
                    updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
                )
            ]
        ),
        Step([_image("StatefulSet", "web:2")]),
    ],
    "stateful-set-pod-lost-in-update": [
        Step([_stateful(replicas=3)]),
        Step([_patch("StatefulSet", template=_template("web:2", never=True))]),
        Step([Delete("v1", "Pod", "web-0")]),
    ],
    "stateful-set-pod-lost-in-update-without-partition": [
        Step([_stateful(replicas=3, updateStrategy={"type": "RollingUpdate"})]),
        Step([_patch("StatefulSet", template=_template("web:2", never=True))]),
        Step([Delete("v1", "Pod", "web-0")]),
    ],
    "stateful-set-never-ready": [
        Step([_stateful(_template(never=True), replicas=2)]),
    ],
    "stateful-set-parallel-from-five": [
        Step([_stateful(_template(never=True), replicas=2, podManagementPolicy="Parallel", ordinals={"start": 5})]),
    ],
    "stateful-set-on-delete": [
        Step([_stateful(replicas=2, updateStrategy={"type": "OnDelete"})]),
        Step([_image("StatefulSet", "web:2")]),
        Step([Delete("v1", "Pod", "web-1")]),
    ],
    "daemon-set-created": [Step([_daemon()])],
    "daemon-set-with-toleration": [
        Step([_daemon(_template(tolerations=[{"key": "dedicated", "operator": "Exists"}]))])
    ],
    "daemon-set-with-node-selector": [
        Step([_daemon(_template(nodeSelector={"zone": "a"}))]),
        Step([_patch("DaemonSet", template={"spec": {"nodeSelector": {"zone": "b"}}})]),
    ],
    "daemon-set-updated": [Step([_daemon()]), Step([_image("DaemonSet", "web:2")])],
    "daemon-set-stuck": [Step([_daemon()]), Step([_image("DaemonSet", "web:2", **{READY_AFTER: "never"})])],
    "job-completed": [Step([_job()])],
    "job-with-completions": [Step([_job(completions=5, parallelism=2)])],
    "job-indexed": [Step([_job(completions=3, parallelism=3, completionMode="Indexed")])],
    "job-failed": [Step([_job(code=1, backoffLimit=0)])],
    "job-suspended": [Step([_job(suspend=True)]), Step([_patch("Job", suspend=False)])],
    "job-past-deadline": [
        Step(
            [
                {
                    **_job(activeDeadlineSeconds=2),
                    "spec": {
                        **_job(activeDeadlineSeconds=2)["spec"],
                        "template": {
                            "metadata": {"annotations": {"ocf.dev/finish-after": "1h"}},
                            "spec": _job()["spec"]["template"]["spec"],
                        },
                    },
                }
            ],
            wait=6,
        ),
    ],
    "service-with-pods": [
        Step([_service(), _deployment(replicas=2)]),
        Step([_patch("Deployment", replicas=1)]),
    ],
    "service-without-pods": [Step([_service()])],
    "service-headless": [Step([_service(clusterIP="None"), _stateful(replicas=1)])],
    "service-with-unready-pods": [
        Step([_service(publishNotReadyAddresses=True), _deployment(_template(never=True), replicas=1)])
    ],
    "budget-with-percentage": [
        Step([_budget(minAvailable="50%"), _deployment(replicas=4)]),
        Step([_patch("Deployment", replicas=1)]),
    ],
    "budget-with-max-unavailable": [Step([_budget(maxUnavailable=1), _stateful(replicas=3)])],
    "budget-without-pods": [Step([_budget(minAvailable=1)])],
    "budget-of-pods-without-controller": [
        Step(
            [
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "labels": {"app": "web"}}}
                | {"spec": _template()["spec"]},
                _budget(maxUnavailable=1),
            ]
        ),
    ],
}
