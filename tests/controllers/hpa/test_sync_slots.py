"""`SyncSlots`: autoscalers of one namespace come to be synced together, and none is synced late or twice in a row."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from ocf.controllers.hpa.sync_slots import SyncSlots
from ocf.objects import ObjectKey
from ocf.testing.fake_metrics import FakeMetricsClient
from tests.controllers.hpa.conftest import Env, RunScenario, periods

PERIOD: Final = timedelta(seconds=15)


def key(name: str, namespace: str = "shop") -> ObjectKey:
    return ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", name, namespace)


def syncs(slots: SyncSlots, name: str, first: timedelta, number: int) -> list[timedelta]:
    """Return the times of the syncs of an autoscaler, each of which takes a few milliseconds."""
    times = [first]
    for _ in range(number):
        now = times[-1] + timedelta(milliseconds=len(times) % 7)
        times.append(now + slots.delay(key(name), PERIOD, now=now))
    return times


@given(st.integers(0, 15_000), st.integers(0, 15_000))
def test_two_autoscalers_meet_within_ten_syncs(one: int, other: int) -> None:
    slots = SyncSlots()
    first = syncs(slots, "first", timedelta(milliseconds=one), 12)
    late = syncs(slots, "late", timedelta(milliseconds=one + other), 12)
    assert first[-1] in late
    pauses = [after - before for times in (first, late) for before, after in pairwise(times)]
    assert min(pauses) >= 0.9 * PERIOD
    assert max(pauses) <= PERIOD + timedelta(milliseconds=7)


def test_namespaces_do_not_wait_for_each_other() -> None:
    slots = SyncSlots()
    for second in range(3):
        now = timedelta(seconds=second)
        assert slots.delay(key("web", f"shop-{second}"), PERIOD, now=now) == PERIOD


def test_a_namespace_without_autoscalers_is_forgotten() -> None:
    slots = SyncSlots()
    for name in ("a", "b"):
        slots.delay(key(name), PERIOD, now=timedelta())
    slots.forget(key("a"))
    assert len(slots) == 1
    slots.forget(key("b"))
    slots.forget(key("b"))
    assert len(slots) == 0


class Asked(FakeMetricsClient):
    """Counts the reads of usage."""

    count = 0

    async def pod_metrics(self, namespace: str, selector: str = "") -> Any:
        self.count += 1
        return await super().pod_metrics(namespace, selector)


def test_autoscalers_that_were_created_at_different_seconds_share_one_read(run_scenario: RunScenario) -> None:
    async def scenario(env: Env) -> None:
        asked = env.metrics = Asked(env.clock)
        cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}}}
        async with env.running(metrics=asked):
            for number in range(5):
                name = f"web-{number}"
                await env.deploy(name, replicas=1)
                env.use_cpu(name, "1", 1)
                await env.autoscale(name, metrics=[cpu])
                await asyncio.sleep(3)
            await periods(10)
            asked.count = 0
            await periods(10)
            assert asked.count <= 11

    run_scenario(scenario)
