"""The node-group controller as a process: one cluster, leader election, metrics and probes over HTTP."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.concepts import Clock, Recorder
from ocf.concepts.tracing import Tracer, tracing_with
from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.metrics import NodeGroupMonitor
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.reporter import COMPONENT
from ocf.controllers.process import leader_runner, run_serving
from ocf.nodegroups import Provider
from ocf.runtime.monitoring.http_server import Endpoints
from ocf.runtime.operator import Lease, Listen
from ocf.runtime.operator.leader_runner import LeaderRunner

__all__ = ["MakeProvider", "ProcessOptions", "controller_runner", "run_process"]

MakeProvider: TypeAlias = Callable[[Cluster], Provider]
"""Makes the provider of one term, for a cluster that rejects writes once the lease is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """The settings of the process.

    Args:
        lease: The lease that a leader holds; None runs without leader election, as a dry run always does.
        tracer: Records the spans of syncs and requests; None records none.
    """

    controller: NodeGroupControllerOptions = field(default_factory=NodeGroupControllerOptions)
    lease: Lease | None = None
    listen: Listen = field(default_factory=Listen)
    tracer: Tracer | None = None


def controller_runner(
    cluster: Cluster,
    make_provider: MakeProvider,
    options: ProcessOptions,
    *,
    monitor: NodeGroupMonitor | None = None,
    clock: Clock | None = None,
    stopped: asyncio.Event | None = None,
) -> LeaderRunner:
    """Return what runs a new controller in each term as a leader.

    Args:
        monitor: The metrics, which outlive a term; None keeps them private.
        clock: The clock of the controller, of events and of leases; the system clock by default.
        stopped: An event that the caller may set to stop it.
    """
    metrics, writes = monitor or NodeGroupMonitor(), not options.controller.dry_run

    def make(where: Cluster, events: Recorder | None) -> NodeGroupController:
        return NodeGroupController(
            where, make_provider(where), clock=clock, events=events, monitor=metrics, options=options.controller
        )

    return leader_runner(
        cluster,
        make,
        component=COMPONENT if writes else "",
        lease=options.lease if writes else None,
        clock=clock,
        stopped=stopped,
    )


async def run_process(
    cluster: Cluster,
    make_provider: MakeProvider,
    options: ProcessOptions,
    stopped: asyncio.Event,
    *,
    on_serving: Callable[[Endpoints], None] = lambda _: None,
    clock: Clock | None = None,
) -> None:
    """Run the controller until it is stopped.

    Args:
        stopped: Set by the caller to stop; a running reconcile ends first.
        clock: The clock of the controller; the system clock by default.
    """
    registry = CollectorRegistry()
    runner = controller_runner(
        cluster, make_provider, options, monitor=NodeGroupMonitor(registry), clock=clock, stopped=stopped
    )
    with tracing_with(options.tracer):
        await run_serving(runner, registry, options.listen, on_serving=on_serving)
