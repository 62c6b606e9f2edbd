"""Owners that an operator selects: no other object of their kind is written, and a label selector caches no other one.

Publicly reported of other operators: a finalizer on every object of the kind, although the handler has a filter
(https://github.com/zalando-incubator/kopf/issues/167, https://github.com/nolar/kopf/issues/1024); a finalizer that
stays once the label is gone, so that the object can never be deleted
(https://github.com/sigstore/model-validation-operator/issues/180); a predicate that filters the deletion out
(https://github.com/kubernetes-sigs/node-readiness-controller/issues/213).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType
from ocf.cluster.cache.serialization import unpack
from ocf.cluster.request_log import Verb
from ocf.component.owner_deletion import external_finalizer
from ocf.errors import BuildError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, secret
from ocf.runtime.crds import Scope
from ocf.runtime.operator import Lease, Operator, OwnerType, Sharding, Watch, running
from ocf.runtime.operator.owners import content_needed
from tests.support import eventually

from .conftest import NAMESPACE, Env, RunTest, Shop, key_of, settings_of, shop
from .test_owner_scope import World, world

if TYPE_CHECKING:
    from ocf.cluster import Request
    from ocf.component import Component, ReconcileContext

__all__ = ["world"]

LABEL: Final = "example.com/copy"
EXTERNAL: Final = external_finalizer("shops")
COUNT: Final = 5_000


def labelled(live: Manifest) -> bool:
    return (live["metadata"].get("labels") or {}).get(LABEL) == "true"


SELECTS: Final[dict[str, str | Callable[[Manifest], bool]]] = {
    "label selector": f"{LABEL}=true",
    "function": labelled,
}
either = pytest.mark.parametrize("select", SELECTS.values(), ids=SELECTS)


def marked(name: str = "corner", value: str = "true") -> Manifest:
    manifest = shop(name)
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {LABEL: value}}}


async def mark(env: Env, value: str | None, name: str = "corner") -> None:
    await env.edit(key_of(name), {"metadata": {"labels": {LABEL: value}}})


class External:
    """What an operator makes outside of the cluster."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def delete(self, owner: Shop, *_: object) -> None:
        self.deleted.append(owner.metadata.name)


async def finalizers(env: Env, name: str = "corner") -> list[str]:
    return (await env.cluster.get(key_of(name)))["metadata"].get("finalizers") or []


@pytest.mark.promise("selected-owners", runs="owners by label and by function, from the start and later")
@either
def test_only_selected_owners_are_written(run_test: RunTest, select: Any) -> None:
    async def test(env: Env) -> None:
        external = External()
        await env.create(marked())
        await env.create(marked("other", "false"))
        await env.create(shop("plain"))
        async with env.operating(select=select, on_delete=external.delete) as process:
            await env.create(marked("later"))
            await env.create(shop("plain-later"))
            await asyncio.sleep(5)
            assert {name for name, _ in env.passes} == {"corner", "later"}
            written = [one.name for one in env.gateway.requests if not one.verb.is_read and one.kind != "Event"]
            assert {name.partition("-")[0] for name in written} == {"corner", "later"}
            assert await finalizers(env) == [EXTERNAL]
            assert await finalizers(env, "plain") == []
            assert [each.owners for each in process.controllers] == [2]
            env.forget()
            await mark(env, "true", "plain")
            await asyncio.sleep(5)
            assert {name for name, _ in env.passes} == {"plain"}
            assert await env.is_present(settings_of("plain"))

    run_test(test)


