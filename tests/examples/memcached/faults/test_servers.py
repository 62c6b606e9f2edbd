"""A server that responds with Retry-After, and a server outage."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from examples.memcached.samples import AUTOSCALED
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ApiError, api_error
from ocf.objects import ObjectKey
from ocf.testing import run_in_virtual_time
from tests.examples.memcached.faults.env import CAP, HPA, Ended, OperatorEnv, new_env, now, run_test

if TYPE_CHECKING:
    from ocf.cluster import Request

REFUSALS: Final = 500
SLOWED: Final = tuple(f"slowed-{number}" for number in range(20))
OUTAGE: Final = 1_800.0
NAMES: Final = tuple(f"cache-{number}" for number in range(10))


@pytest.mark.promise("retry-after", runs="five hundred rejected requests of twenty caches")
def test_retry_after_is_respected_and_other_caches_go_on() -> None:
    """Five hundred refusals with Retry-After: none is retried early, and no other cache waits for a second.

    Requests of twenty caches are rejected, 25 times each; edits during that time do not cause an earlier retry.
    """
    rng = random.Random(10)  # noqa: S311 (the same choices in every run)
    refused: dict[str, list[tuple[float, float]]] = {name: [] for name in SLOWED}
    early: list[str] = []

    async def slow_down(request: Request) -> None:
        asked = refused.get(request.name)
        if asked is None or request.kind != "Deployment" or request.verb.is_read:
            return
        if asked and now() < asked[-1][0] + asked[-1][1]:
            early.append(request.name)
        if sum(map(len, refused.values())) < REFUSALS:
            wait = rng.choice((1, 2, 5, 30))
            asked.append((now(), wait))
            raise api_error("slow down", code=429, reason="TooManyRequests", retry_after=wait)

    async def test(env: OperatorEnv) -> None:
        late = []
        async with env.operating(options={"events": False}):
            await env.create(AUTOSCALED)
            await asyncio.sleep(60)
            env.gateway.meddle = slow_down
            for name in SLOWED:
                await env.another(name)
            turn = 0
            while sum(map(len, refused.values())) < REFUSALS:
                turn += 1
                await env.edit(rng.choice(SLOWED), image=f"memcached:1.6.{turn}")
                await env.change(autoscaling={"enabled": True, "maxReplicas": 10 + turn})
                late.append(await env.wait_for_field(HPA, "maxReplicas", 10 + turn, within=60))
                await asyncio.sleep(rng.choice((1, 60, 120)))
            await asyncio.sleep(CAP)
            end = await env.ended()
        assert early == []
        assert len(late) >= 50
        assert max(late) < 1
        assert {end.creates[f"apps/v1/Deployment/caches/{name}"] for name in SLOWED} == {1}
        assert end.deletes == {}

    run_test(test)


FAILURES: Final[dict[str, Callable[[], ApiError]]] = {
    "500": lambda: api_error("internal error", code=500, reason="InternalError"),
    "502": lambda: api_error("bad gateway", code=502),
    "503": lambda: api_error("unavailable", code=503, reason="ServiceUnavailable"),
    "504": lambda: api_error("gateway timeout", code=504, reason="Timeout"),
    "no answer": lambda: api_error("no answer arrived in time", code=0),
}


@asynccontextmanager
async def outage(env: OperatorEnv, failure: str) -> AsyncIterator[None]:
    """Let every request fail, and a second later all watches; count what was asked meanwhile."""

    async def down(_: Request) -> None:
        raise FAILURES[failure]()  # noqa: RSE102 (it makes one)

    env.gateway.requests.clear()
    env.gateway.looked_up.clear()
    env.gateway.meddle = down
    asyncio.get_running_loop().call_later(1, env.gateway.cut, FAILURES[failure]())
    yield
    env.gateway.meddle = None
    asked = Counter(one.name for one in env.gateway.requests if one.name)
    asked.update(name for _, name in env.gateway.looked_up)
    watched = Counter(one.kind for one in env.gateway.requests if not one.name)
    watched.subtract(kind for kind, _ in env.gateway.looked_up)
    assert set(asked) == set(NAMES)
    assert min(asked.values()) >= 10
    assert max(asked.values()) <= 60
    assert max(watched.values()) <= 60
    late = [at for at in env.gateway.looked_up_at if at > OUTAGE / 2]
    assert len(set(late)) > len(late) / 2, "all come back at once"
    assert await images(env) == {"memcached:1.6"}


async def images(env: OperatorEnv) -> set[str]:
    keys = [ObjectKey("apps/v1", "Deployment", name, "caches") for name in NAMES]
    specs = [(await env.server.get(key))["spec"]["template"]["spec"] for key in keys]
    return {spec["containers"][0]["image"] for spec in specs}


async def changed(failure: str = "") -> Ended:
    """Return where ten caches are that were changed, during an outage or not."""
    env = await new_env()
    rng = random.Random(11)  # noqa: S311 (the same choices in every run)
    async with env.operating(options={"events": False}, rate_limiter=ExponentialBackoff(random=rng.random)):
        for name in NAMES:
            await env.another(name, autoscaling={"enabled": True, "maxReplicas": 4})
        await asyncio.sleep(60)
        async with outage(env, failure) if failure else nullcontext():
            for name in NAMES:
                await env.edit(name, image="memcached:1.6.30")
            await asyncio.sleep(OUTAGE)
        await asyncio.sleep(CAP + 1)
        assert await images(env) == {"memcached:1.6.30"}
        await asyncio.sleep(60)
        return await env.ended()


@cache
def undisturbed() -> Ended:
    return run_in_virtual_time(changed())


@pytest.mark.promise("outage", runs="half an hour of 500, 502, 503, 504 or silence")
@pytest.mark.parametrize("failure", FAILURES)
def test_an_outage_costs_few_requests_and_ends_soon_after(failure: str) -> None:
    """Half an hour in which every request fails, watches included, while ten caches were changed.

    At most 60 requests about each cache and its objects, and at most 60 to list or watch any kind; all is well again
    after the longest delay and a pass.
    """
    run_in_virtual_time(changed(failure)).assert_as(undisturbed())
