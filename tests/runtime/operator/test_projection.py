"""Values that reconciles compute from all objects of a kind: from the cache, and with the triggers of a list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from ocf.cluster import Index, ListOptions, Verb
from ocf.cluster.cache import CachedCluster, Projection
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS, ObjectList
from ocf.component import ReconcileContext
from ocf.objects import Manifest, ObjectKey

from .conftest import NAMESPACE, Env, RunTest, Shop, key_of, shop

ELSEWHERE = "elsewhere"
MARKED = {"open": "true"}


def note(name: str, text: str = "1", *, kind: str = "Secret", namespace: str = NAMESPACE) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": namespace, "labels": {"note": "yes"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"text": f"{text:0<4}"}}


class Notes:
    """A projection that every reconcile reads, of the texts of objects."""

    def __init__(self, kind: str) -> None:
        self.projection = Projection("v1", kind, self._text)
        self.kind = kind
        self.computed: list[str] = []
        self.read: list[tuple[str, ...]] = []

    def _text(self, live: Manifest) -> str:
        self.computed.append(live["metadata"]["name"])
        return f"{live['metadata']['name']}={(live.get('data') or {}).get('text', '')[:1]}"

    async def before(self, _: Shop, context: ReconcileContext) -> None:
        found = await self.projection.read(context.cluster)
        self.read.append(tuple(one for one in found if not one.startswith("corner-")))


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the kinds of which the cache has unpacked a list, as it happens."""
    found: list[str] = []
    listed = CachedCluster.list

    async def counted(
        self: CachedCluster, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS
    ) -> ObjectList:
        found.append(kind)
        return await listed(self, api_version, kind, options)

    monkeypatch.setattr(CachedCluster, "list", counted)
    return found


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        pytest.param("ConfigMap", {}, id="a kind that is cached as a whole, and of which reconciles write"),
        pytest.param("Secret", {}, id="a kind of which only metadata is cached before"),
        pytest.param("Secret", {"select": "open=true"}, id="owners in a cache of their own"),
        pytest.param("Secret", {"options": {"namespaces": [NAMESPACE]}}, id="a cache for each namespace"),
    ],
)
@pytest.mark.parametrize("busy", [pytest.param(False, id="at rest"), pytest.param(True, id="during a reconcile")])
def test_a_change_triggers_the_owner_and_computes_one_value(
    run_test: RunTest, lists: list[str], kind: str, changed: dict[str, Any], *, busy: bool
) -> None:
    notes = Notes(kind)

    async def read(owner: Shop, context: ReconcileContext) -> None:
        await notes.before(owner, context)
        if busy:
            await asyncio.sleep(3)

    async def test(env: Env) -> None:
        async def step(change: Awaitable[object]) -> tuple[int, list[str], tuple[str, ...]]:
            if busy:
                await env.edit(key_of(), {"metadata": {"annotations": {"now": str(asyncio.get_running_loop().time())}}})
                await asyncio.sleep(1)
                assert env.at_once == 1
            lists.clear()
            env.forget()
            notes.computed.clear()
            await change
            await asyncio.sleep(20)
            assert kind not in lists
            assert [one for one in env.gateway.requests if one.kind == kind] == []
            return len(env.passes), notes.computed, notes.read[-1]

        await env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}})
        for each in (note("b", kind=kind), note("a", kind=kind), note("z", kind=kind, namespace=ELSEWHERE)):
            await env.create(each)
        others = () if "options" in changed else ("z=1",)
        env.before = read
        async with env.operating(**changed):
            owner = shop()
            await env.create({**owner, "metadata": {**owner["metadata"], "labels": MARKED}})
            await asyncio.sleep(20)
            # The cache reports to the operator what the first reconcile has read.
            assert notes.read == [(*others, "a=1", "b=1")]
            # The second reconcile reads what the first one had the cache hold as a whole.
            await env.edit(key_of(), {"metadata": {"annotations": {"again": "1"}}})
            await asyncio.sleep(20)
            a = ObjectKey("v1", kind, "a", NAMESPACE)
            assert await step(env.edit(a, {"data": {"text": "2000"}})) == (1, ["a"], (*others, "a=2", "b=1"))
            assert await step(env.create(note("c", kind=kind))) == (1, ["c"], (*others, "a=2", "b=1", "c=1"))
            assert await step(env.cluster.delete(a)) == (1, [], (*others, "b=1", "c=1"))
            env.forget()
            await asyncio.sleep(600)
            assert env.passes == []
            if "options" in changed:
                everywhere = [one for one in env.gateway.requests if one.verb is Verb.LIST and not one.namespace]
                assert everywhere == []
                assert await step(env.create(note("y", kind=kind, namespace=ELSEWHERE))) == (0, [], ("b=1", "c=1"))

    run_test(test)


