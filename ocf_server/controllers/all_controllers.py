"""All controllers that a cluster can run: what each one reconciles, and which changes make it reconcile."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from ocf.objects import Manifest
from ocf_server.controllers.actions import Outcome
from ocf_server.controllers.daemon_set import reconcile_daemon_set
from ocf_server.controllers.deployment import reconcile_deployment
from ocf_server.controllers.disruption import reconcile_budget
from ocf_server.controllers.endpoint_slice import reconcile_service
from ocf_server.controllers.job import reconcile_job
from ocf_server.controllers.job_pods import reconcile_orphan_pod
from ocf_server.controllers.kubelet import reconcile_pod
from ocf_server.controllers.namespace import reconcile_namespace
from ocf_server.controllers.ownership import controller_among, controller_uid, reference_to
from ocf_server.controllers.policy_status import reconcile_policy
from ocf_server.controllers.replica_set import reconcile_replica_set
from ocf_server.controllers.scheduler import reconcile_scheduling
from ocf_server.controllers.stateful_set import reconcile_stateful_set
from ocf_server.controllers.view import ANY, ClusterView
from ocf_server.controllers.volume_binder import claims_of, reconcile_claim
from ocf_server.registry.storage import Place

__all__ = ["CONTROLLERS", "ControllerDescriptor"]

_SCALED: Final = ("Deployment", "ReplicaSet", "StatefulSet")

Reconcile: TypeAlias = Callable[[ClusterView, Manifest], Outcome]

Mapper: TypeAlias = Callable[[ClusterView, Manifest], Iterable[Place]]
"""Returns namespace and name of the objects to reconcile after a change of another object."""


@dataclass(frozen=True, slots=True)
class ControllerDescriptor:
    """A controller.

    Args:
        name: Its name in kube-controller-manager, or of the program that it simulates. One that reconciles two kinds is
            declared twice.
        component: The component that its events and field managers name.
        kind: The kind that it reconciles; empty if it reconciles the whole cluster at once.
        is_simulated_node: Whether it simulates a part of the nodes and runs whichever controllers were chosen.
    """

    name: str
    component: str
    kind: str
    reconcile: Reconcile
    watches: Mapping[str, Mapper]
    is_simulated_node: bool = False


def _owner(kind: str) -> Mapper:
    """Return the mapper to the controlling owner, or to all objects of the kind for an orphan with labels."""

    def places(view: ClusterView, manifest: Manifest) -> Iterable[Place]:
        metadata = manifest["metadata"]
        owner = reference_to(manifest, kind)
        if owner is not None:
            return [(metadata["namespace"], owner.name)]
        is_orphan = not controller_uid(manifest)
        return _all(kind)(view, manifest) if is_orphan and metadata.get("labels") else []

    return places


def _all(kind: str) -> Mapper:
    """Return the mapper to all objects of a kind in the namespace of the changed object."""

    def places(view: ClusterView, manifest: Manifest) -> Iterable[Place]:
        namespace = manifest["metadata"].get("namespace", "")
        return [
            (each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in view.objects(kind, namespace)
        ]

    return places


def _pods_of_deployment(view: ClusterView, pod: Manifest) -> Iterable[Place]:
    """Map a pod to the Deployment of its ReplicaSet."""
    replica_set = controller_among(view, pod, "ReplicaSet")
    return _owner("Deployment")(view, replica_set) if replica_set is not None else []


def _pods_of_job(view: ClusterView, job: Manifest) -> Iterable[Place]:
    """Map a Job, which may have been deleted, to its pods."""
    return [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in view.dependents(job, "Pod")]


def _cluster(_view: ClusterView, _manifest: Manifest) -> Iterable[Place]:
    """Map a change to the whole cluster."""
    return [("", "")]


def _namespaces(_view: ClusterView, manifest: Manifest) -> Iterable[Place]:
    """Map an object to its namespace."""
    namespace = manifest["metadata"].get("namespace")
    return [("", namespace)] if namespace else []


def _claim_of(_view: ClusterView, volume: Manifest) -> Iterable[Place]:
    """Map a volume to the claim that it is bound to."""
    reference = volume["spec"].get("claimRef")
    return [(reference["namespace"], reference["name"])] if reference else []


def _claims_of_pod(_view: ClusterView, pod: Manifest) -> Iterable[Place]:
    """Map a pod on a node to its claims."""
    return [(pod["metadata"]["namespace"], name) for name in claims_of(pod)] if pod["spec"].get("nodeName") else []


def _controller(
    name: str, kind: str, reconcile: Reconcile, watches: Mapping[str, Mapper] | None = None, component: str = ""
) -> ControllerDescriptor:
    return ControllerDescriptor(name, component or name, kind, reconcile, watches or {})


CONTROLLERS: Final = (
    _controller(
        "deployment-controller",
        "Deployment",
        reconcile_deployment,
        {"ReplicaSet": _owner("Deployment"), "Pod": _pods_of_deployment},
    ),
    _controller("replicaset-controller", "ReplicaSet", reconcile_replica_set, {"Pod": _owner("ReplicaSet")}),
    _controller(
        "statefulset-controller",
        "StatefulSet",
        reconcile_stateful_set,
        {"Pod": _owner("StatefulSet"), "ControllerRevision": _owner("StatefulSet")},
    ),
    _controller(
        "daemonset-controller",
        "DaemonSet",
        reconcile_daemon_set,
        {"Pod": _owner("DaemonSet"), "ControllerRevision": _owner("DaemonSet"), "Node": _all("DaemonSet")},
    ),
    _controller("job-controller", "Job", reconcile_job, {"Pod": _owner("Job")}),
    _controller("job-controller", "Pod", reconcile_orphan_pod, {"Job": _pods_of_job}),
    _controller(
        "endpointslice-controller",
        "Service",
        reconcile_service,
        {"Pod": _all("Service"), "EndpointSlice": _owner("Service")},
        component="endpoint-slice-controller",
    ),
    _controller(
        "disruption-controller",
        "PodDisruptionBudget",
        reconcile_budget,
        {"Pod": _all("PodDisruptionBudget"), **dict.fromkeys(_SCALED, _all("PodDisruptionBudget"))},
        component="controllermanager",
    ),
    _controller(
        "namespace-controller",
        "Namespace",
        reconcile_namespace,
        {ANY: _namespaces},
    ),
    _controller(
        "persistentvolume-binder-controller",
        "PersistentVolumeClaim",
        reconcile_claim,
        {"PersistentVolume": _claim_of, "Pod": _claims_of_pod},
    ),
    _controller("validatingadmissionpolicy-status-controller", "ValidatingAdmissionPolicy", reconcile_policy),
    ControllerDescriptor(
        "kube-scheduler",
        "default-scheduler",
        "",
        reconcile_scheduling,
        dict.fromkeys(("Node", "PersistentVolume", "PersistentVolumeClaim", "Pod"), _cluster),
        is_simulated_node=True,
    ),
    ControllerDescriptor("kubelet", "kubelet", "Pod", reconcile_pod, {}, is_simulated_node=True),
)