@pytest.mark.promise("selected-owners", runs="owners that are not selected any more, and what is deleted then")
@either
@pytest.mark.parametrize("running_then", [True, False], ids=["the operator runs", "no operator runs"])
def test_an_owner_that_is_not_selected_any_more_is_released(
    run_test: RunTest, select: Any, *, running_then: bool
) -> None:
    async def test(env: Env) -> None:
        external, deleted = External(), list[ObjectKey]()
        settings: dict[str, Any] = {"select": select, "on_delete": external.delete, "on_deleted": deleted.append}
        await env.create(marked())
        async with env.operating(**settings) as process:
            status = (await env.cluster.get(key_of()))["status"]
            if running_then:
                await mark(env, None)
                await asyncio.sleep(5)
                assert [each.owners for each in process.controllers] == [0]
                assert deleted == [key_of()]
        await mark(env, None)
        env.forget()
        async with env.operating(**settings):
            live = await env.cluster.get(key_of())
            assert live["metadata"].get("finalizers", []) == []
            assert live["status"] == status
            assert await env.is_present(settings_of())
            await env.edit(settings_of(), {"data": {"motto": "by hand"}})
            await asyncio.sleep(5)
            assert env.passes == []
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "by hand"}
            events = await env.cluster.list("events.k8s.io/v1", "Event")
            assert [one["reason"] for one in events.items].count("Released") == 1
            await env.cluster.delete(key_of())
            assert not await env.is_present(key_of())
            await asyncio.sleep(5)
            assert external.deleted == []
            # It is selected again under its name.
            await env.create(marked())
            await asyncio.sleep(5)
            assert await finalizers(env) == [EXTERNAL]

    run_test(test)


@pytest.mark.promise("selected-owners", runs="owners whose label is taken off while they are being deleted")
@either
@pytest.mark.parametrize("running_then", [True, False], ids=["the operator runs", "no operator runs"])
def test_an_owner_that_is_being_deleted_is_cleaned_up_whether_it_is_selected_or_not(
    run_test: RunTest, select: Any, *, running_then: bool
) -> None:
    async def test(env: Env) -> None:
        external = External()
        await env.create(marked())
        async with env.operating(select=select, on_delete=external.delete):
            assert await finalizers(env) == [EXTERNAL]
        await mark(env, None)
        if not running_then:
            await env.cluster.delete(key_of())
        async with env.operating(select=select, on_delete=external.delete) as process:
            if running_then:
                # It was released at the start, so it is selected and deleted again, in this order.
                await mark(env, "true")
                await asyncio.sleep(5)
                await env.edit(key_of(), {"metadata": {"finalizers": [EXTERNAL, "example.com/hold"]}})
                process.controllers[0].stop()
                await env.cluster.delete(key_of())
                await mark(env, None)
        async with env.operating(select=select, on_delete=external.delete):
            await asyncio.sleep(5)
            assert external.deleted == ["corner"]
            left = await env.is_present(key_of())
            assert left is running_then
            if left:
                assert await finalizers(env) == ["example.com/hold"]

    run_test(test)


@pytest.mark.parametrize("count", [COUNT])
def test_a_label_selector_caches_only_what_it_selects(run_test: RunTest, count: int) -> None:
    """With a function the metadata of all is cached; with either, the others get no write and no reconcile."""

    def copy_of(owner: Manifest) -> Component:
        name = owner["metadata"]["name"]
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-copy", "namespace": NAMESPACE}}
        return component.Builder("copy").with_resource(configmap.Builder(body)).unpublished().build()

    async def clean(*_: object) -> None:
        """Delete nothing."""

    async def test(env: Env) -> None:
        for number in range(count):
            labels = {"labels": {LABEL: "true"}} if number < 3 else {}
            metadata = {"name": f"s{number}", "namespace": NAMESPACE, **labels}
            await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        cached = {}
        for name, select in SELECTS.items():
            env.forget()
            operator: Operator[Manifest] = Operator(
                name="copies",
                owner=OwnerType("v1", "Secret"),
                components=copy_of,
                on_delete=clean,
                select=select,
                resync=None,
            )
            async with running(env.gateway, operator, options=env.options()) as process:
                await asyncio.sleep(30)
                written = {one.name for one in env.gateway.requests if one.verb is Verb.PATCH and one.kind == "Secret"}
                assert written == ({"s0", "s1", "s2"} if name == "label selector" else set())
                controller = process.controllers[0]
                assert controller.owners == 3
                cached[name] = sum(one.objects for one in controller.owner_cache.informers if one.kind == "Secret")
                if name == "function":
                    keys = [ObjectKey("v1", "Secret", f"s{number}", NAMESPACE) for number in range(count)]
                    found = [unpack(entry) for key in keys if (entry := controller.owner_cache.entry(key)) is not None]
                    assert [live["metadata"]["name"] for live in found if "type" in live] == ["s0", "s1", "s2"]
        assert cached == {"label selector": 3, "function": count}

    run_test(test)


