"""A function of the author that asks to be called again later has not failed."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from ocf.component import ReconcileContext
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ConfigError, RetryError
from ocf.objects import ObjectKey
from ocf.runtime.operator import ReconcileOutcome
from ocf.runtime.workqueue.workers import is_retry, retry_delay

from .conftest import NAMESPACE, SECOND, Env, RunTest, Shop, key_of, shop

MINUTE = timedelta(minutes=1)
TEXT = "waiting for the licence server"
FRONT = ObjectKey("v1", "Service", "corner-front", NAMESPACE)


@pytest.mark.parametrize(
    ("error", "retries", "delay"),
    [
        pytest.param(RetryError(TEXT), True, None, id="the backoff"),
        pytest.param(RetryError(TEXT, after=MINUTE), True, MINUTE, id="a delay"),
        pytest.param(
            ExceptionGroup("", [RetryError(TEXT, after=SECOND), RetryError(TEXT, after=MINUTE)]), True, MINUTE, id="two"
        ),
        pytest.param(
            ExceptionGroup("", [RetryError(TEXT, after=MINUTE), ValueError("bad")]), False, None, id="and a failure"
        ),
        pytest.param(ConfigError("bad"), False, None, id="a failure"),
    ],
)
def test_what_asks_for_a_later_call(error: Exception, delay: timedelta | None, *, retries: bool) -> None:
    assert (is_retry(error), retry_delay(error)) == (retries, delay)


@pytest.mark.parametrize("after", [timedelta(0), -SECOND])
def test_a_delay_must_be_positive(after: timedelta) -> None:
    with pytest.raises(ConfigError, match="after must be positive, or None"):
        RetryError(TEXT, after=after)


@pytest.mark.promise("retry", runs="each function of the author that may wait")
@pytest.mark.parametrize("place", ["components", "report", "on_delete"])
def test_it_is_no_failure(run_test: RunTest, caplog: pytest.LogCaptureFixture, place: str) -> None:
    caplog.set_level(logging.INFO)
    seen: list[str] = []
    calls: list[float] = []

    async def wait(*_: Any) -> None:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) < 3:
            raise RetryError(TEXT, after=MINUTE)

    async def report(_context: ReconcileContext, _owner: Shop, outcome: ReconcileOutcome) -> None:
        seen.append(str(outcome.error or ""))
        if place == "report":
            await wait()

    async def test(env: Env) -> None:
        given: dict[str, Any] = {"report": report}
        if place == "on_delete":
            given["on_delete"] = wait
        async with env.operating(**given):
            await env.create(shop())
            if place == "on_delete":
                await asyncio.sleep(5)
                await env.cluster.delete(key_of())
            elif place == "components":
                env.before = wait
            await asyncio.sleep(30)
            conditions = (await env.cluster.get(key_of())).get("status", {}).get("conditions") or []
            assert "Error" not in [one["reason"] for one in conditions]
            own = {one["type"]: one["message"] for one in conditions if one["type"].startswith("shops/")}
            assert own == ({"shops/CleanedUp": TEXT} if place == "on_delete" else {})
            await asyncio.sleep(200)
            assert [later - earlier for earlier, later in pairwise(calls)][:2] == [60, 60]
            found = (await env.cluster.list("events.k8s.io/v1", "Event")).items
            events = [(one["reason"], one["type"], one["note"]) for one in found]
            assert ("Retrying", "Normal", TEXT) in events
            assert "Warning" not in [kind for _, kind, _ in events]
            if place == "components":
                assert seen[:2] == [TEXT, TEXT]

    run_test(test)
    assert {record.levelname for record in caplog.records if TEXT in record.getMessage()} == {"INFO"}


@pytest.mark.promise("retry", runs="an owner that waits for a minute, while its objects change, and itself")
def test_only_a_change_of_the_owner_ends_the_delay(run_test: RunTest) -> None:
    """A provider's API was called at each event, although it had asked to wait.

    https://github.com/crossplane/upjet/issues/592
    """

    async def wait(_: Shop, __: ReconcileContext) -> None:
        raise RetryError(TEXT, after=MINUTE)

    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(100)
            env.before = wait
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(1)
            env.forget()
            for number in range(50):
                await env.edit(FRONT, {"metadata": {"annotations": {"seen": str(number)}}})
                await asyncio.sleep(1)
            assert env.passes == []
            await env.edit(key_of(), {"spec": {"motto": "open"}})
            await asyncio.sleep(0.5)
            assert len(env.passes) == 1

    run_test(test)


def test_without_a_delay_the_backoff_grows(run_test: RunTest) -> None:
    async def wait(_: Shop, __: ReconcileContext) -> None:
        raise RetryError(TEXT)

    async def test(env: Env) -> None:
        env.before = wait
        async with env.operating(rate_limiter=ExponentialBackoff(SECOND, 64 * SECOND, jitter=0)):
            await env.create(shop())
            await asyncio.sleep(40)
            assert env.times == [5, 6, 8, 12, 20, 36]

    run_test(test)
