"""Syncs of the algorithm for the HPA of a finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ocf.autoscaling import FeatureGates, Finding, lint
from ocf.autoscaling.algorithm import (
    Decision,
    History,
    Sample,
    Settings,
    Snapshot,
    decide,
)
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.autoscaling.linter.findings import Code
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = [
    "FULL",
    "MI",
    "NOON",
    "SYNC",
    "TARGET",
    "condition",
    "finding",
    "hpa",
    "queue",
    "resource",
    "run",
    "sync",
    "workload",
]

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
SYNC: Final = timedelta(seconds=15)
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
MI: Final = 2**20


def hpa(metrics: Sequence[Manifest] = (), name: str = "web", **spec: Any) -> Manifest:
    spec = {"scaleTargetRef": TARGET, "minReplicas": 2, "maxReplicas": 10, "metrics": list(metrics), **spec}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def resource(name: str = "cpu", container: str = "", **target: Any) -> Manifest:
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    source = {"name": name, "target": {"type": kind, **target}}
    if container:
        return {"type": "ContainerResource", "containerResource": {**source, "container": container}}
    return {"type": "Resource", "resource": source}


def queue(**more: Any) -> Manifest:
    return {"type": "External", "external": {"metric": {"name": "q", **more}, "target": {"type": "Value", "value": 5}}}


def workload(
    name: str = "web", labels: Manifest | None = None, replicas: int | None = None, **resources: Any
) -> Manifest:
    labels = labels or {"app": name}
    pod = {"containers": [{"name": "app", "resources": resources}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    spec |= {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def pods_of(target: Manifest, count: int) -> Iterator[Manifest]:
    """Yield the pods of a workload, ready for an hour, with the requests that the API server sets."""
    template, since = target["spec"]["template"], "2026-01-31T11:00:00Z"
    containers = []
    for each in template["spec"]["containers"]:
        resources = each["resources"]
        requests = {**resources.get("limits", {}), **resources.get("requests", {})}
        containers.append({**each, "resources": {**resources, "requests": requests}})
    status = {
        "phase": "Running",
        "startTime": since,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
    }
    for number in range(count):
        metadata = {"name": f"web-{number}", "namespace": "shop", "labels": template["metadata"]["labels"]}
        yield {"metadata": metadata, "spec": {"containers": containers}, "status": status}


def sync(
    manifest: Manifest,
    size: int,
    *usages: int | MetricValues,
    target: Manifest | None = None,
    history: History | None = None,
    others: dict[str, LabelSelector] | None = None,
    now: datetime = NOON,
    gates: FeatureGates | None = None,
) -> Decision:
    """Run one sync; a number is the usage of each pod in thousandths."""
    target = workload(requests={"cpu": "1", "memory": "100Mi"}) if target is None else target
    labels = ",".join(f"{key}={value}" for key, value in target["spec"]["selector"]["matchLabels"].items())
    values = [
        {f"web-{number}": Sample(usage, now) for number in range(size)} if isinstance(usage, int) else usage
        for usage in usages
    ]
    snapshot = Snapshot.of(
        manifest,
        scale={"spec": {"replicas": size}, "status": {"replicas": size, "selector": labels}},
        pods=list(pods_of(target, size)),
        metric_values=values,
        others=others,
    )
    return decide(snapshot, history or History(()), settings=Settings(features=gates or FeatureGates()), now=now)


def condition(decision: Decision, kind: str = "ScalingActive") -> tuple[str, str]:
    return next((each.status, each.reason) for each in decision.status.conditions if each.type == kind)


def finding(code: Code, manifest: Manifest, target: Manifest | None = None, *others: Manifest) -> Finding:
    (found,) = [each for each in lint(manifest, target, others) if each.code is code]
    return found


def run(manifest: Manifest, size: int, usages: Sequence[int]) -> list[int]:
    """Return the sizes of successive syncs."""
    history, sizes = History(()), []
    for step, usage in enumerate(usages):
        decision = sync(manifest, size, usage, history=history, now=NOON + step * SYNC)
        size, history = decision.desired, decision.history
        sizes.append(size)
    return sizes


FULL: Final = workload(requests={"cpu": "1"}, limits={"cpu": "1"})
