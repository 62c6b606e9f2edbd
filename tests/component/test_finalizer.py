"""Finalizer: cluster-scoped objects are deleted before their namespaced owner."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import FINALIZER, Component, FinalizationResult, ReconcileContext, finalize, reconciling
from ocf.embedded import EmbeddedCluster
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, InterceptingCluster, VirtualClock, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from tests.component.conftest import Env, StaticKind

ROLE = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "viewer")
CONFIG = ObjectKey("v1", "ConfigMap", "settings", "shop")


@pytest.fixture
def subject(cluster_role: StaticKind, config_map: Callable[..., StaticKind]) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_resource(config_map().build())
    return builder.with_resource(cluster_role.build()).build()


async def run(world: Env, *subjects: Component, cluster: Cluster | None = None) -> FinalizationResult | None:
    """Reconcile as an operator does, finalizer first."""
    owner = await world.owner_manifest()
    async with reconciling(owner, cluster or world.cluster, clock=world.clock) as context:
        departure = await finalize(context, *subjects)
        if departure is None:
            for one in subjects:
                await one.reconcile(context)
    return departure


async def finalizers(world: Env) -> list[str]:
    found: list[str] = (await world.owner_manifest())["metadata"].get("finalizers", [])
    return found


async def test_an_owner_without_cluster_scoped_objects_gets_no_finalizer(
    world: Env, config_map: Callable[..., StaticKind]
) -> None:
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await run(world, plain)
    assert await finalizers(world) == []


async def test_the_finalizer_is_set_before_the_first_such_object_is_created(world: Env, subject: Component) -> None:
    """A crash between the two leaves a finalizer without objects, never objects without a finalizer."""
    broken = FaultyCluster(world.cluster, [faults.server_error(kind="Shop", times=None)])
    with pytest.raises(Exception, match="unable to handle"):
        await run(world, subject, cluster=broken)
    assert not await world.exists(ROLE)
    await run(world, subject)
    assert await finalizers(world) == [FINALIZER]
    assert await world.exists(ROLE)


async def test_setting_the_finalizer_costs_one_write_and_no_conflict(world: Env, subject: Component) -> None:
    await run(world, subject)
    codes = [request.code for request in world.cluster.requests if request.kind == "Shop"]
    assert codes == [200] * len(codes)
    world.cluster.requests.clear()
    await run(world, subject)
    assert world.cluster.requests.writes == 0


async def test_deleting_the_owner_deletes_cluster_scoped_objects(world: Env, subject: Component) -> None:
    await run(world, subject)
    await world.cluster.delete(world.owner)
    assert await run(world, subject) == FinalizationResult()
    assert not await world.exists(ROLE)
    assert not await world.exists(world.owner)


@pytest.mark.embedded_only("collecting garbage takes a controller")
async def test_the_rest_is_left_to_the_garbage_collector(world: Env, subject: Component) -> None:
    await run(world, subject)
    await world.cluster.delete(world.owner)
    await run(world, subject)
    assert not await world.exists(CONFIG)


async def test_objects_of_other_owners_stay(world: Env, subject: Component) -> None:
    await world.create(ObjectKey(ROLE.api_version, ROLE.kind, "theirs"), rules=[])
    await run(world, subject)
    await world.cluster.delete(world.owner)
    await run(world, subject)
    assert await world.exists(ObjectKey(ROLE.api_version, ROLE.kind, "theirs"))
    assert not await world.exists(ROLE)


async def test_an_owner_waits_for_objects_with_finalizers(world: Env, subject: Component) -> None:
    await run(world, subject)
    await world.change(ROLE, metadata={"finalizers": ["example.com/hold"]})
    await world.cluster.delete(world.owner)
    for _ in range(2):
        waiting = await run(world, subject)
        assert waiting == FinalizationResult(remaining=(ROLE,), requeue_after=timedelta(seconds=10))
        assert await finalizers(world) == [FINALIZER]
    await world.change(ROLE, metadata={"finalizers": None})
    assert await run(world, subject) == FinalizationResult()
    assert not await world.exists(world.owner)


async def test_other_finalizers_stay(world: Env, subject: Component) -> None:
    await world.change(world.owner, metadata={"finalizers": ["example.com/hold"]})
    await run(world, subject)
    assert await finalizers(world) == ["example.com/hold", FINALIZER]
    await world.cluster.delete(world.owner)
    await run(world, subject)
    assert await finalizers(world) == ["example.com/hold"]


async def test_an_owner_that_is_being_deleted_is_not_reconciled(
    world: Env, config_map: Callable[..., StaticKind]
) -> None:
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await world.change(world.owner, metadata={"finalizers": ["example.com/hold"]})
    await world.cluster.delete(world.owner)
    assert await run(world, plain) == FinalizationResult()
    assert not await world.exists(CONFIG)


async def test_an_owner_that_is_being_deleted_is_not_reconciled_without_the_finalizer(
    world: Env, config_map: Callable[..., StaticKind]
) -> None:
    """Objects that are created now would be in the way of the garbage collector."""
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await world.reconcile(plain)
    await world.change(world.owner, metadata={"finalizers": ["example.com/hold"]})
    await world.cluster.delete(world.owner)
    await world.cluster.delete(CONFIG)
    result = await world.reconcile(plain)
    assert (result.outcomes, result.condition.reason) == ((), "Healthy")
    assert not await world.exists(CONFIG)


async def test_the_finalizer_is_removed_when_it_is_not_needed(
    world: Env, subject: Component, config_map: Callable[..., StaticKind]
) -> None:
    await run(world, subject)
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await run(world, plain)
    assert await finalizers(world) == []


async def test_a_concurrent_write_is_not_an_error(world: Env, subject: Component) -> None:
    async def touch() -> None:
        await world.change(world.owner, metadata={"annotations": {"touched": "yes"}})

    hit = faults.meanwhile(touch, kind="Shop")
    await run(world, subject, cluster=FaultyCluster(world.cluster, [hit]))
    assert await finalizers(world) == [FINALIZER]
    assert (await world.owner_manifest())["metadata"]["annotations"] == {"touched": "yes"}


async def test_an_owner_that_is_deleted_meanwhile_is_not_created_again(world: Env, subject: Component) -> None:
    class Late(InterceptingCluster):
        async def intercept(self, request: Any, send: Any) -> Any:
            if request.kind == "Shop":
                owner = await self._inner.list("example.com/v1", "Shop")
                if owner.items:
                    await self._inner.delete(world.owner)
            return await super().intercept(request, send)

    await run(world, subject, cluster=Late(world.cluster))
    assert not await world.exists(world.owner)


async def test_a_cluster_scoped_owner_needs_no_finalizer(subject: Component) -> None:
    """Objects of any scope can refer to it, so the garbage collector deletes all of them."""
    owner: Manifest = {"apiVersion": "example.com/v1", "kind": "Mall", "metadata": {"name": "demo", "uid": "u"}}
    assert subject.objects_without_gc(ReconcileContext(owner, EmbeddedCluster(), VirtualClock())) == ()
