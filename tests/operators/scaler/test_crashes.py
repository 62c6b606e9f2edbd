"""The operator of scalers, disturbed at each of its writes: the same end, never two HPAs, and one original count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.cluster import Cluster
from ocf.objects import Manifest
from ocf.testing import OwnerEnv, VirtualClock, crash_at_each_write, serving_http_stub
from ocf.testing.simulated_process import Disturbance
from ocf_server import EmbeddedCluster
from tests.operators.scaler.model import Scaler
from tests.operators.scaler.triggers import READINGS, Readings
from tests.operators.scaler.world import HPA, MAIN, World, deployment, systems
from tests.requirements import Sampled

OTHERS: Final = (Disturbance.CRASH_BEFORE, Disturbance.LOST_REPLY, Disturbance.REJECTED, Disturbance.CONFLICT)
SPEC: Final[dict[str, Any]] = {"cooldownSeconds": 60, "onDeletion": "Restore"}


@dataclass
class Lives:
    """Scalers that begin alike, with a queue each.

    Args:
        prepare: What happens before there is a process.
    """

    world: World
    prepare: Callable[[World], Awaitable[object]]
    is_begun: bool
    clock: VirtualClock
    clusters: list[EmbeddedCluster] = field(default_factory=list)
    _first: EmbeddedCluster | None = None

    async def make(self) -> Cluster:
        """Return a cluster in its first state."""
        if self._first is None:
            first = EmbeddedCluster(namespaces=["town"], now=self.clock.now)
            await first.apply(Scaler.definition(), field_manager="admin")
            await first.create(deployment(), field_manager="user")
            self.world.cluster = first
            await self.world.scaler(**SPEC)
            self.world.amounts["mail"] = 15
            for _ in range(4 if self.is_begun else 0):
                await self.reconcile(first)
            self._first = first
        self.clusters.append(made := self._first.clone())
        self.world.cluster = made
        await self.prepare(self.world)
        return made

    async def reconcile(self, cluster: Cluster) -> timedelta | None:
        """Reconcile once, as a process does that remembers nothing."""
        env = OwnerEnv(self.world.operator(), MAIN, cluster, self.clock)
        env.values[READINGS] = Readings(self.world.session, self.clock)
        return await env.reconcile()

    async def work(self, cluster: Cluster) -> None:
        """Look at what there is between two reconciles."""
        assert len((await cluster.list(*HPA[:2])).items) <= 1


async def nothing(_: World) -> None: ...


async def stop(world: World) -> None:
    world.amounts["mail"] = 0


async def rename(world: World) -> None:
    await world.change(autoscaler="renamed", maxReplicas=6)


async def suspend(world: World) -> None:
    await world.change(suspended=True, suspendedReplicas=0, autoscaler="renamed")


async def delete(world: World) -> None:
    await world.cluster.delete(MAIN)


@pytest.mark.parametrize(
    ("prepare", "is_begun", "replicas", "autoscalers"),
    [
        pytest.param(nothing, False, 1, ["main"], id="a start"),
        pytest.param(stop, True, 0, ["main"], id="a stop"),
        pytest.param(rename, True, 1, ["renamed"], id="a rename"),
        pytest.param(suspend, True, 0, [], id="a suspension"),
        pytest.param(delete, True, 0, [], id="a deletion"),
    ],
)
@pytest.mark.matrix
async def test_the_end_is_the_same_whichever_write_is_disturbed(
    prepare: Callable[[World], Awaitable[object]],
    is_begun: bool,
    replicas: int,
    autoscalers: list[str],
    sampled: Sampled,
) -> None:
    clock = VirtualClock()
    amounts = {"mail": 15.0}
    async with serving_http_stub(systems(amounts)) as stub:
        lives = Lives(World(EmbeddedCluster(), stub=stub, amounts=amounts), prepare, is_begun, clock)
        report = await crash_at_each_write(
            lives.make,
            lives.reconcile,
            others=lives.work,
            clock=clock,
            disturbances=[Disturbance.CRASH_AFTER, *(one for one, _ in sampled([(one, replicas) for one in OTHERS]))],
            max_reconciles=12,
        )
        report.assert_same()
        assert any(write.subresource == "scale" for write in report.writes) == (prepare is not rename)
        for cluster in lives.clusters:
            lives.world.cluster = cluster
            assert await lives.world.replicas() == replicas
            assert await lives.world.autoscalers() == autoscalers
            found: Manifest = await lives.world.found(MAIN)
            assert not found or found["status"]["originalReplicas"] == 0