@pytest.mark.parametrize("sharding", [None, Sharding(slots=4)], ids=["one leader", "sharded"])
def test_of_what_a_function_does_not_select_only_metadata_is_held_and_nothing_wakes_it(
    run_test: RunTest, sharding: Sharding | None
) -> None:
    """With sharding, the owners have a cache of their own, as those of a label selector have."""
    settings: dict[str, Any] = {"lease": Lease("shops", NAMESPACE), "sharding": sharding} if sharding else {}

    async def test(env: Env) -> None:
        await env.create(marked())
        await env.create(shop("plain"))
        async with env.operating(options=settings, select=labelled) as process:
            await asyncio.sleep(10)
            cache = process.controllers[0].owner_cache
            entries = {name: cache.entry(key_of(name)) for name in ("corner", "plain")}
            held = {name: entry.metadata_only for name, entry in entries.items() if entry is not None}
            assert held == {"corner": False, "plain": True}
            uid = (await env.cluster.get(key_of("plain")))["metadata"]["uid"]
            owner = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "plain", "uid": uid, "controller": True}
            metadata = {"name": "plain-settings", "namespace": NAMESPACE, "ownerReferences": [owner]}
            env.forget()
            assert process.registry is not None
            adds = {"name": "shops", "controller": "shops"}
            before = process.registry.get_sample_value("workqueue_adds_total", adds)
            assert before is not None
            await env.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            await asyncio.sleep(10)
            assert process.registry.get_sample_value("workqueue_adds_total", adds) == before
            assert env.passes == []
            await mark(env, "true", "plain")
            await asyncio.sleep(10)
            assert {name for name, _ in env.passes} == {"plain"}

    run_test(test)


def test_a_function_may_decide_by_the_content_of_which_only_the_metadata_is_held_otherwise(
    run_test: RunTest, caplog: pytest.LogCaptureFixture
) -> None:
    """Also at a resync, and for an object that is selected later, or read by a component before."""
    passes: list[str] = []

    async def components(owner: Manifest, context: ReconcileContext) -> list[Component]:
        passes.append(owner["metadata"]["name"])
        assert (await context.cluster.get(ObjectKey("v1", "Secret", "other", NAMESPACE)))["data"] == {"a": "YQ=="}
        assert (await context.cluster.get(ObjectKey("v1", "ConfigMap", "c", NAMESPACE)))["data"] == {"b": "c"}
        return []

    async def test(env: Env) -> None:
        for name in ("plain", "other", "chosen"):
            data = {"data": {"chosen": "YQ=="} if name == "chosen" else {"a": "YQ=="}}
            metadata = {"name": name, "namespace": NAMESPACE}
            await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **data})
        metadata = {"name": "c", "namespace": NAMESPACE}
        await env.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"b": "c"}})
        operator: Operator[Manifest] = Operator(
            name="chosen",
            owner=OwnerType("v1", "Secret"),
            components=components,
            select=lambda live: "chosen" in live["data"],
            resync=timedelta(hours=1),
        )
        async with running(env.gateway, operator, options=env.options()) as process:
            await asyncio.sleep(2.5 * 3600)
            assert passes == ["chosen"] * 3
            (cache,) = {each.owner_cache for each in process.controllers}
            entry = cache.entry(ObjectKey("v1", "Secret", "plain", NAMESPACE))
            assert entry is not None
            assert entry.metadata_only
            await env.edit(ObjectKey("v1", "Secret", "plain", NAMESPACE), {"data": {"chosen": "YQ=="}})
            await asyncio.sleep(5)
            assert passes[3:] == ["plain"]
            await env.edit(ObjectKey("v1", "Secret", "other", NAMESPACE), {"metadata": {"labels": {"a": "b"}}})
            await asyncio.sleep(5)
            assert sorted(passes[4:]) == ["chosen", "plain"]
        assert "select" not in caplog.text

    run_test(test)


