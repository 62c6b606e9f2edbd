"""When a pass is due: what wakes an operator, and what does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from ocf import component
from ocf.cluster import ListOptions, PatchOptions, PatchType, Request, Subresource, Verb
from ocf.cluster.cache.serialization import CacheEntry, unpack
from ocf.component import Adoption, Component, ReconcileContext
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import InvalidError, NotFoundError, ServerError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment
from ocf.runtime.operator import OwnerType, Watch, controller

from .conftest import NAMESPACE, SECOND, Env, RunTest, Shop, components_of, key_of, settings_of, shop

POD = {
    "metadata": {"labels": {"app": "back"}},
    "spec": {"containers": [{"name": "back", "image": "registry.example.com/back:1"}]},
}
GUIDE = ObjectKey("v1", "Secret", "guide", NAMESPACE)


def guide(text: str = "1") -> Manifest:
    metadata: Manifest = {"name": "guide", "namespace": NAMESPACE, "labels": {"shop": "corner"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"text": text}}


async def read_guide(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        try:
            await context.cluster.get(ObjectKey("v1", "Secret", owner.spec.guide, NAMESPACE))
        except NotFoundError:
            context.status["guide"] = "missing"


@pytest.mark.promise("woken")
def test_a_new_owner_takes_one_pass_and_its_own_writes_take_none(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(report=env.report):
            await env.create(shop())
            await asyncio.sleep(100)
            assert env.passes == [("corner", 5)]
            live = await env.cluster.get(key_of())
            assert live["status"]["motto"] == "open"
            assert [one["status"] for one in live["status"]["conditions"]] == ["True"]

    run_test(test)


def test_own_writes_are_recognised_without_unpacking_the_objects(
    run_test: RunTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[str] = []

    def counted(entry: CacheEntry) -> Manifest:
        found = unpack(entry)
        unpacked.append(found["kind"])
        return found

    monkeypatch.setattr(controller, "unpack", counted)

    async def test(env: Env) -> None:
        async with env.operating(report=env.report):
            await env.create(shop())
            await asyncio.sleep(100)
            assert env.gateway.writes
            assert unpacked == ["Shop"], "the new owner, for its age"

    run_test(test)


def test_owners_that_are_there_take_one_pass_each_although_their_objects_are_told(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        names = [f"shop-{number}" for number in range(20)]
        for name in names:
            await env.create(shop(name))
        async with env.operating():
            pass
        env.forget()
        async with env.operating():
            await asyncio.sleep(100)
            assert sorted(name for name, _ in env.passes) == sorted(names)
            assert env.gateway.writes == []

    run_test(test)


@pytest.mark.promise("woken")
@pytest.mark.parametrize("change", ["spec", "labels", "a foreign status", "settings", "settings deleted", "front"])
def test_what_anybody_changes_takes_one_pass(run_test: RunTest, change: str) -> None:
    """Of the owner, whatever it is, and of its objects, which are repaired."""

    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            match change:
                case "spec":
                    await env.edit(key_of(), {"spec": {"motto": "closed"}})
                case "labels":
                    await env.edit(key_of(), {"metadata": {"labels": {"a": "b"}}})
                case "a foreign status":
                    live = await env.cluster.get(key_of())
                    live["status"]["visits"] = 3
                    from ocf.cluster import Subresource

                    await env.cluster.update(live, field_manager="counter", subresource=Subresource.STATUS)
                case "settings":
                    await env.edit(settings_of(), {"data": {"motto": "changed by hand"}})
                case "settings deleted":
                    await env.cluster.delete(settings_of())
                case _:
                    front = ObjectKey("v1", "Service", "corner-front", NAMESPACE)
                    await env.edit(front, {"metadata": {"annotations": {"seen": "yes"}}})
            await asyncio.sleep(100)
            assert len(env.passes) == 1
            motto = "closed" if change == "spec" else "open"
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": motto}

    run_test(test)


def test_a_burst_of_changes_takes_few_passes(run_test: RunTest) -> None:
    """One for the first change, which begins at once, and one for all that came while it was under way."""

    async def slowly(_: Shop, __: ReconcileContext) -> None:
        await asyncio.sleep(3)

    async def test(env: Env) -> None:
        env.before = slowly
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(20)
            env.forget()
            for number in range(100):
                await env.edit(key_of(), {"spec": {"motto": f"motto {number}"}})
                await asyncio.sleep(0.01)
            await asyncio.sleep(100)
            assert len(env.passes) == 2
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "motto 99"}

    run_test(test)


@pytest.mark.parametrize("delay", [timedelta(0), -SECOND, timedelta(microseconds=1)], ids=str)
@pytest.mark.parametrize("place", ["components", "report"])
def test_a_delay_of_no_time_is_the_shortest_one_and_never_means_never(
    run_test: RunTest, caplog: pytest.LogCaptureFixture, delay: timedelta, place: str
) -> None:
    """Zero meant never, and a loop without a pause would starve others.

    https://github.com/Azure/eno/pull/326, https://github.com/metal3-io/baremetal-operator/pull/3617 (a deletion that
    stops), https://github.com/eraser-dev/eraser/pull/161 (a deadline that passes between two looks at the clock).
    """

    async def ask(_: Shop, context: ReconcileContext) -> None:
        context.requeue_after(delay)

    async def test(env: Env) -> None:
        env.before = ask if place == "components" else None
        asking: dict[str, Any] = (
            {"report": lambda context, *_: context.requeue_after(delay)} if place == "report" else {}
        )
        async with env.operating(**asking):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            await asyncio.sleep(10)
            assert len(env.passes) in range(95, 102)

    run_test(test)
    logged = ["is raised to the shortest one" in record.getMessage() for record in caplog.records]
    assert logged.count(True) == (delay > timedelta(0))


@pytest.mark.promise("one-at-a-time")
def test_owners_are_worked_on_side_by_side_and_each_one_alone(run_test: RunTest) -> None:
    running: set[str] = set()

    async def slowly(owner: Shop, _: ReconcileContext) -> None:
        name = owner.metadata.name
        assert name not in running
        running.add(name)
        await asyncio.sleep(10)
        running.discard(name)

    async def test(env: Env) -> None:
        env.before = slowly
        async with env.operating(workers=3):
            for name in "abcdef":
                await env.create(shop(name))
            for number in range(50):
                await asyncio.sleep(1)
                await env.edit(key_of("abcdef"[number % 6]), {"spec": {"motto": f"motto {number}"}})
            await asyncio.sleep(200)
            assert env.most_at_once == 3
            for number, name in enumerate("cdefab", 44):
                assert (await env.cluster.get(settings_of(name)))["data"] == {"motto": f"motto {number}"}

    run_test(test)


@pytest.mark.promise("woken")
def test_an_object_read_by_name_triggers_the_owner_whose_last_reconcile_read_it(run_test: RunTest) -> None:
    """Also when it was not there; and no longer once no reconcile reads it."""

    async def test(env: Env) -> None:
        env.before = read_guide
        async with env.operating():
            await env.create(shop(guide="guide"))
            await env.create(shop("other"))
            await asyncio.sleep(5)
            assert (await env.cluster.get(key_of()))["status"]["guide"] == "missing"
            env.forget()
            await env.create(guide())
            await asyncio.sleep(5)
            await env.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(5)
            assert [name for name, _ in env.passes] == ["corner"] * 2
            await env.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(5)
            env.forget()
            await env.cluster.delete(GUIDE)
            await asyncio.sleep(5)
            assert env.passes == []

    run_test(test)


@pytest.mark.promise("woken")
@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "during a reconcile"])
def test_what_a_list_selects_triggers_the_owner_whose_last_reconcile_listed_it(
    run_test: RunTest, *, busy: bool
) -> None:
    """As soon as it is selected, and as long as it is; and no longer once no reconcile lists it."""
    listed: list[list[str]] = []

    async def list_guides(owner: Shop, context: ReconcileContext) -> None:
        if owner.spec.guide:
            options = ListOptions(namespace=NAMESPACE, label_selector=owner.spec.guide)
            listed.append(
                [one["metadata"]["name"] for one in (await context.cluster.list("v1", "Secret", options)).items]
            )
        if busy:
            await asyncio.sleep(3)

    async def test(env: Env) -> None:
        async def step(change: Awaitable[object]) -> list[str]:
            if busy:
                await env.edit(key_of(), {"metadata": {"annotations": {"now": str(asyncio.get_running_loop().time())}}})
                await asyncio.sleep(1)
                assert env.at_once == 1
            env.forget()
            await change
            await asyncio.sleep(10)
            return [name for name, _ in env.passes]

        env.before = list_guides
        async with env.operating():
            await env.create(shop(guide="shop=corner"))
            await env.create(shop("other"))
            await asyncio.sleep(20)
            assert await step(env.create(guide())) == ["corner"]
            assert await step(env.edit(GUIDE, {"stringData": {"text": "2"}})) == ["corner"]
            assert await step(env.edit(GUIDE, {"metadata": {"labels": {"shop": "other"}}})) == ["corner"]
            assert await step(env.edit(GUIDE, {"stringData": {"text": "3"}})) == []
            assert await step(env.edit(GUIDE, {"metadata": {"labels": {"shop": "corner"}}})) == ["corner"]
            assert listed[-1] == ["guide"]
            assert await step(env.cluster.delete(GUIDE)) == ["corner"]
            assert listed[-1] == []
            await env.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(20)
            assert await step(env.create(guide())) == []

    run_test(test)


@pytest.mark.promise("one-at-a-time")
def test_a_change_after_the_first_list_of_a_new_owner_is_not_missed(run_test: RunTest) -> None:
    listed: list[int] = []

    async def list_guides(_: Shop, context: ReconcileContext) -> None:
        options = ListOptions(namespace=NAMESPACE, field_selector="metadata.name=guide")
        listed.append(len((await context.cluster.list("v1", "Secret", options)).items))
        await asyncio.sleep(3)

    async def test(env: Env) -> None:
        env.before = list_guides
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(1)
            await env.create(guide())
            await asyncio.sleep(100)
            assert listed == [0, 1]

    run_test(test)


@pytest.mark.promise("one-at-a-time")
def test_a_change_after_the_first_read_of_a_pass_is_not_missed(run_test: RunTest) -> None:
    """Although the pass reads the object once more, and sees it then."""
    texts: list[str] = []

    async def read_twice(_: Shop, context: ReconcileContext) -> None:
        texts.append((await context.cluster.get(GUIDE))["data"]["text"])
        await asyncio.sleep(10)
        await context.cluster.get(GUIDE)

    async def test(env: Env) -> None:
        await env.create(guide())
        env.before = read_twice
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            await env.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(100)
            assert (texts, env.times) == (["MQ==", "Mg=="], [5, 15])

    run_test(test)


@pytest.mark.promise("one-at-a-time")
def test_a_change_that_meets_the_status_write_is_not_missed(run_test: RunTest) -> None:
    """The write conflicts, is repeated over what the pass has not seen, and so takes another pass."""
    met: list[Any] = []

    async def test(env: Env) -> None:
        async def meddle(request: Any) -> None:
            if request.subresource is not None and not met:
                met.append(request)
                await env.edit(key_of(), {"spec": {"motto": "closed"}})

        env.gateway.meddle = meddle
        async with env.operating(report=env.report):
            await env.create(shop())
            await asyncio.sleep(100)
            assert met
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "closed"}
            assert (await env.cluster.get(key_of()))["status"]["motto"] == "closed"

    run_test(test)


@pytest.mark.promise("intent", runs="an operator whose owner is changed right before an intent is stored")
@pytest.mark.parametrize(
    ("change", "passes"),
    [
        pytest.param({}, 1, id="not at all"),
        pytest.param({"spec": {"motto": "closed"}}, 2, id="its spec"),
    ],
)
def test_an_intent_is_a_write_of_its_own_that_triggers_nothing(
    run_test: RunTest, change: Manifest, passes: int
) -> None:
    seen: list[Any] = []

    async def choose(_: Shop, context: ReconcileContext) -> None:
        seen.append(context.status.get("visits"))
        if not seen[-1]:
            context.status["visits"] = 7
            if change:
                await env_of[0].edit(key_of(), change)
            await context.write_status()

    env_of: list[Env] = []

    async def test(env: Env) -> None:
        env_of.append(env)
        env.before = choose
        async with env.operating(report=env.report):
            await env.create(shop())
            await asyncio.sleep(100)
            assert seen == [None, 7][:passes]
            live = await env.cluster.get(key_of())
            assert (live["status"]["visits"], live["status"]["motto"]) == (7, "closed" if change else "open")
            assert [one["observedGeneration"] for one in live["status"]["conditions"]] == [passes]

    run_test(test)


@pytest.mark.promise("patch-owner", runs="an operator that sets a default, once and in each reconcile")
@pytest.mark.parametrize("times", [1, 40])
def test_a_patch_of_the_owner_takes_one_more_pass(run_test: RunTest, times: int) -> None:
    """And one that is never in sync, such as a time, does not take a pass after the other."""
    values = iter([*(f"motto {number}" for number in range(times)), *[f"motto {times - 1}"] * 1000])

    async def default(_: Shop, context: ReconcileContext) -> None:
        await context.patch_owner({"spec": {"motto": next(values)}, "metadata": {"labels": {"tier": "web"}}})

    async def test(env: Env) -> None:
        env.before = default
        async with env.operating(report=env.report):
            await env.create(shop())
            await asyncio.sleep(100)
            patches = [one for one in env.gateway.writes if one == (Verb.PATCH, "Shop")]
            if times > 1:
                # The fourth one is held back for a minute, and the next one for two.
                assert (len(patches), env.times) == (4, [5, 5, 5, 5, 65, 65])
                return
            assert (len(env.passes), len(patches)) == (2, 1)
            live = await env.cluster.get(key_of())
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "motto 0"}
            assert live["status"]["motto"] == "motto 0"
            generation = live["metadata"]["generation"]
            assert [one["observedGeneration"] for one in live["status"]["conditions"]] == [generation] == [2]

    run_test(test)


def test_a_mapping_function_says_whom_an_object_concerns(run_test: RunTest) -> None:
    def shops_of(secret: Manifest) -> list[tuple[str, str]]:
        return [(NAMESPACE, secret["metadata"]["labels"]["shop"])]

    async def test(env: Env) -> None:
        async with env.operating(watches=[Watch("v1", "Secret", shops_of)]):
            for name in ("corner", "other"):
                await env.create(shop(name))
            await asyncio.sleep(5)
            env.forget()
            await env.create(guide())
            await asyncio.sleep(5)
            assert [name for name, _ in env.passes] == ["corner"]
            unlabelled = guide()
            unlabelled["metadata"] = {"name": "unlabelled", "namespace": NAMESPACE}
            await env.create(unlabelled)
            await env.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(5)
            assert [name for name, _ in env.passes] == ["corner"] * 2

    run_test(test)


@pytest.mark.promise(
    "old-state", runs="owner references taken off, by hand and in part, at rest and during a reconcile"
)
@pytest.mark.parametrize(
    "references",
    [
        pytest.param([], id="taken off"),
        pytest.param([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"}], id="replaced"),
        pytest.param("no controller", id="no longer as controller"),
    ],
)
@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "during a reconcile"])
def test_an_owner_reference_that_is_taken_off_is_put_back_at_once(
    run_test: RunTest, references: list[Manifest] | str, *, busy: bool
) -> None:
    async def slowly(_: Shop, __: ReconcileContext) -> None:
        await asyncio.sleep(3)

    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            [before] = (await env.cluster.get(settings_of()))["metadata"]["ownerReferences"]
            edited = [{**before, "controller": False}] if references == "no controller" else references
            if busy:
                env.before = slowly
                await env.edit(key_of(), {"metadata": {"labels": {"a": "b"}}})
                await asyncio.sleep(1)
                assert env.at_once == 1
            await env.edit(settings_of(), {"metadata": {"ownerReferences": edited}})
            await asyncio.sleep(10)
            live = await env.cluster.get(settings_of())
            assert before in live["metadata"]["ownerReferences"]
            assert len(env.passes) <= 2
            env.forget()
            await asyncio.sleep(1000)
            assert (env.passes, env.gateway.requests) == ([], [])

    run_test(test)


@pytest.mark.promise("old-state", runs="a child edited and deleted while its owner reference cannot be put back")
@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_what_happens_to_an_object_without_its_owner_reference_is_seen(run_test: RunTest, change: str) -> None:
    """Here the reference cannot be put back at first, because the server rejects the write."""

    async def reject(request: Request) -> None:
        if request.kind == "ConfigMap" and not request.verb.is_read:
            raise InvalidError("not now", code=422, reason="Invalid")

    async def test(env: Env) -> None:
        backoff = ExponentialBackoff(10_000 * SECOND, 10_000 * SECOND, jitter=0)
        async with env.operating(rate_limiter=backoff):
            await env.create(shop())
            await asyncio.sleep(5)
            [before] = (await env.cluster.get(settings_of()))["metadata"]["ownerReferences"]
            env.gateway.meddle = reject
            await env.edit(settings_of(), {"metadata": {"ownerReferences": []}})
            await asyncio.sleep(5)
            env.gateway.meddle = None
            env.forget()
            if change == "edited":
                await env.edit(settings_of(), {"data": {"motto": "changed by hand"}})
            else:
                await env.cluster.delete(settings_of())
            await asyncio.sleep(5)
            live = await env.cluster.get(settings_of())
            assert (live["data"], live["metadata"]["ownerReferences"]) == ({"motto": "open"}, [before])

    run_test(test)


@pytest.mark.promise("old-state", runs="labels moved to another owner, and taken off")
@pytest.mark.parametrize(
    ("label", "woken"),
    [
        pytest.param("other", ["corner", "other"], id="moved"),
        pytest.param(None, ["corner"], id="taken off"),
        pytest.param("corner", ["corner"], id="the same"),
    ],
)
def test_a_watch_maps_the_old_and_the_new_state(run_test: RunTest, label: str | None, woken: list[str]) -> None:
    """The mapping function raises for an object without the label."""

    def shops_of(secret: Manifest) -> list[tuple[str, str]]:
        return [(NAMESPACE, secret["metadata"]["labels"]["shop"])]

    async def test(env: Env) -> None:
        async with env.operating(watches=[Watch("v1", "Secret", shops_of)]):
            for name in ("corner", "other"):
                await env.create(shop(name))
            await env.create(guide())
            await asyncio.sleep(5)
            env.forget()
            await env.edit(GUIDE, {"metadata": {"labels": {"shop": label}}, "stringData": {"text": "2"}})
            await asyncio.sleep(5)
            assert sorted(name for name, _ in env.passes) == woken
            env.forget()
            await env.edit(GUIDE, {"metadata": {"labels": {"shop": "other"}}, "stringData": {"text": "3"}})
            await asyncio.sleep(5)
            assert "other" in [name for name, _ in env.passes]

    run_test(test)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"uncached": [("v1", "Secret")]}, id="by name"),
        pytest.param(
            {"uncached": [("v1", "*")], "owns": [("v1", "ConfigMap"), ("v1", "Service")]}, id="all of a group"
        ),
        pytest.param({"uncached": [("*", "*")], "owns": [("v1", "ConfigMap"), ("v1", "Service")]}, id="all"),
    ],
)
def test_kinds_that_are_not_cached_are_not_followed(run_test: RunTest, changed: dict[str, Any]) -> None:
    async def test(env: Env) -> None:
        env.before = read_guide
        async with env.operating(**changed) as process:
            await env.create(guide())
            await env.create(shop(guide="guide"))
            await asyncio.sleep(5)
            env.forget()
            await env.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(100)
            assert env.passes == []
            kinds = {kind for _, kind in process.controllers[0].following}
            assert kinds == {"Shop", "ConfigMap", "Service"}
            assert "Secret" not in env.gateway.watched
            await env.edit(settings_of(), {"data": {"motto": "closed"}})
            await asyncio.sleep(100)
            assert [name for name, _ in env.passes] == ["corner"]

    run_test(test)


def test_what_a_create_makes_is_an_own_write(run_test: RunTest) -> None:
    """Where an object must not exist, it is made by a create, which triggers as little as an apply does."""
    reconciled: list[str] = []

    def components(owner: Shop, _context: ReconcileContext) -> Component:
        reconciled.append(owner.metadata.name)
        base = {"metadata": {"name": f"{owner.metadata.name}-settings"}, "data": {"a": "1"}}
        web = component.Builder("web", owner=owner.key).with_resource(configmap.Builder(base))
        return web.with_adoption(Adoption.NEVER).build()

    async def test(env: Env) -> None:
        await env.create(shop())
        async with env.operating(components=components):
            await asyncio.sleep(10)
            assert await env.is_present(settings_of())
            assert reconciled == ["corner"]
            env.forget()
            await asyncio.sleep(600)
            assert env.gateway.requests == []

    run_test(test)


def test_pods_explain_a_workload_without_being_watched(run_test: RunTest) -> None:
    """A list in each poll interval while the workload is not ready, and nothing once it is."""

    def components(owner: Shop, _context: ReconcileContext) -> Component:
        metadata = {"name": owner.metadata.name, "namespace": NAMESPACE}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
        base = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        web = component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(base))
        return web.with_pod_causes().build()

    async def test(env: Env) -> None:
        await env.create(shop())
        async with env.operating(components=components) as process:
            await asyncio.sleep(10)
            env.forget()
            await asyncio.sleep(60)
            lists = [request.kind for request in env.gateway.requests if request.verb is Verb.LIST]
            assert 5 <= lists.count("Pod") <= 6
            assert "Pod" not in {kind for _, kind in process.controllers[0].following}
            counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            status = {"observedGeneration": 1, **dict.fromkeys(counts, 1)}
            as_status = PatchOptions(
                patch_type=PatchType.MERGE, field_manager="controller", subresource=Subresource.STATUS
            )
            await env.cluster.patch(
                ObjectKey("apps/v1", "Deployment", "corner", NAMESPACE), {"status": status}, as_status
            )
            await asyncio.sleep(60)
            env.forget()
            await asyncio.sleep(600)
            assert env.gateway.requests == []

    run_test(test)


@pytest.mark.promise("no-read", runs="100 resyncs of 10 owners")
def test_nothing_happens_where_nothing_changes_however_often_all_is_looked_at(run_test: RunTest) -> None:
    """A hundred resyncs of ten owners: a pass each, and not one request."""

    async def test(env: Env) -> None:
        for number in range(10):
            await env.create(shop(f"shop-{number}"))
        async with env.operating(resync=60 * SECOND):
            await asyncio.sleep(100)
            env.forget()
            await asyncio.sleep(100 * 60)
            assert len(env.passes) == 10 * 100
            assert env.gateway.requests == []

    run_test(test)


def test_a_pass_says_when_it_wants_to_be_made_again(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(report=lambda context, *_: context.requeue_after(30 * SECOND)):
            await env.create(shop())
            await asyncio.sleep(95)
            assert env.times == [5, 35, 65, 95]

    run_test(test)


def test_an_owner_that_is_gone_is_forgotten(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating() as process:
            (controller,) = process.controllers
            await env.create(shop())
            await asyncio.sleep(5)
            assert controller.owners == 1
            assert process.registry is not None
            assert b"WebReady" in _metrics(process)
            await env.cluster.delete(key_of())
            await asyncio.sleep(5)
            assert controller.owners == 0
            assert b"WebReady" not in _metrics(process)
            assert controller.queue.later == controller.queue.depth == 0

    run_test(test)


def test_a_failing_owner_waits_longer_each_time_and_its_own_status_wakes_it_not(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        broken = True

        async def fail(owner: Shop, context: ReconcileContext) -> None:
            context.status["tries"] = len(env.passes)
            if broken and owner.metadata.name == "corner":
                raise ServerError("no answer")

        env.before = fail
        async with env.operating(report=env.report):
            await env.create(shop())
            await env.create(shop("other"))
            await asyncio.sleep(200)
            assert [at for name, at in env.passes if name == "corner"] == [5, 6, 8, 12, 20, 36, 68, 132, 196]
            assert [at for name, at in env.passes if name == "other"] == [5]
            live = await env.cluster.get(key_of())
            assert (live["status"]["motto"], str(env.outcomes[-1].error)) == ("open", "no answer")
            env.forget()
            broken = False
            await env.edit(key_of(), {"spec": {"motto": "mended"}})
            await asyncio.sleep(10)
            broken = True
            await env.edit(key_of(), {"spec": {"motto": "broken again"}})
            await asyncio.sleep(4)
            assert env.times == [205, 215, 216, 218]

    run_test(test)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param([30 * SECOND], [5, 6, 8, 12, 20, 36, 66, 96, 126], id="a period that is shorter than the backoff"),
        pytest.param([90 * SECOND], [5, 6, 8, 12, 20, 36, 68, 132], id="a period that is longer"),
        pytest.param([60 * SECOND, 3 * SECOND], [5, 6, 8, 11, 14, 17, 20, 23, 26], id="the earliest of two"),
        pytest.param([timedelta(0)], [5, 6, 8, 12, 20, 36, 68, 132], id="at once, which would end the backoff"),
        pytest.param([-SECOND], [5, 6, 8, 12, 20, 36, 68, 132], id="a deadline that has passed"),
        pytest.param([timedelta(milliseconds=1)], [5, 6, 8, 12, 20, 36, 68, 132], id="hardly any time"),
    ],
)
@pytest.mark.parametrize("place", ["components", "report"])
def test_a_failed_reconcile_is_repeated_after_its_delay_or_its_backoff_whichever_is_shorter(
    run_test: RunTest, asked: list[timedelta], expected: list[float], place: str
) -> None:
    """https://github.com/kubernetes-sigs/node-readiness-controller/issues/468: each error drops the delay."""

    def ask(context: ReconcileContext) -> None:
        for delay in asked:
            context.requeue_after(delay)

    async def fail(_: Shop, context: ReconcileContext) -> None:
        if place == "components":
            ask(context)
        raise ServerError("no answer")

    async def test(env: Env) -> None:
        env.before = fail
        reporting: dict[str, Any] = {"report": lambda context, *_: ask(context)} if place == "report" else {}
        async with env.operating(**reporting):
            await env.create(shop())
            await asyncio.sleep(140)
            assert [round(at, 3) for at in env.times][: len(expected)] == expected

    run_test(test)


