"""Objects that `on_delete` needs are there until it has succeeded, however their owner is deleted.

Publicly reported of other operators: credentials that go first, and namespaces that never end
(https://github.com/1Password/onepassword-operator/issues/55, https://github.com/Azure/azure-service-operator/issues/4679,
https://github.com/banzaicloud/koperator/issues/414, https://github.com/kubermatic/kubermatic/issues/4388).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from ocf import component
from ocf.cluster import Cluster, DeleteOptions, PatchOptions, PatchType, Propagation, Request, Verb
from ocf.component import CleanupPending, Component, DeletionOrder, ReconcileContext
from ocf.component.held_objects import release_object
from ocf.component.owner_deletion import SKIP_CLEANUP
from ocf.errors import BuildError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, secret
from ocf.runtime.operator import Lease, ManagerOptions, Operator, Sharding, abandoned, running
from ocf.testing import LoopClock, crash_at_each_write, run_in_virtual_time

from .conftest import NAMESPACE, SECOND, SHOPS, Env, Gateway, RunTest, Shop, key_of, new_cluster, shop
from .test_deletion import TIMING

LOGIN: Final = ObjectKey("v1", "Secret", "corner-login", NAMESPACE)
OTHER: Final = ObjectKey("v1", "ConfigMap", "corner-other", NAMESPACE)
HOLD: Final = "shops.ocf.dev/held-for-cleanup"
RECORD: Final = "shops.ocf.dev/held-objects"
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl")


def made(key: ObjectKey, **content: Any) -> Manifest:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, **content}


@dataclass
class Database:
    """A database outside of the cluster, which is dropped with the password of the Secret.

    Attributes:
        found: Whether each call of `drop` has found the Secret.
        pending: How many calls do not finish.
        holds: Whether the Secret is held.
        registers: Whether the component registers it.
    """

    found: list[bool] = field(default_factory=list)
    pending: int = 2
    holds: bool = True
    registers: bool = True

    def components(self, _: Shop) -> Component:
        login = secret.Builder(made(LOGIN, stringData={"password": "hunter2"})).build()
        builder = component.Builder("web", condition_type="WebReady").with_resource(
            configmap.Builder(made(OTHER, data={"motto": "open"})).build()
        )
        if self.registers:
            builder = builder.with_resource(login, held_for_cleanup=self.holds)
        return builder.build()

    async def drop(self, _: Shop, context: ReconcileContext, cluster: Cluster) -> CleanupPending | None:
        del context
        try:
            await cluster.get(LOGIN)
        except NotFoundError:
            self.found.append(False)
        else:
            self.found.append(True)
        return CleanupPending(10 * SECOND) if len(self.found) <= self.pending else None

    def declared(self, **changed: Any) -> dict[str, Any]:
        return {"components": self.components, "on_delete": self.drop, **changed}


async def hold_of(env: Env) -> list[str]:
    found: list[str] = (await env.cluster.get(LOGIN))["metadata"].get("finalizers", [])
    return found


async def delete(cluster: Cluster, how: str) -> None:
    if how == "namespace":
        await cluster.delete(ObjectKey("v1", "Namespace", NAMESPACE))
    else:
        await cluster.delete(key_of(), DeleteOptions(propagation=Propagation(how)))


HOW: Final = [
    pytest.param("Background", id="in the background"),
    pytest.param("Foreground", id="in the foreground"),
    pytest.param("Orphan", id="orphaning its objects"),
    pytest.param("namespace", id="with its namespace"),
]


@pytest.mark.promise("held-objects", runs="4 kinds of deletion in 2 orders")
@pytest.mark.parametrize("order", DeletionOrder)
@pytest.mark.parametrize("how", HOW)
def test_the_clean_up_finds_what_is_held_for_it(run_test: RunTest, how: str, order: DeletionOrder) -> None:
    async def test(env: Env) -> None:
        database = Database()
        async with env.operating(**database.declared(deletion_order=order)):
            await env.create(shop())
            await asyncio.sleep(5)
            assert await hold_of(env) == [HOLD]
            await delete(env.cluster, how)
            await asyncio.sleep(300)
            assert database.found == [True] * 3
            assert not await env.is_present(key_of())
            if how == "Orphan":
                assert await hold_of(env) == []
            else:
                assert not await env.is_present(LOGIN)
                assert not await env.is_present(OTHER)
            if how == "namespace":
                assert not await env.is_present(ObjectKey("v1", "Namespace", NAMESPACE))

    run_test(test)


@pytest.mark.parametrize("how", ["Foreground", "namespace"])
def test_without_the_option_it_is_gone_by_then(run_test: RunTest, how: str) -> None:
    """What the page says of a foreground deletion and of a namespace."""

    async def test(env: Env) -> None:
        database = Database(holds=False)
        async with env.operating(**database.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await delete(env.cluster, how)
            await asyncio.sleep(300)
            assert database.found[-1] is False

    run_test(test)


def test_a_reconcile_of_an_owner_with_held_objects_sends_no_request(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        database = Database()
        async with env.operating(**database.declared(resync=100 * SECOND)):
            await env.create(shop())
            await asyncio.sleep(10)
            env.forget()
            await asyncio.sleep(1000)
            assert env.gateway.requests == []
        env.forget()
        async with env.operating(**database.declared()):
            await asyncio.sleep(100)
            assert env.gateway.writes == []

    run_test(test)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"registers": False}, id="the component does not register it any more"),
        pytest.param({"holds": False}, id="the option is removed"),
    ],
)
@pytest.mark.promise("held-objects", runs="2 ways to hold it no longer")
def test_what_is_not_held_any_more_is_released(run_test: RunTest, changed: dict[str, bool]) -> None:
    async def test(env: Env) -> None:
        async with env.operating(**Database().declared()):
            await env.create(shop())
            await asyncio.sleep(5)
        database = Database(holds=changed.get("holds", True), registers=changed.get("registers", True))
        async with env.operating(**database.declared()):
            await asyncio.sleep(5)
            assert await hold_of(env) == []
            owner = await env.cluster.get(key_of())
            assert RECORD not in owner["metadata"].get("annotations", {})
            assert owner["metadata"]["finalizers"] == ["shops.ocf.dev/cleanup-external"]

    run_test(test)


def test_it_is_released_if_the_operator_has_no_on_delete_any_more(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        database = Database()
        async with env.operating(**database.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
        async with env.operating(**database.declared(on_delete=None)):
            await asyncio.sleep(5)
            assert await hold_of(env) == []
            assert "finalizers" not in (await env.cluster.get(key_of()))["metadata"]

    run_test(test)


def test_a_held_object_that_a_user_deletes_is_made_again(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(**Database().declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            before = (await env.cluster.get(LOGIN))["metadata"]["uid"]
            await env.cluster.delete(LOGIN)
            await asyncio.sleep(5)
            after = await env.cluster.get(LOGIN)
            assert after["metadata"]["uid"] != before
            assert "deletionTimestamp" not in after["metadata"]
            assert await hold_of(env) == [HOLD]

    run_test(test)


@pytest.mark.parametrize("recreates", [True, False])
def test_one_that_a_user_deletes_goes_also_if_the_new_one_could_not_be_applied_to_it(
    run_test: RunTest, *, recreates: bool
) -> None:
    async def test(env: Env) -> None:
        database = Database()

        def locked(_: Shop) -> Component:
            login = secret.Builder(made(LOGIN, stringData={"password": "hunter2"}, immutable=True))
            return component.Builder("web").with_resource(login, held_for_cleanup=True).build()

        def changed(_: Shop) -> Component:
            login = secret.Builder(made(LOGIN, stringData={"password": "sesame"}, immutable=True))
            builder = component.Builder("web")
            builder.with_resource(login, held_for_cleanup=True, recreate_on_immutable_change=recreates)
            return builder.build()

        async with env.operating(**database.declared(components=locked)):
            await env.create(shop())
            await asyncio.sleep(5)
            before = (await env.cluster.get(LOGIN))["metadata"]["uid"]
        await env.cluster.delete(LOGIN)
        assert await hold_of(env) == [HOLD]
        async with env.operating(**database.declared(components=changed)):
            await asyncio.sleep(60)
            after = await env.cluster.get(LOGIN)
            assert after["metadata"]["uid"] != before
            assert await hold_of(env) == [HOLD]

    run_test(test)


def test_a_held_object_is_created_again_with_its_finalizer(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        database = Database()

        def holding(password: str) -> Callable[[Shop], Component]:
            login = secret.Builder(made(LOGIN, stringData={"password": password}, immutable=True))
            builder = component.Builder("web").with_resource(
                login, held_for_cleanup=True, recreate_on_immutable_change=True, propagation=Propagation.FOREGROUND
            )
            made_of = builder.build()
            return lambda _: made_of

        async with env.operating(**database.declared(components=holding("hunter2"))):
            await env.create(shop())
            await asyncio.sleep(5)
            before = (await env.cluster.get(LOGIN))["metadata"]["uid"]
        async with env.operating(**database.declared(components=holding("sesame"))):
            await asyncio.sleep(60)
            assert (await env.cluster.get(LOGIN))["metadata"]["uid"] != before
            assert await hold_of(env) == [HOLD]

    run_test(test)


def test_skipping_the_clean_up_releases_it(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        database = Database(pending=1000)
        async with env.operating(**database.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await delete(env.cluster, "namespace")
            await asyncio.sleep(60)
            assert await env.is_present(LOGIN)
            await env.edit(key_of(), {"metadata": {"annotations": {SKIP_CLEANUP: "true"}}})
            await asyncio.sleep(60)
            assert not await env.is_present(ObjectKey("v1", "Namespace", NAMESPACE))

    run_test(test)


@pytest.mark.promise(
    "held-objects", runs="an owner without its finalizers, while the operator runs and before its start"
)
@pytest.mark.parametrize("when", ["while the operator runs", "before its start"])
def test_it_is_released_if_its_owner_is_gone_for_good(run_test: RunTest, when: str) -> None:
    """A user has removed the finalizers of the owner, and the clean-up never ran."""

    async def test(env: Env) -> None:
        async def lose_the_owner() -> None:
            await env.edit(key_of(), {"metadata": {"finalizers": None}})
            await env.cluster.delete(key_of())
            await env.cluster.collect_garbage()

        database = Database(pending=100)
        declared = database.declared(owns=[("v1", "Secret")])
        async with env.operating(**declared):
            await env.create(shop())
            await asyncio.sleep(5)
            if when == "while the operator runs":
                # Before the operator sets them again.
                metadata = {"metadata": {"finalizers": None}}
                await env.cluster.delete(key_of())
                await env.cluster.patch(key_of(), metadata, MERGE)
                await asyncio.sleep(60)
                assert not await env.is_present(LOGIN)
                return
        await lose_the_owner()
        assert await env.is_present(LOGIN)
        async with env.operating(**declared):
            await asyncio.sleep(60)
            assert not await env.is_present(LOGIN)

    run_test(test)


@pytest.mark.promise("held-objects", runs="an owner without its finalizers, whose objects are deleted before it")
@pytest.mark.parametrize("how", ["Foreground", "namespace"])
@pytest.mark.parametrize("failures", [0, 3])
def test_it_is_released_if_it_was_deleted_before_its_owner(
    run_test: RunTest, monkeypatch: pytest.MonkeyPatch, how: str, failures: int
) -> None:
    """A user lets an owner go whose clean-up never succeeds."""
    errors: list[ServerError] = []

    async def release(cluster: Cluster, key: ObjectKey, *others: Any) -> None:
        if errors:
            raise errors.pop()
        await release_object(cluster, key, *others)

    async def test(env: Env) -> None:
        async with env.operating(**Database(pending=1_000_000).declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await delete(env.cluster, how)
            await asyncio.sleep(60)
            assert await hold_of(env) == [HOLD]
            errors.extend([ServerError("apiserver is shutting down")] * failures)
            await env.cluster.patch(key_of(), {"metadata": {"finalizers": None}}, MERGE)
            await asyncio.sleep(60)
            assert not await env.is_present(key_of())
            assert not await env.is_present(LOGIN)
            assert not errors

    monkeypatch.setattr(abandoned, "release_object", release)
    run_test(test)


@pytest.mark.promise("held-objects", runs="an orphaned object whose owner lost its finalizers, in 2 ways")
@pytest.mark.parametrize("when", ["while the operator runs", "before its start"])
def test_it_is_released_if_it_was_orphaned_and_its_owner_is_gone_for_good(run_test: RunTest, when: str) -> None:
    """It stays, and can be deleted (https://github.com/cloudnative-pg/cloudnative-pg/issues/5593)."""

    async def test(env: Env) -> None:
        declared = Database(pending=1_000_000).declared(owns=[("v1", "Secret")])

        async def orphan_and_lose() -> None:
            await delete(env.cluster, "Orphan")
            await asyncio.sleep(60)
            assert "ownerReferences" not in (await env.cluster.get(LOGIN))["metadata"]
            assert await hold_of(env) == [HOLD]
            if when == "while the operator runs":
                await env.cluster.patch(key_of(), {"metadata": {"finalizers": None}}, MERGE)

        async with env.operating(**declared):
            await env.create(shop())
            await asyncio.sleep(5)
            await orphan_and_lose()
            await asyncio.sleep(60)
        if when == "before its start":
            await env.cluster.patch(key_of(), {"metadata": {"finalizers": None}}, MERGE)
            async with env.operating(**declared):
                await asyncio.sleep(60)
        assert not await env.is_present(key_of())
        live = await env.cluster.get(LOGIN)
        assert "deletionTimestamp" not in live["metadata"]
        assert live["metadata"].get("finalizers", []) == []

    run_test(test)


def test_a_reference_that_a_client_removes_releases_nothing(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(**Database().declared(owns=[("v1", "Secret")])):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            await env.edit(LOGIN, {"metadata": {"ownerReferences": None}})
            await asyncio.sleep(60)
            assert await hold_of(env) == [HOLD]
            assert "shops/release" not in [request.field_manager for request in env.gateway.requests]

    run_test(test)


def test_an_object_that_is_only_read_cannot_be_held() -> None:
    """https://github.com/1Password/onepassword-operator/issues/55: the object of a user gets no finalizer."""
    login = secret.Builder(made(LOGIN)).build()
    builder = component.Builder("web", condition_type="WebReady")
    with pytest.raises(BuildError, match="copy what the clean-up needs into an object that the component manages"):
        builder.with_resource(login, read_only=True, held_for_cleanup=True).build()


@pytest.mark.promise("held-objects", runs="4 disturbances of each write, for 2 kinds of deletion")
@pytest.mark.parametrize("how", ["Foreground", "Background"])
def test_a_process_that_dies_at_any_write_is_followed_by_one_that_ends_the_same(how: str) -> None:
    database = Database(pending=0)
    direct: list[Cluster] = []

    async def begun() -> Cluster:
        direct[:] = [cluster] = [await new_cluster()]
        await cluster.create(shop(), field_manager="kubectl")
        return cluster

    async def operate(cluster: Cluster) -> None:
        operator = Operator(
            name="shops", owner=SHOPS, components=database.components, on_delete=database.drop, workers=1
        )
        options = ManagerOptions(listen=None, events=False, clock=LoopClock(), cache_timing=TIMING)
        async with running(cluster, operator, options=options):
            await asyncio.sleep(60)
            try:
                owner = await direct[0].get(key_of())
            except NotFoundError:
                return
            if "deletionTimestamp" not in owner["metadata"]:
                await delete(direct[0], how)
            await asyncio.sleep(120)

    async def main() -> None:
        report = await crash_at_each_write(begun, operate)
        report.assert_same()
        assert all(database.found)

    run_in_virtual_time(main())


def test_what_is_held_stays_while_the_owners_of_a_slot_that_was_taken_are_listed(run_test: RunTest) -> None:
    """A list of many owners takes a while, and the cache does not have them before."""

    async def test(env: Env) -> None:
        database = Database(pending=100)
        declared = database.declared(owns=[("v1", "Secret")])
        async with env.operating(**declared):
            await env.create(shop())
            await asyncio.sleep(5)
        await delete(env.cluster, "Background")
        await env.cluster.delete(LOGIN)
        lists = 0

        async def delay(request: Request) -> None:
            nonlocal lists
            if request.verb is Verb.LIST and request.kind == "Shop":
                # The first one is before any slot is taken.
                lists += 1
                await asyncio.sleep(20 if lists > 1 else 0)
            elif request.verb is Verb.LIST and request.kind == "Secret":
                await asyncio.sleep(10)
            elif request.kind == "Lease":
                await asyncio.sleep(0.3)

        env.gateway.meddle = delay
        sharded = {"lease": Lease("shops", NAMESPACE, "one"), "sharding": Sharding(slots=4)}
        async with env.operating(options=sharded, **declared):
            await asyncio.sleep(60)
            assert lists > 1
            assert HOLD in await hold_of(env)
            assert database.found
            assert all(database.found)

    run_test(test)


@pytest.mark.promise("held-objects", runs="an owner that is gone while no replica holds its slot, in 3 ways, 2 takers")
@pytest.mark.parametrize("taker", ["the replica of before", "another replica"])
@pytest.mark.parametrize("how", ["Background", "Foreground", "Orphan"])
def test_it_is_released_by_the_replica_that_takes_the_slot_of_its_owner(
    run_test: RunTest, how: str, taker: str
) -> None:
    """A user lets the owner go while no replica holds its slot."""

    async def test(env: Env) -> None:
        declared = Database(pending=1_000_000).declared(owns=[("v1", "Secret")])
        other = Env(env.cluster, Gateway(env.cluster), LoopClock())

        def sharded(identity: str) -> dict[str, Any]:
            return {"lease": Lease("shops", NAMESPACE, identity), "sharding": Sharding(slots=1)}

        async def cut(request: Request) -> None:
            if request.kind == "Lease":
                raise ServerError("connection refused")

        async with env.operating(options=sharded("one"), **declared):
            await env.create(shop())
            await asyncio.sleep(5)
            waiting = other.operating(options=sharded("two"), **declared) if taker == "another replica" else None
            async with waiting or nullcontext():
                if how != "Background":
                    await delete(env.cluster, how)
                    await asyncio.sleep(60)
                    assert await hold_of(env) == [HOLD]
                env.gateway.meddle = cut
                # Its former holder has lost it, and the other replica may not take it yet.
                await asyncio.sleep(10.1)
                if how == "Background":
                    await delete(env.cluster, how)
                await env.cluster.patch(key_of(), {"metadata": {"finalizers": None}}, MERGE)
                await asyncio.sleep(0.5)
                assert not await env.is_present(key_of())
                assert await hold_of(env) == [HOLD]
                if waiting is None:
                    env.gateway.meddle = None
                await asyncio.sleep(30)
                if how == "Orphan":
                    assert await hold_of(env) == []
                else:
                    assert not await env.is_present(LOGIN)

    run_test(test)