def test_an_owner_that_does_not_read_it_any_more_is_not_triggered(run_test: RunTest) -> None:
    notes = Notes("Secret")

    async def read(owner: Shop, context: ReconcileContext) -> None:
        if owner.spec.guide:
            await notes.before(owner, context)

    async def test(env: Env) -> None:
        env.before = read
        async with env.operating():
            await env.create(shop(guide="all"))
            await env.create(shop("other"))
            await asyncio.sleep(20)
            env.forget()
            await env.create(note("a"))
            await asyncio.sleep(20)
            assert [name for name, _ in env.passes] == ["corner"]
            await env.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(20)
            env.forget()
            await env.create(note("b"))
            await asyncio.sleep(20)
            assert env.passes == []

    run_test(test)


def test_a_kind_outside_of_the_cache_is_listed_and_triggers_nothing(run_test: RunTest) -> None:
    notes = Notes("Secret")

    async def test(env: Env) -> None:
        env.before = notes.before
        await env.create(note("a"))
        await env.create(note("b"))
        async with env.operating(uncached=[("v1", "Secret")]):
            await env.create(shop())
            await asyncio.sleep(20)
            env.forget()
            notes.computed.clear()
            await env.edit(ObjectKey("v1", "Secret", "a", NAMESPACE), {"data": {"text": "2000"}})
            await asyncio.sleep(20)
            assert env.passes == []
            await env.edit(key_of(), {"metadata": {"annotations": {"again": "1"}}})
            await asyncio.sleep(20)
            assert [one.verb for one in env.gateway.requests if one.kind == "Secret"] == [Verb.LIST]
            assert (notes.computed, notes.read[-1]) == (["a"], ("a=2", "b=1"))

    run_test(test)


def test_an_own_write_of_an_object_that_was_projected_triggers_nothing(run_test: RunTest) -> None:
    """The settings are a ConfigMap: the reconcile that changes them has read them before."""
    notes = Notes("ConfigMap")

    async def test(env: Env) -> None:
        env.before = notes.before
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(20)
            env.forget()
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(600)
            assert len(env.passes) == 1
            assert (Verb.APPLY, "ConfigMap") in env.gateway.writes

    run_test(test)


def test_a_kind_that_is_not_served_is_used_once_it_is(run_test: RunTest) -> None:
    projection = Projection("example.com/v2", "Poster", lambda live: live["metadata"]["name"])
    found: list[tuple[str, ...]] = []
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "posters.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Poster", "plural": "posters"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v2",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }

    async def read(_: Shop, context: ReconcileContext) -> None:
        found.append(await projection.read(context.cluster))

    async def test(env: Env) -> None:
        env.before = read
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(600)
            assert found == []
            await env.create(definition)
            poster = {"apiVersion": "example.com/v2", "kind": "Poster"}
            await env.create({**poster, "metadata": {"name": "late", "namespace": NAMESPACE}})
            await asyncio.sleep(60)
            assert found[-1] == ("late",)

    run_test(test)


@pytest.mark.parametrize("restricted", [False, True])
def test_a_change_triggers_the_owners_that_have_listed_its_key(run_test: RunTest, *, restricted: bool) -> None:
    """The owner of the key before the change, and that of the key after it; no other one."""
    by_text = Index[str](lambda live: [live["data"]["text"]])

    async def test(env: Env) -> None:
        found: dict[str, list[str]] = {}

        async def before(owner: Shop, context: ReconcileContext) -> None:
            name = owner.metadata.name
            options = ListOptions(label_selector="note=yes", index=by_text.at(f"{name[-1]:0<4}"))
            page = await context.cluster.list("v1", "Secret", options)
            found[name] = [one["metadata"]["name"] for one in page.items]

        env.before = before
        options = {"namespaces": [NAMESPACE]} if restricted else {}
        async with env.operating(options=options):
            for name in ("shop-1", "shop-2", "shop-3"):
                await env.create(shop(name))
            await env.create(note("a", "1"))
            await asyncio.sleep(60)
            assert found == {"shop-1": ["a"], "shop-2": [], "shop-3": []}
            env.passes.clear()
            await env.edit(ObjectKey("v1", "Secret", "a", NAMESPACE), {"data": {"text": "2000"}})
            await asyncio.sleep(60)
            assert {name for name, _ in env.passes} == {"shop-1", "shop-2"}
            assert found == {"shop-1": [], "shop-2": ["a"], "shop-3": []}

    run_test(test)
