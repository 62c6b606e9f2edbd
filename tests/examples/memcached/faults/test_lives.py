"""Deleted namespaces, hanging reconciles, many caches at the start, kinds defined late."""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import pytest

from examples.memcached.component import memcached
from examples.memcached.model import Memcached
from examples.memcached.samples import AUTOSCALED, EVERYTHING
from ocf.cluster import InterceptingCluster, Request
from ocf.component import Component, ReconcileContext
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.testing import run_in_virtual_time
from tests.examples.memcached.env import DEFINITIONS
from tests.examples.memcached.faults.env import (
    HPA,
    KINDS,
    NAMESPACE,
    OWNER,
    SECOND,
    Ended,
    OperatorEnv,
    new_cluster,
    new_env,
    now,
    run_test,
)

INJECTIONS: Final = 100
CROWD: Final = 10_000
EDITS: Final = 100
TIMEOUT: Final = 5.0
MEBIBYTE: Final = 2**20


async def nothing_is_left(env: OperatorEnv) -> None:
    for api_version, kind in (OWNER, ("v1", "Namespace"), *((KINDS[kind], kind) for kind in KINDS)):
        found = (await env.server.list(api_version, kind)).items
        assert [one for one in found if NAMESPACE in str(ObjectKey.of(one))] == []


@pytest.mark.promise("owner-gone", runs="a namespace goes with an operator at work, and without")
@pytest.mark.parametrize("operating", [True, False], ids=["while the operator runs", "while no operator runs"])
def test_a_namespace_is_deleted_with_all_its_objects(*, operating: bool) -> None:
    """Neither caches nor their objects have a finalizer that would block the deletion."""

    async def test(env: OperatorEnv) -> None:
        async with env.operating():
            await env.certificates()
            await env.create(EVERYTHING)
            await asyncio.sleep(60)
            for kind in ("Memcached", *KINDS):
                metadata = (await env.get(kind))["metadata"]
                assert "finalizers" not in metadata
                assert "kopf" not in str(metadata)
            if operating:
                await gone(env)
                env.gateway.requests.clear()
                await asyncio.sleep(600)
                assert [one for one in env.sent() if not one.verb.is_read] == []
        if not operating:
            await gone(env)

    async def gone(env: OperatorEnv) -> None:
        await env.server.delete(ObjectKey("v1", "Namespace", NAMESPACE))
        await nothing_is_left(env)

    run_test(test)


class FaultyReconciles:
    """Makes reconciles of one cache hang, fail, or cancel themselves, a number of times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self._rng = random.Random(30)  # noqa: S311 (the same choices in every run)

    async def components(self, cache: Memcached, _: ReconcileContext) -> Component:
        if cache.metadata.name == "faulty" and self.left:
            self.left -= 1
            match self._rng.randrange(4):
                case 0:
                    await asyncio.sleep(1e6)
                case 1:
                    raise ZeroDivisionError
                case 2:
                    raise asyncio.CancelledError
                case _:
                    await asyncio.create_task(asyncio.sleep(1e6))
        return memcached(cache)


@pytest.mark.promise("hangs", runs="a hundred reconciles that hang, fail, or are cancelled")
def test_a_failing_or_hanging_reconcile_does_not_affect_others() -> None:
    """A hundred faults of every kind: each reconcile ends at its timeout, other caches are reconciled at once."""

    async def lived(env: OperatorEnv, faulty: FaultyReconciles) -> Ended:
        late = []
        delays = env.delays(cap=20 * SECOND)
        async with env.operating(components=faulty.components, reconcile_timeout=30 * SECOND, rate_limiter=delays):
            await env.create(AUTOSCALED)
            await env.another("faulty", autoscaling={"enabled": True, "maxReplicas": 4})
            for turn in range(INJECTIONS):
                await env.change(autoscaling={"enabled": True, "maxReplicas": 10 + turn})
                await env.edit("faulty", image=f"memcached:1.6.{turn}")
                late.append(await env.wait_for_field(HPA, "maxReplicas", 10 + turn, within=60))
                await asyncio.sleep(60)
            await asyncio.sleep(INJECTIONS * 60)
            assert not faulty.left
        assert max(late) < 1
        return await env.ended()

    async def run(times: int) -> Ended:
        return await lived(await new_env(), FaultyReconciles(times))

    run_in_virtual_time(run(INJECTIONS)).assert_as(run_in_virtual_time(run(0)), generations=False, events=False)


class Latency(InterceptingCluster):
    """A cluster with a delay for each request."""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        del request
        await asyncio.sleep(0.005)
        return await send()


@pytest.mark.promise("overtakes", runs="ten thousand caches at the start, a hundred edits")
def test_an_edit_overtakes_ten_thousand_caches_of_the_initial_list() -> None:
    """Every request takes 5 ms, so the initial list takes minutes; edits of its last caches take at most a second.

    The memory is the growth of this process; the cluster with all caches is there before.
    """

    async def test() -> None:
        env = await new_env(collects=False)
        await env.crowd(CROWD, autoscaling={"enabled": True, "maxReplicas": 4})
        await asyncio.sleep(3600)
        before = resident()
        late = []
        async with env.operating(Latency(env.gateway), {"events": False}):
            for number in range(CROWD - 1, CROWD - 1 - EDITS, -1):
                name = f"cache-{number:05}"
                await env.edit(name, image="memcached:1.6.30")
                late.append(await applied(env, name))
            reached = len({name for name, _ in env.passes})
            assert resident() - before < 400 * MEBIBYTE
        assert EDITS < reached < CROWD / 2
        assert quantiles(late, n=100)[98] <= 1

    run_in_virtual_time(test())


async def applied(env: OperatorEnv, name: str) -> float:
    """Wait until there is a Deployment of the edited image; return how long that took."""
    begun, key = now(), env.own("Deployment", name)
    while now() - begun <= TIMEOUT:
        try:
            live = await env.server.get(key)
        except NotFoundError:
            live = {}
        if "memcached:1.6.30" in str(live.get("spec")):
            return now() - begun
        await asyncio.sleep(0.01)
    raise AssertionError(f"the edit of {name} is not applied after {TIMEOUT} s")


def resident() -> int:
    """Return how many bytes of memory the process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


@pytest.mark.promise("late-kinds")
def test_kinds_defined_late_are_found_without_a_restart() -> None:
    """First the kind of the caches is not defined, then that of their ServiceMonitors, which a condition reports."""

    async def run(*, late: bool) -> Ended:
        env = OperatorEnv(new_cluster()) if late else await new_env()
        caches, monitors = DEFINITIONS
        async with env.operating(late_kinds=[OWNER] if late else []) as process:
            if late:
                await asyncio.sleep(1000)
                assert "Memcached is not read yet" in process.health.owners()
                assert [check() for check in process.health.live.values()] == ["", ""]
                await env.server.create(caches, field_manager="user")
            await env.certificates()
            await env.create(EVERYTHING)
            await asyncio.sleep(300)
            assert process.health.owners() == ""
            if late:
                degraded = (await env.conditions())["Degraded"]
                assert degraded[:2] == ("True", "Degraded")
                assert "monitoring.coreos.com/v1/ServiceMonitor" in degraded[2]
                assert not await env.exists("NetworkPolicy")
                await env.server.create(monitors, field_manager="user")
            await asyncio.sleep(600)
            assert (await env.conditions())["Degraded"][1] == "NotDegraded"
        return await env.ended()

    run_in_virtual_time(run(late=True)).assert_as(run_in_virtual_time(run(late=False)))
