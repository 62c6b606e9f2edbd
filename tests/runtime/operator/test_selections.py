"""Selections of an operator: what its owners depend on is found and watched, whether a selection selects it or not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ListOptions, Verb
from ocf.cluster.cache import Selection
from ocf.cluster.cache.selective import MOST_SINGLE
from ocf.errors import BuildError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import find_condition
from ocf.primitives import service
from ocf.runtime.operator import running
from ocf.runtime.operator.manager import require_together
from ocf.runtime.operator.operator_caches import read_by_name, selections
from ocf.runtime.operator.owners import content_needed
from ocf.runtime.operator.unwatched_objects import UNWATCHED
from ocf.runtime.operator.watches import Watch

from .conftest import NAMESPACE, Env, RunTest, Shop, key_of, shop

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext

SERVICE: Final = ("v1", "Service")
SECRET: Final = ("v1", "Secret")
GUIDE: Final = ObjectKey("v1", "Secret", "guide", NAMESPACE)
FRONT: Final = ObjectKey("v1", "Service", "corner-front", NAMESPACE)
LABEL: Final = "example.com/made-by"
OURS: Final = Selection(label_selector=f"{LABEL}=shops")


def secret(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}


def front_of(owner: Shop, *, labels: dict[str, str]) -> Component:
    name = f"{owner.metadata.name}-front"
    spec = {"ports": [{"name": "http", "port": 80}], "selector": {"app": "front"}}
    front = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    made = component.Builder("web", owner=owner.key, condition_type="WebReady")
    return made.with_resource(service.Builder(front)).with_prune().build()


async def read_guide(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        await context.cluster.get(GUIDE)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="by default"),
        pytest.param({"selections": {SECRET: OURS}}, id="a selection that does not select it"),
    ],
)
def test_a_secret_that_is_read_by_name_is_watched_without_the_others(
    run_test: RunTest, settings: dict[str, Any]
) -> None:
    async def test(env: Env) -> None:
        env.before = read_guide
        for number in range(60):
            await env.create(secret(f"foreign-{number}"))
        await env.create(secret(GUIDE.name))
        await env.create(shop(guide="guide"))
        async with env.operating(**settings) as process:
            held = [one.objects for one in process.controllers[0].owner_cache.informers_of(*SECRET)]
            assert held == [1]
            env.forget()
            await env.edit(GUIDE, {"metadata": {"labels": {"a": "b"}}})
            await asyncio.sleep(5)
            assert [name for name, _ in env.passes] == ["corner"]
            assert not [one for one in env.gateway.requests if one.kind == "Secret"]

    run_test(test)


@pytest.mark.parametrize("restarted", [False, True], ids=["first start", "restart"])
def test_a_kind_of_which_an_operator_makes_objects_is_listed_once(run_test: RunTest, *, restarted: bool) -> None:
    """Not each object by its name, of which there are as many as owners: here ConfigMaps, which it does not declare."""

    async def test(env: Env) -> None:
        for number in range(20):
            await env.create(shop(f"shop-{number:02}"))
        for _ in range(1 + restarted):
            env.forget()
            async with env.operating():
                await asyncio.sleep(60)
                found = [one for one in env.gateway.requests if one.kind == "ConfigMap" and one.verb is Verb.LIST]
                # Each of four workers may have looked for the first one of its owner before.
                assert 1 <= len(found) <= 5

    run_test(test)


@pytest.mark.parametrize("labels", [{}, {LABEL: "shops"}], ids=["never selected", "selected"])
def test_what_an_operator_applies_is_repaired_whatever_labels_it_has(run_test: RunTest, labels: dict[str, str]) -> None:
    """Also once a user has taken the label off, with which the object leaves the watch as if it was deleted."""

    async def test(env: Env) -> None:
        await env.create(shop())
        components = lambda owner: front_of(owner, labels=labels)  # noqa: E731
        async with env.operating(components=components, owns=[SERVICE], selections={SERVICE: OURS}):
            await asyncio.sleep(60)
            for change in ({}, {"metadata": {"labels": None}}):
                await env.edit(FRONT, {**change, "spec": {"selector": {"app": "other"}}})
                await asyncio.sleep(60)
                live = await env.cluster.get(FRONT)
                assert live["spec"]["selector"] == {"app": "front"}
                assert live["metadata"]["labels"].get(LABEL) == labels.get(LABEL)
            env.forget()
            await env.edit(key_of(), {"metadata": {"labels": {"touched": "yes"}}})
            await asyncio.sleep(60)
            assert not [one for one in env.gateway.requests if one.kind == "Service"]

    run_test(test)


def test_a_child_that_lost_its_label_is_pruned(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        await env.create(shop())

        def components(owner: Shop) -> Component:
            if not owner.spec.guide:
                return front_of(owner, labels={LABEL: "shops"})
            return (
                component.Builder("web", owner=owner.key, condition_type="WebReady").with_prune(kinds=[SERVICE]).build()
            )

        async with env.operating(components=components, owns=[SERVICE], selections={SERVICE: OURS}):
            await asyncio.sleep(60)
            # In one moment, so that no reconcile comes between.
            unlabelled = env.edit(FRONT, {"metadata": {"labels": None}})
            await asyncio.gather(env.edit(key_of(), {"spec": {"guide": "none"}}), unlabelled)
            await asyncio.sleep(60)
            assert not (await env.cluster.list(*SERVICE, ListOptions(namespace=NAMESPACE))).items

    run_test(test)


def test_owners_beyond_the_limit_say_that_changes_are_not_watched(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        names = [f"shop-{number:02}" for number in range(MOST_SINGLE + 3)]
        for name in names:
            await env.create(shop(name))
        components = lambda owner: front_of(owner, labels={})  # noqa: E731
        async with env.operating(components=components, owns=[SERVICE], selections={SERVICE: OURS}):
            await asyncio.sleep(600)
            for name in names:
                await env.edit(key_of(name), {"metadata": {"labels": {"again": "yes"}}})
            await asyncio.sleep(600)
            shown = []
            for name in names:
                conditions = (await env.cluster.get(key_of(name)))["status"]["conditions"]
                found = find_condition(conditions, "shops/Reconciled")
                shown += [found["message"]] if found is not None and found["reason"] == UNWATCHED else []
            assert len(shown) == 3
            assert all("Service (v1)" in one and "selection of the cache does not select" in one for one in shown)
            assert all("have its `Selection` select the objects" in one for one in shown)

    run_test(test)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"selections": {"Secret": OURS}}, "a kind must be a pair", id="kind"),
        pytest.param({"selections": {("*", "*"): OURS}}, "a kind must be a pair", id="wildcard"),
        pytest.param({"selections": {SECRET: "a=b"}}, "Secret needs a Selection, got 'a=b'", id="selection"),
        pytest.param({"selections": {("example.com/v1", "Shop"): OURS}}, "Shop is the kind of the owners", id="owners"),
        pytest.param({"selections": {SECRET: OURS}, "uncached": [SECRET]}, "Secret is in `uncached`", id="uncached"),
    ],
)
def test_a_selection_that_cannot_hold_is_an_error(run_test: RunTest, settings: dict[str, Any], problem: str) -> None:
    async def test(env: Env) -> None:
        with pytest.raises(BuildError) as caught:
            env.operator(**settings)
        assert problem in str(caught.value)

    run_test(test)


def test_a_kind_that_another_operator_declares_as_a_whole_is_held_with_its_content(run_test: RunTest) -> None:
    """Its watches look at the content of any object, whatever the first one selects."""

    async def test(env: Env) -> None:
        seen: list[bool] = []

        def owners(live: Manifest) -> list[tuple[str, str]]:
            seen.append("spec" in live)
            return []

        await env.create({**secret("front"), "kind": "Service", "spec": {"ports": [{"port": 80}]}})
        one = env.operator(name="one", selections={SERVICE: Selection(metadata_only=True)})
        whole = env.operator(name="whole", watches=[Watch(*SERVICE, owners)])
        plan = env.operator(name="plan", owns=[SERVICE])
        assert SERVICE not in content_needed([one, plan], selections([one, plan]))
        async with running(env.gateway, one, whole, options=env.options()):
            await asyncio.sleep(5)
            assert seen == [True]

    run_test(test)


def test_the_operators_of_a_process_share_their_selections(run_test: RunTest) -> None:
    """A kind that one of them declares as a whole is watched as a whole; two different ones cannot hold."""

    async def test(env: Env) -> None:
        one = env.operator(name="one", selections={SERVICE: OURS, SECRET: OURS})
        whole = env.operator(name="whole", owns=[SERVICE], watches=[Watch("v1", "ConfigMap", lambda _: ())])
        assert selections([one]) == {SERVICE: OURS, SECRET: OURS}
        assert selections([one, whole]) == {SECRET: OURS}
        assert {*read_by_name([one])} == {SECRET, ("v1", "ConfigMap")}
        assert {*read_by_name([one, whole])} == {SECRET}
        require_together([one, whole])
        for chosen in (Selection(), Selection(metadata_only=True)):
            assert {*read_by_name([env.operator(selections={SECRET: chosen})])} == {("v1", "ConfigMap")}
        places = [{SECRET: Selection(namespaces=order)} for order in (["a", "b"], ("b", "a", "b"))]
        require_together([env.operator(name=f"at-{at}", selections=one) for at, one in enumerate(places)])
        other = env.operator(name="other", selections={SECRET: Selection(label_selector="a=b")})
        with pytest.raises(BuildError, match="select objects of v1 Secret in different ways"):
            require_together([one, other])

    run_test(test)


def test_a_watch_with_a_selection_maps_only_what_is_selected(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        mapped: list[str] = []

        def owners(live: Manifest) -> list[tuple[str, str]]:
            mapped.append(live["metadata"]["name"])
            return [(NAMESPACE, "corner")]

        await env.create(shop())
        await env.create(secret("foreign"))
        chosen = Selection(field_selector="metadata.name=guide")
        async with env.operating(watches=[Watch(*SECRET, owners)], selections={SECRET: chosen}):
            env.forget()
            await env.edit(ObjectKey("v1", "Secret", "foreign", NAMESPACE), {"metadata": {"labels": {"a": "b"}}})
            await asyncio.sleep(5)
            assert (mapped, env.passes) == ([], [])
            await env.create(secret("guide"))
            await asyncio.sleep(5)
            assert [name for name, _ in env.passes] == ["corner"]
            assert {*mapped} == {"guide"}
            assert not [one for one in env.gateway.requests if one.verb is Verb.LIST and one.kind == "Secret"]

    run_test(test)
