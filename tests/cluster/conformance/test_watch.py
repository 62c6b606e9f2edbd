"""Watches: their events, where they start, and how they end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster.protocol import EventType
from ocf.errors import ExpiredError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ocf.cluster import WatchEvent
    from tests.cluster.conformance.conftest import Env

ELSEWHERE: Final[dict[str, Any]] = {
    "apiVersion": "conformance.example.com/v1",
    "kind": "Widget",
    "metadata": {"generateName": "demo-", "namespace": "default"},
    "spec": {},
}
ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def summary(events: list[WatchEvent]) -> list[tuple[EventType, str]]:
    return [(each.type, each.object["metadata"]["name"]) for each in events]


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Widget"])
@pytest.mark.promise("conformance")
async def test_events_of_an_object_are_reported_in_order(env: Env, kind: str) -> None:
    start = (await env.page(kind)).resource_version
    made = await env.create(kind)
    changed = await env.merge(kind, "metadata: {labels: {a: b}}")
    await env.delete(kind)
    events = await env.events(kind, after=start, count=3)

    assert [each.type for each in events] == [ADDED, MODIFIED, DELETED]
    assert [each.object for each in events[:2]] == [made, changed]
    last = events[2].object["metadata"]
    assert int(last["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


async def test_a_watch_starts_after_its_version(env: Env) -> None:
    await env.create("ConfigMap", name="first")
    second = await env.create("ConfigMap", name="second")
    await env.create("ConfigMap", name="third")
    events = await env.events("ConfigMap", after=second["metadata"]["resourceVersion"], count=1)

    assert summary(events) == [(ADDED, "third")]


async def test_a_watch_continues_from_the_last_event(env: Env) -> None:
    start = (await env.page("ConfigMap")).resource_version
    await env.create("ConfigMap", name="first")
    (first,) = await env.events("ConfigMap", after=start, count=1)
    await env.create("ConfigMap", name="second")
    events = await env.events("ConfigMap", after=first.object["metadata"]["resourceVersion"], count=1)

    assert summary(events) == [(ADDED, "second")]


@pytest.mark.parametrize("version", ["", "0"])
async def test_without_a_version_a_watch_starts_with_the_present_objects(env: Env, version: str) -> None:
    await env.create("ConfigMap", name="first")
    await env.create("ConfigMap", name="second")
    # The answer may come from a cache and be old, so the request is repeated.
    async with asyncio.timeout(600):
        while sorted(summary(await env.events("ConfigMap", after=version, count=2))) != [
            (ADDED, "first"),
            (ADDED, "second"),
        ]:
            pass


async def test_a_watch_reports_events_while_it_is_open(env: Env) -> None:
    start = (await env.page("ConfigMap")).resource_version
    opened = asyncio.ensure_future(env.events("ConfigMap", after=start, count=2))
    await env.create("ConfigMap")
    await env.delete("ConfigMap")

    assert summary(await opened) == [(ADDED, "demo"), (DELETED, "demo")]


async def test_other_namespaces_are_not_reported(env: Env) -> None:
    start = (await env.page("ConfigMap")).resource_version
    elsewhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "demo-", "namespace": "default"}}
    await env.cluster.create(elsewhere, field_manager="author")
    await env.create("ConfigMap", name="ours")

    assert summary(await env.events("ConfigMap", after=start, count=1)) == [(ADDED, "ours")]


async def test_without_a_namespace_all_are_reported(env: Env) -> None:
    start = (await env.cluster.list("v1", "Secret")).resource_version
    made = await env.create("Secret")

    async with asyncio.timeout(600), env.watch("Secret", after=start, everywhere=True) as events:
        assert made in [event.object async for event in first(events, lambda event: event.object == made)]


async def first(events: AsyncIterator[WatchEvent], wanted: Callable[[WatchEvent], bool]) -> AsyncIterator[WatchEvent]:
    """Read a watch up to the expected event."""
    async for event in events:
        yield event
        if wanted(event):
            return


class TestSelectors:
    """For a watch, an object that begins or ceases to match is added or deleted."""

    async def test_an_object_that_begins_to_match_is_added_and_one_that_ceases_is_deleted(self, env: Env) -> None:
        start = (await env.page("ConfigMap")).resource_version
        await env.create("ConfigMap")
        await env.merge("ConfigMap", "metadata: {labels: {a: b}}")
        await env.merge("ConfigMap", "data: {a: '1'}")
        await env.merge("ConfigMap", "metadata: {labels: {a: c}}")
        events = await env.events("ConfigMap", after=start, count=3, label_selector="a=b")

        assert [each.type for each in events] == [ADDED, MODIFIED, DELETED]
        assert events[2].object["metadata"]["labels"] == {"a": "b"}

    async def test_by_name(self, env: Env) -> None:
        start = (await env.page("ConfigMap")).resource_version
        await env.create("ConfigMap", name="other")
        await env.create("ConfigMap", name="ours")
        events = await env.events("ConfigMap", after=start, count=1, field_selector="metadata.name=ours")

        assert summary(events) == [(ADDED, "ours")]

    async def test_by_a_field_of_a_custom_resource(self, env: Env) -> None:
        start = (await env.page("Widget")).resource_version
        await env.create("Widget", "spec: {colour: red}")
        await env.merge("Widget", "spec: {colour: green}")
        events = await env.events("Widget", after=start, count=1, field_selector="spec.colour=green")

        assert (events[0].type, events[0].object["spec"]["colour"]) == (ADDED, "green")


class TestBookmarks:
    async def test_a_bookmark_has_the_version_to_continue_from(self, env: Env) -> None:
        """It contains only a version. It reflects changes of objects that are not watched."""
        start = (await env.page("Widget")).resource_version
        coming = asyncio.ensure_future(first_bookmark(env, start))
        while not coming.done():
            await env.cluster.create(ELSEWHERE, field_manager="author")
            await asyncio.wait([coming], timeout=0.2)
        bookmark = (await coming).object

        assert (bookmark["kind"], bookmark["apiVersion"]) == ("Widget", "conformance.example.com/v1")
        assert int(bookmark["metadata"]["resourceVersion"]) > int(start)
        made = await env.create("Widget")
        after = bookmark["metadata"]["resourceVersion"]
        assert [each.object for each in await env.events("Widget", after=after, count=1)] == [made]


async def first_bookmark(env: Env, start: str) -> WatchEvent:
    """Watch until a bookmark arrives; no other event does."""
    async with asyncio.timeout(600):
        while True:  # a busy server may end a watch without one
            async with env.watch("Widget", after=start, fast_bookmarks=True) as events:
                async for event in events:
                    assert event.type is EventType.BOOKMARK
                    return event


class TestRefusals:
    async def test_a_version_that_is_too_old_is_expired(self, env: Env) -> None:
        """List again, and watch from there."""
        await env.create("Widget")
        await env.forget()

        with pytest.raises(ExpiredError) as caught:
            await env.events("Widget", after="1", count=1)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
        page = await env.page("Widget")
        await env.delete("Widget")
        assert summary(await env.events("Widget", after=page.resource_version, count=1)) == [(DELETED, "demo")]

    async def test_an_invalid_selector_is_rejected(self, env: Env) -> None:
        with env.error(400, "BadRequest"):
            await env.events("ConfigMap", after="", count=1, label_selector="a in b")

    @pytest.mark.parametrize(
        ("version", "shown", "problem"),
        [
            pytest.param("abc", '"abc"', "invalid syntax", id="letters"),
            pytest.param("-1", '"-1"', "invalid syntax", id="sign"),
            pytest.param('1"', r'"1\""', "invalid syntax", id="quotation mark"),
            pytest.param("\u0661", '"\u0661"', "invalid syntax", id="digit that is not ASCII"),
            pytest.param(f"{2**64}", f'"{2**64}"', "value out of range", id="more than 64 bits"),
        ],
    )
    async def test_an_invalid_version_is_an_error(self, env: Env, version: str, shown: str, problem: str) -> None:
        text = f"resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing {shown}: {problem}"
        with env.error(500, "", text):
            await env.events("ConfigMap", after=version, count=1)
