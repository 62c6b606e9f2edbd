"""External resources that are not wanted any more, or whose owner is deleted, suspended or paused.

Public reports: https://github.com/crossplane/crossplane/issues/315 and
https://github.com/crossplane/crossplane/issues/7801 (a deletion without credentials never ends),
https://github.com/db-operator/db-operator/issues/452 (the Secret is gone before what it logs in to is deleted),
https://github.com/movetokube/postgres-operator/issues/35 (a crash because it is deleted already).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import (
    Adoption,
    Component,
    DeletionOrder,
    FinalizationResult,
    Finalizer,
    Result,
    finalize,
    reconciling,
)
from ocf.concepts import GuardStatus, StatusReport
from ocf.errors import NotFoundError, ProviderRefusedError
from ocf.objects import ObjectKey
from ocf.primitives import configmap, external, secret
from tests.component.external.conftest import OWNER, Bucket, Buckets, Live, Shop
from tests.component.external.test_one_target import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from ocf.testing import VirtualClock


async def finalizers(shop: Shop) -> list[str]:
    found: list[str] = (await shop.cluster.get(OWNER))["metadata"].get("finalizers") or []
    return found


async def is_gone(shop: Shop) -> bool:
    try:
        await shop.cluster.get(OWNER)
    except NotFoundError:
        return True
    return False


def test_the_owner_is_held_from_before_the_first_call_until_the_resource_is_gone() -> None:
    async def check(shop: Shop) -> None:
        shop.system.faults["read", ""] = ConnectionError()
        await shop.reconcile()
        assert await finalizers(shop) == ["ocf.ocf.dev/cleanup"]
        del shop.system.faults["read", ""]
        shop.wait(60)
        await shop.reconcile()
        (place,) = shop.system.buckets
        shop.system.buckets[place] = shop.system.buckets[place].model_copy(update={"files": 2})
        await shop.cluster.delete(OWNER)
        waited = []
        while not await is_gone(shop):
            result = await shop.reconcile()
            assert isinstance(result, FinalizationResult)
            waited.append([str(key) for key in result.remaining])
            shop.wait(5)
        assert waited == [["external/Bucket/town-corner"], ["external/Bucket/town-corner"], []]
        assert not shop.system.buckets

    run(check)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("lost", [[], ["delete"], ["apply"]], ids="-".join)
def test_a_deletion_ends_whatever_was_lost(lost: list[str], restarted: bool) -> None:
    async def check(shop: Shop) -> None:
        shop.system.lost = [*lost]
        await shop.reconcile()
        await shop.cluster.delete(OWNER)
        for _ in range(10):
            if restarted:
                shop.restart()
            if not await is_gone(shop):
                await shop.reconcile()
            shop.wait(60)
        assert await is_gone(shop)
        assert not shop.system.buckets

    run(check)


def test_what_is_not_shown_yet_is_awaited_before_its_owner_goes() -> None:
    class Slow(Buckets):
        visible_after = timedelta(seconds=30)

        async def read(self, identity: external.Identity) -> Live | None:
            found = await super().read(identity)
            return found if clock[0].elapsed() > timedelta(seconds=20) else None

    clock: list[VirtualClock] = []

    async def check(shop: Shop) -> None:
        clock.append(shop.clock)
        shop.client = Slow(shop.system)
        shop.system.lost = ["apply"]
        await shop.reconcile()
        shop.restart()
        await shop.cluster.delete(OWNER)
        for _ in range(20):
            if not await is_gone(shop):
                await shop.reconcile()
            shop.wait(3)
        assert await is_gone(shop)
        assert not shop.system.buckets

    run(check)


def test_a_deletion_that_fails_shows_why_and_how_to_skip_it() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        shop.system.faults["*", ""] = ProviderRefusedError("the token was revoked")
        await shop.cluster.delete(OWNER)
        for _ in range(30):
            await shop.reconcile()
            shop.wait(1)
        (shown,) = [one for one in (await shop.status())["conditions"] if one["type"] == "ocf/CleanedUp"]
        assert shown["status"] == "False"
        assert "external/Bucket/town-corner: the token was revoked" in shown["message"]
        assert "ocf.dev/skip-cleanup" in shown["message"]
        assert len(shop.system.calls) < 10
        del shop.system.faults["*", ""]
        shop.wait(300)
        await shop.reconcile()
        assert await is_gone(shop)

    run(check)


def test_a_resource_of_which_the_record_was_lost_is_deleted_with_its_owner() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        live = await shop.cluster.get(OWNER)
        del live["status"]["external"]
        await shop.cluster.update(live, field_manager="user")
        shop.restart()
        await shop.cluster.delete(OWNER)
        await shop.reconcile()
        assert await is_gone(shop)
        assert not shop.system.buckets

    run(check)


def test_what_has_become_another_owners_is_not_deleted() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        (place,) = shop.system.buckets
        shop.system.buckets[place] = shop.system.buckets[place].model_copy(update={"key": "another"})
        await shop.cluster.delete(OWNER)
        shop.restart()
        await shop.reconcile()
        assert await is_gone(shop)
        assert shop.system.buckets

    run(check)


DROPPED: dict[str, Callable[[Shop], Component]] = {
    "delete_when": lambda shop: shop.component(delete_when=True),
    "gate": lambda shop: replace(shop.component(), gate=Closed()),
    "pruned": lambda shop: component.Builder("web", owner=OWNER).with_prune(external=[shop.client]).build(),
    "renamed": lambda shop: (
        component.Builder("web", owner=OWNER).with_prune().with_resource(shop.builder(name="other")).build()
    ),
}


class Closed:
    def enabled(self) -> bool:
        return False


@pytest.mark.parametrize("how", DROPPED)
def test_what_is_not_wanted_any_more_is_deleted(how: str) -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        shop.declare = lambda: DROPPED[how](shop)
        shop.system.faults["delete", ""] = ConnectionError()
        result = await shop.result()
        assert len(shop.system.buckets) == (2 if how == "renamed" else 1)
        if how != "gate":
            assert "no connection: ConnectionError" in result.condition.message
        del shop.system.faults["delete", ""]
        shop.wait(60)
        await shop.reconcile()
        assert "town-corner" not in str((await shop.status()).get("external"))
        assert [identity for _, identity in shop.system.buckets] == (["b-2"] if how == "renamed" else [])
        before = len(shop.system.calls)
        await shop.reconcile()
        assert len(shop.system.calls) <= before + 1

    run(check)


def test_without_pruning_a_dropped_resource_stays_until_its_owner_is_deleted() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        shop.declare = lambda: component.Builder("web", owner=OWNER).with_resource(shop.builder(name="other")).build()
        await shop.reconcile()
        assert len(shop.system.buckets) == 2
        await shop.cluster.delete(OWNER)
        await shop.reconcile()
        assert await is_gone(shop)
        assert not shop.system.buckets

    run(check)


def test_a_dropped_resource_without_its_client_holds_the_owner_and_says_what_to_do() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        shop.declare = lambda: component.Builder("web", owner=OWNER).build()
        await shop.reconcile()
        await shop.cluster.delete(OWNER)
        await shop.reconcile()
        (shown,) = [one for one in (await shop.status())["conditions"] if one["type"] == "ocf/CleanedUp"]
        assert "external/Bucket/town-corner: no component has a client of its kind" in shown["message"]
        assert len(shop.system.buckets) == 1

    run(check)


def test_an_orphaned_resource_stays_and_is_forgotten() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        shop.declare = lambda: shop.component(orphan_when=True)
        await shop.reconcile()
        assert not await shop.records()
        await shop.cluster.delete(OWNER)
        await shop.reconcile()
        assert await is_gone(shop)
        assert len(shop.system.buckets) == 1

    run(check)


@pytest.mark.parametrize("how", ["orphan_when", "read_only"])
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("staying", [["eu"], []], ids=["one stays", "the last one leaves"])
def test_what_stays_at_its_targets_stays_at_those_that_leave_at_the_same_time(
    how: str, deleted: bool, staying: list[str]
) -> None:
    async def check(shop: Shop) -> None:
        targets = ["eu", "us"]
        options: dict[str, Any] = {}

        def declare() -> component.Component:
            bucket = shop.builder().with_targets(*targets)
            return component.Builder("web", owner=OWNER).with_resource(bucket, **options).build()

        shop.declare = declare
        await shop.reconcile()
        targets[:] = staying
        options[how] = True
        if deleted and how == "orphan_when":
            await shop.cluster.delete(OWNER)
        await shop.reconcile()
        assert [target for target, _ in shop.system.buckets] == ["eu", "us"]
        assert shop.system.writes == ["apply@eu", "apply@us"]

    run(check)


@pytest.mark.parametrize("how", ["the owner is deleted", "delete_when"])
def test_what_existed_before_and_was_never_adopted_is_not_deleted(how: str) -> None:
    async def check(shop: Shop) -> None:
        shop.system.buckets["", "b-0"] = Live(id="b-0", key="", size=3, labels={})
        shop.system.names["", "town-corner"] = "b-0"
        shop.declare = lambda: shop.component(adopt="always", delete_when=how == "delete_when")
        if how != "delete_when":
            blocked = StatusReport(GuardStatus.BLOCKED, "not yet")
            bucket = shop.builder().with_guard(lambda: blocked)
            made = component.Builder("web", owner=OWNER).with_resource(bucket, adopt=Adoption.ALWAYS).build()
            shop.declare = lambda: made
        await shop.reconcile()
        await shop.cluster.delete(OWNER)
        if not await is_gone(shop):
            await shop.reconcile()
        assert await is_gone(shop)
        assert not shop.system.writes

    run(check)


async def reconciled_by(shop: Shop, operator: str, made: Component) -> Result | FinalizationResult:
    live = await shop.cluster.get(OWNER)
    async with reconciling(live, shop.cluster, operator=operator, clock=shop.clock) as context:
        finalization = await finalize(context, made)
        return finalization if finalization is not None else await made.reconcile(context)


def web(*builders: external.Builder[Bucket, Live], prune: bool = False, **options: Any) -> Component:
    builder = component.Builder("web", owner=OWNER).unpublished()
    for one in builders:
        builder.with_resource(one, **options)
    return (builder.with_prune() if prune else builder).build()


@pytest.mark.promise("several-operators")
@pytest.mark.parametrize("restarted", [False, True])
def test_neither_of_two_operators_deletes_what_the_other_one_has_recorded(restarted: bool) -> None:
    """Although both have a component of the same name, with a client of the same kind."""

    async def check(shop: Shop) -> None:
        made = {
            "shops": web(shop.builder(name="first"), prune=True),
            "malls": web(shop.builder(name="second"), prune=True),
        }
        for _ in range(3):
            for operator, one in made.items():
                await reconciled_by(shop, operator, one)
            if restarted:
                shop.restart()
        assert shop.system.writes == ["apply", "apply"]
        assert {one["operator"] for one in (await shop.records()).values()} == {"shops", "malls"}
        # The deletion of the owner by one of them leaves what the other one keeps.
        await shop.cluster.delete(OWNER)
        await reconciled_by(shop, "shops", made["shops"])
        assert [*await shop.records()] == ["Bucket/second"]
        assert await finalizers(shop) == ["malls.ocf.dev/cleanup"]
        await reconciled_by(shop, "malls", made["malls"])
        assert await is_gone(shop)
        assert not shop.system.buckets

    run(check)


@pytest.mark.parametrize("options", [{}, {"adopt": "always"}, {"delete_when": True}, {"orphan_when": True}], ids=str)
def test_a_resource_of_another_operator_of_the_owner_is_left_alone(options: dict[str, Any]) -> None:
    async def check(shop: Shop) -> None:
        await reconciled_by(shop, "shops", web(shop.builder()))
        records, calls = await shop.records(), [*shop.system.calls]
        result = await reconciled_by(shop, "malls", web(shop.builder(Bucket(size=2)), **options))
        assert isinstance(result, Result)
        if "delete_when" not in options and "orphan_when" not in options:
            problem = 'external/Bucket/town-corner: the operator "shops" manages it for the same owner'
            assert [str(one.report.reason) for one in result.outcomes if one.report is not None] == [problem]
        assert (await shop.records(), shop.system.calls) == (records, calls)

    run(check)


def test_a_moved_resource_stays() -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        first = component.Builder("web", owner=OWNER).with_prune(external=[shop.client]).build()
        second = component.Builder("store", condition_type="StoreReady", owner=OWNER).with_resource(shop.builder())
        for _ in range(2):
            async with reconciling(await shop.cluster.get(OWNER), shop.cluster, clock=shop.clock) as context:
                await finalize(context, first, second.build())
                await first.reconcile(context)
                await second.build().reconcile(context)
        assert (await shop.records())["Bucket/town-corner"]["component"] == "store"
        assert shop.system.writes == ["apply"]

    run(check)


def test_a_suspended_component_leaves_the_resource_or_applies_its_suspended_state() -> None:
    async def check(shop: Shop) -> None:
        def declare(*, suspended: bool, form: Bucket | None = None) -> Component:
            bucket = shop.builder(Bucket(size=5))
            bucket = bucket.with_suspension(form) if form is not None else bucket
            return component.Builder("web", owner=OWNER).with_resource(bucket).suspend(suspended).build()

        shop.declare = lambda: declare(suspended=False)
        await shop.reconcile()
        shop.declare = lambda: declare(suspended=True)
        assert (await shop.result()).condition.reason == "Suspended"
        assert shop.system.writes == ["apply"]
        shop.declare = lambda: declare(suspended=True, form=Bucket(size=0))
        assert (await shop.result()).condition.reason == "Suspended"
        assert [one.size for one in shop.system.buckets.values()] == [0]
        shop.declare = lambda: declare(suspended=False, form=Bucket(size=0))
        assert (await shop.result()).condition.reason == "Healthy"
        assert [one.size for one in shop.system.buckets.values()] == [5]

    run(check)


@pytest.mark.parametrize(
    ("form", "registered", "left"),
    [
        pytest.param(Bucket(size=0), True, {"new": 0}, id="renamed, with a suspended state"),
        pytest.param(None, True, {"town-corner": 5}, id="renamed, without: the new one is not made yet"),
        pytest.param(None, False, {}, id="not registered any more"),
    ],
)
def test_a_suspension_and_a_change_at_once_leave_no_former_resource_that_runs(
    form: Bucket | None, registered: bool, left: dict[str, int]
) -> None:
    async def check(shop: Shop) -> None:
        def declare(name: str, *, suspended: bool) -> Component:
            builder = component.Builder("web", owner=OWNER).with_prune(external=[shop.client]).suspend(suspended)
            if name:
                bucket = shop.builder(Bucket(size=5), name=name)
                builder.with_resource(bucket.with_suspension(form) if form is not None else bucket)
            return builder.build()

        shop.declare = lambda: declare("town-corner", suspended=False)
        await shop.reconcile()
        shop.declare = lambda: declare("new" if registered else "", suspended=True)
        if "town-corner" not in left:
            shop.system.faults["delete", ""] = ConnectionError()
            result = await shop.result()
            # It is not suspended while the former one runs.
            assert (result.condition.reason, result.condition.status) == ("Suspending", False)
            assert "external/Bucket/town-corner: no connection: ConnectionError" in result.condition.message
            del shop.system.faults["delete", ""]
            shop.wait(60)
        assert (await shop.result()).condition.reason == "Suspended"
        named = {identity: name for (_, name), identity in shop.system.names.items()}
        assert {named[identity]: one.size for (_, identity), one in shop.system.buckets.items()} == left
        assert {one["name"] for one in (await shop.records()).values()} == {*left}
        shop.declare = lambda: declare("new" if registered else "", suspended=False)
        await shop.reconcile()
        await shop.reconcile()
        assert {named.get(identity, "new") for _, identity in shop.system.buckets} == ({"new"} if registered else set())

    run(check)


def test_a_paused_owner_has_no_calls() -> None:
    async def check(shop: Shop) -> None:
        live = await shop.cluster.get(OWNER)
        live["metadata"]["annotations"] = {"ocf.ocf.dev/paused": "true"}
        await shop.cluster.update(live, field_manager="user")
        await shop.reconcile()
        await shop.cluster.delete(OWNER)
        assert not shop.system.calls

    run(check)


async def live(shop: Shop, kind: str, name: str) -> Manifest | None:
    try:
        return await shop.cluster.get(ObjectKey("v1", kind, name, "town"))
    except NotFoundError:
        return None


async def collect_garbage(shop: Shop) -> None:
    """End the foreground deletions, as the garbage collector does."""
    for kind, name in (("ConfigMap", "settings"), ("Secret", "login")):
        found = await live(shop, kind, name)
        if found is not None:
            kept = [one for one in found["metadata"].get("finalizers") or [] if one != "foregroundDeletion"]
            found["metadata"]["finalizers"] = kept
            await shop.cluster.update(found, field_manager="gc")


@pytest.mark.parametrize("order", [*DeletionOrder])
def test_the_order_of_deletion_and_held_credentials(order: DeletionOrder) -> None:
    """With the components first, other objects are gone before; the Secret to log in stays until the bucket is gone."""

    async def check(shop: Shop) -> None:
        log: list[str] = []
        login = secret.Builder({"metadata": {"name": "login"}, "stringData": {"token": "a"}})
        builder = component.Builder("web", owner=OWNER).with_resource(login, held_for_cleanup=True)
        builder.with_resource(configmap.Builder({"metadata": {"name": "settings"}})).with_resource(shop.builder())
        made = builder.build()

        async def delete(identity: external.Identity) -> None:
            held = await live(shop, "Secret", "login")
            assert held is not None
            settings = await live(shop, "ConfigMap", "settings") is not None
            log.append(f"{held['metadata']['finalizers'][0]}, settings: {settings}")
            await type(shop.client).delete(shop.client, identity)

        shop.client.delete = delete  # type: ignore[method-assign]

        async def step() -> None:
            async with reconciling(await shop.cluster.get(OWNER), shop.cluster, clock=shop.clock) as context:
                if await finalize(context, made, finalizer=Finalizer(order=order)) is None:
                    await made.reconcile(context)

        await step()
        await shop.cluster.delete(OWNER)
        for _ in range(20):
            if not await is_gone(shop):
                await step()
                await collect_garbage(shop)
        assert await is_gone(shop)
        first = order is DeletionOrder.COMPONENTS_FIRST
        assert log == [f"ocf.ocf.dev/held-for-cleanup, settings: {not first}"]

    run(check)
