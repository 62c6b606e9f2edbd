"""Children of an owner in a running operator: which changes start a reconcile, and what reading them costs.

Public report: https://github.com/metacontroller/metacontroller/pull/1176 (each sync of each owner scans all objects).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import Request, Verb
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey

from .conftest import NAMESPACE, Env, RunTest, Shop, key_of, shop

if TYPE_CHECKING:
    from ocf.component import ReconcileContext
    from ocf.objects import Manifest

TICKET = ObjectKey("v1", "Secret", "ticket", NAMESPACE)


def ticket(owner: Manifest, name: str = "ticket", **metadata: Any) -> Manifest:
    reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": owner["metadata"]["name"]}
    references = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    found = {"name": name, "namespace": NAMESPACE, "ownerReferences": references, **metadata}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": found}


async def sold(_: Shop, context: ReconcileContext) -> None:
    found = await context.children.list("v1", "Secret")
    context.status["tickets"] = [one["metadata"]["name"] for one in found]


@pytest.mark.promise("woken", runs="a child that appears, changes, is given away and is deleted")
def test_every_change_of_the_children_starts_one_reconcile_and_no_other_change_does(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = sold
        async with env.operating():
            owner = await env.create(shop())
            other = await env.create(shop("other"))
            await asyncio.sleep(10)

            async def after(act: Any) -> tuple[int, Any]:
                env.forget()
                await act
                await asyncio.sleep(10)
                names = [name for name, _ in env.passes]
                return names.count("corner"), (await env.cluster.get(key_of()))["status"]["tickets"]

            assert await after(env.create(ticket(owner))) == (1, ["ticket"])
            assert await after(env.create(ticket(other, "foreign"))) == (0, ["ticket"])
            assert await after(env.create({**ticket(owner, "free", ownerReferences=[])})) == (0, ["ticket"])
            assert await after(env.edit(TICKET, {"metadata": {"labels": {"paid": "yes"}}})) == (1, ["ticket"])
            given = ticket(other)["metadata"]["ownerReferences"]
            assert await after(env.edit(TICKET, {"metadata": {"ownerReferences": given}})) == (1, [])
            back = ticket(owner)["metadata"]["ownerReferences"]
            assert await after(env.edit(TICKET, {"metadata": {"ownerReferences": back}})) == (1, ["ticket"])
            assert await after(env.cluster.delete(TICKET)) == (1, [])

    run_test(test)


@pytest.mark.promise("woken", runs="a child that appears between the list and a read by name")
def test_a_child_that_appears_after_the_list_is_not_taken_for_seen(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        made = False

        async def look(owner: Shop, context: ReconcileContext) -> None:
            nonlocal made
            await sold(owner, context)
            if not made:
                made = True
                await env.create(ticket(await env.cluster.get(key_of())))
                await asyncio.sleep(1)
            try:
                await context.cluster.get(TICKET)
            except NotFoundError:
                context.status["tickets"] = "missing"

        env.before = look
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(10)
            assert (await env.cluster.get(key_of()))["status"]["tickets"] == ["ticket"]

    run_test(test)


def test_a_deletion_by_the_operator_is_followed_by_one_reconcile_and_is_in_the_outcome(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async def sweep(owner: Shop, context: ReconcileContext) -> None:
            for live in await context.children.list("v1", "Secret"):
                if live["metadata"].get("labels"):
                    await context.children.delete(live)
            await sold(owner, context)

        env.before = sweep
        async with env.operating(report=env.report):
            owner = await env.create(shop())
            await asyncio.sleep(10)
            env.forget()
            env.outcomes.clear()
            for number in range(3):
                labels = {"labels": {"old": "yes"}} if number else {}
                await env.create(ticket(owner, f"ticket-{number}", **labels))
            await asyncio.sleep(10)
            assert env.gateway.writes.count((Verb.DELETE, "Secret")) == 2
            deleted = sorted(str(one.resource) for outcome in env.outcomes for one in outcome.deleted)
            assert deleted == ["v1/Secret/town/ticket-1", "v1/Secret/town/ticket-2"]
            assert env.outcomes[-1].deleted == ()
            assert (await env.cluster.get(key_of()))["status"]["tickets"] == ["ticket-0"]

    run_test(test)


@pytest.mark.promise("no-read", runs="an owner that lists its children")
def test_children_are_listed_without_a_request_once_their_kind_is_cached(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = sold
        async with env.operating():
            owner = await env.create(shop())
            await env.create(ticket(owner))
            await asyncio.sleep(10)
            env.forget()
            reads: list[Request] = env.gateway.requests
            await env.edit(key_of(), {"metadata": {"annotations": {"touched": "yes"}}})
            await asyncio.sleep(10)
            assert [name for name, _ in env.passes] == ["corner"]
            assert reads == []

    run_test(test)
