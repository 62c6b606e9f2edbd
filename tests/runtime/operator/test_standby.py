"""A process that waits for the lease follows the declared kinds, so that it begins as soon as it leads.

A failover without it first fills the informers: https://github.com/kubernetes-sigs/karpenter/pull/2740.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import Request, Verb
from ocf.errors import ServerError
from ocf.runtime.operator import Lease

from .conftest import NAMESPACE, Env, Gateway, RunTest, key_of, now, settings_of, shop

if TYPE_CHECKING:
    from ocf.runtime.operator.manager import Manager

LEASE = Lease("shops", "default", "one")
FOLLOWER = Lease("shops", "default", "two")
SHOPS = 20


async def cut(_: Any) -> None:
    raise ServerError("connection refused")


def lists(env: Env, kind: str = "Shop") -> list[Request]:
    return [one for one in env.gateway.requests if one.kind == kind and one.verb is Verb.LIST]


def sample(process: Manager, metric: str, /, **labels: str) -> float | None:
    assert process.registry is not None
    return process.registry.get_sample_value(metric, labels)


@pytest.mark.parametrize("warm", [True, False])
def test_a_new_leader_lists_its_owners_unless_it_has_followed_them(run_test: RunTest, *, warm: bool) -> None:
    async def test(env: Env) -> None:
        second = Env(env.cluster, Gateway(env.cluster), env.clock)
        waits: dict[str, Any] = {"lease": FOLLOWER, "warm_standby": warm}
        async with env.operating(options={"lease": LEASE}), second.operating(options=waits) as process:
            for number in range(SHOPS):
                await env.create(shop(f"shop-{number}"))
            await asyncio.sleep(60)
            where = {"api_version": "example.com/v1", "kind": "Shop", "namespace": ""}
            assert sample(process, "ocf_cached_objects", **where) == (SHOPS if warm else None)
            assert sample(process, "leader_election_master_status", name="shops") == 0
            assert not second.gateway.writes
            second.gateway.requests.clear()

            env.gateway.meddle = cut
            await asyncio.sleep(30)
            assert sample(process, "leader_election_master_status", name="shops") == 1
            assert bool(lists(second)) is not warm
            assert {name for name, _ in second.passes} == {f"shop-{number}" for number in range(SHOPS)}
            # The new leader goes on to follow.
            await env.edit(key_of("shop-3"), {"spec": {"motto": "closed"}})
            await asyncio.sleep(5)
            assert (await env.cluster.get(settings_of("shop-3")))["data"] == {"motto": "closed"}

    run_test(test)


def test_a_standby_is_ready_once_it_has_read_what_it_needs(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        second = Env(env.cluster, Gateway(env.cluster), env.clock)

        async def no_shops(request: Any) -> None:
            if request.kind == "Shop":
                raise ServerError("too busy")

        second.gateway.meddle = no_shops
        async with env.operating(options={"lease": LEASE}), second.operating(options={"lease": FOLLOWER}) as process:
            await env.create(shop())
            assert "example.com/v1 Shop is not read yet" in process.health.ready["owners"]()
            assert "too busy" in process.health.ready["watches"]()
            assert process.controllers == ()
            second.gateway.meddle = None
            await asyncio.sleep(60)
            assert [check() for check in process.health.ready.values()] == ["", "", ""]

    run_test(test)


def test_the_caches_outlive_a_term_but_for_kinds_that_only_reconciles_need(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        second = Env(env.cluster, Gateway(env.cluster), env.clock)
        async with env.operating(options={"lease": LEASE}) as process:
            await env.create(shop())
            await asyncio.sleep(10)
            assert {one.kind for one in env.gateway.requests if one.verb is Verb.LIST} >= {"Shop", "ConfigMap"}
            env.gateway.meddle = only_leases
            async with second.operating(options={"lease": FOLLOWER}):
                await asyncio.sleep(60)
                env.gateway.meddle = None
                assert process.controllers == ()
                where = {"api_version": "v1", "kind": "ConfigMap", "namespace": ""}
                assert sample(process, "ocf_cached_objects", **where) is None
                await env.edit(key_of(), {"spec": {"motto": "closed"}})
                await asyncio.sleep(10)
            await asyncio.sleep(10)
            assert len(process.controllers) == 1
            assert len(lists(env)) == 1
            # In each term: the object of the owner by its name, and all of the kind once the operator makes some.
            assert [one.namespace for one in lists(env, "ConfigMap")] == ["town", "", "town", ""]
            # The reconcile of the new term has seen the change that was made meanwhile.
            assert env.passes[-1][1] >= now() - 20
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "closed"}

    run_test(test)


async def only_leases(request: Any) -> None:
    if request.kind == "Lease":
        raise ServerError("connection refused")


@pytest.mark.parametrize("label_selector", ["", "tier=gold"])
def test_a_restricted_process_waits_with_what_it_may_read(run_test: RunTest, label_selector: str) -> None:
    async def test(env: Env) -> None:
        second = Env(env.cluster, Gateway(env.cluster), env.clock)
        options: dict[str, Any] = {"namespaces": [NAMESPACE]}
        settings: dict[str, Any] = {"select": label_selector} if label_selector else {}
        gold = shop()
        gold["metadata"]["labels"] = {"tier": "gold"}
        async with (
            env.operating(options={**options, "lease": LEASE}, **settings),
            second.operating(options={**options, "lease": FOLLOWER}, **settings),
        ):
            await env.create(gold)
            await asyncio.sleep(10)
            assert {one.namespace for one in lists(second)} == {NAMESPACE}
            second.gateway.requests.clear()
            env.gateway.meddle = cut
            await asyncio.sleep(30)
            assert [name for name, _ in second.passes] == ["corner"]
            # With a selector, one more list looks for what is not selected any more.
            assert len(lists(second)) == bool(label_selector)

    run_test(test)
