"""Workloads, autoscalers and the controller on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster, ListOptions
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.controllers.metrics_client import MetricsClient, RESTMetricsClient
from ocf.controllers.process import leader_runner
from ocf.objects import Manifest
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.concepts import Recorder

__all__ = ["LABELS", "PERIOD", "autoscaler", "counts", "deployment", "has_condition", "posted", "running"]

PERIOD: Final = timedelta(milliseconds=300)
TAKE_OVER_DELAY: Final = timedelta(seconds=5)  # within it, the built-in controller writes on a busy machine, too
LABELS: Final = {"app": "web"}


def deployment(namespace: str, replicas: int = 2) -> Manifest:
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def autoscaler(kind: tuple[str, str], namespace: str, **spec: Any) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    target = {"type": "AverageValue", "averageValue": "10"}
    queue = {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}
    wanted = {"scaleTargetRef": reference, "maxReplicas": 9, "metrics": [queue]}
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": wanted | spec}


def counts(number: int) -> Callable[[Manifest], bool]:
    return lambda live: live["spec"].get("replicas") == number


def has_condition(condition: str, reason: str) -> Callable[[Manifest], bool]:
    def matches(live: Manifest) -> bool:
        conditions = (live.get("status") or {}).get("conditions") or ()
        return any((each["type"], each["reason"]) == (condition, reason) for each in conditions)

    return matches


async def posted(cluster: ApiServerCluster, namespace: str, reason: str) -> None:
    """Poll the events of a namespace until there is one with a reason."""
    await eventually(
        lambda: cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=namespace)),
        lambda found: any(one["reason"] == reason for one in found.items),
    )


@asynccontextmanager
async def running(
    cluster: ApiServerCluster, mode: Mode, *, take_over: bool = False, metrics: MetricsClient | None = None
) -> AsyncIterator[None]:
    settings = Settings(sync_period=PERIOD, downscale_stabilization=timedelta(seconds=1))

    def make(where: Cluster, events: Recorder | None) -> HpaController:
        options = HpaControllerOptions(
            mode=mode, settings=settings, take_over=take_over, take_over_delay=TAKE_OVER_DELAY
        )
        client = RESTMetricsClient(cluster) if metrics is None else metrics
        return HpaController(where, client, options=options, events=events, reader=cluster)

    stopped = asyncio.Event()
    task = asyncio.create_task(leader_runner(cluster, make, component=COMPONENT, stopped=stopped).run())
    try:
        yield
    finally:
        stopped.set()
        await task
