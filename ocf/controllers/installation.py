"""Installation manifests that all controllers share: service account, roles with least privilege, Deployment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ocf.cluster import ServiceAccount
from ocf.objects import Manifest
from ocf.runtime.pod_objects import (
    container_security,
    disruption_budget,
    network_policy,
    pod_security,
    service,
    service_monitor,
    spread_over_nodes,
)
from ocf.runtime.rbac import PolicyRule, roles

__all__ = ["ControllerPod", "access_manifests", "controller_manifests"]

_PORT: Final = 8080
_PORT_NAME: Final = "http"
# Running reconciles end first, and one that waits for several slow responses (ten seconds each) may need more than the
# default of 30 s.
_GRACE_PERIOD: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerPod:
    """The pod of a controller.

    Args:
        image: The container image; it has `ocf` on its path.
        replicas: The number of processes; with more than one, one of them leads, and the others wait.
        alone: Whether two processes must never run at the same time: without a lease, nothing else keeps them apart.
        priority_class: The priority class; empty for the default.
        config_maps: ConfigMaps of the user, mounted read-only: their names by path.
        secrets: Secrets of the user, mounted read-only: their names by path.
    """

    image: str
    command: Sequence[str]
    arguments: Sequence[str] = ()
    replicas: int = 1
    alone: bool = False
    priority_class: str = ""
    config_maps: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


def controller_manifests(name: str, namespace: str, needed: Iterable[PolicyRule], pod: ControllerPod) -> list[Manifest]:
    """Return the manifests of a controller, in the order in which to apply them.

    Example:
        >>> pod = ControllerPod(image="ocf:1", command=["ocf", "hpa-controller"])
        >>> [each["kind"] for each in controller_manifests("c", "ops", [PolicyRule("", "pods", "list")], pod)]
        ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Deployment']
    """
    labels, metadata = _labels(name), _metadata(name, namespace)
    deployment: Manifest = {
        "replicas": pod.replicas,
        "selector": {"matchLabels": labels},
        # A rolling update starts the new pod before the old one has ended.
        **({"strategy": {"type": "Recreate"}} if pod.alone else {}),
        "template": {"metadata": {"labels": labels}, "spec": _pod_spec(name, labels, pod)},
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *roles(needed, name=name, account=ServiceAccount(name, namespace)),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment},
    ]


def access_manifests(name: str, namespace: str) -> dict[str, Manifest]:
    """Return the objects that let others reach the pods of a controller, and keep one of them.

    Example:
        >>> access_manifests("c", "ops")["Service"]["spec"]["ports"]
        [{'name': 'http', 'port': 8080, 'targetPort': 'http'}]
    """
    labels, metadata = _labels(name), _metadata(name, namespace)
    found = (
        service(metadata, labels, {_PORT_NAME: _PORT}),
        disruption_budget(metadata, labels),
        network_policy(metadata, labels, [_PORT_NAME]),
        # The label `namespace` of their metrics is that of the autoscaler or the group.
        service_monitor(metadata, labels, _PORT_NAME, honor_labels=True),
    )
    return {each["kind"]: each for each in found}


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name}


def _metadata(name: str, namespace: str) -> Manifest:
    return {"name": name, "namespace": namespace, "labels": _labels(name)}


def _pod_spec(name: str, labels: Mapping[str, str], pod: ControllerPod) -> Manifest:
    volumes = [{"name": each, "configMap": {"name": each}} for each in pod.config_maps.values()]
    volumes += [{"name": each, "secret": {"secretName": each}} for each in pod.secrets.values()]
    return {
        "serviceAccountName": name,
        **({"priorityClassName": pod.priority_class} if pod.priority_class else {}),
        "terminationGracePeriodSeconds": _GRACE_PERIOD,
        "securityContext": pod_security(),
        **({"affinity": spread_over_nodes(labels)} if pod.replicas > 1 else {}),
        "containers": [_container(pod)],
        **({"volumes": volumes} if volumes else {}),
    }


def _container(pod: ControllerPod) -> Manifest:
    mounts = [
        {"name": each, "mountPath": path, "readOnly": True} for path, each in {**pod.config_maps, **pod.secrets}.items()
    ]
    return {
        "name": "controller",
        "image": pod.image,
        "command": list(pod.command),
        **({"args": list(pod.arguments)} if pod.arguments else {}),
        "ports": [{"name": _PORT_NAME, "containerPort": _PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": _PORT_NAME}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": _PORT_NAME}, "periodSeconds": 5},
        **({"volumeMounts": mounts} if mounts else {}),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "securityContext": container_security(),
    }
