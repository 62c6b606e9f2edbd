"""Recordings of an autoscaler of two to four pods."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.timestamps import format_time
from ocf.simulation.recording import RecordingWriter, reduced

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
CPU: Final = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
QUEUE: Final = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
METRICS: Final = ({"type": "Resource", "resource": CPU}, {"type": "External", "external": QUEUE})


def hpa(**spec: Any) -> Manifest:
    """Return the HPA."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "managedFields": [{"manager": "kubectl"}]},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9, "metrics": list(METRICS), **spec},
        "status": {"currentReplicas": 2, "desiredReplicas": 2},
    }


def scale(replicas: int) -> Manifest:
    """Return the Scale of the target."""
    status = {"replicas": replicas, "selector": "app=web"}
    metadata = {"name": "web", "namespace": "shop"}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {"replicas": replicas},
        "status": status,
    }


def pod(number: int, created: datetime) -> Manifest:
    """Return a pod that starts after 2 s, and is ready after 10 more seconds."""
    started, ready = created + timedelta(seconds=2), created + timedelta(seconds=12)
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(ready)}
    env = [{"name": "TOKEN", "value": "a secret"}]
    container = {
        "name": "app",
        "image": "app:1",
        "env": env,
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{number}",
            "namespace": "shop",
            "labels": {"app": "web"},
            "creationTimestamp": format_time(created),
        },
        "spec": {"containers": [container]},
        "status": {"phase": "Running", "startTime": format_time(started), "conditions": [condition]},
    }


def node(heartbeat: str = "2026-01-31T12:00:00Z") -> Manifest:
    """Return a node."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:00:00Z"}
    pressure = {"type": "MemoryPressure", "status": "False", "lastTransitionTime": "2026-01-31T11:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n-1",
            "labels": {"example.com/group": "workers"},
            "annotations": {"example.com/token": "a secret"},
        },
        "spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi"},
            "allocatable": {"cpu": "3800m", "memory": "15Gi"},
            "conditions": [{**each, "lastHeartbeatTime": heartbeat} for each in (pressure, ready)],
            "images": [{"names": ["app:1"]}],
        },
    }


def usage(number: int, cpu: str, at: datetime) -> Manifest:
    """Return the use of a pod."""
    metadata = {"name": f"web-{number}", "namespace": "shop", "labels": {"app": "web"}}
    containers = [{"name": "app", "usage": {"cpu": cpu, "memory": "600Mi"}}]
    measured = {"timestamp": format_time(at), "window": "15s", "containers": containers}
    return {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": metadata, **measured}


def queue(value: str, at: datetime) -> Manifest:
    """Return the length of the queue."""
    return {
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "kind": "ExternalMetricValue",
        "metricName": "queue",
        "metricLabels": {},
        "timestamp": format_time(at),
        "value": value,
    }


def instants() -> Iterator[tuple[datetime, list[Manifest]]]:
    """Yield a minute: 0.8 cores in use, then 1.6 cores and two more pods."""
    for step, (pods, cpu) in enumerate(((2, 400), (2, 400), (2, 800), (4, 400), (4, 400))):
        at = NOON + timedelta(seconds=15 * step)
        created = [NOON - timedelta(hours=1)] * 2 + [NOON + timedelta(seconds=31)] * 2
        found = [hpa(), scale(pods), queue(str(pods * cpu // 20), at)]
        found += [pod(number, created[number]) for number in range(pods)]
        found += [usage(number, f"{cpu}m", at) for number in range(pods)]
        yield at, found


def lines(states: Sequence[tuple[datetime, list[Manifest]]]) -> str:
    """Return a recording."""
    recorder = RecordingWriter("web", "shop")
    written = [recorder.header(), *(recorder.line(at, list(map(reduced, found))) for at, found in states)]
    return "".join(f"{line}\n" for line in written if line)


def write(folder: Path, text: str | None = None) -> Path:
    """Write a recording; None for the minute of `instants`."""
    path = folder / "web.jsonl"
    path.write_text(lines(list(instants())) if text is None else text)
    return path
