"""Relations by label selectors: both sides are reconciled for whatever changes between them, and for nothing else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.errors import BuildError, ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.selectors import LabelSelector
from ocf.primitives import configmap
from ocf.runtime.crds import CamelModel, CustomResource, Preserve
from ocf.runtime.operator import Operator, OwnerType, Relation, Watch, running, spec_changed

from .conftest import NAMESPACE, SHOPS, Env, RunTest, Shop, key_of, shop

if TYPE_CHECKING:
    from ocf.runtime.operator.manager import Manager

SHOP = ("example.com/v1", "Shop")
POSTER = ("example.com/v1", "Poster")
POSTERS = Relation(POSTER, SHOP, "spec.shops", across_namespaces="spec.everywhere")
FAR = "village"


class PosterSpec(CamelModel):
    shops: Annotated[Any, Preserve(kind="")] = None
    everywhere: bool = False
    text: str = ""


class Poster(CustomResource[PosterSpec], group="example.com", version="v1"):
    spec: PosterSpec = PosterSpec()


def poster(name: str = "sale", namespace: str = NAMESPACE, **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": POSTER[0], "kind": POSTER[1], "metadata": metadata, "spec": spec}


def poster_key(name: str = "sale", namespace: str = NAMESPACE) -> ObjectKey:
    return ObjectKey(*POSTER, name, namespace)


def made(name: str, **labels: str) -> Manifest:
    manifest = shop(name)
    manifest["metadata"]["labels"] = labels
    return manifest


NORTH: Manifest = {"matchLabels": {"part": "north"}}
SOUTH: Manifest = {"matchLabels": {"part": "south"}}


@dataclass
class Both:
    """What the reconciles of both sides have found, the last ones by name."""

    env: Env
    shops: list[tuple[str, list[str]]] = field(default_factory=list)
    posters: list[tuple[str, list[str]]] = field(default_factory=list)

    async def of_shop(self, owner: Shop, context: ReconcileContext) -> Component:
        found = [one["metadata"]["name"] for one in await POSTERS.selecting(context)]
        self.shops.append((owner.metadata.name, found))
        settings = {"metadata": {"name": f"{owner.metadata.name}-posters"}, "data": {"all": " ".join(found)}}
        builder = component.Builder("web", owner=owner.key, condition_type="WebReady")
        return builder.with_resource(configmap.Builder(settings)).build()

    async def of_poster(self, owner: Poster, context: ReconcileContext) -> list[Component]:
        found = [one["metadata"]["name"] for one in await POSTERS.selected(context)]
        self.posters.append((owner.metadata.name, found))
        return []

    @asynccontextmanager
    async def running(self, **changed: Any) -> AsyncIterator[Manager]:
        given: dict[str, Any] = {"resync": None, "watches": [POSTERS], **changed}
        shops = Operator(name="shops", owner=SHOPS, components=self.of_shop, **given)
        filtered = {SHOP: spec_changed, POSTER: spec_changed} if "triggers" in changed else {}
        posters = Operator(
            name="posters",
            owner=OwnerType.of(Poster),
            components=self.of_poster,
            resync=None,
            watches=[POSTERS],
            triggers=filtered,
        )
        async with running(self.env.gateway, shops, posters, options=self.env.options()) as process:
            await asyncio.sleep(5)
            yield process

    def forget(self) -> None:
        self.shops.clear()
        self.posters.clear()


async def prepared(env: Env) -> Both:
    await env.cluster.apply(Poster.definition(), field_manager="me")
    for namespace in (FAR,):
        await env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    return Both(env)


@pytest.mark.promise("relations", runs="selectors and labels that change, within and across namespaces")
def test_both_sides_follow_every_change(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        both = await prepared(env)

        async def step(change: Any) -> tuple[list[tuple[str, list[str]]], list[tuple[str, list[str]]]]:
            both.forget()
            await change
            await asyncio.sleep(10)
            return both.shops, both.posters

        async with both.running():
            await env.create(made("a", part="north"))
            await env.create(made("b", part="south"))
            await asyncio.sleep(10)
            # A new poster: the shops that it selects.
            assert await step(env.create(poster(shops=NORTH))) == ([("a", ["sale"])], [("sale", ["a"])])
            # Another content: the same ones.
            edit = env.edit(poster_key(), {"spec": {"text": "50 %"}})
            assert await step(edit) == ([("a", ["sale"])], [("sale", ["a"])])
            # Another selector: the former shop and the new one.
            edit = env.edit(poster_key(), {"spec": {"shops": SOUTH}})
            shops, posters = await step(edit)
            assert (sorted(shops), posters) == ([("a", []), ("b", ["sale"])], [("sale", ["b"])])
            # Another label: the shop itself, and the poster that has lost it.
            edit = env.edit(key_of("b"), {"metadata": {"labels": {"part": "north"}}})
            assert await step(edit) == ([("b", [])], [("sale", [])])
            # A poster of another namespace, which selects everywhere from now on, and no longer.
            assert await step(env.create(poster("far", FAR, shops=NORTH))) == ([], [("far", [])])
            shops, posters = await step(env.edit(poster_key("far", FAR), {"spec": {"everywhere": True}}))
            assert (sorted(shops), posters) == ([("a", ["far"]), ("b", ["far"])], [("far", ["a", "b"])])
            shops, _ = await step(env.edit(poster_key("far", FAR), {"spec": {"everywhere": False}}))
            assert sorted(shops) == [("a", []), ("b", [])]
            # Without a selector nothing is selected, with an empty one everything.
            assert await step(env.edit(poster_key(), {"spec": {"shops": None}})) == ([], [("sale", [])])
            shops, _ = await step(env.edit(poster_key(), {"spec": {"shops": {}}}))
            assert sorted(shops) == [("a", ["sale"]), ("b", ["sale"])]
            shops, _ = await step(env.cluster.delete(poster_key()))
            assert sorted(shops) == [("a", []), ("b", [])]
            # What concerns neither side triggers nothing.
            both.forget()
            await asyncio.sleep(100)
            assert (both.shops, both.posters) == ([], [])

    run_test(test)


@pytest.mark.promise("relations", runs="random histories of selectors and labels, with restarts and broken watches")
@pytest.mark.parametrize("seed", range(3))
def test_any_history_ends_as_declared(run_test: RunTest, seed: int) -> None:
    """Related objects of two namespaces were mixed up, and events of related objects ended after a while.

    https://github.com/metacontroller/metacontroller/issues/414, https://github.com/metacontroller/metacontroller/issues/731
    """

    async def test(env: Env) -> None:
        chance = random.Random(seed)  # noqa: S311 (histories, not secrets)
        both = await prepared(env)
        for name in "abc":
            await env.create(made(name, part="north"))
        for _ in range(3):
            async with both.running(triggers={POSTER: spec_changed}):
                for _ in range(25):
                    await happen(env, chance)
                    await asyncio.sleep(chance.choice([0, 0, 0.01, 1, 5]))
                await asyncio.sleep(100)
                posters = (await env.cluster.list(*POSTER)).items
                for name in "abc":
                    live = await env.cluster.get(key_of(name))
                    expected = sorted((one for one in posters if _relates(one, live)), key=ObjectKey.of)
                    stored = (await env.cluster.get(ObjectKey("v1", "ConfigMap", f"{name}-posters", NAMESPACE)))["data"]
                    assert stored == {"all": " ".join(one["metadata"]["name"] for one in expected)}

    run_test(test)


SELECTORS: list[Any] = [
    NORTH,
    SOUTH,
    {},
    None,
    "part in (north,south)",
    {"matchExpressions": [{"key": "x", "operator": "Oops"}]},
]


async def happen(env: Env, chance: random.Random) -> None:
    """Make, change or delete a poster, relabel a shop, or end all watches."""
    name, home = chance.choice("pq"), chance.choice([NAMESPACE, FAR])
    spec = {"shops": chance.choice(SELECTORS), "everywhere": chance.random() < 0.3}
    key, what = poster_key(name, home), chance.choice(["edit", "edit", "delete", "relabel", "cut"])
    if what == "relabel":
        part = chance.choice(["north", "south", None])
        await env.edit(key_of(chance.choice("abc")), {"metadata": {"labels": {"part": part}}})
    elif what == "cut":
        env.gateway.cut()
    elif not await env.is_present(key):
        await env.create(poster(name, home, **spec))
    elif what == "delete":
        await env.cluster.delete(key)
    else:
        # A merge patch would merge the selectors.
        await env.edit(key, {"spec": {"shops": None}})
        await env.edit(key, {"spec": spec})


def _relates(one: Manifest, live: Manifest) -> bool:
    """Return what `Relation.relates` must, computed in another way."""
    selector, labels = one["spec"].get("shops"), live["metadata"].get("labels") or {}
    if one["metadata"]["namespace"] != live["metadata"]["namespace"] and not one["spec"].get("everywhere"):
        return False
    if selector == "part in (north,south)":
        return labels.get("part") in {"north", "south"}
    if selector is None or "matchExpressions" in selector:
        return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


@pytest.mark.promise("relations", runs="200 objects that select one owner, made and changed at once")
def test_many_objects_that_select_one_cost_few_of_its_reconciles(run_test: RunTest) -> None:
    """https://github.com/home-operations/kopiur/pull/287 (a fan-out of every event)."""

    async def test(env: Env) -> None:
        both = await prepared(env)
        await env.create(made("a", part="north"))
        async with both.running(triggers={POSTER: spec_changed}):
            both.forget()
            for number in range(200):
                await env.create(poster(f"p{number:03}", shops=NORTH))
                await asyncio.sleep(0.02)
            await asyncio.sleep(30)
            assert len(both.shops[-1][1]) == 200
            assert len(both.shops) <= 5
            assert len(both.posters) == 200
            both.forget()
            for number in range(200):
                await env.patch_status(poster_key(f"p{number:03}"), {"observedGeneration": 1}, by="other")
            await asyncio.sleep(30)
            assert both.shops == []
            await env.edit(key_of("a"), {"spec": {"motto": "closed"}})
            await asyncio.sleep(30)
            assert len(both.shops) == 1
            assert len(both.posters) == 200

    run_test(test)


