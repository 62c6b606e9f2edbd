"""Objects beside the pods of an operator or a controller: Service, disruption budget, network policy, monitor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ocf.objects import Manifest

__all__ = [
    "USER",
    "container_security",
    "disruption_budget",
    "network_policy",
    "pod_security",
    "service",
    "service_monitor",
    "spread_over_nodes",
]


def service(metadata: Mapping[str, Any], labels: Mapping[str, str], ports: Mapping[str, int]) -> Manifest:
    """Return the Service of pods.

    Example:
        >>> service({"name": "op"}, {"app": "op"}, {"metrics": 8080})["spec"]["ports"]
        [{'name': 'metrics', 'port': 8080, 'targetPort': 'metrics'}]
    """
    listed = [{"name": name, "port": port, "targetPort": name} for name, port in ports.items()]
    spec = {"selector": dict(labels), "ports": listed}
    return {"apiVersion": "v1", "kind": "Service", "metadata": dict(metadata), "spec": spec}


def disruption_budget(metadata: Mapping[str, Any], labels: Mapping[str, str]) -> Manifest:
    """Return the PodDisruptionBudget of pods: one at a time is evicted, so that a single one prevents no drain."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": dict(metadata),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(labels)}},
    }


def network_policy(metadata: Mapping[str, Any], labels: Mapping[str, str], ports: Iterable[str]) -> Manifest:
    """Return the NetworkPolicy of pods.

    Only the given ports can be reached. What the process itself connects to is not restricted: a policy cannot select
    API servers.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": dict(metadata),
        "spec": {
            "podSelector": {"matchLabels": dict(labels)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": port} for port in ports]}],
        },
    }


def service_monitor(
    metadata: Mapping[str, Any], labels: Mapping[str, str], port: str, *, honor_labels: bool = False
) -> Manifest:
    """Return the ServiceMonitor of the Prometheus operator for a Service.

    Args:
        honor_labels: Whether a label of the metrics, such as `namespace`, keeps its name where Prometheus has one of
            its own with this name.
    """
    endpoint = {"port": port, "interval": "30s", **({"honorLabels": True} if honor_labels else {})}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": dict(metadata),
        "spec": {"selector": {"matchLabels": dict(labels)}, "endpoints": [endpoint]},
    }


def spread_over_nodes(labels: Mapping[str, str]) -> Manifest:
    """Return the affinity that places pods on different nodes where that is possible."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(labels)}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


# They comply with the Pod Security Standard `restricted`, and the root file system is read-only in addition. Source:
# https://kubernetes.io/docs/concepts/security/pod-security-standards/.
USER: Final = 65532
"""User and group of the process, as in distroless images."""


def pod_security() -> dict[str, Any]:
    """Return the security context of a pod.

    Example:
        >>> pod_security()["runAsNonRoot"]
        True
    """
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """Return the security context of a container.

    Example:
        >>> container_security()["capabilities"]
        {'drop': ['ALL']}
    """
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