def test_a_component_that_fails_does_not_delay_the_deadline_of_another_one(run_test: RunTest) -> None:
    """The grace period of one component ends while another one fails, and has a long backoff by then."""

    def failing_and_waiting(_: Shop) -> list[Component]:
        base = {"metadata": {"name": "back"}, "spec": {"selector": {"matchLabels": {"app": "back"}}, "template": POD}}
        waiting = component.Builder("back", owner=key_of(), condition_type="BackReady").with_grace_period(50 * SECOND)
        failing = component.Builder("web", condition_type="WebReady")
        named = {"metadata": {"name": "other", "namespace": "elsewhere"}}
        return [
            failing.with_resource(configmap.Builder(named)).build(),
            waiting.with_resource(deployment.Builder(base)).build(),
        ]

    async def test(env: Env) -> None:
        async with env.operating(components=failing_and_waiting):
            await env.create(shop())
            await asyncio.sleep(52)
            conditions = {one["type"]: one for one in (await env.cluster.get(key_of()))["status"]["conditions"]}
            assert conditions["WebReady"]["reason"] == "Error"
            assert conditions["BackReady"]["reason"] == "Down"

    run_test(test)


def test_a_delay_counts_where_only_the_status_cannot_be_written(run_test: RunTest) -> None:
    async def ask(_: Shop, context: ReconcileContext) -> None:
        context.requeue_after(3 * SECOND)

    async def refuse(request: Request) -> None:
        if request.subresource == Subresource.STATUS and not request.verb.is_read:
            raise ServerError("no answer", code=503)

    async def test(env: Env) -> None:
        env.before, env.gateway.meddle = ask, refuse
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(16)
            assert env.times == [5, 6, 8, 11, 14, 17, 20]

    run_test(test)


