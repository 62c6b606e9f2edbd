"""Subscriptions report each change once and coalesce changes for slow subscribers."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from ocf.cluster import WatchEvent
from ocf.cluster.cache.keys import NamespacedName
from ocf.cluster.cache.store import Store
from ocf.cluster.cache.subscriptions import CacheChange, Subscription
from ocf.cluster.protocol import EventType
from ocf.objects import Manifest


def web(version: str, uid: str = "u1", name: str = "web", namespace: str = "shop") -> Manifest:
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version}}


class Env:
    """A store with one subscription."""

    def __init__(self, *objects: Manifest, namespace: str = "") -> None:
        self._now = 0
        self.subscription: Subscription | None = None
        self.store = Store(None, self._note)
        self.become(*objects)
        self.subscription = Subscription(self.store, namespace)
        self.changes = self.subscription.changes()

    def _note(self, name: NamespacedName) -> None:
        if self.subscription is not None:
            self.subscription.mark_changed(name)

    def become(self, *objects: Manifest) -> None:
        self._now += 100
        self.store.begin_listing()
        self.store.replace(dict(map(self.store.listed, objects)), str(self._now))

    async def received(self, count: int) -> list[tuple[str, str]]:
        seen = [await anext(self.changes) for _ in range(count)]
        assert self.subscription is not None
        assert not self.subscription._pending, "no further event"
        return [_shown(event) for event in seen]


def _shown(change: CacheChange) -> tuple[str, str]:
    event = change.event()
    metadata = event.object["metadata"]
    assert (metadata["namespace"], metadata["name"]) == change.name
    return event.type.value, f"{metadata['name']}@{metadata['resourceVersion']}"


async def test_a_subscription_begins_with_the_present_objects_in_order() -> None:
    env = Env(web("2", name="b"), web("1", name="a"))

    assert await env.received(2) == [("ADDED", "a@1"), ("ADDED", "b@2")]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param([[web("2")], [web("3")]], [("MODIFIED", "web@3")], id="only the last state"),
        pytest.param([[]], [("DELETED", "web@1")], id="a deletion, with the last state"),
        pytest.param([[web("2")], []], [("DELETED", "web@2")], id="a change and a deletion"),
        pytest.param([[], [web("3", "u2")]], [("DELETED", "web@1"), ("ADDED", "web@3")], id="recreated"),
        pytest.param(
            [[web("1"), web("4", name="x")], [web("2")]],
            [("MODIFIED", "web@2")],
            id="an object that was created and deleted is not reported",
        ),
    ],
)
async def test_a_slow_subscriber_gets_the_last_state(
    states: list[list[Manifest]], expected: list[tuple[str, str]]
) -> None:
    env = Env(web("1"))
    await env.received(1)
    for objects in states:
        env.become(*objects)

    seen: list[tuple[str, str]] = []
    async with aclosing(env.changes):
        while len(seen) < len(expected):
            seen.append(_shown(await anext(env.changes)))
    assert seen == expected


async def test_a_modification_is_reported_with_the_state_that_was_reported_before() -> None:
    """Not with those that were skipped in between."""
    env = Env(web("1"))
    seen = [(await anext(env.changes)).event()]
    for states in ([web("2")], [web("3")]):
        env.become(*states)
    async with aclosing(env.changes):
        seen.append((await anext(env.changes)).event())
        env.become(web("4"))
        seen.append((await anext(env.changes)).event())
        env.become(web("5", "u2"))
        seen += [(await anext(env.changes)).event() for _ in range(2)]

    versions = [event.old and event.old["metadata"]["resourceVersion"] for event in seen]
    assert [event.type.value for event in seen] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED", "ADDED"]
    assert versions == [None, "1", "3", None, None]


async def test_pending_changes_are_bounded_by_the_objects() -> None:
    env = Env()
    for version in range(1, 1_000):
        env.become(web(str(version)))

    assert env.subscription is not None
    assert len(env.subscription._pending) == 1
    assert await env.received(1) == [("ADDED", "web@999")]


async def test_other_namespaces_are_not_reported() -> None:
    env = Env(web("1", namespace="other"), namespace="shop")
    env.become(web("2", namespace="other"), web("3"))

    assert await env.received(1) == [("ADDED", "web@3")]


async def test_closing_ends_the_subscription() -> None:
    env = Env(web("1"), web("2", name="b"))
    await anext(env.changes)
    assert env.subscription is not None
    env.subscription.close()

    assert await _rest(env.changes) == []


@pytest.mark.parametrize("old", [None, web("1")], ids=["no old state", "an old state"])
def test_an_event_is_packed_and_unpacked_without_a_loss(old: Manifest | None) -> None:
    event = WatchEvent(EventType.MODIFIED, web("2"), old=old)

    assert CacheChange.of(event).event() == event


async def _rest(changes: AsyncGenerator[CacheChange, None]) -> list[CacheChange]:
    return [change async for change in changes]
