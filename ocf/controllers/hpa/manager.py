"""The controller as a process: one cluster, leader election, metrics and probes over HTTP."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.cluster.client import ApiServerCluster
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.controllers.hpa.controller import ControllerOptions, HpaController
from ocf.controllers.hpa.leader_runner import Election, Operator
from ocf.controllers.hpa.metrics import Monitor
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.runtime.monitoring.http_server import Endpoints, serving
from ocf.runtime.workqueue import QueueMetrics

__all__ = ["ProcessOptions", "pod_namespace", "run_process"]

_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """How the process is set.

    Args:
        controller: How the controller is.
        election: How a leader is elected; None works without, as a dry run always does.
        host: The address that metrics and probes are served on.
        port: The port; 0 takes any that is free.
    """

    controller: ControllerOptions
    election: Election | None = None
    host: str = "0.0.0.0"  # noqa: S104 (the kubelet and Prometheus come from outside of the pod)
    port: int = 8080


def pod_namespace(default: str = "default", *, file: Path = _NAMESPACE_FILE) -> str:
    """Return the namespace of the pod that we run in.

    Args:
        default: What is returned outside of a pod.
        file: Where the namespace is told.
    """
    try:
        return file.read_text(encoding="utf-8").strip() or default
    except OSError:
        return default


async def run_process(
    cluster: ApiServerCluster,
    options: ProcessOptions,
    stopped: asyncio.Event,
    *,
    began: Callable[[Endpoints], None] = lambda _: None,
    clock: Clock | None = None,
) -> None:
    """Run the controller until it is stopped.

    Args:
        cluster: The cluster.
        options: How it is set.
        stopped: Set to stop; rounds that are under way end first.
        began: Told where metrics and probes are served.
        clock: Tells the time; the machine's by default.

    Raises:
        ConfigError: If the controller cannot work in this cluster, or the port is taken.
    """
    registry = CollectorRegistry()
    monitor, queue_metrics = Monitor(registry), QueueMetrics(registry)
    mode = options.controller.mode

    def make(where: Cluster, events: Recorder | None) -> HpaController:
        return HpaController(
            where,
            RESTMetricsClient(cluster),
            options=options.controller,
            clock=clock,
            events=events,
            monitor=monitor,
            queue_metrics=queue_metrics,
            reader=cluster,
        )

    election = options.election if mode.writes else None
    operator = Operator(cluster, make, election=election, posts=mode.writes, clock=clock or SystemClock())
    live, ready = {"rounds": operator.stuck}, {"controller": operator.unready}
    async with serving(registry=registry, live=live, ready=ready, host=options.host, port=options.port) as endpoints:
        began(endpoints)
        await operator.run(stopped)
