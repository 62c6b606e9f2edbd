"""Whatever happens in whatever order: it ends as it should, each owner alone, and then nothing happens any more."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import ListOptions, Request
from ocf.cluster.cache import CacheTiming
from ocf.component import ReconcileContext
from ocf.errors import ConflictError, ExpiredError, NotFoundError, ServerError, TooManyRequestsError
from ocf.testing import LoopClock, run_in_virtual_time

from .conftest import NAMESPACE, Env, Gateway, Shop, key_of, new_cluster, now, settings_of, shop

NAMES = ("corner", "market")
PACE = CacheTiming(monotonic=now, random=lambda: 0.0)
# A write takes a moment. If it took none, no time would pass while the operator creates an object whose owner it does
# not yet know to be gone, and the collector deletes it again: its watch would never come back, and the loop never end.
WRITING = 0.01

steps = st.tuples(
    st.sampled_from(
        ("edit", "edit", "change", "remove", "recreate", "cut", "expire", "compact", "refuse", "lose", "slow", "break")
    ),
    st.sampled_from(NAMES),
    st.sampled_from((0.0, 0.0, 0.01, 1.0, 30.0)),
)


class Chaos:
    """Two shops with an operator, and the random events around them."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.wanted: dict[str, str] = {}
        self.refusals: list[Exception] = []
        self.lost = 0
        self.slow = 0.0
        self.broken = 0
        self.running: set[str] = set()
        env.before = self.work
        env.gateway.meddle = self.meddle
        env.gateway.after = self.lose

    async def work(self, owner: Shop, _: ReconcileContext) -> None:
        name = owner.metadata.name
        assert name not in self.running
        self.running.add(name)
        try:
            await asyncio.sleep(self.slow)
            if self.broken:
                self.broken -= 1
                raise ZeroDivisionError
        finally:
            self.running.discard(name)

    async def meddle(self, request: Request) -> None:
        if request.verb.is_read:
            return
        await asyncio.sleep(WRITING)
        if self.refusals:
            raise self.refusals.pop()

    async def lose(self, request: Request) -> None:
        if self.lost and not request.verb.is_read:
            self.lost -= 1
            raise ServerError("the answer was lost")

    async def step(self, what: str, name: str) -> None:
        env, number = self.env, len(self.env.passes)
        match what:
            case "edit" if name in self.wanted:
                self.wanted[name] = f"motto {number} {now()}"
                await env.edit(key_of(name), {"spec": {"motto": self.wanted[name]}})
            case "recreate" | "edit":
                await self.removed(name)
                self.wanted[name] = f"new {number}"
                await env.create(shop(name, motto=self.wanted[name]))
            case "remove":
                await self.removed(name)
            case "change":
                with suppress(NotFoundError):
                    await env.edit(settings_of(name), {"data": {"motto": "changed by hand"}})
            case _:
                self.upset(what)

    async def removed(self, name: str) -> None:
        if self.wanted.pop(name, None) is not None:
            await self.env.cluster.delete(key_of(name))

    def upset(self, what: str) -> None:
        gateway = self.env.gateway
        match what:
            case "cut":
                gateway.cut(ServerError("connection lost"))
            case "expire":
                gateway.cut(ExpiredError("too old", code=410))
            case "compact":
                self.env.cluster.compact()
                gateway.cut(ServerError("connection lost"))
            case "refuse":
                slow_down = TooManyRequestsError("slow down", code=429, retry_after=3)
                self.refusals += [ServerError("unavailable", code=503), ConflictError("conflict", code=409), slow_down]
            case "lose":
                self.lost += 1
            case "slow":
                self.slow = 0.0 if self.slow else 5.0
            case _:
                self.broken += 1

    async def mottos(self) -> dict[str, Any]:
        found = await self.env.cluster.list("v1", "ConfigMap", ListOptions(namespace=NAMESPACE))
        known = {settings_of(name).name: name for name in NAMES}
        return {
            known[item["metadata"]["name"]]: item["data"]["motto"]
            for item in found.items
            if item["metadata"]["name"] in known
        }


@pytest.mark.promise("woken", runs="100 random histories")
@pytest.mark.promise("one-at-a-time", runs="100 random histories")
@given(st.lists(steps, max_size=30), st.integers(1, 3))
def test_any_history_ends_as_it_should_and_then_in_silence(history: list[tuple[str, str, float]], workers: int) -> None:
    """Edits, deletes, changes by hand, watches that end, refusals, lost answers, slow and failing passes."""

    async def main() -> None:
        cluster = await new_cluster()
        env = Env(cluster, Gateway(cluster), LoopClock())
        chaos = Chaos(env)
        async with env.operating(workers=workers, options={"cache_timing": PACE, "events": False}) as process:
            for what, name, wait in history:
                await chaos.step(what, name)
                await asyncio.sleep(wait)
            await asyncio.sleep(400)
            assert await chaos.mottos() == chaos.wanted
            assert process.health.watches() == ""
            assert process.controllers[0].owners == len(chaos.wanted)
            env.forget()
            # Longer than any delay before a retry or a restart of a watch.
            await asyncio.sleep(1000)
            assert (env.passes, env.gateway.writes) == ([], [])
        assert {task for task in asyncio.all_tasks() if task is not asyncio.current_task()} == set()

    run_in_virtual_time(main())
