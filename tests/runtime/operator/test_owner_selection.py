"""Owners that the API server selects by fields and namespaces, beside labels."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from ocf.cluster import Verb
from ocf.cluster.cache import Selection
from ocf.errors import BuildError, ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Watch
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests import support

from .conftest import DEFINITION, NAMESPACE, Env, Gateway, RunTest, shop

OTHERS: Final = "village"
FIELD: Final = Selection(field_selector="metadata.name!=other")
HOME: Final = Selection(namespaces=[NAMESPACE])


def in_village(name: str) -> Manifest:
    made = shop(name)
    return {**made, "metadata": {**made["metadata"], "namespace": OTHERS}}


async def on_stage() -> Env:
    embedded = EmbeddedCluster(namespaces=(NAMESPACE, OTHERS), now=LoopClock().now)
    cluster = await support.defined(embedded, DEFINITION)
    return Env(cluster, Gateway(cluster), LoopClock())


async def held(env: Env) -> set[str]:
    """Return the shops that have a finalizer."""
    found = (await env.cluster.list("example.com/v1", "Shop")).items
    return {live["metadata"]["name"] for live in found if live["metadata"].get("finalizers")}


async def clean_up(*_: object) -> None:
    """Have nothing to clean up, but a finalizer."""


@pytest.mark.parametrize(
    ("selection", "options", "owners"),
    [
        pytest.param(FIELD, {}, {"corner", "far"}, id="by a field"),
        pytest.param(HOME, {}, {"corner", "other"}, id="by a namespace"),
        pytest.param(
            Selection(field_selector="metadata.name!=other", namespaces=[NAMESPACE]), {}, {"corner"}, id="by both"
        ),
        pytest.param(Selection(), {}, {"corner", "other", "far"}, id="all"),
        pytest.param(
            Selection(namespaces=[NAMESPACE, OTHERS]), {"namespaces": [OTHERS]}, {"far"}, id="of a process of some"
        ),
    ],
)
def test_only_selected_owners_are_reconciled_and_cached(
    selection: Selection, options: dict[str, Any], owners: set[str]
) -> None:
    async def work() -> None:
        env = await on_stage()
        for made in (shop("corner"), shop("other"), in_village("far")):
            await env.create(made)
        async with env.operating(select=selection, on_delete=clean_up, options=options) as process:
            await asyncio.sleep(5)
            assert {name for name, _ in env.passes} == owners
            assert await held(env) == owners
            [controller] = process.controllers
            assert sum(one.objects for one in controller.owner_cache.informers_of("example.com/v1", "Shop")) == len(
                owners
            )
            env.forget()
            for live in (await env.cluster.list("example.com/v1", "Shop")).items:
                await env.edit(ObjectKey.of(live), {"spec": {"motto": "closed"}})
            await asyncio.sleep(5)
            assert {name for name, _ in env.passes} == owners
            assert env.gateway.events["Shop"] <= 2 * len(owners)

    run_in_virtual_time(work())


@pytest.mark.parametrize("running_then", [True, False])
def test_an_owner_of_a_namespace_that_is_not_selected_any_more_is_released(*, running_then: bool) -> None:
    async def work() -> None:
        env = await on_stage()
        for made in (shop("corner"), in_village("far")):
            await env.create(made)
        async with env.operating(on_delete=clean_up):
            assert await held(env) == {"corner", "far"}
        env.forget()
        async with env.operating(select=HOME, on_delete=clean_up):
            if running_then:
                await env.create(in_village("farther"))
            await asyncio.sleep(5)
            assert await held(env) == {"corner"}
            watched = {one.namespace for one in env.gateway.requests if (one.verb, one.kind) == (Verb.WATCH, "Shop")}
            assert watched == {NAMESPACE}

    run_in_virtual_time(work())


def test_a_field_that_the_process_cannot_compare_is_the_one_of_the_api_server(run_test: RunTest) -> None:
    """A field without a value counts differently for each kind; what the API server sends is an owner."""

    async def test(env: Env) -> None:
        selection = Selection(field_selector="spec.none!=a")
        operator = env.operator(select=selection)
        assert operator.selects(shop("corner"))
        assert not operator.selects(shop("corner") | {"spec": {"none": "a"}})
        assert operator.selects(shop("corner") | {"spec": {"none": "b"}})

    run_test(test)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        pytest.param({"select": Selection(by_name=True)}, "leave out by_name", id="by name"),
        pytest.param({"select": Selection(metadata_only=True)}, "metadata_only", id="metadata"),
        pytest.param(
            {"select": HOME, "watches": [Watch("example.com/v1", "Shop", lambda _: ())]},
            "`owns` or `watches`",
            id="the kind is watched",
        ),
        pytest.param({"select": 7}, "a Selection", id="a number"),
    ],
)
def test_a_selection_that_owners_cannot_have_is_an_error(
    run_test: RunTest, changed: dict[str, Any], problem: str
) -> None:
    async def test(env: Env) -> None:
        with pytest.raises(BuildError, match=problem):
            env.operator(**changed)

    run_test(test)


def test_namespaces_that_the_process_does_not_have_are_an_error(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        with pytest.raises(ConfigError, match="nowhere, of which none"):
            async with env.operating(select=Selection(namespaces=["nowhere"]), options={"namespaces": [NAMESPACE]}):
                await asyncio.sleep(10)

    run_test(test)
