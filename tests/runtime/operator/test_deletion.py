"""Clean-up on deletion by an operator: `on_delete`, its finalizer, and owners that other finalizers hold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, ListOptions
from ocf.cluster.cache import CacheTiming
from ocf.component import CleanupPending, Component, DeletionOrder, ReconcileContext
from ocf.component.owner_deletion import SKIP_CLEANUP, external_finalizer
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import ObjectKey
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, ReconcileOutcome, running
from ocf.runtime.rbac import PolicyRule
from ocf.testing import LoopClock, crash_at_each_write, run_in_virtual_time

from .conftest import (
    NAMESPACE,
    SECOND,
    SHOPS,
    Env,
    RunTest,
    Shop,
    components_of,
    key_of,
    new_cluster,
    now,
    settings_of,
    shop,
)

HOLD: Final = "example.com/hold"
TIMING: Final = CacheTiming(idle_timeout=1e9, relist_every=1e9, monotonic=now, random=lambda: 0.0)


@dataclass
class Databases:
    """Databases outside of the cluster: one per shop, made by `components` and dropped by `on_delete`.

    Attributes:
        existing: Names of the shops that have a database.
        results: What the next calls of `drop` return or raise, before it drops.
        calls: When `drop` was called.
    """

    existing: set[str] = field(default_factory=set)
    results: list[CleanupPending | Exception | float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)

    async def components(self, owner: Shop, context: ReconcileContext) -> Component:
        """Make the database, whatever the state of the owner: one that is made now must be dropped later."""
        live = await context.cluster.get(key_of(owner.metadata.name))
        assert external_finalizer("shops") in live["metadata"]["finalizers"]
        self.existing.add(owner.metadata.name)
        return components_of(owner)

    async def drop(self, owner: Shop, context: ReconcileContext, cluster: Cluster) -> CleanupPending | None:
        assert context.is_ending
        assert cluster is context.cluster
        self.calls.append(now())
        result = self.results.pop(0) if self.results else None
        if isinstance(result, Exception):
            raise result
        if isinstance(result, float):
            await asyncio.sleep(result)
        if isinstance(result, CleanupPending):
            return result
        self.existing.discard(owner.metadata.name)
        return None

    def declared(self, **changed: Any) -> dict[str, Any]:
        return {"components": self.components, "on_delete": self.drop, **changed}


async def is_gone(env: Env, key: ObjectKey | None = None) -> bool:
    return not await env.is_present(key or key_of())


async def finalizers(env: Env) -> list[str]:
    found: list[str] = (await env.cluster.get(key_of()))["metadata"].get("finalizers", [])
    return found


async def cleaned_up(env: Env) -> tuple[str, str, str]:
    found = (await env.read_conditions(key_of()))["shops/CleanedUp"]
    return found["status"], found["reason"], found["message"]


@pytest.mark.promise("on-delete")
def test_what_was_made_for_an_owner_is_deleted_before_it_is_gone(run_test: RunTest) -> None:
    """The finalizer is there before the first call of `components`, which checks it."""

    async def test(env: Env) -> None:
        databases = Databases()
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await asyncio.sleep(1)
            assert await finalizers(env) == [external_finalizer("shops")]
            assert databases.existing == {"corner"}
            await env.cluster.delete(key_of())
            await asyncio.sleep(1)
            assert await is_gone(env)
            assert await is_gone(env, settings_of())
            assert databases.existing == set()
            assert len(databases.calls) == 1
            events = await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))
            assert [one["reason"] for one in events.items].count("CleanedUp") == 1

    run_test(test)


def test_a_reconcile_of_an_owner_that_is_held_sends_no_request(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async def components(owner: Shop, _: ReconcileContext) -> Component:
            return components_of(owner)

        declared = Databases().declared(components=components, resync=100 * SECOND)
        async with env.operating(**declared):
            await env.create(shop())
            await asyncio.sleep(10)
            env.forget()
            await asyncio.sleep(10_000)
            assert env.gateway.requests == []

    run_test(test)


@pytest.mark.promise("on-delete-fails")
def test_a_clean_up_that_is_pending_is_asked_again_when_it_wants(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases(results=[CleanupPending(10 * SECOND, "2 tables left"), CleanupPending(30 * SECOND)])
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.cluster.delete(key_of())
            await asyncio.sleep(5)
            assert await cleaned_up(env) == ("False", "CleanupPending", "2 tables left")
            await asyncio.sleep(10)
            assert await cleaned_up(env) == ("False", "CleanupPending", "Clean-up has not finished.")
            await asyncio.sleep(30)
            assert await is_gone(env)
            assert databases.calls == [10, 20, 50]

    run_test(test)


@pytest.mark.parametrize("delay", [timedelta(0), -SECOND, timedelta(microseconds=1)], ids=str)
def test_a_clean_up_that_asks_for_no_time_is_called_again_after_the_shortest_one(
    run_test: RunTest, delay: timedelta
) -> None:
    async def test(env: Env) -> None:
        databases = Databases(results=[CleanupPending(delay) for _ in range(3)])
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.cluster.delete(key_of())
            await asyncio.sleep(10)
            assert [round(at - databases.calls[0], 3) for at in databases.calls] == [0, 0.1, 0.2, 0.3]
            assert await is_gone(env)

    run_test(test)


@pytest.mark.promise("on-delete-fails", runs="failures with backoff, and then success")
def test_a_clean_up_that_fails_is_shown_and_tried_again_with_backoff(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases(results=[ConfigError("the server has 3 connections") for _ in range(4)])
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.cluster.delete(key_of())
            await asyncio.sleep(1)
            status, reason, message = await cleaned_up(env)
            assert (status, reason) == ("False", "Error")
            assert "the server has 3 connections" in message
            assert SKIP_CLEANUP in message
            assert databases.existing == {"corner"}
            await asyncio.sleep(30)
            assert databases.calls == [10, 11, 13, 17, 25]
            assert await is_gone(env)
            events = await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))
            warnings = [one for one in events.items if one["type"] == "Warning"]
            assert [one["note"] for one in warnings] == [message]

    run_test(test)


def test_a_clean_up_that_hangs_is_cancelled_and_tried_again(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases(results=[1e6])
        async with env.operating(**databases.declared(reconcile_timeout=30 * SECOND)):
            await env.create(shop())
            await asyncio.sleep(5)
            await env.cluster.delete(key_of())
            await asyncio.sleep(30.5)
            assert (await cleaned_up(env))[:2] == ("False", "Error")
            assert "timeout of 0:00:30" in (await cleaned_up(env))[2]
            await asyncio.sleep(5)
            assert await is_gone(env)

    run_test(test)


@pytest.mark.parametrize("result", [True, timedelta(seconds=1)], ids=["a bool", "a timedelta"])
def test_another_result_is_an_error_and_releases_nothing(run_test: RunTest, result: object) -> None:
    async def test(env: Env) -> None:
        async def drop(*_: object) -> Any:
            return result

        async with env.operating(on_delete=drop):
            await env.create(shop())
            await asyncio.sleep(1)
            await env.cluster.delete(key_of())
            await asyncio.sleep(1)
            assert "drop must return CleanupPending or None" in (await cleaned_up(env))[2]

    run_test(test)


class TestSkipping:
    def test_the_annotation_ends_a_clean_up_that_keeps_failing(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            databases = Databases(results=[RuntimeError("no such provider")] * 1000)
            async with env.operating(**databases.declared()):
                await env.create(shop())
                await asyncio.sleep(5)
                await env.cluster.delete(key_of())
                await asyncio.sleep(1000)
                calls = len(databases.calls)
                await env.edit(key_of(), {"metadata": {"annotations": {SKIP_CLEANUP: "true"}}})
                await asyncio.sleep(1)
                assert await is_gone(env)
                assert len(databases.calls) == calls
                events = await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))
                assert [one["reason"] for one in events.items if one["type"] == "Warning"].count("CleanupSkipped") == 1

        run_test(test)

    def test_it_ends_the_deletion_of_an_owner_that_the_model_cannot_read(self, run_test: RunTest) -> None:
        class Sized(Shop):
            size: int

        async def test(env: Env) -> None:
            owners = OwnerType("example.com/v1", "Shop", Sized)
            async with env.operating(**Databases().declared(owner=owners)):
                await env.create(shop())
                await asyncio.sleep(1)
                assert await finalizers(env) == [external_finalizer("shops")]
                await env.cluster.delete(key_of())
                await asyncio.sleep(1)
                assert not await is_gone(env)
                await env.edit(key_of(), {"metadata": {"annotations": {SKIP_CLEANUP: "true"}}})
                await asyncio.sleep(1)
                assert await is_gone(env)

        run_test(test)


class TestSwitching:
    def test_on_holds_existing_owners_from_the_next_reconcile_on(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            databases = Databases()
            async with env.operating():
                await env.create(shop())
                await asyncio.sleep(1)
                assert await finalizers(env) == []
            async with env.operating(**databases.declared()):
                assert await finalizers(env) == [external_finalizer("shops")]

        run_test(test)

    def test_off_releases_owners_and_those_that_are_being_deleted(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            databases = Databases(results=[CleanupPending(100 * SECOND)])
            async with env.operating(**databases.declared()):
                await env.create(shop())
                await env.create(shop("other"))
                await asyncio.sleep(1)
                await env.cluster.delete(key_of("other"))
                await asyncio.sleep(1)
            async with env.operating():
                assert await finalizers(env) == []
                assert await is_gone(env, key_of("other"))

        run_test(test)

    def test_an_owner_deleted_before_its_first_reconcile_is_not_cleaned_up(self, run_test: RunTest) -> None:
        """Nothing was made for it; without a finalizer it is gone before the operator starts."""

        async def test(env: Env) -> None:
            databases = Databases()
            held = shop()
            held["metadata"]["finalizers"] = [HOLD]
            await env.create(held)
            await env.cluster.delete(key_of())
            async with env.operating(**databases.declared()):
                assert await finalizers(env) == [HOLD]
                assert databases.calls == []

        run_test(test)


class TestOtherFinalizers:
    def test_the_functions_can_remove_a_finalizer_of_the_authors_own(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            seen: list[tuple[bool, ReconcileOutcome]] = []

            async def report(context: ReconcileContext, owner: Shop, outcome: ReconcileOutcome) -> None:
                seen.append((context.is_ending, outcome))
                if not context.is_ending:
                    return
                if len(seen) < 4:
                    context.requeue_after(10 * SECOND)
                    return
                await env.edit(key_of(owner.metadata.name), {"metadata": {"finalizers": None}})

            held = shop()
            held["metadata"]["finalizers"] = [HOLD]
            async with env.operating(report=report):
                await env.create(held)
                await asyncio.sleep(5)
                await env.cluster.delete(settings_of())
                await env.cluster.delete(key_of())
                await asyncio.sleep(1)
                env.forget()
                await asyncio.sleep(30)
                assert await is_gone(env)
                assert await is_gone(env, settings_of())
                assert env.gateway.writes == []
                last = seen[-1][1]
                assert last.error is None
                assert [one.name for one in last.components] == ["web"]
                assert last.finalization is not None
                assert last.finalization.requeue_after is None

        run_test(test)

    def test_an_owner_that_others_hold_costs_nothing_and_gets_nothing(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            databases = Databases()
            held = shop()
            held["metadata"]["finalizers"] = [HOLD]
            async with env.operating(**databases.declared(report=env.report)):
                await env.create(held)
                await asyncio.sleep(1)
                await env.cluster.delete(key_of())
                await asyncio.sleep(5)
                assert await finalizers(env) == [HOLD]
                assert (await cleaned_up(env))[:2] == ("True", "Completed")
                assert env.outcomes[-1].components == ()
                await env.cluster.delete(settings_of())
                await asyncio.sleep(5)
                env.forget()
                await asyncio.sleep(100)
                assert env.gateway.requests == []
                assert await is_gone(env, settings_of())
                assert len(databases.calls) == 1
                assert databases.existing == set()
                await env.edit(key_of(), {"metadata": {"finalizers": None}})
                await asyncio.sleep(1)
                assert await is_gone(env)

        run_test(test)

    def test_a_finalizer_of_kubernetes_does_not_call_the_functions(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            held = shop()
            held["metadata"]["finalizers"] = ["foregroundDeletion"]
            async with env.operating():
                await env.create(held)
                await asyncio.sleep(1)
                env.forget()
                await env.cluster.delete(key_of())
                await asyncio.sleep(5)
                assert env.passes == []

        run_test(test)


def test_a_namespace_is_deleted_when_its_owners_are_cleaned_up(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases(results=[CleanupPending(10 * SECOND), CleanupPending(10 * SECOND)])
        async with env.operating(**databases.declared()):
            await env.create(shop())
            await env.create(shop("other"))
            await asyncio.sleep(1)
            await env.cluster.delete(ObjectKey("v1", "Namespace", NAMESPACE))
            await asyncio.sleep(5)
            assert databases.existing == {"corner", "other"}
            await asyncio.sleep(10)
            assert databases.existing == set()
            assert await is_gone(env, ObjectKey("v1", "Namespace", NAMESPACE))

    run_test(test)


def test_components_can_be_deleted_first(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases()
        seen: list[bool] = []

        async def drop(owner: Shop, context: ReconcileContext, cluster: Cluster) -> CleanupPending | None:
            try:
                await cluster.get(settings_of())
            except NotFoundError:
                seen.append(False)
            else:
                seen.append(True)
            return await databases.drop(owner, context, cluster)

        declared = databases.declared(on_delete=drop, deletion_order=DeletionOrder.COMPONENTS_FIRST)
        async with env.operating(**declared):
            await env.create(shop())
            await asyncio.sleep(1)
            await env.edit(settings_of(), {"metadata": {"finalizers": [HOLD]}})
            await env.cluster.delete(key_of())
            await asyncio.sleep(60)
            assert (await cleaned_up(env))[:2] == ("False", "ObjectsRemaining")
            assert databases.calls == []
            await env.edit(settings_of(), {"metadata": {"finalizers": None}})
            await asyncio.sleep(1)
            assert await is_gone(env)
            assert seen == [False]

    run_test(test)


@pytest.mark.promise("on-delete", runs="4 disturbances of each write of an operator at work, from creation to deletion")
def test_a_process_that_dies_at_any_write_is_followed_by_one_that_cleans_up() -> None:
    """The database is made and dropped, whichever write is the last one of a process."""

    async def begun() -> Cluster:
        cluster = await new_cluster()
        await cluster.create(shop(), field_manager="kubectl")
        databases[cluster] = Databases(results=[CleanupPending(10 * SECOND, "dropping")])
        return cluster

    async def operate(process: Any) -> None:
        inner = process._inner
        operator = Operator(name="shops", owner=SHOPS, workers=1, **databases[inner].declared())
        options = ManagerOptions(listen=None, events=False, clock=LoopClock(), cache_timing=TIMING)
        async with running(process, operator, options=options):
            await asyncio.sleep(60)

    async def user(cluster: Cluster) -> None:
        """Delete the shop once it has a condition; it must be held while it has a database."""
        try:
            live = await cluster.get(key_of())
        except NotFoundError:
            assert databases[cluster].existing == set()
            return
        if databases[cluster].existing:
            assert live["metadata"]["finalizers"] == [external_finalizer("shops")]
        if "status" in live:
            await cluster.delete(key_of())

    async def main() -> None:
        report = await crash_at_each_write(begun, operate, others=user)
        report.assert_same()
        writes = [f"{write.verb} {write.kind}" for write in report.writes]
        applies = ["apply ConfigMap", "apply Service"]
        assert writes == ["patch Shop", *applies, "update Shop", "update Shop", "patch Shop"]

    databases: dict[Cluster, Databases] = {}
    run_in_virtual_time(main())


def test_only_the_leader_cleans_up_and_the_next_one_goes_on(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        databases = Databases(results=[1e6])
        options = [env.options(lease=Lease("shops", NAMESPACE, identity=name), events=False) for name in ("a", "b")]
        operator = env.operator(**databases.declared())
        async with running(env.cluster, operator, options=options[1]):
            pass
        first = asyncio.create_task(_run(env, operator, options[0]))
        await asyncio.sleep(30)
        async with running(env.cluster, operator, options=options[1]):
            await env.create(shop())
            await asyncio.sleep(30)
            await env.cluster.delete(key_of())
            await asyncio.sleep(30)
            assert len(databases.calls) == 1
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await asyncio.sleep(60)
            assert len(databases.calls) == 2
            assert databases.existing == set()
            assert await is_gone(env)

    run_test(test)


async def _run(env: Env, operator: Operator[Shop], options: ManagerOptions) -> None:
    async with running(env.cluster, operator, options=options):
        await asyncio.sleep(1e6)


class TestDeclaration:
    def test_its_privileges_include_those_for_the_finalizer(self) -> None:
        async def drop(*_: object) -> None: ...

        def operator(**more: Any) -> Operator[Shop]:
            return Operator(name="shops", owner=SHOPS, components=components_of, **more)

        parts = [components_of(Shop.model_validate(shop("any")))]
        patch = PolicyRule("example.com", "shops", "patch")
        without = operator().policy_rules(parts)
        assert patch not in without
        assert operator(on_delete=drop).policy_rules(parts) - without == {patch}
        assert operator().policy_rules(parts, removes_finalizer=True) - without == {patch}
        first = operator(on_delete=drop, deletion_order=DeletionOrder.COMPONENTS_FIRST).policy_rules(parts)
        deleting = {PolicyRule("", resource, "delete") for resource in ("configmaps", "services")}
        assert first - without == {patch, *deleting}
        unused = operator(deletion_order=DeletionOrder.COMPONENTS_FIRST)
        assert unused.policy_rules(parts) == without


@pytest.mark.promise("ending-namespace", runs="a create of the author's own")
def test_a_create_of_the_authors_own_in_a_namespace_that_ends_is_not_a_failure(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        calls: list[float] = []
        held = {"name": "held", "namespace": "harbor", "finalizers": [HOLD]}
        await env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbor"}})
        await env.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
        await env.cluster.delete(ObjectKey("v1", "Namespace", "harbor"))

        async def components(owner: Shop, context: ReconcileContext) -> Component:
            calls.append(now())
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "harbor"}}
            await context.cluster.create(made, field_manager="me")
            return components_of(owner)

        async with env.operating(components=components):
            await env.create(shop())
            await asyncio.sleep(301)
            assert 10 <= len(calls) <= 12
            assert await env.read_conditions(key_of()) == {}
            events = await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))
            assert not events.items

    run_test(test)
