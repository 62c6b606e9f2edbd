"""Objects for tests of the linter."""

from typing import Any

from ocf.autoscaling import lint
from ocf.objects import Manifest

__all__ = ["FULL", "TARGET", "found", "hpa", "kinded", "policy", "queue", "resource", "workload"]

FULL = {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def workload(
    *resources: Manifest, name: str = "web", labels: Manifest | None = None, pod: Manifest | None = None, **spec: Any
) -> Manifest:
    labels = {"app": name} if labels is None else labels
    containers = [{"name": f"c{number}", "resources": each} for number, each in enumerate(resources)]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, **(pod or {})}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def resource(name: str = "cpu", **target: Any) -> Manifest:
    target = target or {"averageUtilization": 60}
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


def queue(**more: Any) -> Manifest:
    target = {"type": "Value", "value": "5"}
    return {"type": "External", "external": {"metric": {"name": "q", **more}, "target": target}}


def hpa(name: str = "web", target: Manifest | None = None, **spec: Any) -> Manifest:
    spec = {"scaleTargetRef": target or TARGET, "minReplicas": 2, "maxReplicas": 10, "metrics": [resource()], **spec}
    return {"metadata": {"name": name}, "spec": spec}


def policy(kind: str, value: int, period: int = 60) -> Manifest:
    return {"type": kind, "value": value, "periodSeconds": period}


def found(manifest: Manifest, target: Any = None, others: Any = ()) -> list[tuple[str, str, str]]:
    return [(each.severity.value, each.code.value, each.path) for each in lint(manifest, target, others)]


def kinded(manifest: Manifest) -> Manifest:
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **manifest}
