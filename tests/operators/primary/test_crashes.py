"""The operator of databases, disturbed at each of its writes: the same end, no member promoted twice, none left.

Public reports: https://github.com/apache/solr-operator/issues/707 (a scale-down that stops in the middle),
https://github.com/bitnami/charts/issues/21614 (two primaries after a restart).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.cluster import Cluster
from ocf.testing import OwnerEnv, VirtualClock, crash_at_each_write
from ocf.testing.simulated_process import Disturbance
from ocf_server import EmbeddedCluster
from tests.operators.primary.model import Database
from tests.operators.primary.operator import databases
from tests.operators.primary.world import SETTINGS, World
from tests.requirements import Sampled

OTHERS: Final = (Disturbance.LOST_REPLY, Disturbance.CONFLICT)
DISTURBANCES: Final = (Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER, Disturbance.LOST_REPLY)
QUICK: Final = replace(SETTINGS, ready_after=timedelta(seconds=1), stop_after=timedelta(0))
ALL: Final = ["main-0", "main-1", "main-2"]


@dataclass
class Lives:
    """Databases that begin alike, each with servers of its own, and whatever becomes of them.

    Args:
        begin: What happens to a database at rest before its life is disturbed; None for one that does not run yet.
    """

    begin: Callable[[World], Any] | None
    clock: VirtualClock = field(default_factory=VirtualClock)
    worlds: list[World] = field(default_factory=list)
    _first: EmbeddedCluster | None = None

    async def make(self) -> EmbeddedCluster:
        """Return a cluster in its first state."""
        if self._first is None:
            self._first = await self._at_rest()
        world = World(self._first.clone())
        self.worlds.append(world)
        if self.begin is not None:
            await self.begin(world)
        return world.cluster

    async def reconcile(self, cluster: Cluster) -> timedelta | None:
        """Reconcile once, as a process does that remembers nothing."""
        return await self._reconcile(self.worlds[-1], cluster)

    async def _reconcile(self, world: World, cluster: Cluster) -> timedelta | None:
        return await OwnerEnv(databases(world.servers), world.main, cluster, self.clock).reconcile()

    async def work(self, cluster: Cluster) -> None:
        """Let the StatefulSet controller work until all pods are as they will stay."""
        assert isinstance(cluster, EmbeddedCluster)
        controllers, idle = cluster.controllers(QUICK), 0
        while idle < 2:
            before = cluster.resource_version
            await controllers.settle()
            self.clock.advance(timedelta(seconds=1))
            idle = idle + 1 if cluster.resource_version == before else 0

    async def _at_rest(self) -> EmbeddedCluster:
        world = World(EmbeddedCluster(namespaces=["town"], now=self.clock.now))
        await world.cluster.apply(Database.definition(), field_manager="user")
        await world.create()
        if self.begin is not None:
            while (await world.conditions()).get("Ready", {}).get("reason") != "Healthy":
                await self._reconcile(world, world.cluster)
                await self.work(world.cluster)
        return world.cluster


async def shrink(world: World) -> None:
    await world.change(replicas=1)


async def fail(world: World) -> None:
    await world.make_unready("main-0")


async def update(world: World) -> None:
    await world.change(image="db:2")


async def switch(world: World) -> None:
    await world.change(promote="main-1")


@pytest.mark.parametrize(
    ("begin", "promoted", "members"),
    [
        pytest.param(None, [], ALL, id="creation"),
        pytest.param(fail, ["main-2"], ["main-1", "main-2", "main-3"], id="failover"),
        pytest.param(update, [], ALL, id="rollout"),
        pytest.param(switch, ["main-1"], ALL, id="switchover"),
    ],
)
@pytest.mark.matrix
async def test_the_end_is_the_same_whichever_write_is_disturbed(
    begin: Callable[[World], Any] | None,
    promoted: list[str],
    members: list[str],
    sampled: Sampled,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("secrets.choice", lambda letters: letters[0])
    lives = Lives(begin)
    report = await crash_at_each_write(
        lives.make,
        lives.reconcile,
        others=lives.work,
        clock=lives.clock,
        disturbances=[Disturbance.CRASH_AFTER, *(one for one, _ in sampled([(one, members) for one in OTHERS]))],
        max_reconciles=40,
    )
    report.assert_same()
    for world in lives.worlds:
        assert world.servers.promoted == promoted
        assert world.servers.most_primaries == 1
        await world.check(members)


async def test_who_leaves_is_chosen_once_and_goes_alone_whichever_write_is_disturbed() -> None:
    """A choice that was not stored may be made again, by a question that has another answer by then."""
    lives = Lives(shrink)
    report = await crash_at_each_write(
        lives.make, lives.reconcile, others=lives.work, disturbances=DISTURBANCES, max_reconciles=40
    )
    assert len(report.rows) >= 4 * len(DISTURBANCES)
    for world in lives.worlds:
        assert 1 <= len(world.servers.left) <= 2
        await world.check([name for name in ALL if name != world.servers.left[-1]])
        assert len(await world.names("v1", "PersistentVolumeClaim")) == 3
