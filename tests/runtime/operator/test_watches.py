"""Watches: whom a change concerns, said by a function that may wait, read, and see the state before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import Cluster, ListOptions, WatchEvent
from ocf.cluster.protocol import EventType
from ocf.errors import ConfigError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import ALL, Watch, spec_changed

from .conftest import NAMESPACE, Env, RunTest, key_of, settings_of, shop

if TYPE_CHECKING:
    from ocf.cluster import Request

CLASS = ("storage.k8s.io/v1", "StorageClass")
GUIDE = ObjectKey("v1", "Secret", "guide", NAMESPACE)
SECRETS = ("v1", "Secret")


def guide(**labels: str) -> Manifest:
    metadata = {"name": "guide", "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def fast() -> Manifest:
    return {"apiVersion": CLASS[0], "kind": CLASS[1], "metadata": {"name": "fast"}, "provisioner": "example.com/disk"}


def names(env: Env) -> list[str]:
    return [name for name, _ in env.passes]


async def labelled(event: WatchEvent, cluster: Cluster) -> list[tuple[str, str]]:
    """Return the shops whose labels the object has, read from the cluster."""
    states = [state for state in (event.old, event.object) if state is not None]
    options = [ListOptions(label_selector=f"town={state['metadata']['labels']['town']}") for state in states]
    found = [await cluster.list("example.com/v1", "Shop", one) for one in options]
    return [(one["metadata"]["namespace"], one["metadata"]["name"]) for each in found for one in each.items]


async def of_state(live: Manifest) -> list[tuple[str, str]]:
    await asyncio.sleep(0)
    return [(NAMESPACE, live["metadata"]["labels"]["shop"])]


@pytest.mark.promise(
    "watch-functions", runs="a change of a StorageClass, by a constant and by three kinds of functions"
)
@pytest.mark.parametrize(
    "owners",
    [
        pytest.param(ALL, id="a constant"),
        pytest.param(lambda _live: ALL, id="a function of the object"),
        pytest.param(lambda _event, _cluster: ALL, id="a function of the event"),
    ],
)
@pytest.mark.parametrize("change", ["made", "edited", "deleted"])
def test_a_change_may_concern_all_owners(run_test: RunTest, owners: Any, change: str) -> None:
    async def test(env: Env) -> None:
        key = ObjectKey(*CLASS, "fast")
        if change != "made":
            await env.create(fast())
        async with env.operating(watches=[Watch(*CLASS, owners)]):
            for number in range(20):
                await env.create(shop(f"shop-{number}"))
            await asyncio.sleep(5)
            env.forget()
            if change == "made":
                await env.create(fast())
            elif change == "edited":
                await env.edit(key, {"metadata": {"annotations": {"a": "b"}}})
            else:
                await env.cluster.delete(key)
            await asyncio.sleep(10)
            assert sorted(names(env)) == sorted(f"shop-{number}" for number in range(20))
            assert env.gateway.writes == []

    run_test(test)


@pytest.mark.promise("watch-functions", runs="an object that moves from one owner to another, and is deleted")
@pytest.mark.parametrize("how", ["event", "state"])
@pytest.mark.parametrize("predicate", [None, spec_changed], ids=["each change", "a predicate"])
def test_the_owner_that_an_object_has_left_is_reconciled_first(run_test: RunTest, how: str, predicate: Any) -> None:
    async def test(env: Env) -> None:
        label, function = ("town", labelled) if how == "event" else ("shop", of_state)
        triggers = {} if predicate is None else {SECRETS: predicate}
        async with env.operating(watches=[Watch(*SECRETS, function)], triggers=triggers, workers=1):
            for name in ("corner", "other", "third"):
                made = shop(name)
                made["metadata"]["labels"] = {"town": name}
                await env.create(made)
            await env.create(guide(**{label: "other"}))
            await asyncio.sleep(5)
            env.forget()
            await env.edit(GUIDE, {"metadata": {"labels": {label: "corner"}}})
            await asyncio.sleep(5)
            assert names(env) == ["other", "corner"]
            env.forget()
            await env.cluster.delete(GUIDE)
            await asyncio.sleep(5)
            assert names(env) == ["corner"]

    run_test(test)


def test_a_function_sees_the_kind_of_event_and_both_states(run_test: RunTest) -> None:
    seen: list[tuple[EventType, str | None, str]] = []

    def note(event: WatchEvent, _: Cluster) -> list[tuple[str, str]]:
        texts = [None if one is None else (one.get("data") or {}).get("a", "") for one in (event.old, event.object)]
        seen.append((event.type, texts[0], texts[1] or ""))
        return []

    async def test(env: Env) -> None:
        async with env.operating(watches=[Watch(*SECRETS, note)]):
            await env.create(guide())
            await asyncio.sleep(1)
            await env.edit(GUIDE, {"data": {"a": "MQ=="}})
            await asyncio.sleep(1)
            await env.cluster.delete(GUIDE)
            await asyncio.sleep(1)
        assert seen == [
            (EventType.ADDED, None, ""),
            (EventType.MODIFIED, "", "MQ=="),
            (EventType.DELETED, None, "MQ=="),
        ]

    run_test(test)


@pytest.mark.promise("watch-functions", runs="a function that waits for a minute, and one that cannot read at first")
def test_a_slow_function_delays_nothing_else(run_test: RunTest) -> None:
    async def slow(_: Manifest) -> list[tuple[str, str]]:
        await asyncio.sleep(60)
        return [(NAMESPACE, "corner")]

    async def test(env: Env) -> None:
        async with env.operating(watches=[Watch("v1", "ConfigMap", slow)]):
            await env.create(shop())
            await asyncio.sleep(200)
            env.forget()
            start = asyncio.get_running_loop().time()
            await env.edit(settings_of(), {"data": {"motto": "by hand"}})
            await asyncio.sleep(200)
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "open"}
            assert env.times[0] == start

    run_test(test)


def test_a_change_is_not_lost_because_the_function_cannot_read(run_test: RunTest) -> None:
    """And one whose function is wrong is logged, once, and triggers nothing."""
    calls: list[float] = []

    async def read(_: WatchEvent, cluster: Cluster) -> list[tuple[str, str]]:
        calls.append(asyncio.get_running_loop().time())
        await cluster.get(ObjectKey("v1", "ConfigMap", "map", NAMESPACE))
        return [(NAMESPACE, "corner")]

    async def test(env: Env) -> None:
        down = True

        async def meddle(request: Request) -> None:
            if down and request.name == "map":
                raise ServerError("no answer", code=500)

        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": NAMESPACE}}
        await env.create(settings)
        env.gateway.meddle = meddle
        async with env.operating(watches=[Watch(*SECRETS, read)], uncached=[("v1", "ConfigMap")]):
            await env.create(shop())
            await asyncio.sleep(5)
            env.forget()
            await env.create(guide())
            await asyncio.sleep(20)
            assert (len(calls), env.passes) == (5, [])
            down = False
            await asyncio.sleep(20)
            assert names(env) == ["corner"]

    run_test(test)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(lambda *_: [("town", "corner", "x")], "ConfigError", id="a triple"),
        pytest.param(lambda *_: ["corner"], "ConfigError", id="a name alone"),
        pytest.param(lambda *_: None, "TypeError", id="nothing"),
    ],
)
@pytest.mark.parametrize("how", ["at once", "later"])
def test_a_wrong_answer_is_logged_and_ends_nothing(
    run_test: RunTest, caplog: pytest.LogCaptureFixture, answer: Any, problem: str, how: str
) -> None:
    async def later(_: Manifest) -> Any:
        return answer()

    async def test(env: Env) -> None:
        function: Any = (lambda _: answer()) if how == "at once" else later
        async with env.operating(watches=[Watch(*SECRETS, function)]):
            await env.create(shop())
            await env.create(guide())
            await asyncio.sleep(5)
            env.forget()
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(5)
            assert len(env.passes) == 1

    run_test(test)
    assert "a watch could not map" in caplog.text
    assert problem in caplog.text


@pytest.mark.parametrize("how", ["at once", "later", "with the event"])
def test_a_function_that_waits_for_what_was_cancelled_has_failed(
    run_test: RunTest, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    calls: list[str] = []

    def read(live: Manifest) -> list[tuple[str, str]]:
        calls.append(live["metadata"]["name"])
        if len(calls) == 1:
            raise asyncio.CancelledError
        return [(NAMESPACE, "corner")]

    async def later(live: Manifest) -> list[tuple[str, str]]:
        return read(live)

    def with_event(event: WatchEvent, _: Cluster) -> list[tuple[str, str]]:
        return read(event.object)

    functions: dict[str, Any] = {"at once": read, "later": later, "with the event": with_event}

    async def test(env: Env) -> None:
        async with env.operating(watches=[Watch(*SECRETS, functions[how])]):
            await env.create(shop())
            await env.create(guide())
            await asyncio.sleep(5)
            env.forget()
            await env.edit(GUIDE, {"data": {"a": "MQ=="}})
            await asyncio.sleep(5)
            assert names(env) == ["corner"]

    run_test(test)
    assert "a watch could not map" in caplog.text


def test_a_function_that_hangs_is_given_up(run_test: RunTest, caplog: pytest.LogCaptureFixture) -> None:
    hung: list[str] = []

    async def hang(live: Manifest) -> list[tuple[str, str]]:
        if not hung:
            hung.append(live["metadata"]["name"])
            await asyncio.get_running_loop().create_future()
        return [(NAMESPACE, "corner")]

    async def test(env: Env) -> None:
        async with env.operating(watches=[Watch(*SECRETS, hang)]):
            await env.create(shop())
            await env.create(guide())
            await asyncio.sleep(400)
            env.forget()
            await env.edit(GUIDE, {"data": {"a": "MQ=="}})
            await asyncio.sleep(5)
            assert names(env) == ["corner"]

    run_test(test)
    assert "a watch could not map a change of Secret" in caplog.text


def test_owners_must_be_a_function() -> None:
    with pytest.raises(ConfigError, match="needs a function or ALL as `owners`, got 'all'"):
        Watch("v1", "Secret", "all")  # type: ignore[arg-type]


def test_what_a_watch_made_known_is_known_after_a_restart(run_test: RunTest) -> None:
    """Each owner is reconciled by the next process, whatever was mapped to it meanwhile."""

    async def test(env: Env) -> None:
        await env.create(shop())
        async with env.operating(watches=[Watch(*SECRETS, of_state)]):
            pass
        env.forget()
        await env.create(guide(shop="corner"))
        async with env.operating(watches=[Watch(*SECRETS, of_state)]):
            await asyncio.sleep(5)
            assert set(names(env)) == {"corner"}

    run_test(test)