@pytest.mark.parametrize("uncached", [False, True], ids=["cached", "uncached"])
def test_components_read_and_write_other_objects_of_the_kind_of_their_owner(
    run_test: RunTest, *, uncached: bool
) -> None:
    """What the selector leaves out is not absent for the components: a copy has no label, and is repaired."""

    def copy_of(owner: Manifest) -> Component:
        metadata = {"name": f"{owner['metadata']['name']}-copy", "namespace": NAMESPACE}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": owner["data"]}
        return component.Builder("copy").with_resource(secret.Builder(body)).with_prune().unpublished().build()

    async def test(env: Env) -> None:
        metadata = {"name": "login", "namespace": NAMESPACE, "labels": {LABEL: "true"}}
        await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": "YQ=="}})
        kind = ("v1", "Secret")
        operator: Operator[Manifest] = Operator(
            name="copies",
            owner=OwnerType(*kind),
            components=copy_of,
            select=f"{LABEL}=true",
            uncached=[kind] if uncached else [],
            resync=None,
        )
        key, copy = (ObjectKey(*kind, name, NAMESPACE) for name in ("login", "login-copy"))
        async with running(env.gateway, operator, options=env.options()) as process:
            await asyncio.sleep(5)
            assert (await env.cluster.get(copy))["data"] == {"a": "YQ=="}
            await env.edit(key, {"data": {"a": "Yg=="}})
            await asyncio.sleep(5)
            assert (await env.cluster.get(copy))["data"] == {"a": "Yg=="}
            await env.edit(copy, {"data": {"a": "YQ=="}})
            await asyncio.sleep(5)
            assert (await env.cluster.get(copy))["data"] == {"a": "YQ==" if uncached else "Yg=="}
            env.forget()
            await env.cluster.delete(key)
            await asyncio.sleep(5)
            assert [each.owners for each in process.controllers] == [0]
            assert [process.health.owners(), process.health.watches()] == ["", ""]

    run_test(test)


@either
def test_a_paused_owner_is_released_once_the_pause_ends(run_test: RunTest, select: Any) -> None:
    async def test(env: Env) -> None:
        pause = "shops.ocf.dev/paused"
        await env.create(marked())
        async with env.operating(select=select, on_delete=External().delete):
            await env.edit(key_of(), {"metadata": {"annotations": {pause: "true"}}})
            await asyncio.sleep(5)
            await mark(env, None)
            await asyncio.sleep(5)
            assert await finalizers(env) == [EXTERNAL]
        async with env.operating(select=select, on_delete=External().delete, resync=None):
            await env.edit(key_of(), {"metadata": {"annotations": {pause: None}}})
        async with env.operating(select=select, on_delete=External().delete):
            assert await finalizers(env) == []

    run_test(test)


@either
@pytest.mark.parametrize("lost", [False, True], ids=["rejected", "answer lost"])
def test_a_release_that_fails_is_repeated(run_test: RunTest, select: Any, *, lost: bool) -> None:
    async def test(env: Env) -> None:
        await env.create(marked())
        async with env.operating(select=select, on_delete=External().delete):
            failed: list[Request] = []

            async def fail(request: Request) -> None:
                if request.verb is Verb.PATCH and not failed:
                    failed.append(request)
                    raise ServerError("try again", code=500)

            setattr(env.gateway, "after" if lost else "meddle", fail)
            await mark(env, None)
            await asyncio.sleep(60)
            assert failed
            assert await finalizers(env) == []

    run_test(test)


def cancelling(_: Manifest) -> bool:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(lambda _: 1 / 0, "raised ZeroDivisionError", id="raises"),
        pytest.param(cancelling, "raised CancelledError", id="a cancellation of something else"),
        pytest.param(lambda live: live["metadata"], "must return True or False, got dict", id="no bool"),
    ],
)
def test_a_function_that_fails_is_logged_and_repeated_and_nothing_is_written(
    run_test: RunTest, caplog: pytest.LogCaptureFixture, answer: Any, text: str
) -> None:
    async def test(env: Env) -> None:
        answers = [answer]

        def select(live: Manifest) -> bool:
            given: bool = answers[0](live)
            return given

        await env.create(marked())
        async with env.operating(select=select, on_delete=External().delete):
            assert env.gateway.writes == []
            assert text in caplog.text
            answers[0] = labelled
            await asyncio.sleep(60)
            assert await finalizers(env) == [EXTERNAL]

    with caplog.at_level(logging.WARNING):
        run_test(test)


async def asynchronous(_: Manifest) -> bool:
    return True


