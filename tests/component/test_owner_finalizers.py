"""Finalizer: cluster-scoped objects are deleted before their namespaced owner."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import Component, FinalizationResult, ReconcileContext, finalize, reconciling
from ocf.component.owner_deletion import cleanup_finalizer
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, InterceptingCluster, VirtualClock, faults
from ocf_server import EmbeddedCluster

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


async def run(env: Env, *subjects: Component, cluster: Cluster | None = None) -> FinalizationResult | None:
    """Reconcile as an operator does, finalizer first."""
    owner = await env.owner_manifest()
    async with reconciling(owner, cluster or env.cluster, clock=env.clock) as context:
        departure = await finalize(context, *subjects)
        if departure is None:
            for one in subjects:
                await one.reconcile(context)
    return departure


async def finalizers(env: Env) -> list[str]:
    found: list[str] = (await env.owner_manifest())["metadata"].get("finalizers", [])
    return found


async def test_an_owner_without_cluster_scoped_objects_gets_no_finalizer(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await run(env, plain)
    assert await finalizers(env) == []


async def test_the_finalizer_is_set_before_the_first_such_object_is_created(env: Env, subject: Component) -> None:
    """A crash between the two leaves a finalizer without objects, never objects without a finalizer."""
    broken = FaultyCluster(env.cluster, [faults.server_error(kind="Shop", times=None)])
    with pytest.raises(Exception, match="unable to handle"):
        await run(env, subject, cluster=broken)
    assert not await env.exists(ROLE)
    await run(env, subject)
    assert await finalizers(env) == [cleanup_finalizer("ocf")]
    assert await env.exists(ROLE)


async def test_setting_the_finalizer_costs_one_write_and_no_conflict(env: Env, subject: Component) -> None:
    await run(env, subject)
    codes = [request.code for request in env.cluster.requests if request.kind == "Shop"]
    assert codes == [200] * len(codes)
    env.cluster.requests.clear()
    await run(env, subject)
    assert env.cluster.requests.writes == 0


async def test_deleting_the_owner_deletes_cluster_scoped_objects(env: Env, subject: Component) -> None:
    await run(env, subject)
    await env.cluster.delete(env.owner)
    assert await run(env, subject) == FinalizationResult()
    assert not await env.exists(ROLE)
    assert not await env.exists(env.owner)


@pytest.mark.embedded_only("collecting garbage takes a controller")
async def test_the_rest_is_left_to_the_garbage_collector(env: Env, subject: Component) -> None:
    await run(env, subject)
    await env.cluster.delete(env.owner)
    await run(env, subject)
    assert not await env.exists(CONFIG)


async def test_objects_of_other_owners_stay(env: Env, subject: Component) -> None:
    await env.create(ObjectKey(ROLE.api_version, ROLE.kind, "theirs"), rules=[])
    await run(env, subject)
    await env.cluster.delete(env.owner)
    await run(env, subject)
    assert await env.exists(ObjectKey(ROLE.api_version, ROLE.kind, "theirs"))
    assert not await env.exists(ROLE)


async def test_an_owner_waits_for_objects_with_finalizers(env: Env, subject: Component) -> None:
    await run(env, subject)
    await env.change(ROLE, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(env.owner)
    for _ in range(2):
        waiting = await run(env, subject)
        assert waiting == FinalizationResult(remaining=(ROLE,), requeue_after=timedelta(seconds=10))
        assert await finalizers(env) == [cleanup_finalizer("ocf")]
    await env.change(ROLE, metadata={"finalizers": None})
    assert await run(env, subject) == FinalizationResult()
    assert not await env.exists(env.owner)


async def test_other_finalizers_stay(env: Env, subject: Component) -> None:
    await env.change(env.owner, metadata={"finalizers": ["example.com/hold"]})
    await run(env, subject)
    assert await finalizers(env) == ["example.com/hold", cleanup_finalizer("ocf")]
    await env.cluster.delete(env.owner)
    await run(env, subject)
    assert await finalizers(env) == ["example.com/hold"]


async def test_an_owner_that_is_being_deleted_is_not_reconciled(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await env.change(env.owner, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(env.owner)
    assert await run(env, plain) == FinalizationResult()
    assert not await env.exists(CONFIG)


async def test_an_owner_that_is_being_deleted_is_not_reconciled_without_the_finalizer(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    """Objects that are created now would be in the way of the garbage collector."""
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await env.reconcile(plain)
    await env.change(env.owner, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(env.owner)
    await env.cluster.delete(CONFIG)
    result = await env.reconcile(plain)
    assert (result.outcomes, result.condition.reason) == ((), "Healthy")
    assert not await env.exists(CONFIG)


async def test_the_finalizer_is_removed_when_it_is_not_needed(
    env: Env, subject: Component, config_map: Callable[..., StaticKind]
) -> None:
    await run(env, subject)
    plain = component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()
    await run(env, plain)
    assert await finalizers(env) == []


async def test_a_concurrent_write_is_not_an_error(env: Env, subject: Component) -> None:
    async def touch() -> None:
        await env.change(env.owner, metadata={"annotations": {"touched": "yes"}})

    hit = faults.meanwhile(touch, kind="Shop")
    await run(env, subject, cluster=FaultyCluster(env.cluster, [hit]))
    assert await finalizers(env) == [cleanup_finalizer("ocf")]
    assert (await env.owner_manifest())["metadata"]["annotations"] == {"touched": "yes"}


async def test_an_owner_that_is_deleted_meanwhile_is_not_created_again(env: Env, subject: Component) -> None:
    class Late(InterceptingCluster):
        async def intercept(self, request: Any, send: Any) -> Any:
            if request.kind == "Shop":
                owner = await self._inner.list("example.com/v1", "Shop")
                if owner.items:
                    await self._inner.delete(env.owner)
            return await super().intercept(request, send)

    await run(env, subject, cluster=Late(env.cluster))
    assert not await env.exists(env.owner)


async def test_a_cluster_scoped_owner_needs_no_finalizer(subject: Component) -> None:
    """Objects of any scope can refer to it, so the garbage collector deletes all of them."""
    owner: Manifest = {"apiVersion": "example.com/v1", "kind": "Mall", "metadata": {"name": "demo", "uid": "u"}}
    assert subject.objects_without_gc(ReconcileContext(owner, EmbeddedCluster(), VirtualClock())) == ()


async def test_an_object_that_is_kept_does_not_hold_the_owner(env: Env, subject: Component) -> None:
    """Another controller took it over, and a finalizer holds it."""
    await run(env, subject)
    controller = {"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": "other", "controller": True}
    await env.change(ROLE, metadata={"finalizers": ["example.com/hold"], "ownerReferences": [controller]})
    await env.cluster.delete(env.owner)
    assert await run(env, subject) == FinalizationResult()
    assert await env.exists(ROLE)
    assert not await env.exists(env.owner)


async def test_what_an_owner_waits_for_is_in_its_status(env: Env, subject: Component) -> None:
    await run(env, subject)
    await env.change(ROLE, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(env.owner)
    await run(env, subject)
    found = await env.condition("ocf/CleanedUp")
    assert (found["status"], found["reason"]) == ("False", "ObjectsRemaining")
    assert found["message"] == f"Waiting until objects are deleted (1): {ROLE}"
