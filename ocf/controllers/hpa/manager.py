"""The HPA controller as a process: one cluster, leader election, metrics and probes over HTTP."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.cluster.client import ApiServerCluster
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.concepts.tracing import Tracer, tracing_with
from ocf.controllers.hpa.controller import HpaController, HpaControllerOptions
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.process import leader_runner, run_serving
from ocf.errors import ConfigError
from ocf.runtime.monitoring.http_server import Endpoints
from ocf.runtime.operator import Lease, Listen, Sharding
from ocf.runtime.operator.options import membership
from ocf.runtime.sharding.membership import Membership
from ocf.runtime.workqueue.metrics import QueueMetrics

__all__ = ["ProcessOptions", "run_process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """The settings of the process.

    Args:
        lease: The lease that a leader holds; None runs without leader election, as a dry run always does.
        tracer: Records the spans of syncs and requests; None records none.

    Raises:
        ConfigError: If the controller is sharded without a lease.
    """

    controller: HpaControllerOptions
    lease: Lease | None = None
    listen: Listen = field(default_factory=Listen)
    tracer: Tracer | None = None

    def __post_init__(self) -> None:
        if self.controller.sharding and self.lease is None:
            raise ConfigError("sharding needs a lease, which the replicas hold together")

    def membership(self, cluster: Cluster, clock: Clock) -> Membership | None:
        """Return the part of the process among the replicas; None without sharding."""
        if not self.controller.sharding or self.lease is None:
            return None
        return membership(cluster, self.lease, Sharding(by="namespace"), clock)


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
        stopped: Set by the caller to stop; running reconciles end first.
        clock: The clock of the controller; the system clock by default.
    """
    registry = CollectorRegistry()
    monitor, queue_metrics = HpaMonitor(registry), QueueMetrics(registry)
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
            shards=shards.slots if shards is not None else None,
        )

    shards = options.membership(cluster, clock or SystemClock())
    runner = leader_runner(
        cluster if shards is None else shards.slots.fenced(cluster),
        make,
        component=COMPONENT if mode.writes else "",
        lease=options.lease if mode.writes and shards is None else None,
        clock=clock,
        stopped=stopped,
    )
    with tracing_with(options.tracer):
        async with shards.joined() if shards is not None else nullcontext():
            await run_serving(runner, registry, options.listen, shards=shards, on_serving=on_serving)
