"""Shared reads: each request is sent once, and a cancelled caller does not cancel it for the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ocf.controllers.hpa.snapshot.single_flight import SharedMetrics, SingleFlight
from ocf.errors import ServerError
from ocf.testing.fake_metrics import FakeMetricsClient


class Counting(FakeMetricsClient):
    """A metrics client that records requests, and can delay responses."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.open = asyncio.Event()
        self.open.set()

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        self.asked.append(f"{namespace} {selector}")
        await self.open.wait()
        return await super().pod_metrics(namespace, selector)

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        self.asked.append(f"{namespace} {metric} {selector}")
        return await super().external_metric(namespace, metric, selector=selector)


async def test_usage_is_requested_once_and_selectors_are_applied_here() -> None:
    measured = Counting()
    for name in ("web", "db"):
        measured.set_usage("shop", f"{name}-0", {"app": {"cpu": "1"}}, labels={"app": name})
    shared = SharedMetrics(measured, SingleFlight())
    found = [await shared.pod_metrics("shop", selector) for selector in ("app=web", "app=db", "app in (web,db)", "no")]

    assert [[each["metadata"]["name"] for each in entries] for entries in found] == [
        ["web-0"],
        ["db-0"],
        ["web-0", "db-0"],
        [],
    ]
    assert measured.asked == ["shop "]


async def test_entries_without_labels_are_requested_with_the_selector() -> None:
    measured = Counting()
    measured.set_usage("shop", "web-0", {"app": {"cpu": "1"}}, labels={"app": "web"})
    measured.set_usage("shop", "bare", {"app": {"cpu": "1"}})
    shared = SharedMetrics(measured, SingleFlight())
    first, second = [await shared.pod_metrics("shop", "app=web") for _ in range(2)]

    assert [each["metadata"]["name"] for each in first] == ["web-0"]
    assert second == first
    assert measured.asked == ["shop ", "shop app=web"]


async def test_each_request_is_sent_once() -> None:
    measured = Counting()
    shared = SharedMetrics(measured, SingleFlight())
    for selector in ("a", "b", "a"):
        await shared.external_metric("shop", "queue", selector=selector)

    assert measured.asked == ["shop queue a", "shop queue b"]


async def test_concurrent_callers_share_one_response() -> None:
    measured = Counting()
    measured.open.clear()
    shared = SharedMetrics(measured, SingleFlight())
    waiting = [asyncio.create_task(shared.pod_metrics("shop", "app=web")) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    measured.open.set()

    assert await asyncio.gather(*waiting[1:]) == [[], []]
    assert waiting[0].cancelled()
    assert measured.asked == ["shop "]


async def test_an_error_is_shared() -> None:
    once, asked = SingleFlight(), []

    async def fail() -> None:
        asked.append(1)
        raise ServerError("down")

    for _ in range(3):
        with pytest.raises(ServerError, match="down"):
            await once.do("usage", fail)

    assert asked == [1]


async def test_callers_get_an_error_when_their_read_is_cancelled() -> None:
    once = SingleFlight()
    waiting = asyncio.create_task(once.do("usage", asyncio.Event().wait))
    await asyncio.sleep(0)
    assert once.busy
    await once.close()

    with pytest.raises(ServerError, match="cancelled"):
        await waiting
    assert not once.busy


async def test_an_error_without_a_caller_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    once, go = SingleFlight(), asyncio.Event()

    async def fail() -> None:
        await go.wait()
        raise ServerError("down")

    waiting = asyncio.create_task(once.do("usage", fail))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    go.set()
    await once.close()
    del once

    assert caplog.records == []
