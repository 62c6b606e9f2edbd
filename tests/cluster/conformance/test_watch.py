"""Watches: what they tell, from where, and how they end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import EventType
from ocf.errors import ExpiredError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ocf.cluster import WatchEvent
    from tests.cluster.conformance.conftest import Place

ELSEWHERE: Final[dict[str, Any]] = {
    "apiVersion": "conformance.example.com/v1",
    "kind": "Widget",
    "metadata": {"generateName": "demo-", "namespace": "default"},
    "spec": {},
}
ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def told(events: list[WatchEvent]) -> list[tuple[EventType, str]]:
    return [(each.type, each.object["metadata"]["name"]) for each in events]


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Widget"])
@pytest.mark.promise("conformance")
async def test_a_life_is_told_in_order(place: Place, kind: str) -> None:
    start = (await place.page(kind)).resource_version
    made = await place.create(kind)
    changed = await place.merge(kind, "metadata: {labels: {a: b}}")
    await place.delete(kind)
    events = await place.events(kind, after=start, count=3)

    assert [each.type for each in events] == [ADDED, MODIFIED, DELETED]
    assert [each.object for each in events[:2]] == [made, changed]
    last = events[2].object["metadata"]
    assert int(last["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


async def test_it_starts_after_the_version_it_is_given(place: Place) -> None:
    await place.create("ConfigMap", name="first")
    second = await place.create("ConfigMap", name="second")
    await place.create("ConfigMap", name="third")
    events = await place.events("ConfigMap", after=second["metadata"]["resourceVersion"], count=1)

    assert told(events) == [(ADDED, "third")]


async def test_it_goes_on_from_the_last_event(place: Place) -> None:
    start = (await place.page("ConfigMap")).resource_version
    await place.create("ConfigMap", name="first")
    (first,) = await place.events("ConfigMap", after=start, count=1)
    await place.create("ConfigMap", name="second")
    events = await place.events("ConfigMap", after=first.object["metadata"]["resourceVersion"], count=1)

    assert told(events) == [(ADDED, "second")]


@pytest.mark.parametrize("version", ["", "0"])
async def test_without_a_version_it_starts_with_what_is_there(place: Place, version: str) -> None:
    await place.create("ConfigMap", name="first")
    await place.create("ConfigMap", name="second")
    # What is asked of a cache may be old, so it is asked until it is not.
    async with asyncio.timeout(30):
        while sorted(told(await place.events("ConfigMap", after=version, count=2))) != [
            (ADDED, "first"),
            (ADDED, "second"),
        ]:
            pass


async def test_it_tells_what_happens_while_it_is_open(place: Place) -> None:
    start = (await place.page("ConfigMap")).resource_version
    opened = asyncio.ensure_future(place.events("ConfigMap", after=start, count=2))
    await place.create("ConfigMap")
    await place.delete("ConfigMap")

    assert told(await opened) == [(ADDED, "demo"), (DELETED, "demo")]


async def test_other_namespaces_are_not_told(place: Place) -> None:
    start = (await place.page("ConfigMap")).resource_version
    elsewhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "demo-", "namespace": "default"}}
    await place.cluster.create(elsewhere, field_manager="author")
    await place.create("ConfigMap", name="ours")

    assert told(await place.events("ConfigMap", after=start, count=1)) == [(ADDED, "ours")]


async def test_without_a_namespace_all_are_told(place: Place) -> None:
    start = (await place.cluster.list("v1", "Secret")).resource_version
    made = await place.create("Secret")

    async with asyncio.timeout(30), place.watch("Secret", after=start, everywhere=True) as events:
        assert made in [event.object async for event in first(events, lambda event: event.object == made)]


async def first(events: AsyncIterator[WatchEvent], wanted: Callable[[WatchEvent], bool]) -> AsyncIterator[WatchEvent]:
    """Go through a watch up to the event that is wanted."""
    async for event in events:
        yield event
        if wanted(event):
            return


class TestSelectors:
    """What a selector does not see comes and goes, as far as a watch is concerned."""

    async def test_what_begins_to_match_is_added_and_what_ceases_to_is_deleted(self, place: Place) -> None:
        start = (await place.page("ConfigMap")).resource_version
        await place.create("ConfigMap")
        await place.merge("ConfigMap", "metadata: {labels: {a: b}}")
        await place.merge("ConfigMap", "data: {a: '1'}")
        await place.merge("ConfigMap", "metadata: {labels: {a: c}}")
        events = await place.events("ConfigMap", after=start, count=3, label_selector="a=b")

        assert [each.type for each in events] == [ADDED, MODIFIED, DELETED]
        assert events[2].object["metadata"]["labels"] == {"a": "b"}

    async def test_by_name(self, place: Place) -> None:
        start = (await place.page("ConfigMap")).resource_version
        await place.create("ConfigMap", name="other")
        await place.create("ConfigMap", name="ours")
        events = await place.events("ConfigMap", after=start, count=1, field_selector="metadata.name=ours")

        assert told(events) == [(ADDED, "ours")]

    async def test_by_a_field_of_a_custom_resource(self, place: Place) -> None:
        start = (await place.page("Widget")).resource_version
        await place.create("Widget", "spec: {colour: red}")
        await place.merge("Widget", "spec: {colour: green}")
        events = await place.events("Widget", after=start, count=1, field_selector="spec.colour=green")

        assert (events[0].type, events[0].object["spec"]["colour"]) == (ADDED, "green")


class TestBookmarks:
    async def test_a_bookmark_says_from_where_to_go_on(self, place: Place) -> None:
        """It has a version, and nothing else of an object. It tells of what happens beside what is watched."""
        start = (await place.page("Widget")).resource_version
        coming = asyncio.ensure_future(first_bookmark(place, start))
        while not coming.done():
            await place.cluster.create(ELSEWHERE, field_manager="author")
            await asyncio.wait([coming], timeout=0.2)
        bookmark = (await coming).object

        assert (bookmark["kind"], bookmark["apiVersion"]) == ("Widget", "conformance.example.com/v1")
        assert int(bookmark["metadata"]["resourceVersion"]) > int(start)
        made = await place.create("Widget")
        after = bookmark["metadata"]["resourceVersion"]
        assert [each.object for each in await place.events("Widget", after=after, count=1)] == [made]


async def first_bookmark(place: Place, start: str) -> WatchEvent:
    """Watch until a bookmark comes; nothing else does."""
    async with asyncio.timeout(30), place.watch("Widget", after=start, hasty=True) as events:
        async for event in events:
            assert event.type is EventType.BOOKMARK
            return event
    raise AssertionError("the watch ended without a bookmark")


class TestRefusals:
    async def test_a_version_that_is_too_old_is_expired(self, place: Place) -> None:
        """List anew, and watch from there."""
        await place.create("Widget")
        await place.forget()

        with pytest.raises(ExpiredError) as caught:
            await place.events("Widget", after="1", count=1)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
        page = await place.page("Widget")
        await place.delete("Widget")
        assert told(await place.events("Widget", after=page.resource_version, count=1)) == [(DELETED, "demo")]

    async def test_a_selector_that_is_none_is_refused(self, place: Place) -> None:
        with place.error(400, "BadRequest"):
            await place.events("ConfigMap", after="", count=1, label_selector="a in b")

    @pytest.mark.parametrize("version", ["abc", "-1"])
    async def test_a_version_that_is_none_is_an_error(self, place: Place, version: str) -> None:
        problem = f'strconv.ParseUint: parsing "{version}": invalid syntax'
        with place.error(500, "", f'resourceVersion: Invalid value: "{version}": {problem}'):
            await place.events("ConfigMap", after=version, count=1)
