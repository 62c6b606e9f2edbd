"""An owner that is deleted while one of its objects lacks its owner reference.

The garbage collector knows a dependent by its owner reference. Without it, nothing would delete the object. Elsewhere:
https://github.com/kubernetes/kubernetes/issues/95742 (a ConfigMap is left over after its owner),
https://github.com/kubernetes-sigs/cluster-api/issues/6007 (owner references that are lost have to be restored).

To orphan a dependent is to remove its owner reference. Once both are done and the owner is gone, nothing in the cluster
distinguishes the two, `managedFields` included: who removes a field leaves no entry. Only what the watch of the owner
has shown does: a delete that orphans sets the finalizer `orphan` first, and the garbage collector removes it last. So a
reference is put back if the whole deletion was seen without that finalizer, and left alone if anything was missed: an
object too many can be deleted by hand, one too few cannot be brought back. Elsewhere:
https://github.com/kubernetes/kubernetes/pull/23656 (a controller that adopts what was just orphaned has it deleted),
https://github.com/kubernetes-sigs/cluster-api/pull/2505 (a controller that deletes what a user wants to orphan).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, Propagation
from ocf.component import CleanupPending, DeletionOrder
from ocf.errors import ServerError
from ocf.objects import ObjectKey
from ocf.primitives import clusterrole, configmap

from .conftest import NAMESPACE, SECOND, components_of, key_of, settings_of, shop

if TYPE_CHECKING:
    from ocf.cluster import Request
    from ocf.component import Component, ReconcileContext
    from ocf.objects import Manifest

    from .conftest import Env, RunTest, Shop

FRONT: Final = ObjectKey("v1", "Service", "corner-front", NAMESPACE)
_NO_REFERENCE: Final[Manifest] = {"metadata": {"ownerReferences": None}}
ROLE: Final = ("rbac.authorization.k8s.io/v1", "ClusterRole")
ORPHAN: Final = DeleteOptions(propagation=Propagation.ORPHAN)
# In a burst, a change of an object is seen after at most 30 seconds.
PACE: Final = 31


async def strip(env: Env, key: ObjectKey | None = None) -> None:
    await env.edit(key or settings_of(), _NO_REFERENCE)


async def remains(env: Env) -> bool:
    """Return whether a child is there after a day."""
    await asyncio.sleep(24 * 3600)
    return await env.is_present(settings_of())


@pytest.mark.promise("owner-deleted", runs="owner references that are removed before and while the owner is deleted")
@pytest.mark.parametrize(
    ("times", "pause"),
    [
        pytest.param(1, 0.0, id="once, just before"),
        pytest.param(1, 2.0, id="once, earlier"),
        pytest.param(4, 20.0, id="several times"),
        pytest.param(15, 2.0, id="so often that the repair waits"),
    ],
)
@pytest.mark.parametrize(
    "declared",
    [
        pytest.param({}, id="without a finalizer"),
        pytest.param({"on_delete": True}, id="with on_delete"),
        pytest.param({"on_delete": True, "deletion_order": DeletionOrder.COMPONENTS_FIRST}, id="components first"),
    ],
)
def test_an_object_that_has_lost_its_owner_reference_is_deleted_with_the_owner(
    run_test: RunTest, times: int, pause: float, declared: dict[str, Any]
) -> None:
    async def drop(*_: object) -> None:
        return None

    async def test(env: Env) -> None:
        given = {**declared, "on_delete": drop} if declared else {}
        async with env.operating(**given):
            await env.create(shop())
            await asyncio.sleep(5)
            for _ in range(times):
                await strip(env)
                await asyncio.sleep(pause)
            await env.cluster.delete(key_of())
            assert not await remains(env)
            assert not await env.is_present(FRONT)

    run_test(test)


@pytest.mark.promise("owner-deleted", runs="an owner reference that is removed after the owner is deleted")
def test_an_owner_reference_that_is_removed_after_the_owner_is_put_back(run_test: RunTest) -> None:
    """Before the garbage collector, which is behind, has acted; up to ten times."""

    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            # Its dependents are held, so that they exist when the owner does not.
            await env.edit(settings_of(), {"metadata": {"finalizers": ["example.com/hold"]}})
            await strip(env)
            await env.cluster.delete(key_of())
            await asyncio.sleep(5)
            live = await env.cluster.get(settings_of())
            assert "deletionTimestamp" in live["metadata"]
            await env.edit(settings_of(), {"metadata": {"finalizers": None}})
            assert not await remains(env)

    run_test(test)


@pytest.mark.promise("owner-deleted", runs="an owner that is held while a reference is removed")
def test_a_reference_that_is_removed_while_the_owner_is_held_is_put_back_after_it(run_test: RunTest) -> None:
    """Nothing is applied for an owner that is being deleted."""
    pending = [CleanupPending(600 * SECOND), CleanupPending(600 * SECOND)]

    async def drop(*_: object) -> CleanupPending | None:
        return pending.pop() if pending else None

    async def test(env: Env) -> None:
        async with env.operating(on_delete=drop):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.cluster.delete(key_of())
            await asyncio.sleep(5)
            await strip(env)
            assert not await remains(env)
            assert not await env.is_present(key_of())

    run_test(test)


@pytest.mark.promise("orphaned", runs="every way to delete an owner that orphans, with and without a finalizer")
@pytest.mark.parametrize("stripped", [False, True], ids=["with their references", "with one removed before"])
@pytest.mark.parametrize("held", [False, True], ids=["no finalizer", "held by on_delete"])
@pytest.mark.parametrize("how", ["propagation", "finalizer"])
def test_what_is_orphaned_by_request_stays(run_test: RunTest, how: str, *, held: bool, stripped: bool) -> None:
    """Also if the finalizer `orphan` is gone long before the owner, because another finalizer holds that."""
    pending = [CleanupPending(600 * SECOND), CleanupPending(600 * SECOND)]

    async def drop(*_: object) -> CleanupPending | None:
        return pending.pop() if pending else None

    async def test(env: Env) -> None:
        given: dict[str, Any] = {"on_delete": drop} if held else {}
        async with env.operating(**given):
            await env.create(shop())
            await asyncio.sleep(5)
            if stripped:
                for _ in range(12):
                    await strip(env)
                    await asyncio.sleep(PACE)
            if how == "propagation":
                await env.cluster.delete(key_of(), ORPHAN)
            else:
                live = await env.cluster.get(key_of())
                finalizers = [*live["metadata"].get("finalizers", []), "orphan"]
                await env.edit(key_of(), {"metadata": {"finalizers": finalizers}})
                await env.cluster.delete(key_of())
            assert await remains(env)
            assert await env.is_present(FRONT)
            assert not await env.is_present(key_of())

    run_test(test)


@pytest.mark.promise("orphaned", runs="a copy and a cluster-scoped object, which only the operator deletes")
@pytest.mark.parametrize("options", [DeleteOptions(), ORPHAN], ids=["not orphaned", "orphaned"])
def test_what_cannot_refer_to_its_owner_is_orphaned_as_well(run_test: RunTest, options: DeleteOptions) -> None:
    """The garbage collector may remove the finalizer `orphan` before the first reconcile after the delete."""
    copy, role = ObjectKey("v1", "ConfigMap", "copy", NAMESPACE), ObjectKey(*ROLE, "for-corner")

    def components(owner: Shop) -> Component:
        builder = component.Builder("web", condition_type="WebReady", owner=owner.key)
        body = configmap.Builder({"metadata": {"name": copy.name, "namespace": NAMESPACE}, "data": {"a": "1"}})
        builder.with_resource(body, unowned=True, delete_with_owner=True)
        return builder.with_resource(clusterrole.Builder({"metadata": {"name": role.name}, "rules": []})).build()

    async def test(env: Env) -> None:
        async with env.operating(components=components):
            await env.cluster.create(shop(), field_manager="alice")
            await asyncio.sleep(5)
            assert [await env.is_present(key) for key in (copy, role)] == [True, True]
            await env.cluster.delete(key_of(), options)
            await asyncio.sleep(60)
            assert not await env.is_present(key_of())
        assert [await env.is_present(key) for key in (copy, role)] == [options is ORPHAN] * 2

    run_test(test)


@pytest.mark.promise("orphaned", runs="a watch that is interrupted while an owner is deleted")
@pytest.mark.parametrize("options", [DeleteOptions(), ORPHAN], ids=["not orphaned", "orphaned"])
def test_a_deletion_that_the_watch_has_not_shown_changes_nothing(run_test: RunTest, options: DeleteOptions) -> None:
    """The next list shows only that the owner is gone, and not whether its dependents were orphaned."""

    async def test(env: Env) -> None:
        refusing = False

        async def refuse(_: Request) -> None:
            if refusing:
                raise ServerError("no connection")

        env.gateway.meddle = refuse
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            refusing = True
            env.gateway.cut(ServerError("connection lost"))
            await strip(env)
            await env.cluster.delete(key_of(), options)
            # The log of the server, from which a watch could go on, does not reach back so far any more.
            env.cluster.compact()
            await asyncio.sleep(60)
            refusing = False
            assert await remains(env)

    run_test(test)


def _adopted(uid: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "another", "uid": uid}


@pytest.mark.promise("orphaned", runs="objects that another writer has adopted before the owner is deleted")
@pytest.mark.parametrize("how", ["an owner reference", "an apply"])
def test_what_another_writer_has_adopted_stays(run_test: RunTest, how: str) -> None:
    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            metadata = {"name": "another", "namespace": NAMESPACE}
            another = await env.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            await asyncio.sleep(5)
            for _ in range(11):
                await strip(env)
                await asyncio.sleep(PACE)
            # The repair waits, and the owner is deleted before that.
            if how == "an apply":
                named = {"name": settings_of().name, "namespace": NAMESPACE}
                manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"theirs": "1"}}
                await env.cluster.apply(manifest, field_manager="another")
            else:
                reference = _adopted(another["metadata"]["uid"])
                await env.edit(settings_of(), {"metadata": {"ownerReferences": [reference]}})
            await env.cluster.delete(key_of())
            assert await remains(env)

    run_test(test)


@pytest.mark.promise("orphaned", runs="unowned resources, and those that a component orphans")
@pytest.mark.parametrize("options", [{"unowned": True}, {"orphan_when": True}], ids=str)
@pytest.mark.parametrize("stripped", [False, True], ids=["by the component", "by a user first"])
def test_what_the_operator_orphans_stays(run_test: RunTest, options: dict[str, Any], *, stripped: bool) -> None:
    """It carries the field manager of the component, and has no owner reference, as one that has lost it."""
    given: dict[str, Any] = {}

    def components(owner: Shop, _: ReconcileContext) -> Component:
        metadata = {"name": settings_of().name, "namespace": NAMESPACE}
        base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": owner.spec.motto}}
        builder = component.Builder("web", condition_type="WebReady")
        return builder.with_resource(configmap.Builder(base).build(), **given).build()

    async def test(env: Env) -> None:
        async with env.operating(components=components):
            await env.create(shop())
            await asyncio.sleep(5)
            given.update(options)
            if stripped:
                await strip(env)
            await env.edit(key_of(), {"metadata": {"labels": {"again": "1"}}})
            await asyncio.sleep(5)
            assert "ownerReferences" not in (await env.cluster.get(settings_of()))["metadata"]
            await env.cluster.delete(key_of())
            assert await remains(env)

    run_test(test)


@pytest.mark.promise("owner-deleted", runs="an owner that is created again under its name")
@pytest.mark.parametrize("wanted", [True, False], ids=["which manages it", "which does not"])
def test_an_owner_that_is_created_again_takes_over_or_the_object_is_deleted(run_test: RunTest, *, wanted: bool) -> None:
    def components(owner: Shop, _: ReconcileContext) -> Component | list[Component]:
        return components_of(owner) if wanted or owner.spec.motto == "first" else []

    async def test(env: Env) -> None:
        async with env.operating(components=components):
            await env.create(shop(motto="first"))
            await asyncio.sleep(5)
            for _ in range(11):
                await strip(env)
                await asyncio.sleep(PACE)
            await env.cluster.delete(key_of())
            again = await env.create(shop(motto="second"))
            await asyncio.sleep(24 * 3600)
            if wanted:
                live = await env.cluster.get(settings_of())
                assert [one["uid"] for one in live["metadata"]["ownerReferences"]] == [again["metadata"]["uid"]]
            else:
                assert not await env.is_present(settings_of())

    run_test(test)


@pytest.mark.promise("owner-deleted", runs="requests that fail after the owner is deleted")
def test_a_request_that_fails_is_repeated(run_test: RunTest) -> None:
    failures = 5

    async def fail(request: Request) -> None:
        nonlocal failures
        if request.kind == "ConfigMap" and not request.verb.is_read and failures:
            failures -= 1
            raise ServerError("no connection")

    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            env.gateway.meddle = fail
            await strip(env)
            await env.cluster.delete(key_of())
            assert not await remains(env)
            assert not failures

    run_test(test)


def test_a_deletion_costs_no_request_and_one_report(run_test: RunTest) -> None:
    """Where every object has its owner reference, the garbage collector alone acts."""
    deleted: list[ObjectKey] = []

    async def test(env: Env) -> None:
        async with env.operating(on_deleted=deleted.append):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            await env.cluster.delete(key_of())
            assert not await remains(env)
            assert (env.gateway.writes, deleted) == ([], [key_of()])

    run_test(test)