def test_a_selector_that_is_invalid_fails_its_own_owner_only(run_test: RunTest) -> None:
    wrong = {"matchExpressions": [{"key": "part", "operator": "Like", "values": ["n"]}]}

    async def test(env: Env) -> None:
        both = await prepared(env)
        async with both.running():
            await env.create(made("a", part="north"))
            await env.create(poster(shops=wrong))
            await env.create(poster("good", shops=NORTH))
            await asyncio.sleep(10)
            assert both.shops[-1] == ("a", ["good"])
            live = await env.cluster.get(poster_key())
            [condition] = live["status"]["conditions"]
            assert condition["type"] == "posters/Reconciled"
            assert (
                "Poster/town/sale: spec.shops.matchExpressions[0].operator: must be one of In" in condition["message"]
            )

    run_test(test)


def test_only_the_selected_owners_of_an_operator_are_cached(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        both = await prepared(env)
        async with both.running(select="part=north") as process:
            await env.create(made("a", part="north"))
            await env.create(made("b", part="south"))
            await env.create(poster(shops={}))
            await asyncio.sleep(10)
            assert both.shops[-1] == ("a", ["sale"])
            assert {name for name, _ in both.shops} == {"a"}
            assert process.controllers[0].owners == 1

    run_test(test)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"kind": "Poster"}, r"kind must be a pair such as .*, got 'Poster'", id="a kind alone"),
        pytest.param({"selector": "spec..shops"}, r"selector must be a field .*, got 'spec..shops'", id="no field"),
        pytest.param({"selector": True}, "selector must be a field", id="a switch as field"),
        pytest.param({"across_namespaces": None}, "across_namespaces must be a field", id="nothing as a switch"),
    ],
)
def test_a_relation_of_nothing_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Relation(**{"kind": POSTER, "selects": SHOP, "selector": "spec.shops", **given})


