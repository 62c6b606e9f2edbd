"""A watch stops sending events, a bug in the process, a server restored from a backup."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest

from examples.memcached.operator import operator
from examples.memcached.samples import AUTOSCALED
from ocf.errors import OcfError, ServerError
from ocf.testing import run_in_virtual_time
from tests.examples.memcached.faults.env import HPA, KINDS, Ended, OperatorEnv, cache_timing, new_env, now, run_test

if TYPE_CHECKING:
    from ocf.cluster import Request
    from ocf.runtime.operator.manager import Manager

SILENCES: Final = 20
DETECTED: Final = 70.0
PAUSE: Final = 100.0
# In turn, because the operator restores one object at most ten times in a row without a pause.
REMOVED: Final = (("Service", "type", "ClusterIP"), ("Deployment", "progressDeadlineSeconds", 600))


async def with_silences(env: OperatorEnv, *, silent: bool) -> Ended:
    """Change what is wanted and delete what is there, twenty times; return where that ended."""
    async with env.operating():
        await env.create(AUTOSCALED)
        await asyncio.sleep(PAUSE)
        for turn in range(SILENCES):
            if silent:
                assert env.gateway.silence() >= 1 + len(KINDS)
            begun = now()
            await env.change(autoscaling={"enabled": True, "maxReplicas": 20 + turn})
            kind, path, wanted = REMOVED[turn % len(REMOVED)]
            await env.remove(kind)
            await env.wait_for_field(HPA, "maxReplicas", 20 + turn, within=DETECTED)
            await env.wait_for_field(kind, path, wanted, within=DETECTED)
            await asyncio.sleep(PAUSE - (now() - begun))
    return await env.ended()


@pytest.mark.promise("not-deaf", runs="twenty silences of all watches")
def test_a_silent_watch_is_detected() -> None:
    """Twenty times all watches stop sending events without closing: within 70 s every change is seen and reverted."""

    async def run(*, silent: bool) -> Ended:
        return await with_silences(await new_env(), silent=silent)

    run_in_virtual_time(run(silent=True)).assert_as(run_in_virtual_time(run(silent=False)))


def test_a_watch_that_cannot_be_reopened_is_visible_in_the_metrics() -> None:
    """The metric that is watched falls once the silence is found out, and rises again."""

    async def test(env: OperatorEnv) -> None:
        async def outage(_: Request) -> None:
            raise ServerError("connection refused")

        async with env.operating() as process:
            await env.create(AUTOSCALED)
            await asyncio.sleep(PAUSE)
            assert healthy(process) == {1.0}
            env.gateway.silence()
            env.gateway.meddle = outage
            await asyncio.sleep(DETECTED + 2)
            assert healthy(process) == {0.0}
            env.gateway.meddle = None
            await asyncio.sleep(PAUSE)
            assert healthy(process) == {1.0}

    run_test(test)


def healthy(process: Manager) -> set[float]:
    assert process.registry is not None
    families = {family.name: family for family in process.registry.collect()}
    return {sample.value for sample in families["ocf_watch_healthy"].samples}


class _BugError(Exception):
    """An unexpected error."""


async def meddled(env: OperatorEnv, number: int) -> int:
    """Let an operator live whose request of a number meets a bug; return how many there were.

    It must end, or reach the right state; it must not continue without its watches.
    """
    count = 0

    async def bug(_: Request) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise _BugError

    env.gateway.meddle = bug
    with suppress(_BugError):
        async with env.operating(options={"cache_timing": cache_timing(idle_timeout=1e9)}):
            await env.create(AUTOSCALED)
            await asyncio.sleep(PAUSE)
            await env.meddle(HPA, spec={"maxReplicas": 99})
            await env.remove("Service")
            await asyncio.sleep(PAUSE)
    return count


@pytest.mark.promise("not-deaf", runs="a bug at each request of a life")
def test_a_bug_at_any_request_ends_the_process_or_has_no_lasting_effect() -> None:
    """At every request and every watch of a life, one after the other: objects as without it, and one event less."""

    async def run(number: int) -> tuple[Ended, int]:
        env = await new_env()
        count = await meddled(env, number)
        return await env.ended(), count

    wanted, requests = run_in_virtual_time(run(0))
    assert requests >= 20
    for number in range(1, requests + 1):
        found, _ = run_in_virtual_time(run(number))
        found.assert_as(wanted, events=False)
        assert sum(found.events.values()) >= sum(wanted.events.values()) - 1


@pytest.mark.promise("not-deaf", runs="each of its tasks is ended")
def test_no_task_can_die_unnoticed() -> None:
    """Each task of the process is ended in turn: the process ends, too, or mends what happens afterwards.

    Where it is a cache of a declared kind that died, the health is red until it is well again.
    """

    async def run(place: int) -> tuple[list[str], str]:
        env, names, red = await new_env(), list[str](), "the process has ended"
        with suppress(OcfError):
            async with env.operating() as process:
                await env.create(AUTOSCALED)
                await asyncio.sleep(PAUSE)
                ours = sorted(asyncio.all_tasks() - {asyncio.current_task()}, key=lambda task: task.get_name())
                names = [task.get_name() for task in ours]
                ours[place].cancel()
                await asyncio.sleep(1)
                red = process.health.watches()
                await env.meddle(HPA, spec={"maxReplicas": 99})
                await env.wait_for_field(HPA, "maxReplicas", 10, within=PAUSE)
                assert process.health.watches() == ""
        return names, red

    names, _ = run_in_virtual_time(run(0))
    assert len(names) > 40
    for place, name in enumerate(names):
        _, red = run_in_virtual_time(run(place))
        if name.startswith("cache of"):
            # What an owner makes the operator read does not decide about the process; the cache recovers all the same.
            declared = name.removeprefix("cache of ") in {"/".join(kind) for kind in operator().declared_kinds}
            assert red.endswith("the task was cancelled") if declared else red == ""
        if name.startswith(("operators", "terms", "worker", "memcached-operator follows", "watches")):
            assert red == "the process has ended"


@pytest.mark.promise("restored")
def test_the_state_of_a_restored_server_is_accepted() -> None:
    """What was written since the backup is gone, and versions go back: everything is listed anew, and nothing redone.

    Meanwhile the autoscaler was deleted and the image changed; neither was ever wanted by what is there now.
    """

    async def run(*, restored: bool) -> Ended:
        env = await new_env()
        async with env.operating(options={"events": False}):
            await env.create(AUTOSCALED)
            await asyncio.sleep(PAUSE)
            if restored:
                await lose(env)
            async with env.neighbours():
                await asyncio.sleep(PAUSE)
                await env.change(image="memcached:1.6.31")
                await asyncio.sleep(PAUSE)
        return await env.ended()

    async def lose(env: OperatorEnv) -> None:
        backup, creates, deletes = env.server.clone(), env.ledger.creates.copy(), env.ledger.deletes.copy()
        await env.change(image="memcached:1.6.30", autoscaling=None, replicas=5)
        await asyncio.sleep(PAUSE)
        assert not await env.exists(HPA)
        assert int(env.server.resource_version) > int(backup.resource_version) + 5
        vars(env.server).update(vars(backup))
        env.ledger.creates, env.ledger.deletes = creates, deletes
        env.gateway.cut(ServerError("connection reset"))

    run_in_virtual_time(run(restored=True)).assert_as(run_in_virtual_time(run(restored=False)))
