"""An owner that was edited is reconciled before a crowd of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from ocf.component import ReconcileContext
from ocf.errors import ConfigError
from ocf.runtime.workqueue import FixedDelay

from .conftest import Env, RunTest, Shop, key_of, now, shop

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NAMES = {f"shop-{number:03}" for number in range(120)}
BUSY = 0.2


@dataclass
class Work:
    """What the function of the author does in each reconcile.

    Args:
        crowd: Why all owners come at once.
        takes: Seconds that each call takes.
    """

    crowd: str
    takes: float
    seen: list[tuple[str, str]] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, owner: Shop, context: ReconcileContext) -> None:
        await asyncio.sleep(self.takes)
        async with self._changed:
            self.seen.append((owner.metadata.name, owner.spec.motto))
            self._changed.notify_all()
        if self.crowd == "retries":
            raise ConfigError("closed")
        if self.crowd == "requeues":
            context.requeue_after(MINUTE)

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.seen}

    async def until(self, done: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(done)

    async def begins(self) -> None:
        """Wait until the crowd is there."""
        if self.crowd == "start":
            return
        # The resync is due within a tenth of its period, and what is scheduled a minute after the start.
        await asyncio.sleep(0.9 * HOUR.total_seconds() if self.crowd == "resync" else 30)
        self.takes = BUSY
        self.seen.clear()
        await self.until(lambda: bool(self.seen))


@pytest.mark.promise("overtaking", runs="a crowd at the start, at a resync, of retries and of requeues")
@pytest.mark.parametrize(
    ("crowd", "options"),
    [
        pytest.param("start", {}, id="the start"),
        pytest.param("resync", {"resync": HOUR}, id="a resync"),
        pytest.param("retries", {"rate_limiter": FixedDelay(MINUTE)}, id="retries"),
        pytest.param("requeues", {}, id="requeues"),
    ],
)
def test_an_edit_comes_before_a_crowd_and_the_crowd_comes_too(
    run_test: RunTest, crowd: str, options: dict[str, Any]
) -> None:
    """With ten thousand StatefulSets, events waited for minutes at each resync; at a restart, a new owner came last.

    https://github.com/kubernetes/kubernetes/issues/68179
    https://github.com/kubernetes-sigs/controller-runtime/issues/3067
    """

    async def test(env: Env) -> None:
        for name in sorted(NAMES):
            await env.cluster.create(shop(name), field_manager="user")
        await asyncio.sleep(HOUR.total_seconds())
        # In other crowds the first reconciles take no time, so that all owners come again at once.
        work = env.before = Work(crowd, BUSY if crowd == "start" else 0)
        async with env.operating(workers=2, **options):
            await work.begins()
            late = []
            for name in sorted(NAMES)[-10:]:
                edited = now()
                await env.edit(key_of(name), {"spec": {"motto": f"of {name}"}})
                await work.until(partial(work.seen.__contains__, (name, f"of {name}")))
                late.append(now() - edited)
            # What runs is not interrupted, and one of those that wait may come in between.
            assert max(late) <= 3 * BUSY
            assert work.names < NAMES
            await asyncio.sleep(10 * MINUTE.total_seconds())
            assert work.names == NAMES

    run_test(test)
