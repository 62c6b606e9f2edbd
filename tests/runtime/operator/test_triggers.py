"""When a pass is due: what wakes an operator, and what does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ocf.cluster import Request
from ocf.component import ReconcileContext
from ocf.errors import InvalidError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Watch
from ocf.runtime.workqueue import ExponentialBackoff

from .conftest import NAMESPACE, SECOND, Env, Play, Shop, key_of, settings_of, shop

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
def test_a_new_owner_takes_one_pass_and_its_own_writes_take_none(play: Play) -> None:
    async def test(stage: Env) -> None:
        async with stage.operating(report=stage.report):
            await stage.create(shop())
            await asyncio.sleep(100)
            assert stage.passes == [("corner", 5)]
            live = await stage.cluster.get(key_of())
            assert live["status"]["motto"] == "open"
            assert [one["status"] for one in live["status"]["conditions"]] == ["True"]

    play(test)


def test_owners_that_are_there_take_one_pass_each_although_their_objects_are_told(play: Play) -> None:
    async def test(stage: Env) -> None:
        names = [f"shop-{number}" for number in range(20)]
        for name in names:
            await stage.create(shop(name))
        async with stage.operating():
            pass
        stage.forget()
        async with stage.operating():
            await asyncio.sleep(100)
            assert sorted(name for name, _ in stage.passes) == sorted(names)
            assert stage.gateway.writes == []

    play(test)


@pytest.mark.promise("woken")
@pytest.mark.parametrize("change", ["spec", "labels", "a foreign status", "settings", "settings deleted", "front"])
def test_what_anybody_changes_takes_one_pass(play: Play, change: str) -> None:
    """Of the owner, whatever it is, and of its objects, which are repaired."""

    async def test(stage: Env) -> None:
        async with stage.operating():
            await stage.create(shop())
            await asyncio.sleep(5)
            stage.forget()
            match change:
                case "spec":
                    await stage.edit(key_of(), {"spec": {"motto": "closed"}})
                case "labels":
                    await stage.edit(key_of(), {"metadata": {"labels": {"a": "b"}}})
                case "a foreign status":
                    live = await stage.cluster.get(key_of())
                    live["status"]["visits"] = 3
                    from ocf.cluster import Subresource

                    await stage.cluster.update(live, field_manager="counter", subresource=Subresource.STATUS)
                case "settings":
                    await stage.edit(settings_of(), {"data": {"motto": "changed by hand"}})
                case "settings deleted":
                    await stage.cluster.delete(settings_of())
                case _:
                    front = ObjectKey("v1", "Service", "corner-front", NAMESPACE)
                    await stage.edit(front, {"metadata": {"annotations": {"seen": "yes"}}})
            await asyncio.sleep(100)
            assert len(stage.passes) == 1
            motto = "closed" if change == "spec" else "open"
            assert (await stage.cluster.get(settings_of()))["data"] == {"motto": motto}

    play(test)


def test_a_burst_of_changes_takes_few_passes(play: Play) -> None:
    """One for the first change, which begins at once, and one for all that came while it was under way."""

    async def slowly(_: Shop, __: ReconcileContext) -> None:
        await asyncio.sleep(3)

    async def test(stage: Env) -> None:
        stage.before = slowly
        async with stage.operating():
            await stage.create(shop())
            await asyncio.sleep(20)
            stage.forget()
            for number in range(100):
                await stage.edit(key_of(), {"spec": {"motto": f"motto {number}"}})
                await asyncio.sleep(0.01)
            await asyncio.sleep(100)
            assert len(stage.passes) == 2
            assert (await stage.cluster.get(settings_of()))["data"] == {"motto": "motto 99"}

    play(test)


@pytest.mark.promise("one-at-a-time")
def test_owners_are_worked_on_side_by_side_and_each_one_alone(play: Play) -> None:
    running: set[str] = set()

    async def slowly(owner: Shop, _: ReconcileContext) -> None:
        name = owner.metadata["name"]
        assert name not in running
        running.add(name)
        await asyncio.sleep(10)
        running.discard(name)

    async def test(stage: Env) -> None:
        stage.before = slowly
        async with stage.operating(workers=3):
            for name in "abcdef":
                await stage.create(shop(name))
            for number in range(50):
                await asyncio.sleep(1)
                await stage.edit(key_of("abcdef"[number % 6]), {"spec": {"motto": f"motto {number}"}})
            await asyncio.sleep(200)
            assert stage.most_at_once == 3
            for number, name in enumerate("cdefab", 44):
                assert (await stage.cluster.get(settings_of(name)))["data"] == {"motto": f"motto {number}"}

    play(test)


@pytest.mark.promise("woken")
def test_what_the_last_pass_has_read_by_name_wakes_whoever_read_it(play: Play) -> None:
    """Also when it was not there; and no longer once nobody reads it."""

    async def test(stage: Env) -> None:
        stage.before = read_guide
        async with stage.operating():
            await stage.create(shop(guide="guide"))
            await stage.create(shop("other"))
            await asyncio.sleep(5)
            assert (await stage.cluster.get(key_of()))["status"]["guide"] == "missing"
            stage.forget()
            await stage.create(guide())
            await asyncio.sleep(5)
            await stage.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(5)
            assert [name for name, _ in stage.passes] == ["corner"] * 2
            await stage.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(5)
            stage.forget()
            await stage.cluster.delete(GUIDE)
            await asyncio.sleep(5)
            assert stage.passes == []

    play(test)


@pytest.mark.promise("one-at-a-time")
def test_a_change_after_the_first_read_of_a_pass_is_not_missed(play: Play) -> None:
    """Although the pass reads the object once more, and sees it then."""
    texts: list[str] = []

    async def read_twice(_: Shop, context: ReconcileContext) -> None:
        texts.append((await context.cluster.get(GUIDE))["data"]["text"])
        await asyncio.sleep(10)
        await context.cluster.get(GUIDE)

    async def test(stage: Env) -> None:
        await stage.create(guide())
        stage.before = read_twice
        async with stage.operating():
            await stage.create(shop())
            await asyncio.sleep(5)
            await stage.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(100)
            assert (texts, stage.times) == (["MQ==", "Mg=="], [5, 15])

    play(test)


@pytest.mark.promise("one-at-a-time")
def test_a_change_that_meets_the_status_write_is_not_missed(play: Play) -> None:
    """The write conflicts, is repeated over what the pass has not seen, and so takes another pass."""
    met: list[Any] = []

    async def test(stage: Env) -> None:
        async def meddle(request: Any) -> None:
            if request.subresource is not None and not met:
                met.append(request)
                await stage.edit(key_of(), {"spec": {"motto": "closed"}})

        stage.gateway.meddle = meddle
        async with stage.operating(report=stage.report):
            await stage.create(shop())
            await asyncio.sleep(100)
            assert met
            assert (await stage.cluster.get(settings_of()))["data"] == {"motto": "closed"}
            assert (await stage.cluster.get(key_of()))["status"]["motto"] == "closed"

    play(test)


def test_a_mapping_function_says_whom_an_object_concerns(play: Play) -> None:
    def shops_of(secret: Manifest) -> list[tuple[str, str]]:
        return [(NAMESPACE, secret["metadata"]["labels"]["shop"])]

    async def test(stage: Env) -> None:
        async with stage.operating(watches=[Watch("v1", "Secret", shops_of)]):
            for name in ("corner", "other"):
                await stage.create(shop(name))
            await asyncio.sleep(5)
            stage.forget()
            await stage.create(guide())
            await asyncio.sleep(5)
            assert [name for name, _ in stage.passes] == ["corner"]
            unlabelled = guide()
            unlabelled["metadata"] = {"name": "unlabelled", "namespace": NAMESPACE}
            await stage.create(unlabelled)
            await stage.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(5)
            assert [name for name, _ in stage.passes] == ["corner"] * 2

    play(test)


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
    play: Play, references: list[Manifest] | str, *, busy: bool
) -> None:
    async def slowly(_: Shop, __: ReconcileContext) -> None:
        await asyncio.sleep(3)

    async def test(stage: Env) -> None:
        async with stage.operating():
            await stage.create(shop())
            await asyncio.sleep(5)
            stage.forget()
            [before] = (await stage.cluster.get(settings_of()))["metadata"]["ownerReferences"]
            edited = [{**before, "controller": False}] if references == "no controller" else references
            if busy:
                stage.before = slowly
                await stage.edit(key_of(), {"metadata": {"labels": {"a": "b"}}})
                await asyncio.sleep(1)
                assert stage.at_once == 1
            await stage.edit(settings_of(), {"metadata": {"ownerReferences": edited}})
            await asyncio.sleep(10)
            live = await stage.cluster.get(settings_of())
            assert before in live["metadata"]["ownerReferences"]
            assert len(stage.passes) <= 2
            stage.forget()
            await asyncio.sleep(1000)
            assert (stage.passes, stage.gateway.requests) == ([], [])

    play(test)


@pytest.mark.promise("old-state", runs="a child edited and deleted while its owner reference cannot be put back")
@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_what_happens_to_an_object_without_its_owner_reference_is_seen(play: Play, change: str) -> None:
    """Here the reference cannot be put back at first, because the server rejects the write."""

    async def reject(request: Request) -> None:
        if request.kind == "ConfigMap" and not request.verb.is_read:
            raise InvalidError("not now", code=422, reason="Invalid")

    async def test(stage: Env) -> None:
        backoff = ExponentialBackoff(10_000 * SECOND, 10_000 * SECOND, jitter=0)
        async with stage.operating(rate_limiter=backoff):
            await stage.create(shop())
            await asyncio.sleep(5)
            [before] = (await stage.cluster.get(settings_of()))["metadata"]["ownerReferences"]
            stage.gateway.meddle = reject
            await stage.edit(settings_of(), {"metadata": {"ownerReferences": []}})
            await asyncio.sleep(5)
            stage.gateway.meddle = None
            stage.forget()
            if change == "edited":
                await stage.edit(settings_of(), {"data": {"motto": "changed by hand"}})
            else:
                await stage.cluster.delete(settings_of())
            await asyncio.sleep(5)
            live = await stage.cluster.get(settings_of())
            assert (live["data"], live["metadata"]["ownerReferences"]) == ({"motto": "open"}, [before])

    play(test)


@pytest.mark.promise("old-state", runs="labels moved to another owner, and taken off")
@pytest.mark.parametrize(
    ("label", "woken"),
    [
        pytest.param("other", ["corner", "other"], id="moved"),
        pytest.param(None, ["corner"], id="taken off"),
        pytest.param("corner", ["corner"], id="the same"),
    ],
)
def test_a_watch_maps_the_old_and_the_new_state(play: Play, label: str | None, woken: list[str]) -> None:
    """The mapping function raises for an object without the label."""

    def shops_of(secret: Manifest) -> list[tuple[str, str]]:
        return [(NAMESPACE, secret["metadata"]["labels"]["shop"])]

    async def test(stage: Env) -> None:
        async with stage.operating(watches=[Watch("v1", "Secret", shops_of)]):
            for name in ("corner", "other"):
                await stage.create(shop(name))
            await stage.create(guide())
            await asyncio.sleep(5)
            stage.forget()
            await stage.edit(GUIDE, {"metadata": {"labels": {"shop": label}}, "stringData": {"text": "2"}})
            await asyncio.sleep(5)
            assert sorted(name for name, _ in stage.passes) == woken
            stage.forget()
            await stage.edit(GUIDE, {"metadata": {"labels": {"shop": "other"}}, "stringData": {"text": "3"}})
            await asyncio.sleep(5)
            assert "other" in [name for name, _ in stage.passes]

    play(test)


def test_kinds_that_are_not_cached_are_not_followed(play: Play) -> None:
    async def test(stage: Env) -> None:
        stage.before = read_guide
        async with stage.operating(uncached=[("v1", "Secret")]) as process:
            await stage.create(guide())
            await stage.create(shop(guide="guide"))
            await asyncio.sleep(5)
            stage.forget()
            await stage.edit(GUIDE, {"stringData": {"text": "2"}})
            await asyncio.sleep(100)
            assert stage.passes == []
            kinds = {kind for _, kind in process.controllers[0].following}
            assert kinds == {"Shop", "ConfigMap", "Service"}

    play(test)


@pytest.mark.promise("no-read", runs="100 resyncs of 10 owners")
def test_nothing_happens_where_nothing_changes_however_often_all_is_looked_at(play: Play) -> None:
    """A hundred resyncs of ten owners: a pass each, and not one request."""

    async def test(stage: Env) -> None:
        for number in range(10):
            await stage.create(shop(f"shop-{number}"))
        async with stage.operating(resync=60 * SECOND):
            await asyncio.sleep(100)
            stage.forget()
            await asyncio.sleep(100 * 60)
            assert len(stage.passes) == 10 * 100
            assert stage.gateway.requests == []

    play(test)


def test_a_pass_says_when_it_wants_to_be_made_again(play: Play) -> None:
    async def test(stage: Env) -> None:
        async with stage.operating(report=lambda *_: 30 * SECOND):
            await stage.create(shop())
            await asyncio.sleep(95)
            assert stage.times == [5, 35, 65, 95]

    play(test)


def test_an_owner_that_is_gone_is_forgotten(play: Play) -> None:
    async def test(stage: Env) -> None:
        async with stage.operating() as process:
            (controller,) = process.controllers
            await stage.create(shop())
            await asyncio.sleep(5)
            assert controller.owners == 1
            assert process.registry is not None
            assert b"WebReady" in _metrics(process)
            await stage.cluster.delete(key_of())
            await asyncio.sleep(5)
            assert controller.owners == 0
            assert b"WebReady" not in _metrics(process)
            assert controller.queue.later == controller.queue.depth == 0

    play(test)


def test_a_failing_owner_waits_longer_each_time_and_its_own_status_wakes_it_not(play: Play) -> None:
    async def test(stage: Env) -> None:
        broken = True

        async def fail(owner: Shop, context: ReconcileContext) -> None:
            context.status["tries"] = len(stage.passes)
            if broken and owner.metadata["name"] == "corner":
                raise ServerError("no answer")

        stage.before = fail
        async with stage.operating(report=stage.report):
            await stage.create(shop())
            await stage.create(shop("other"))
            await asyncio.sleep(200)
            assert [at for name, at in stage.passes if name == "corner"] == [5, 6, 8, 12, 20, 36, 68, 132, 196]
            assert [at for name, at in stage.passes if name == "other"] == [5]
            live = await stage.cluster.get(key_of())
            assert (live["status"]["motto"], str(stage.outcomes[-1].error)) == ("open", "no answer")
            stage.forget()
            broken = False
            await stage.edit(key_of(), {"spec": {"motto": "mended"}})
            await asyncio.sleep(10)
            broken = True
            await stage.edit(key_of(), {"spec": {"motto": "broken again"}})
            await asyncio.sleep(4)
            assert stage.times == [205, 215, 216, 218]

    play(test)


def _metrics(process: Any) -> bytes:
    from prometheus_client import generate_latest

    return generate_latest(process.registry)
