"""Our controller beside the real servers, in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from ocf.cluster import Cluster
from ocf.concepts import Clock, Recorder
from ocf.controllers.nodegroup.controller import NodeGroupController
from ocf.controllers.nodegroup.manifests import NAME
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.controllers.nodegroup.process import MakeProvider
from ocf.controllers.nodegroup.reporter import COMPONENT
from ocf.controllers.process import leader_runner
from ocf.runtime.operator import Lease
from ocf.runtime.operator.leader_runner import LeaderRunner
from tests.controllers.nodegroup.whole_cluster.environment import SYSTEM, Environment

__all__ = ["controller", "shifted_runner"]


def shifted_runner(
    cluster: Cluster,
    make_provider: MakeProvider,
    options: NodeGroupControllerOptions,
    *,
    lease: Lease,
    clock: Clock,
    stopped: asyncio.Event,
) -> LeaderRunner:
    """Return what runs our controller, with a clock of its own: its lease would be lost when a test advances that."""

    def make(where: Cluster, events: Recorder | None) -> NodeGroupController:
        return NodeGroupController(where, make_provider(where), clock=clock, events=events, options=options)

    return leader_runner(cluster, make, component=COMPONENT, lease=lease, stopped=stopped)


@asynccontextmanager
async def controller(
    env: Environment, make_provider: MakeProvider, kubeconfig: Path | None = None
) -> AsyncIterator[Callable[[], int]]:
    """Run our controller for the length of a block; gives the number of its reconciles.

    Args:
        kubeconfig: That of its user; None for the administrator.
    """
    plans: list[NodeGroupPlan] = []
    options = NodeGroupControllerOptions(
        busy_period=timedelta(milliseconds=500),
        idle_period=timedelta(milliseconds=300),
        quiet_period=timedelta(milliseconds=100),
        report=plans.append,
    )
    stopped = asyncio.Event()
    async with await env.plane.cluster(kubeconfig) as nodes:
        runner = shifted_runner(
            nodes, make_provider, options, lease=Lease(NAME, SYSTEM), clock=env.clock, stopped=stopped
        )
        task = asyncio.create_task(runner.run())
        try:
            yield lambda: len(plans)
        finally:
            stopped.set()
            await task
