"""The pace of reconciles: bursts of changes cost few of them, and no change is left out or seen late."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ServerError
from ocf.objects import ObjectKey
from ocf.primitives import deployment
from ocf.runtime.operator.change_pacing import Pace, Pacer, due_at, pace_after
from ocf.testing import run_in_virtual_time
from ocf_server import ControllerSettings

from .conftest import NAMESPACE, SECOND, Env, RunTest, Shop, key_of, settings_of, shop

if TYPE_CHECKING:
    from ocf.objects import Manifest

CHILDREN = 100
FRONT = ObjectKey("v1", "Service", "corner-front", NAMESPACE)


def reconciled(changes: list[tuple[float, bool]], *, fails: bool = False, takes: float = 0.0) -> list[float]:
    """Return when reconciles begin that changes trigger, each with its time and whether it is urgent."""

    async def run() -> list[float]:
        loop, times = asyncio.get_running_loop(), list[float]()

        def begin(owner: str) -> None:
            times.append(loop.time())
            pacer.began(owner)
            loop.call_later(takes, lambda: pacer.ended(owner, failed=fails))

        pacer: Pacer[str] = Pacer(begin)
        for at, urgent in changes:
            await asyncio.sleep(at - loop.time())
            pacer.changed("corner", urgent=urgent)
        await asyncio.sleep(100)
        return times

    return run_in_virtual_time(run())


@pytest.mark.parametrize(
    ("pace", "failing", "expected"),
    [
        pytest.param(None, False, 100, id="the first change: at once"),
        pytest.param(Pace(90, 8), False, 100, id="after the pause: at once"),
        pytest.param(Pace(99.5, 1), False, 100.5, id="within the pause: after it"),
        pytest.param(Pace(99.5, 8), False, 102, id="within a long pause: after two quiet seconds"),
        pytest.param(Pace(99.5, 8), True, 107.5, id="of a failing owner: after the pause"),
        pytest.param(Pace(90, 8), True, 100, id="at once if it has ended"),
    ],
)
def test_when_a_change_is_due(pace: Pace | None, expected: float, *, failing: bool) -> None:
    assert due_at(pace, 100, failing=failing) == expected


def test_the_pause_doubles_during_a_burst_and_begins_anew_after_it() -> None:
    pauses, pace = [], None
    for _ in range(8):
        pace = pace_after(pace, 0, burst=True, failing=False)
        pauses.append(pace.pause)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert pace_after(pace, 0, burst=False, failing=False).pause == 1
    assert pace_after(Pace(0, 4), 0, burst=False, failing=True).pause == 8


GAPS = st.lists(st.tuples(st.floats(0, 4), st.booleans()), min_size=1, max_size=40)


@settings(max_examples=60)
@given(GAPS)
def test_every_change_is_seen_in_time(gaps: list[tuple[float, bool]]) -> None:
    """After two quiet seconds, or half a minute of changes; an edit within two seconds if no other one is near."""
    at, changes = 0.0, []
    for gap, urgent in gaps:
        at += gap
        changes.append((at, urgent))
    times = reconciled(changes)
    assert times[0] == changes[0][0]
    edits = [at for at, urgent in changes if urgent]
    for at, urgent in changes:
        seen = min(time for time in times if time >= at)
        is_alone = urgent and sum(abs(at - other) <= 2 for other in edits) == 1
        assert seen - at <= (2 if is_alone else 30)
    assert times[-1] - changes[-1][0] <= 2
    assert len(times) <= len(changes)


@pytest.mark.parametrize("gap", [0.001, 0.05, 0.3, 0.9, 1.5, 1.9])
@pytest.mark.parametrize("urgent", [False, True], ids=["of a status", "of more"])
def test_a_hundred_changes_trigger_few_reconciles(gap: float, *, urgent: bool) -> None:
    assert len(reconciled([(number * gap, urgent) for number in range(CHILDREN)])) <= 12


def test_changes_that_are_far_apart_trigger_a_reconcile_each() -> None:
    assert reconciled([(number * 5.0, False) for number in range(10)]) == [number * 5 for number in range(10)]


def test_a_failing_owner_is_not_reconciled_for_each_change() -> None:
    """https://github.com/crossplane/crossplane/issues/6790: events pass a rate limiter by."""
    times = reconciled([(number * 1.08, True) for number in range(51)], fails=True)
    assert len([at for at in times if at <= 55]) <= 6


