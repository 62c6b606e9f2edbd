"""A workload with its HPA, where nothing has to be scaled."""

from collections.abc import Mapping
from typing import Final

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.controllers.hpa.modes import BUILT_IN
from ocf.objects import Manifest, ObjectKey
from ocf.testing.fake_metrics import FakeMetricsClient

__all__ = ["PODS", "create_workload"]

PODS: Final = 10
"""Pods of each workload."""

_MANAGER: Final = "benchmark"
_STARTED: Final = "2026-01-01T10:00:00Z"


async def create_workload(cluster: Cluster, metrics: FakeMetricsClient, name: str, namespace: str) -> None:
    """Create a Deployment with ready pods at their target of CPU, and its HPA.

    Args:
        cluster: The cluster, without controllers of workloads.
        metrics: Receives the usage of the pods.
        name: The name of all objects; pods have a number behind it.
        namespace: Their namespace.
    """
    labels = {"app": name}
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "500m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec: Manifest = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": namespace}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    target = {"type": "Utilization", "averageUtilization": 80}
    hpa = {
        "apiVersion": BUILT_IN[0],
        "kind": BUILT_IN[1],
        "metadata": metadata,
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 50,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }
    for manifest in (web, hpa):
        await cluster.create(manifest, field_manager=_MANAGER)
    await _report(cluster, ObjectKey.of(web), {"replicas": PODS})
    for number in range(PODS):
        pod_metadata = {"name": f"{name}-{number}", "namespace": namespace, "labels": labels}
        await _run(cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": template["spec"]})
        metrics.set_usage(namespace, f"{name}-{number}", {"app": {"cpu": "400m"}}, labels=labels)


async def _run(cluster: Cluster, pod: Manifest) -> None:
    await cluster.create(pod, field_manager=_MANAGER)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": _STARTED}
    await _report(cluster, ObjectKey.of(pod), {"phase": "Running", "startTime": _STARTED, "conditions": [ready]})


async def _report(cluster: Cluster, key: ObjectKey, status: Mapping[str, object]) -> None:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=_MANAGER, subresource=Subresource.STATUS)
    await cluster.patch(key, {"status": status}, options)
