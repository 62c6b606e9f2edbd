"""The objects and the condition of a site: functions of values, without a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from semver import Version

__all__ = [
    "GROUP",
    "PLURAL",
    "VERSION",
    "autoscaler",
    "condition",
    "config_map",
    "deployment",
    "service",
]

GROUP: Final = "kopf.comparison.example.com"
VERSION: Final = "v1"
PLURAL: Final = "sites"

_IMAGE: Final = "docker.io/nginxinc/nginx-unprivileged:1.29"
_PORT: Final = 8080
_GRACEFUL_SHUTDOWN_SINCE: Final = Version(1, 1, 0)
_GRACE_PERIOD_SECONDS: Final = 45
_DELAY_SECONDS: Final = 10
_CPU_UTILIZATION: Final = 70

Object = dict[str, Any]
Site = Mapping[str, Any]


def _labels(site: Site) -> dict[str, str]:
    return {"app.kubernetes.io/name": "site", "app.kubernetes.io/instance": site["metadata"]["name"]}


def _manifest(site: Site, api_version: str, kind: str, **content: Any) -> Object:
    """Return a manifest that the garbage collector deletes with its site."""
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Site",
        "name": site["metadata"]["name"],
        "uid": site["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "name": site["metadata"]["name"],
        "namespace": site["metadata"]["namespace"],
        "labels": _labels(site),
        "ownerReferences": [owner],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def config_map(site: Site) -> Object:
    """Return the ConfigMap with the text."""
    return _manifest(site, "v1", "ConfigMap", data={"index.html": f"{site['spec']['greeting']}\n"})


def service(site: Site) -> Object:
    """Return the Service."""
    spec = {"selector": _labels(site), "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    return _manifest(site, "v1", "Service", spec=spec)


def autoscaler(site: Site) -> Object | None:
    """Return the HorizontalPodAutoscaler; None while there should be none."""
    if site["spec"].get("maxReplicas") is None or site["spec"]["suspended"]:
        return None
    target = {"type": "Utilization", "averageUtilization": _CPU_UTILIZATION}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": site["metadata"]["name"]},
        "minReplicas": site["spec"]["replicas"],
        "maxReplicas": site["spec"]["maxReplicas"],
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    return _manifest(site, "autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)


def deployment(site: Site, live: Object | None) -> Object:
    """Return the Deployment.

    Args:
        site: The site.
        live: The Deployment that exists, if there is one.
    """
    spec = {
        "replicas": 0 if site["spec"]["suspended"] else site["spec"]["replicas"],
        "selector": {"matchLabels": _labels(site)},
        "template": {"metadata": {"labels": _labels(site)}, "spec": _pod(site)},
    }
    desired = _manifest(site, "apps/v1", "Deployment", spec=spec)
    if live and live["spec"]["replicas"] and autoscaler(site):
        # The autoscaler owns the count. Without a value the API server would reset it to 1; the resource version
        # prevents that a decision since the last read is undone.
        desired["spec"]["replicas"] = live["spec"]["replicas"]
        desired["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    return desired


def _pod(site: Site) -> Object:
    container: Object = {
        "name": "server",
        "image": _IMAGE,
        "ports": [{"name": "http", "containerPort": _PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html", "readOnly": True}],
    }
    volume = {"name": "page", "configMap": {"name": site["metadata"]["name"]}}
    pod: Object = {"containers": [container], "volumes": [volume]}
    if Version.parse(site["spec"]["version"]) >= _GRACEFUL_SHUTDOWN_SINCE:
        pod["terminationGracePeriodSeconds"] = _GRACE_PERIOD_SECONDS
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": _DELAY_SECONDS}}}
    return pod


def condition(site: Site, live: Object, now: str) -> Object:
    """Return the condition of a site whose objects have been applied.

    Args:
        site: The site.
        live: The Deployment as the API server stores it.
        now: The time, in RFC 3339.
    """
    desired, status = live["spec"]["replicas"], live.get("status", {})
    current = status.get("observedGeneration", 0) >= live["metadata"]["generation"]
    counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")]
    if not current or any(count != desired for count in counts):
        _, updated, available = counts
        message = f"{updated} of {desired} pods are updated, {available} are available"
        return changed(site, "False", "Progressing", message, now)
    if site["spec"]["suspended"]:
        return changed(site, "True", "Suspended", "Scaled to zero", now)
    return changed(site, "True", "Healthy", "All pods are available", now)


def changed(site: Site, status: str, reason: str, message: str, now: str) -> Object:
    """Return the condition with new content; it keeps the time of its last transition if its status is the same."""
    conditions = site.get("status", {}).get("conditions", [])
    before = next((found for found in conditions if found["type"] == "Ready"), None)
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": site["metadata"]["generation"],
        "lastTransitionTime": before["lastTransitionTime"] if before and before["status"] == status else now,
    }