def test_a_relation_has_to_concern_the_owners() -> None:
    with pytest.raises(BuildError, match="the relation of Node to Pod does not concern Shop"):
        Operator(
            name="shops",
            owner=SHOPS,
            components=lambda _: [],
            watches=[Relation(("v1", "Node"), ("v1", "Pod"), "spec.selector")],
        )


def test_a_relation_declares_the_other_kind_and_its_rights() -> None:
    both: dict[str, OwnerType[Any]] = {"shops": SHOPS, "posters": OwnerType.of(Poster)}
    for name, owner in both.items():
        operator: Operator[Any] = Operator(name=name, owner=owner, components=lambda _: [], watches=[POSTERS])
        [other] = {SHOP, POSTER} - {operator.owner_kind}
        assert operator.watched_kinds == (other,)
        operator = Operator(
            name=name,
            owner=owner,
            components=lambda _: [],
            watches=[POSTERS, Watch("v1", "Secret", lambda _: [])],
            definitions=[Poster.definition(), Shop.definition()],
        )
        plural = "posters" if other == POSTER else "shops"
        verbs = {one.verb for one in operator.policy_rules([]) if one.resource == plural}
        assert {"get", "list", "watch"} <= verbs


def test_relates_says_what_is_wrong() -> None:
    with pytest.raises(ManifestError, match=r"spec.shops: must be a map, not list"):
        POSTERS.relates(poster(shops=["a"]), made("a"))
    assert LabelSelector.of(None).nothing
