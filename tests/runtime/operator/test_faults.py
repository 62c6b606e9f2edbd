"""What goes wrong around an operator, and that it is as if nothing had."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import count, pairwise
from typing import Any

import pytest

from ocf import __version__
from ocf.cluster import Cluster, Request, Verb
from ocf.cluster.cache import CacheTiming
from ocf.component import Component, ReconcileContext
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ApiError, ConfigError, ExpiredError, OcfError, ServerError, TooManyRequestsError
from ocf.objects import ObjectKey
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.runtime.workqueue import FixedDelay
from ocf.testing import LoopClock, crash_at_each_write, run_in_virtual_time
from ocf_server import EmbeddedCluster

from .conftest import (
    DEFINITION,
    NAMESPACE,
    SECOND,
    SHOPS,
    Env,
    Gateway,
    RunTest,
    Shop,
    components_of,
    key_of,
    new_cluster,
    now,
    settings_of,
    shop,
)

PATIENT = CacheTiming(monotonic=now, random=lambda: 0.0)


async def motto(env: Env, name: str = "corner") -> str:
    return str((await env.cluster.get(settings_of(name)))["data"]["motto"])


@pytest.mark.promise("crash", runs="4 disturbances of each write of an operator at work")
def test_a_process_that_dies_at_any_write_is_followed_by_one_that_ends_the_same() -> None:
    """A crash before and after each write, a lost reply, a refusal: of two shops, one of which is edited."""

    async def begun() -> Cluster:
        cluster = await new_cluster()
        await cluster.create(shop(motto="first"), field_manager="kubectl")
        return cluster

    async def operate(cluster: Cluster) -> None:
        operator = Operator(name="shops", owner=SHOPS, components=components_of, workers=1)
        options = ManagerOptions(listen=None, events=False, clock=LoopClock(), cache_timing=PATIENT)
        async with running(cluster, operator, options=options):
            await asyncio.sleep(60)

    async def main() -> None:
        report = await crash_at_each_write(begun, operate)
        report.assert_same()
        assert len(report.rows) == 3 * 4

    run_in_virtual_time(main())


class Announcer:
    """An operator that sets a default in its owner, stores a choice and carries it out, and announces each motto."""

    def __init__(self) -> None:
        self._names = (f"choice-{number}" for number in count(1))

    async def components(self, owner: Shop, context: ReconcileContext) -> Component:
        await context.patch_owner({"spec": {"guide": owner.spec.guide or "by the town"}})
        status = context.status
        if "choice" not in status and "chosen" not in status:
            status["choice"] = next(self._names)
            await context.write_status()
        if "choice" in status:
            await self._make(context.cluster, status["choice"])
            status["chosen"] = status.pop("choice")
            await context.write_status()
        async with context.handling("announced", owner.spec.motto) as changed:
            if changed:
                await self._make(context.cluster, f"announcement-{owner.spec.motto}")
        return components_of(owner)

    async def _make(self, cluster: Cluster, name: str) -> None:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}
        await cluster.apply(made, field_manager="shops", force=True)

    async def operate(self, cluster: Cluster) -> None:
        operator = Operator(name="shops", owner=SHOPS, components=self.components, workers=1)
        options = ManagerOptions(listen=None, events=False, clock=LoopClock(), cache_timing=PATIENT)
        async with running(cluster, operator, options=options):
            await asyncio.sleep(60)

    async def assert_done(self, cluster: Cluster) -> None:
        live = await cluster.get(key_of())
        assert live["spec"] == {"motto": "second", "guide": "by the town"}
        (ready,) = (one for one in live["status"]["conditions"] if one["type"] == "WebReady")
        assert (ready["observedGeneration"], ready["status"]) == (live["metadata"]["generation"], "True")
        assert live["status"]["announced"] == "second"
        kept = {one["metadata"]["name"] for one in (await cluster.list("v1", "ConfigMap")).items}
        announced = {"announcement-first", "announcement-second", "corner-settings"}
        assert kept == {live["status"]["chosen"], *announced}


@pytest.mark.promise("intent", runs="4 disturbances of each write of an operator that also changes its owner")
@pytest.mark.promise("patch-owner", runs="4 disturbances of each write of an operator that sets a default")
@pytest.mark.promise("handled", runs="4 disturbances of each write of an operator that handles two values")
def test_what_an_operator_stores_before_or_after_it_acts_outlives_its_process() -> None:
    announcer = Announcer()
    begun: list[EmbeddedCluster] = []

    async def new() -> Cluster:
        begun.append(await new_cluster())
        await begun[-1].create(shop(motto="first"), field_manager="kubectl")
        return begun[-1]

    async def edit(cluster: Cluster) -> None:
        live = await cluster.get(key_of())
        if live["spec"]["motto"] == "first" and (live.get("status") or {}).get("announced") == "first":
            await cluster.update({**live, "spec": {**live["spec"], "motto": "second"}}, field_manager="kubectl")

    async def main() -> None:
        report = await crash_at_each_write(new, announcer.operate, others=edit)
        writes = [f"{write.verb} {write.kind}" for write in report.writes]
        assert writes[:5] == ["patch Shop", "update Shop", "apply ConfigMap", "update Shop", "apply ConfigMap"]
        assert len(begun) == 1 + 4 * len(writes)
        for cluster in begun:
            await announcer.assert_done(cluster)

    run_in_virtual_time(main())


WATCHES_END: dict[str, Callable[[Env], object]] = {
    "cleanly": lambda env: env.gateway.cut(),
    "by a lost connection": lambda env: env.gateway.cut(ServerError("connection lost")),
    "by 410": lambda env: env.gateway.cut(ExpiredError("too old", code=410)),
    "by a bug": lambda env: env.gateway.cut(KeyError("a bug")),
    "silently": lambda env: env.gateway.silence(),
}


@pytest.mark.promise("watch-ends", runs="5 ways to end, 20 times each")
@pytest.mark.parametrize("how", WATCHES_END)
def test_a_watch_that_ends_misses_nothing_whatever_it_ended_by(run_test: RunTest, how: str) -> None:
    """Neither what happens to an owner nor what happens to an object, twenty times over; a silent one takes 70 s."""

    async def test(env: Env) -> None:
        async with env.operating(options={"cache_timing": PATIENT}):
            await env.create(shop())
            await asyncio.sleep(5)
            for number in range(20):
                assert WATCHES_END[how](env) == 3
                await env.edit(key_of(), {"spec": {"motto": f"motto {number}"}})
                await asyncio.sleep(80)
                assert await motto(env) == f"motto {number}"
                env.gateway.cut(None)
                await env.edit(settings_of(), {"data": {"motto": "changed by hand"}})
                await asyncio.sleep(80)
                assert await motto(env) == f"motto {number}"

    run_test(test)


@pytest.mark.promise("watch-ends")
def test_a_cluster_that_was_restored_from_a_backup_is_followed(run_test: RunTest) -> None:
    """Its versions are older than those that passes have seen."""

    async def test(env: Env) -> None:
        async with env.operating(options={"cache_timing": PATIENT}):
            await env.create(shop())
            for number in range(50):
                await env.edit(key_of(), {"spec": {"motto": f"motto {number}"}})
                await asyncio.sleep(1)
            backup = await new_cluster()
            await backup.create(shop(motto="of old"), field_manager="kubectl")
            env.gateway.redirect(backup)
            env.cluster = backup
            await asyncio.sleep(60)
            assert await motto(env) == "of old"
            for key, patch in [
                (settings_of(), {"data": {"motto": "changed by hand"}}),
                (key_of(), {"spec": {"motto": "edited"}}),
            ]:
                env.forget()
                await env.edit(key, patch)
                await asyncio.sleep(1)
                assert len(env.passes) == 1
            assert await motto(env) == "edited"

    run_test(test)


@pytest.mark.promise("watch-ends", runs="100 compactions while everything changes")
def test_versions_that_are_forgotten_are_listed_anew(run_test: RunTest) -> None:
    """A hundred compactions while everything changes."""

    async def test(env: Env) -> None:
        async with env.operating(options={"cache_timing": PATIENT}):
            await env.create(shop())
            await asyncio.sleep(5)
            for number in range(100):
                env.gateway.cut(ServerError("connection lost"))
                await env.edit(key_of(), {"spec": {"motto": f"motto {number}"}})
                await env.edit(settings_of(), {"data": {"motto": "changed by hand"}})
                env.cluster.compact()
                await asyncio.sleep(10)
                assert await motto(env) == f"motto {number}"
            writes = [kind for verb, kind in env.gateway.writes if verb is Verb.CREATE and kind != "Event"]
            assert writes == []

    run_test(test)


@pytest.mark.promise("probes")
def test_a_cluster_that_is_away_makes_the_process_not_ready_and_after_a_while_unhealthy(run_test: RunTest) -> None:
    """And both are well again when it is back, and what happened meanwhile is made up for."""

    async def test(env: Env) -> None:
        async def away(request: Request) -> None:
            if request.verb in (Verb.LIST, Verb.WATCH, Verb.GET):
                raise ServerError("connection refused")

        def unwell(process: Any) -> tuple[bool, bool]:
            live, ready = process.health.live["watches"](), process.health.ready["watches"]()
            return bool(ready), bool(live)

        def watch_metric(process: Any) -> float | None:
            labels = {"api_version": "v1", "kind": "ConfigMap", "namespace": ""}
            found: float | None = process.registry.get_sample_value("ocf_watch_healthy", labels)
            return found

        given = {"cache_timing": PATIENT, "watch_failure_timeout": timedelta(minutes=5)}
        async with env.operating(options=given) as process:
            await env.create(shop())
            await asyncio.sleep(5)
            assert unwell(process) == (False, False)
            assert watch_metric(process) == 1
            env.gateway.meddle = away
            env.gateway.cut(ServerError("connection lost"))
            await asyncio.sleep(60)
            assert unwell(process) == (True, False)
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(301)
            assert unwell(process) == (True, True)
            assert watch_metric(process) == 0
            assert "connection refused" in process.health.live["watches"]()
            env.gateway.meddle = None
            await asyncio.sleep(60)
            assert unwell(process) == (False, False)
            assert await motto(env) == "closed"

    run_test(test)


def test_a_task_that_was_cancelled_is_started_anew(run_test: RunTest) -> None:
    """The watch of a kind: only the next reconcile would notice that it ended, and there may never be one."""

    async def test(env: Env) -> None:
        async with env.operating() as process:
            await env.create(shop())
            await asyncio.sleep(5)
            victims = [task for task in asyncio.all_tasks() if task.get_name().startswith("cache of")]
            assert len(victims) == 3
            for task in victims:
                task.cancel()
            await asyncio.sleep(1)
            assert "the task was cancelled" in process.health.watches()
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(20)
            assert process.health.watches() == ""
            assert await motto(env) == "closed"

    run_test(test)


@pytest.mark.promise("watch-ends")
@pytest.mark.parametrize(
    "prefix", ["shops follows", "worker 0 of shops", "resync of shops", "watches", "operators", "terms"]
)
def test_the_end_of_any_other_task_ends_the_process(run_test: RunTest, prefix: str) -> None:
    """So that it is started anew, and does not live on deaf."""

    async def test(env: Env) -> None:
        with pytest.raises(OcfError, match="ended unexpectedly"):  # noqa: PT012 (the block is cancelled)
            async with env.operating(resync=100 * SECOND):
                for task in asyncio.all_tasks():
                    if task.get_name().startswith(prefix):
                        task.cancel()
                await asyncio.sleep(100)

    run_test(test)


def test_more_objects_than_may_be_held_end_the_process(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        for number in range(3):
            await env.create(shop(f"shop-{number}"))
        with pytest.raises(ConfigError, match="may hold 2 objects"):
            async with env.operating(options={"max_objects": 2}):
                pass

    run_test(test)


@pytest.mark.promise("back-off", runs="30 minutes, 10 owners, fewer than 60 requests each")
def test_a_long_outage_costs_few_requests_and_ends_soon_after(run_test: RunTest) -> None:
    """Half an hour: at most 60 requests per owner, and all is well at most the longest delay, 5 minutes, later."""

    async def test(env: Env) -> None:
        async def down(request: Request) -> None:
            if not request.verb.is_read:
                raise ServerError("unavailable", code=503)

        async with env.operating(rate_limiter=ExponentialBackoff(random=lambda: 0.5), options={"events": False}):
            env.gateway.meddle = down
            for number in range(10):
                await env.create(shop(f"shop-{number}"))
            await asyncio.sleep(1800)
            assert len(env.gateway.requests) <= 60 * 10
            env.gateway.meddle = None
            await asyncio.sleep(301)
            for number in range(10):
                assert await motto(env, f"shop-{number}") == "open"

    run_test(test)


@pytest.mark.promise("back-off", runs="20 refusals, 200 other owners")
def test_a_server_that_asks_for_time_gets_it_and_other_owners_go_on(run_test: RunTest) -> None:
    """Twenty refusals with Retry-After: no early try, although the owner is edited all the time."""

    async def test(env: Env) -> None:
        tries: list[float] = []

        async def slow_down(request: Request) -> None:
            if request.verb is Verb.APPLY and request.name == "corner-settings" and len(tries) < 20:
                tries.append(now())
                raise TooManyRequestsError("slow down", code=429, retry_after=7)

        env.gateway.meddle = slow_down
        async with env.operating(rate_limiter=FixedDelay(SECOND / 1000), options={"events": False}):
            await env.create(shop())
            for number in range(200):
                await env.create(shop(f"shop-{number}"))
                await env.edit(key_of(), {"spec": {"motto": f"motto {number}"}})
                begun = now()
                await asyncio.sleep(0.9)
                created = await env.cluster.get(settings_of(f"shop-{number}"))
                assert created["metadata"]["creationTimestamp"]
                assert [at for name, at in env.passes if name == f"shop-{number}"] == [begun]
            assert len(tries) == 20
            assert min(later - earlier for earlier, later in pairwise(tries)) >= 7 - 1e-9
            assert await motto(env) == "motto 199"

    run_test(test)


@pytest.mark.promise("overtaking", runs="400 owners, 20 edits")
def test_a_fresh_edit_overtakes_all_that_was_there_at_the_start(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async def briefly(_: Shop, __: ReconcileContext) -> None:
            await asyncio.sleep(0.05)

        for number in range(400):
            await env.create(shop(f"shop-{number}"))
        await asyncio.sleep(3600)
        env.before = briefly
        async with env.operating(workers=1, options={"events": False}):
            late = []
            for number in range(399, 379, -1):
                await env.edit(key_of(f"shop-{number}"), {"spec": {"motto": "edited"}})
                begun = now()
                while await _motto_or_none(env, f"shop-{number}") != "edited":  # noqa: ASYNC110 (in virtual time)
                    await asyncio.sleep(0.01)
                late.append(now() - begun)
            assert len(env.passes) < 300
            assert max(late) <= 1

    run_test(test)


async def _motto_or_none(env: Env, name: str) -> str | None:
    try:
        return await motto(env, name)
    except ApiError:
        return None


def test_a_pass_that_hangs_is_ended_reported_and_harms_no_other(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async def hang(owner: Shop, _: ReconcileContext) -> None:
            if owner.metadata.name == "corner" and len(env.passes) < 3:
                await asyncio.sleep(1e6)

        env.before = hang
        async with env.operating(workers=1, reconcile_timeout=30 * SECOND, report=env.report):
            await env.create(shop())
            await asyncio.sleep(1)
            await env.create(shop("other"))
            await asyncio.sleep(100)
            assert env.passes == [("corner", 5), ("other", 35), ("corner", 36)]
            assert "exceeded its timeout of 0:00:30" in str(env.outcomes[0].error)
            assert await motto(env) == "open"

    run_test(test)


@pytest.mark.promise("probes")
def test_a_pass_that_cannot_be_ended_is_named_by_the_probes(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        stubborn = True

        async def hang(_: Shop, __: ReconcileContext) -> None:
            while stubborn:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(10)

        env.before = hang
        async with env.operating(reconcile_timeout=30 * SECOND) as process:
            await env.create(shop())
            await asyncio.sleep(85)
            assert process.health.reconciles() == ""
            await asyncio.sleep(10)
            message = "the reconcile of example.com/v1/Shop/town/corner does not end"
            assert process.health.live["reconciles"]() == process.health.ready["reconciles"]() == message
            stubborn = False
            await asyncio.sleep(100)
            assert process.health.reconciles() == ""

    run_test(test)


def test_a_kind_that_comes_later_is_found_without_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    """That of the owners; until then the process is not ready, but lives, and the log says once what is missing."""
    caplog.set_level(logging.INFO)

    async def main() -> None:
        clock = LoopClock()
        cluster = EmbeddedCluster(namespaces=[NAMESPACE], now=clock.now)
        operator = Operator(
            name="shops", owner=SHOPS, components=components_of, late_kinds=[("example.com/v1", "Shop")]
        )
        options = ManagerOptions(listen=None, clock=clock, cache_timing=PATIENT)
        async with running(Gateway(cluster), operator, options=options) as process:
            await asyncio.sleep(1000)
            assert process.health.owners() == "example.com/v1 Shop is not read yet: the API server does not serve it"
            assert [check() for check in process.health.live.values()] == ["", ""]
            await cluster.apply(DEFINITION, field_manager="kubectl")
            await cluster.create(shop(), field_manager="kubectl")
            await asyncio.sleep(60)
            assert process.health.owners() == ""
            assert (await cluster.get(settings_of()))["data"] == {"motto": "open"}

    run_in_virtual_time(main())
    rooms = ("ocf.cluster.cache", "ocf.runtime.operator")
    assert [(one.levelname, one.getMessage()) for one in caplog.records if one.name.startswith(rooms)] == [
        ("INFO", "example.com/v1/Shop: the server could not find the requested resource"),
        ("WARNING", "example.com/v1 Shop is not read yet: the API server does not serve it"),
        ("INFO", "example.com/v1/Shop: recovered"),
        ("INFO", f"operator shops reconciles Shop of example.com/v1 in all namespaces, with ocf {__version__}"),
    ]


def test_an_owner_that_cannot_be_read_fails_alone(run_test: RunTest, caplog: pytest.LogCaptureFixture) -> None:
    async def test(env: Env) -> None:
        class Strict(Shop):
            size: int

        async with env.operating(owner=OwnerType("example.com/v1", "Shop", Strict)):
            await env.create(shop())
            await asyncio.sleep(5)
        assert "Shop/town/corner" in caplog.text
        assert "Strict.size" in caplog.text

    run_test(test)


def test_a_namespace_goes_while_no_operator_runs(run_test: RunTest) -> None:
    """An operator of objects in the owner's namespace leaves nothing on the owner that would hold it."""

    async def test(env: Env) -> None:
        async with env.operating():
            await env.create(shop())
            await asyncio.sleep(5)
        live = await env.cluster.get(key_of())
        assert "finalizers" not in live["metadata"]
        assert "annotations" not in live["metadata"]
        await env.cluster.delete(ObjectKey("v1", "Namespace", NAMESPACE))
        with pytest.raises(ApiError):
            await env.cluster.get(key_of())

    run_test(test)
