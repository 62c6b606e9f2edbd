"""The HPA controller as a process: one cluster, leader election, metrics and probes over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.cluster.client import ApiServerCluster
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.controllers.hpa.controller import ControllerOptions, HpaController
from ocf.controllers.hpa.metrics import Monitor
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.runtime.events import broadcasting_events
from ocf.runtime.monitoring.http_server import Endpoints, serving
from ocf.runtime.operator import LeaderRunner, Lease, Listen
from ocf.runtime.workqueue import QueueMetrics

__all__ = ["MakeController", "ProcessOptions", "leader_runner", "pod_namespace", "run_process"]

_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

MakeController: TypeAlias = Callable[[Cluster, Recorder | None], HpaController]
"""Makes the controller of one term, for a cluster that rejects writes once the lease is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """The settings of the process.

    Args:
        controller: The settings of the controller.
        lease: The lease that a leader holds; None runs without leader election, as a dry run always does.
        listen: The address of metrics and probes.
    """

    controller: ControllerOptions
    lease: Lease | None = None
    listen: Listen = field(default_factory=Listen)


def pod_namespace(default: str = "default", *, file: Path = _NAMESPACE_FILE) -> str:
    """Return the namespace of the pod in which the process runs.

    Args:
        default: The result outside of a pod.
        file: The file with the namespace, as Kubernetes mounts it.
    """
    try:
        return file.read_text(encoding="utf-8").strip() or default
    except OSError:
        return default


def leader_runner(
    cluster: Cluster,
    make: MakeController,
    *,
    lease: Lease | None = None,
    events: bool = True,
    clock: Clock | None = None,
    stopped: asyncio.Event | None = None,
) -> LeaderRunner:
    """Return what runs a new controller in each term as a leader.

    Args:
        cluster: The cluster.
        make: Makes the controller of one term.
        lease: The lease that a leader holds; None runs without leader election.
        events: Whether events are posted.
        clock: Stamps events, and measures leases; the system clock by default.
        stopped: An event that the caller may set to stop it.
    """
    used = clock or SystemClock()

    @asynccontextmanager
    async def term(where: Cluster) -> AsyncIterator[HpaController]:
        if not events:
            yield make(where, None)
            return
        async with broadcasting_events(where, controller=COMPONENT, clock=used) as recorder:
            yield make(where, recorder)

    return LeaderRunner(cluster, term, lease=lease, clock=used, stopped=stopped)


async def run_process(
    cluster: ApiServerCluster,
    options: ProcessOptions,
    stopped: asyncio.Event,
    *,
    on_serving: Callable[[Endpoints], None] = lambda _: None,
    clock: Clock | None = None,
) -> None:
    """Run the controller until it is stopped.

    Args:
        cluster: The cluster.
        options: The settings of the process.
        stopped: Set by the caller to stop; running reconciles end first.
        on_serving: Called with the address of metrics and probes.
        clock: The clock of the controller; the system clock by default.

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

    lease = options.lease if mode.writes else None
    runner = leader_runner(cluster, make, lease=lease, events=mode.writes, clock=clock, stopped=stopped)
    listen = options.listen
    live, ready = {"rounds": runner.live}, {"controller": runner.ready}
    async with serving(registry=registry, live=live, ready=ready, host=listen.host, port=listen.port) as endpoints:
        on_serving(endpoints)
        await runner.run()
