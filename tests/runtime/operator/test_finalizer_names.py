"""Finalizers that an author names: the operator's own, exactly as given, and those of a former operator.

Publicly reported: owners that cannot be deleted after a change of the finalizer or of the operator
(https://github.com/open-telemetry/opentelemetry-operator/issues/4769, https://github.com/rancher/elemental-operator/issues/391,
https://github.com/metacontroller/metacontroller/issues/1062).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.component.owner_deletion import external_finalizer
from ocf.errors import BuildError
from ocf.runtime.operator import Operator, OwnerType
from tests.support import eventually

from .conftest import Env, RunTest, key_of, shop
from .test_owner_scope import World, world

if TYPE_CHECKING:
    from ocf.cluster import Request
    from ocf.objects import Manifest

__all__ = ["world"]

EXACT: Final = "finalizer.example.com"
DEFAULT: Final = external_finalizer("shops")
KOPF: Final = "kopf.zalando.org/KopfFinalizerMarker"
FOREIGN: Final = "example.com/hold"


def held(*finalizers: str) -> Manifest:
    manifest = shop()
    return {**manifest, "metadata": {**manifest["metadata"], "finalizers": list(finalizers)}}


async def finalizers(env: Env) -> list[str]:
    return (await env.cluster.get(key_of()))["metadata"].get("finalizers") or []


class Cleaner:
    def __init__(self) -> None:
        self.calls = 0

    async def on_delete(self, *_: object) -> None:
        self.calls += 1


@pytest.mark.promise("named-finalizers", runs="owners with the finalizer of kopf, of another name and of others")
@pytest.mark.parametrize("cleans_up", [True, False], ids=["on_delete", "no on_delete"])
@pytest.mark.parametrize(
    "before",
    [(), (KOPF,), (DEFAULT,), (FOREIGN, KOPF, DEFAULT)],
    ids=["none", "former", "renamed", "all, and a foreign one"],
)
def test_former_finalizers_are_replaced_and_foreign_ones_stay(
    run_test: RunTest, before: tuple[str, ...], *, cleans_up: bool
) -> None:
    async def test(env: Env) -> None:
        cleaner = Cleaner()
        seen: list[list[str]] = []

        async def look(_: Request) -> None:
            seen.append(await finalizers(env))

        await env.create(held(*before))
        env.gateway.after = look
        settings: dict[str, Any] = {"finalizer": EXACT, "former_finalizers": [KOPF]}
        settings |= {"on_delete": cleaner.on_delete} if cleans_up else {}
        async with env.operating(**settings):
            env.gateway.after = None
            foreign = [name for name in before if name == FOREIGN]
            assert await finalizers(env) == [*foreign, *([EXACT] if cleans_up else [])]
            # At no moment between them was the owner without a finalizer.
            assert all(seen) or not (before and cleans_up)
            env.forget()
            await asyncio.sleep(60)
            assert env.gateway.writes == []
            await env.cluster.delete(key_of())
            await asyncio.sleep(5)
            assert cleaner.calls == int(cleans_up)
            assert await env.is_present(key_of()) is bool(foreign)
            if foreign:
                assert await finalizers(env) == foreign

    run_test(test)


@pytest.mark.promise("named-finalizers", runs="owners that are deleted before the operator has started")
@pytest.mark.parametrize("cleans_up", [True, False], ids=["on_delete", "no on_delete"])
def test_an_owner_that_only_a_former_finalizer_holds_is_cleaned_up_and_released(
    run_test: RunTest, *, cleans_up: bool
) -> None:
    async def test(env: Env) -> None:
        cleaner = Cleaner()
        await env.create(held(KOPF))
        await env.cluster.delete(key_of())
        settings: dict[str, Any] = {"on_delete": cleaner.on_delete} if cleans_up else {}
        async with env.operating(former_finalizers=["kopf.zalando.org/*"], **settings):
            assert not await env.is_present(key_of())
            assert cleaner.calls == int(cleans_up)

    run_test(test)


def test_a_former_operator_that_still_runs_is_named(run_test: RunTest) -> None:
    """It sets its finalizer each time it is removed: the removal waits, longer each time, and an event says why."""

    async def test(env: Env) -> None:
        async def set_again(request: Request) -> None:
            if request.kind == "Shop" and not request.verb.is_read and request.subresource is None:
                await env.edit(key_of(), {"metadata": {"finalizers": [DEFAULT, KOPF]}})

        await env.create(held(KOPF))
        env.gateway.after = set_again
        async with env.operating(former_finalizers=[KOPF], on_delete=Cleaner().on_delete):
            await asyncio.sleep(3600)
            patches = [one for one in env.gateway.requests if one.kind == "Shop" and one.field_manager]
            assert len([one for one in patches if one.field_manager.endswith("/finalizer")]) < 20
            events = await env.cluster.list("events.k8s.io/v1", "Event")
            assert "FinalizerReverted" in {one["reason"] for one in events.items}

    run_test(test)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"finalizer": "no name"}, 'finalizer "no name"', id="invalid"),
        pytest.param({"finalizer": "orphan"}, "one of Kubernetes", id="of Kubernetes"),
        pytest.param({"finalizer": 7}, "finalizer must be a text", id="number"),
        pytest.param({"finalizer": "shops.ocf.dev/cleanup"}, "the framework uses itself", id="clean-up"),
        pytest.param({"finalizer": "shops.ocf.dev/held-for-cleanup"}, "the framework uses itself", id="hold"),
        pytest.param({"finalizer": "malls.ocf.dev/cleanup-external"}, "the framework uses itself", id="of another one"),
        pytest.param({"former_finalizers": None}, "must be a list of finalizers, got None", id="None"),
        pytest.param({"former_finalizers": 1}, "must be a list of finalizers, got 1", id="former number"),
        pytest.param({"former_finalizers": KOPF}, r"must be a list of finalizers", id="text"),
        pytest.param(
            {"former_finalizers": ["*/*"]}, "every finalizer, those of running controllers included", id="everything"
        ),
        pytest.param({"former_finalizers": ["orphan"]}, "one of Kubernetes", id="former of Kubernetes"),
        pytest.param({"former_finalizers": [""]}, "must be names or patterns", id="empty"),
        pytest.param({"former_finalizers": ["a[b]/c"]}, "wildcards", id="brackets"),
    ],
)
def test_names_that_cannot_work_are_rejected(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Operator(name="shops", owner=OwnerType("example.com/v1", "Shop"), components=lambda _: (), **settings)


def test_the_default_name_may_be_given() -> None:
    named = Operator(
        name="shops", owner=OwnerType("example.com/v1", "Shop"), components=lambda _: (), finalizer=DEFAULT
    )
    assert named.finalizers.external == DEFAULT


@pytest.mark.promise("named-finalizers", runs="set, replaced and removed")
async def test_named_finalizers_on_an_api_server(world: World) -> None:
    await world.define()
    cleaner = Cleaner()

    async def names() -> list[str]:
        found: list[str] = (await world.found(world.owner))["metadata"].get("finalizers", [])
        return found

    async with world.operating(finalizer=EXACT, former_finalizers=[KOPF], on_delete=cleaner.on_delete):
        await world.create(finalizers=[KOPF, external_finalizer("realms"), FOREIGN])
        await eventually(names, lambda found: found == [FOREIGN, EXACT])
        await world.cluster.delete(world.owner)
        await eventually(names, lambda found: found == [FOREIGN])
        assert cleaner.calls == 1
        await world.edit(world.owner, {"metadata": {"finalizers": None}})
        await eventually(lambda: world.found(world.owner), lambda live: not live)