def test_a_delay_that_was_asked_for_does_not_shorten_a_retry_after(run_test: RunTest) -> None:
    async def fail(_: Shop, context: ReconcileContext) -> None:
        context.requeue_after(3 * SECOND)
        raise TooManyRequestsError("slow down", code=429, retry_after=20)

    async def test(env: Env) -> None:
        env.before = fail
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(50)
            assert env.times == [5, 25, 45]

    run_test(test)


def test_the_log_names_the_time_of_the_retry(run_test: RunTest, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: Shop, context: ReconcileContext) -> None:
        context.requeue_after(3 * SECOND)
        raise ServerError("no answer")

    async def test(env: Env) -> None:
        env.before = fail
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(12)

    run_test(test)
    waits = [record.getMessage().partition(", again in ")[2].split(":")[0] for record in caplog.records]
    assert [wait for wait in waits if wait] == ["1 s", "2 s", *["3 s"] * 3]


@pytest.mark.promise("status-kept", runs="10 resyncs of owners whose status is not stored")
@pytest.mark.parametrize(
    "version",
    [
        pytest.param({}, id="no status subresource"),
        pytest.param({"subresources": {"status": {}}}, id="no conditions in the schema"),
    ],
)
def test_an_owner_whose_status_is_not_stored_is_at_rest(run_test: RunTest, version: Manifest) -> None:
    """Its operator posts an event, and then sends no request any more."""
    fields = {"spec": {"type": "object"}, "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}
    served = {"name": "v1", "served": True, "storage": True, **version}
    kiosks = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kiosks.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Kiosk", "plural": "kiosks", "singular": "kiosk", "listKind": "KioskList"},
            "scope": "Namespaced",
            "versions": [served | {"schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}}],
        },
    }
    reconciles: list[str] = []

    def components(owner: Manifest) -> Component:
        reconciles.append(owner["metadata"]["name"])
        return components_of(Shop.model_validate(owner))

    async def test(env: Env) -> None:
        await env.create(kiosks)
        kiosk = shop() | {"kind": "Kiosk"}
        settings: dict[str, Any] = {"owner": OwnerType("example.com/v1", "Kiosk"), "components": components}
        async with env.operating(**settings, resync=60 * SECOND):
            await env.create(kiosk)
            await asyncio.sleep(30)
            events = await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))
            assert [one["note"] for one in events.items if one["reason"] == "StatusNotStored"]
            env.forget()
            before = len(reconciles)
            await asyncio.sleep(10 * 60)
            assert len(reconciles) == before + 10
            assert env.gateway.requests == []

    run_test(test)


def _metrics(process: Any) -> bytes:
    from prometheus_client import generate_latest

    return generate_latest(process.registry)