@pytest.mark.parametrize(
    ("select", "problem"),
    [
        pytest.param("a in", "is not a label selector", id="selector"),
        pytest.param("a=b;c", "is not a label selector", id="label"),
        pytest.param(asynchronous, "a function of a manifest that returns a bool", id="coroutine"),
        pytest.param(7, "a function of a manifest that returns a bool, got 7", id="number"),
        pytest.param({"a": "b"}, "a function of a manifest that returns a bool", id="labels"),
    ],
)
def test_a_selection_that_cannot_work_is_rejected(select: Any, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Operator(name="shops", owner=OwnerType("v1", "Secret"), components=lambda _: (), select=select)


def test_a_function_that_changes_its_argument_changes_no_object() -> None:
    def select(live: Manifest) -> bool:
        return bool(live["metadata"].pop("finalizers") == [live.pop("kind")])

    live = {"kind": "Secret", "metadata": {"name": "a", "finalizers": ["Secret"]}}
    operator: Operator[Manifest] = Operator(
        name="shops", owner=OwnerType("v1", "Secret"), components=lambda _: (), select=select
    )
    assert (operator.selects({"apiVersion": "v1", **live}), operator.selects({"apiVersion": "v1", **live})) == (
        True,
        True,
    )
    assert live == {"kind": "Secret", "metadata": {"name": "a", "finalizers": ["Secret"]}}


def test_the_rights_include_the_watch_of_the_owners() -> None:
    kind = ("v1", "Secret")
    given: dict[str, Any] = {"name": "copies", "owner": OwnerType(*kind), "components": lambda _: ()}
    operator: Operator[Manifest] = Operator(**given, select="a=b", uncached=[kind])
    verbs = {one.verb for one in operator.policy_rules([]) if one.resource == "secrets"}
    assert {"get", "list", "watch"} <= verbs
    with pytest.raises(BuildError, match="cannot be watched"):
        Operator(**given, select=labelled, uncached=[kind])
    with pytest.raises(BuildError, match="cannot be watched"):
        Operator(**given, select="a=b", uncached=[kind], owns=[kind])


@pytest.mark.promise("selected-owners", runs="release, later selection and clean-up")
@pytest.mark.parametrize("by_label", [True, False], ids=SELECTS)
@pytest.mark.parametrize("limited", [False, True], ids=["all namespaces", "one namespace"])
@pytest.mark.parametrize("scope", list(Scope))
async def test_selection_on_an_api_server(world: World, scope: Scope, *, by_label: bool, limited: bool) -> None:
    world.scope = scope
    await world.define()
    deleted: list[str] = []

    async def on_delete(owner: Any, _: ReconcileContext, __: object) -> None:
        deleted.append(owner.metadata["name"])

    async def hold(value: str | None) -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        await world.cluster.patch(world.owner, {"metadata": {"labels": {LABEL: value}}}, options)

    async def held() -> list[str]:
        found: list[str] = (await world.found(world.owner))["metadata"].get("finalizers", [])
        return found

    options = {"namespaces": [world.namespace]} if limited else None
    select = SELECTS["label selector" if by_label else "function"]
    async with world.operating(options=options, select=select, on_delete=on_delete):
        await world.create()
        await hold("true")
        await world.until(world.child("ConfigMap"), data={"motto": "open"})
        assert await held() == [external_finalizer("realms")]
        await hold("false")
        await eventually(held, lambda names: names == [])
        assert await world.found(world.child("ConfigMap"))
        await hold("true")
        await eventually(held, lambda names: names == [external_finalizer("realms")])
        await world.cluster.delete(world.owner)
        await eventually(lambda: world.found(world.owner), lambda live: not live)
        assert deleted == ["north"]


@pytest.mark.parametrize(
    "used",
    [
        pytest.param({"triggers": {("v1", "Secret"): lambda old, new: old["data"] != new["data"]}}, id="a predicate"),
        pytest.param({"watches": [Watch("v1", "Secret", lambda _: ())]}, id="a watch"),
        pytest.param({"owner": OwnerType("v1", "Secret")}, id="owners without a selection"),
    ],
)
def test_objects_at_which_the_author_looks_are_held_as_a_whole(used: dict[str, Any]) -> None:
    """Such a function gets any object of the kind, and may look at its content."""
    given: dict[str, Any] = {"name": "copies", "owner": OwnerType("v1", "ConfigMap"), "components": lambda _: ()}
    assert set(content_needed([Operator(**given)])) == {("v1", "Secret")}
    assert set(content_needed([Operator(**{**given, **used})])) == set()
