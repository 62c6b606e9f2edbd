"""A controller as a process: leader election, events, metrics and probes over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry

from ocf.cluster import Cluster
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.runtime.events import broadcasting_events
from ocf.runtime.monitoring.http_server import Endpoints, serving
from ocf.runtime.operator import Lease, Listen
from ocf.runtime.operator.leader_runner import LeaderRunner, Runnable
from ocf.runtime.sharding.membership import Membership
from ocf.runtime.sharding.shard_metrics import ShardMetrics

__all__ = ["MakeController", "leader_runner", "pod_namespace", "run_serving"]

_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

MakeController: TypeAlias = Callable[[Cluster, Recorder | None], Runnable]
"""Makes the controller of one term, for a cluster that rejects writes once the lease is lost."""


def pod_namespace(default: str = "default", *, file: Path = _NAMESPACE_FILE) -> str:
    """Return the namespace of the pod in which the process runs."""
    try:
        return file.read_text(encoding="utf-8").strip() or default
    # Outside of a cluster there is no such file.
    except OSError:
        return default


def leader_runner(
    cluster: Cluster,
    make: MakeController,
    *,
    component: str = "",
    lease: Lease | None = None,
    clock: Clock | None = None,
    stopped: asyncio.Event | None = None,
) -> LeaderRunner:
    """Return what runs a new controller in each term as a leader.

    Args:
        component: The reporting component of its events; empty posts no events.
        lease: The lease that a leader holds; None runs without leader election.
        clock: Stamps events, and measures leases; the system clock by default.
        stopped: An event that the caller may set to stop it.
    """
    used = clock or SystemClock()

    @asynccontextmanager
    async def term(where: Cluster) -> AsyncIterator[Runnable]:
        if not component:
            yield make(where, None)
            return
        async with broadcasting_events(where, controller=component, clock=used) as recorder:
            yield make(where, recorder)

    return LeaderRunner(cluster, term, lease=lease, clock=used, stopped=stopped)


async def run_serving(
    runner: LeaderRunner,
    registry: CollectorRegistry,
    listen: Listen,
    *,
    shards: Membership | None = None,
    on_serving: Callable[[Endpoints], None] = lambda _: None,
) -> None:
    """Run a controller until it is stopped, with its metrics and probes over HTTP.

    Args:
        shards: The part of a process among several replicas.
    """
    live, ready = {"reconciles": runner.live, "lease": runner.lost}, {"controller": runner.ready}
    notes = {}
    if shards is not None:
        ready, notes = {**ready, "shards": shards.ready}, {"shards": shards.describe}
        ShardMetrics(registry, shards)
    served = serving(registry=registry, live=live, ready=ready, notes=notes, host=listen.host, port=listen.port)
    async with served as endpoints:
        on_serving(endpoints)
        await runner.run()
