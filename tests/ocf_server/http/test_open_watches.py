"""Memory is returned when many watches have ended, and not for each of them."""

import asyncio
from contextlib import ExitStack

import pytest

from ocf_server import EmbeddedCluster
from ocf_server.http import app, serving, watch_stream
from ocf_server.http.watch_stream import OpenWatches, return_memory
from tests.ocf_server.http.test_watch_stream import config_map, following, watching


@pytest.mark.parametrize(("watches", "calls"), [(31, 0), (32, 1), (63, 1), (64, 2), (2_000, 6)])
def test_memory_is_returned_each_time_half_of_many_watches_have_ended(watches: int, calls: int) -> None:
    ended: list[None] = []
    counter = OpenWatches(lambda: ended.append(None))
    stacks = [ExitStack() for _ in range(watches)]
    for stack in stacks:
        stack.enter_context(counter.counted())
    for stack in stacks:
        stack.close()
    assert len(ended) == calls


def test_few_watches_that_come_and_go_return_nothing() -> None:
    counter = OpenWatches(lambda: pytest.fail("called"))
    for _ in range(1_000):
        with counter.counted():
            pass


async def test_watches_over_http_count(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()
    monkeypatch.setattr(watch_stream, "_MANY", 2)
    monkeypatch.setattr(app, "OpenWatches", lambda: OpenWatches(ended.set))
    await cluster.create({**config_map("a"), "data": {"a": "x" * 200_000}}, field_manager="test")
    async with serving(cluster) as server:
        for _ in range(2):
            async with watching(server, "resourceVersion=0") as one, watching(server, "resourceVersion=0") as other:
                for watch in (one, other):
                    kind, found = await following(watch)
                    assert (kind, len(found["data"]["a"])) == ("ADDED", 200_000)
                assert not ended.is_set()
            async with asyncio.timeout(600):
                await ended.wait()
            ended.clear()


def test_memory_can_be_returned_at_any_time() -> None:
    return_memory()
