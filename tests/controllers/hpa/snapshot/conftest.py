"""A namespace in an embedded cluster: workloads, their pods, and their metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ocf.cluster import Subresource
from ocf.objects import Manifest
from ocf.objects.timestamps import format_time
from ocf.testing import VirtualClock
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf_server import EmbeddedCluster

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def external(name: str, average: str = "10", **selector: Any) -> Manifest:
    """Return a metric of type External."""
    metric = {"name": name, **({"selector": selector} if selector else {})}
    return {
        "type": "External",
        "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": average}},
    }


def hpa(name: str, *metrics: Manifest, namespace: str = "shop", **spec: Any) -> Manifest:
    """Return an HPA of the Deployment of the same name."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 9,
            "metrics": list(metrics or (CPU,)),
            **spec,
        },
    }


@dataclass
class Shop:
    """Workloads and metrics."""

    cluster: EmbeddedCluster
    clock: VirtualClock
    metrics: FakeMetricsClient = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = FakeMetricsClient(self.clock)

    async def workload(
        self, name: str, *, replicas: int = 2, cpu: str = "450m", namespace: str = "shop", kind: str = "Deployment"
    ) -> None:
        """Create a workload with pods that request 500m of cpu, and set their usage."""
        labels = {"app": name}
        containers = [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "500m"}}}]
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "serviceName": name}
        spec = spec if kind == "StatefulSet" else {key: spec[key] for key in ("replicas", "selector", "template")}
        home = {"name": name, "namespace": namespace}
        await self.cluster.create(
            {"apiVersion": "apps/v1", "kind": kind, "metadata": home, "spec": spec}, field_manager="shop"
        )
        for number in range(replicas):
            await self.pod(f"{name}-{number}", labels, cpu=cpu, namespace=namespace)

    async def pod(self, name: str, labels: dict[str, str], *, cpu: str = "450m", namespace: str = "shop") -> None:
        """Create a running pod."""
        containers = [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "500m"}}}]
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        made = await self.cluster.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}},
            field_manager="shop",
        )
        since = format_time(self.clock.now() - timedelta(hours=1))
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        status = {"phase": "Running", "startTime": since, "conditions": conditions}
        await self.cluster.update({**made, "status": status}, field_manager="shop", subresource=Subresource.STATUS)
        self.metrics.set_usage(namespace, name, {"app": {"cpu": cpu}}, labels=labels)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


@pytest.fixture
def shop(clock: VirtualClock) -> Shop:
    return Shop(EmbeddedCluster(namespaces=("shop", "blog"), now=clock.now), clock)
