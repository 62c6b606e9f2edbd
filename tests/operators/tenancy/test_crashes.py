"""The operator of tenants, disturbed at each of its writes: the same end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.cluster import Cluster
from ocf.objects import ObjectKey
from ocf.testing import LocalWebhooks, OwnerEnv, VirtualClock, crash_at_each_write
from ocf.testing.simulated_process import Disturbance
from ocf_server import EmbeddedCluster
from tests.operators.tenancy.model import Tenant
from tests.operators.tenancy.operator import tenants
from tests.operators.tenancy.world import Tenants, key
from tests.requirements import Sampled

OTHERS: Final = (Disturbance.CRASH_BEFORE, Disturbance.LOST_REPLY, Disturbance.REJECTED, Disturbance.CONFLICT)
SPEC: Final[dict[str, Any]] = {
    "quota": {"pods": "10"},
    "containerDefaults": {"cpu": "1"},
    "labels": {"level": "1"},
    "account": {"name": "deployer", "namespace": "tenancy"},
    "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd"}}],
}


@dataclass
class Lives:
    """Tenants that begin alike, with two namespaces.

    Args:
        begin: What happens before the operator is disturbed.
        is_begun: Whether it has reconciled the tenant before.
    """

    begin: Callable[[Tenants], Awaitable[object]]
    is_begun: bool
    clock: VirtualClock = field(default_factory=VirtualClock)
    ends: list[EmbeddedCluster] = field(default_factory=list)

    async def make(self) -> Cluster:
        """Return a cluster in its first state, whose API server calls the webhooks."""
        cluster = EmbeddedCluster(now=self.clock.now)
        await cluster.apply(Tenant.definition(), field_manager="admin")
        await LocalWebhooks.install(cluster, tenants())
        world = Tenants(cluster)
        await world.tenant("shops", **SPEC)
        for name in ("east", "west"):
            await world.user("alice").namespace(name)
        for _ in range(3 if self.is_begun else 0):
            await self.reconcile(cluster)
        await self.begin(world)
        self.ends.append(cluster)
        return cluster

    async def reconcile(self, cluster: Cluster) -> timedelta | None:
        """Reconcile once, as a process does that remembers nothing."""
        return await OwnerEnv(tenants(), key("shops"), cluster, self.clock).reconcile()


async def nothing(_: Tenants) -> None: ...


async def shrink(world: Tenants) -> None:
    await world.change("shops", containerDefaults=None, labels={"level": None}, objects=[], quota={"pods": "5"})


async def delete_a_namespace(world: Tenants) -> None:
    await world.cluster.delete(ObjectKey("v1", "Namespace", "west", ""))


async def delete(world: Tenants) -> None:
    await world.cluster.delete(key("shops"))


@pytest.mark.parametrize(
    ("begin", "is_begun", "namespaces"),
    [
        pytest.param(nothing, False, ["east", "west"], id="a start"),
        pytest.param(shrink, True, ["east", "west"], id="less is declared"),
        pytest.param(delete_a_namespace, True, ["east"], id="a namespace goes"),
        pytest.param(delete, True, None, id="a deletion"),
    ],
)
@pytest.mark.matrix
async def test_the_end_is_the_same_whichever_write_is_disturbed(
    begin: Callable[[Tenants], Awaitable[object]], is_begun: bool, namespaces: list[str] | None, sampled: Sampled
) -> None:
    lives = Lives(begin, is_begun)
    report = await crash_at_each_write(
        lives.make,
        lives.reconcile,
        clock=lives.clock,
        disturbances=[Disturbance.CRASH_AFTER, *(one for one, _ in sampled([(one, is_begun) for one in OTHERS]))],
        max_reconciles=12,
    )
    report.assert_same()
    assert report.writes
    for cluster in lives.ends:
        found = await Tenants(cluster).found(key("shops"))
        assert (found["status"]["namespaces"] if found else None) == namespaces
