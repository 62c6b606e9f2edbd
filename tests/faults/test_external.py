"""Faults: an external resource is made once and nothing of it is left, whatever write or call is disturbed.

Public reports: https://github.com/crossplane/crossplane-runtime/issues/340 (killed while it creates),
https://github.com/crossplane/crossplane-runtime/pull/279 (created, and its id not stored),
https://github.com/SAP/crossplane-provider-btp/pull/830 (deleted without the id, so left behind).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import finalize, reconciling
from ocf.concepts.external import Client
from ocf.errors import NotFoundError
from ocf.testing import crash_at_each_write, disturbed_call, disturbed_client
from ocf.testing.simulated_process import Disturbance
from tests.component.external.conftest import OWNER, Bucket, Buckets, Live, Shop, System

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.cluster import Cluster
    from ocf.component import Component
    from ocf.testing import VirtualClock

DISTURBANCES = [*Disturbance]


class Untagged(Buckets):
    """A system that stores no key with a bucket, and gives it the declared name: only the record shows whose it is."""

    key_of = Client.key_of
    id_of = Client.id_of


class Life:
    """An operator of one owner with a bucket, which is created, changed, and deleted with its owner."""

    def __init__(self, clock: VirtualClock, *, targets: tuple[str, ...] = (), client: type[Buckets] = Buckets) -> None:
        self.clock = clock
        self.client = client
        self.targets = targets
        self.systems: dict[int, System] = {}
        self.clusters: list[Cluster] = []

    async def new_cluster(self) -> Cluster:
        shop = await Shop.new(clock=self.clock)
        self.systems[id(shop.cluster)] = shop.system
        self.clusters.append(shop.cluster)
        return shop.cluster

    @property
    def system(self) -> System:
        return self.systems[id(self.clusters[-1])]

    def declare(self, cluster: Cluster, size: int) -> Component:
        client = disturbed_client(cluster, self.client(self.system))
        builder = component.Builder("web", owner=OWNER)
        from ocf.primitives import external

        bucket = external.Builder(client, name="town-corner", desired=Bucket(size=size))
        return builder.with_resource(bucket.with_targets(*self.targets) if self.targets else bucket).build()

    async def reconcile(self, cluster: Cluster) -> timedelta | None:
        try:
            owner = await cluster.get(OWNER)
        except NotFoundError:
            return None
        made = self.declare(cluster, owner["spec"]["size"])
        async with reconciling(owner, cluster, clock=self.clock) as context:
            found: Any = await finalize(context, made)
            result: Any = found if found is not None else await made.reconcile(context)
        return None if found is None and result.condition.status else result.requeue_after

    async def user(self, cluster: Cluster) -> None:
        """Change the owner once its bucket is there, and delete it once the change is."""
        try:
            owner = await cluster.get(OWNER)
        except NotFoundError:
            return
        sizes = {live.size for live in self.systems[id(cluster)].buckets.values()}
        records = (owner.get("status") or {}).get("external") or {}
        is_done = len(records) == max(1, len(self.targets)) and all(one.get("applied") for one in records.values())
        if is_done and sizes == {1} and owner["spec"]["size"] == 1:
            owner["spec"]["size"] = 2
            await cluster.update(owner, field_manager="user")
        elif is_done and sizes == {2}:
            await cluster.delete(OWNER)

    def outside(self, cluster: Cluster) -> tuple[dict[str, int], dict[tuple[str, str], Live]]:
        system = self.systems[id(cluster)]
        return dict(system.created), dict(system.buckets)


@pytest.mark.promise("external-once")
@pytest.mark.parametrize(
    ("targets", "client"),
    [
        pytest.param((), Buckets, id="one target"),
        pytest.param(("eu", "us"), Buckets, id="two targets"),
        pytest.param((), Untagged, id="without keys and ids"),
    ],
)
async def test_a_disturbed_write_or_call_makes_nothing_twice_and_leaves_nothing(
    clock: VirtualClock, targets: tuple[str, ...], client: type[Buckets]
) -> None:
    life = Life(clock, targets=targets, client=client)
    report = await crash_at_each_write(
        life.new_cluster,
        life.reconcile,
        others=life.user,
        clock=clock,
        external=life.outside,
        disturbances=DISTURBANCES,
    )
    report.assert_same()
    created, left = life.outside(life.clusters[0])
    assert (set(created.values()), left) == ({1}, {})
    calls = [str(one) for one in report.writes if one.api_version == "external"]
    # Created, changed and deleted, at each target.
    assert len(calls) == 3 * max(1, len(targets))


@pytest.mark.parametrize(
    ("stores_first", "doubled"),
    [
        pytest.param(True, set(), id="an intent is stored first, and the call is repeatable"),
        pytest.param(
            False,
            {Disturbance.CRASH_AFTER, Disturbance.LOST_REPLY, Disturbance.CANCELLED},
            id="what was called is known from its answer alone",
        ),
    ],
)
async def test_a_call_beside_external_resources_is_disturbed_as_a_write(
    clock: VirtualClock, doubled: set[Disturbance], *, stores_first: bool
) -> None:
    retired: dict[int, list[str]] = {}

    async def new_cluster() -> Cluster:
        shop = await Shop.new(clock=clock)
        retired[id(shop.cluster)] = []
        made.append(shop.cluster)
        return shop.cluster

    async def reconcile(cluster: Cluster) -> None:
        names = retired[id(made[-1])]

        async def retire() -> None:
            name = victim if stores_first else f"worker-{len(names)}"
            names.extend([] if name in names else [name])

        async with reconciling(await cluster.get(OWNER), cluster, clock=clock) as context:
            victim = context.status.setdefault("victim", "worker-0")
            if stores_first:
                await context.write_status()
            if "retired" not in context.status:
                await disturbed_call(cluster, "retire", retire)
                context.status["retired"] = True

    made: list[Cluster] = []
    report = await crash_at_each_write(
        new_cluster, reconcile, external=lambda one: [*retired[id(one)]], disturbances=DISTURBANCES
    )
    (call,) = [number for number, one in enumerate(report.writes, 1) if one.api_version == "external"]
    assert {row.disturbance for row in report.different if row.number == call} == doubled
    assert doubled or not report.different


async def test_a_call_without_a_simulated_process_is_sent_as_it_is(clock: VirtualClock) -> None:
    async def send() -> str:
        return "sent"

    assert await disturbed_call((await Shop.new(clock=clock)).cluster, "retire", send) == "sent"