def test_what_is_kept_of_an_owner_ends_with_it() -> None:
    async def run() -> None:
        rung: list[str] = []
        pacer: Pacer[str] = Pacer(rung.append)
        for _ in range(2):
            pacer.changed("corner", urgent=True)
        pacer.forget("corner")
        pacer.changed("other", urgent=True)
        pacer.changed("other", urgent=True)
        pacer.close()
        await asyncio.sleep(100)
        assert (rung, len(pacer)) == (["corner", "other"], 0)

    run_in_virtual_time(run())


@pytest.mark.promise("paced", runs="100 Deployments that become ready at two speeds")
@pytest.mark.parametrize("seconds", [0.25, 1.8])
def test_children_that_become_ready_one_by_one_cost_few_reconciles(run_test: RunTest, seconds: float) -> None:
    """And the last one is noticed.

    https://github.com/kube-rs/kube/issues/318 (a reconcile per change of a child), and
    https://github.com/crossplane/crossplane/issues/7108 (a limit that more than 50 children exceed by themselves).
    """
    reconciles: list[float] = []

    def components(owner: Shop, _: ReconcileContext) -> Component:
        reconciles.append(asyncio.get_running_loop().time())
        builder = component.Builder("web", owner=owner.key, condition_type="WebReady")
        for number in range(CHILDREN):
            after, labels = {"ocf.dev/ready-after": f"{10_000 + int(number * seconds * 1000)}ms"}, {"web": str(number)}
            containers = [{"name": "web", "image": "web:1"}]
            pod = {"metadata": {"annotations": after, "labels": labels}, "spec": {"containers": containers}}
            spec = {"selector": {"matchLabels": labels}, "template": pod}
            base: Manifest = {"metadata": {"name": f"web-{number}"}, "spec": spec}
            builder.with_resource(deployment.Builder(base), independent=True)
        return builder.build()

    async def test(env: Env) -> None:
        await env.create(shop())
        async with env.cluster.controllers(ControllerSettings(nodes=2)).running(), env.operating(components=components):
            await asyncio.sleep(5)
            assert len(reconciles) <= 5, "the Deployments report that they are not ready yet"
            reconciles.clear()
            await asyncio.sleep(CHILDREN * seconds + 20)
            [ready] = (await env.cluster.get(key_of()))["status"]["conditions"]
            assert (ready["type"], ready["status"]) == ("WebReady", "True")
            assert len(reconciles) <= 12

    run_test(test)


@pytest.mark.promise("paced", runs="an owner whose reconciles fail while one of its objects changes each second")
def test_changes_of_other_objects_bypass_the_backoff_seldom_and_one_of_the_owner_at_once(run_test: RunTest) -> None:
    """A Secret whose owner is corrected is a change of another object as well, and need not wait for the backoff.

    https://github.com/crossplane/upjet/issues/592, https://github.com/cert-manager/cert-manager/pull/7455
    """

    async def fail(_: Shop, __: ReconcileContext) -> None:
        raise ServerError("no answer")

    async def test(env: Env) -> None:
        async with env.operating(rate_limiter=ExponentialBackoff(60 * SECOND, 60 * SECOND, jitter=0)):
            await env.create(shop())
            await asyncio.sleep(100)
            env.before = fail
            await env.edit(key_of(), {"spec": {"motto": "broken"}})
            await asyncio.sleep(10)
            env.forget()
            for number in range(51):
                await env.edit(FRONT, {"metadata": {"annotations": {"seen": str(number)}}})
                await asyncio.sleep(1.08)
            assert len(env.passes) <= 7
            env.forget()
            env.before = None
            await env.edit(key_of(), {"spec": {"motto": "mended"}})
            await asyncio.sleep(0.5)
            assert len(env.passes) == 1
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "mended"}

    run_test(test)


def test_an_edit_is_reverted_at_once_although_statuses_change_all_the_time(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            for number in range(300):
                times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": str(number)}
                condition = {"type": "Seen", "status": "True", "reason": "Seen", **times}
                await env.patch_status(FRONT, {"conditions": [condition]}, by="cloud")
                await asyncio.sleep(0.2)
            await env.edit(settings_of(), {"data": {"motto": "by hand"}})
            await asyncio.sleep(1.1)
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "open"}

    run_test(test)


def test_a_paced_change_is_not_lost_by_a_stop(run_test: RunTest) -> None:
    """A change that waits when the process stops is seen by the next one."""

    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
            for text in ("1", "2"):
                await env.edit(settings_of(), {"data": {"motto": text}})
                await asyncio.sleep(0.1)
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "2"}
        async with env.operating():
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "open"}

    run_test(test)
