"""`Manager`: start, leader election, endpoints, and stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import ClientSession

from ocf.cluster import ListOptions
from ocf.cluster.cache import CacheTiming
from ocf.component import ReconcileContext
from ocf.errors import BuildError, LeaseLostError, OcfError, ServerError
from ocf.objects import ObjectKey
from ocf.runtime.operator import Lease, Listen, ManagerOptions, Operator, OwnerType, run, running
from ocf.runtime.operator.manager import Manager
from ocf.testing import run_in_virtual_time
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
    now,
    settings_of,
    shop,
)

LEASE = Lease("shops", "default", "one")
FOLLOWER = Lease("shops", "default", "two")


async def exists(env: Env, name: str = "corner") -> bool:
    found = await env.cluster.list("v1", "ConfigMap", ListOptions(namespace=NAMESPACE))
    return settings_of(name).name in {item["metadata"]["name"] for item in found.items}


def slowly(seconds: float) -> Any:
    async def wait(_: Shop, __: ReconcileContext) -> None:
        await asyncio.sleep(seconds)

    return wait


@pytest.mark.promise("gentle-end")
def test_a_stop_lets_running_reconciles_end_and_starts_no_others(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = slowly(10)
        async with env.operating(workers=1):
            await env.create(shop())
            await env.create(shop("other"))
            await asyncio.sleep(1)
        assert now() == 15
        assert (await exists(env), await exists(env, "other")) == (True, False)
        assert (await env.cluster.get(key_of()))["status"]["conditions"]

    run_test(test)


def test_a_reconcile_that_exceeds_the_shutdown_timeout_is_cancelled(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = slowly(1000)
        async with env.operating(options={"shutdown_timeout": 7 * SECOND}):
            await env.create(shop())
            await asyncio.sleep(1)
        assert now() == 13
        assert not await exists(env)
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    run_test(test)


def test_an_error_of_the_block_is_raised_unchanged_and_cancels_reconciles(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = slowly(1000)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 (the block is cancelled)
            async with env.operating():
                await env.create(shop())
                await asyncio.sleep(1)
                raise ZeroDivisionError
        assert now() == 6
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    run_test(test)


@pytest.mark.parametrize(
    ("fold", "events"),
    [
        (True, {("Created", "Created 2 objects: ConfigMap 'corner-settings', Service 'corner-front'")}),
        (
            False,
            {
                ("CreatedConfigMap", "Created ConfigMap 'corner-settings'"),
                ("CreatedService", "Created Service 'corner-front'"),
            },
        ),
    ],
)
def test_events_of_the_last_reconciles_are_posted(
    run_test: RunTest, events: set[tuple[str, str]], *, fold: bool
) -> None:
    async def test(env: Env) -> None:
        async with env.operating(fold_events=fold):
            await env.create(shop())
            await asyncio.sleep(1)
        found = (await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))).items
        assert {event["reportingController"] for event in found} == {"example.com/shops"}
        assert {(event["reason"], event["note"]) for event in found} == events

    run_test(test)


def test_events_and_metrics_can_be_switched_off(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        async with env.operating(options={"events": False, "metrics": False}) as process:
            await env.create(shop())
            await asyncio.sleep(1)
            assert process.registry is None
        assert not (await env.cluster.list("events.k8s.io/v1", "Event")).items

    run_test(test)


class TestLeading:
    def test_one_process_leads_and_another_follows_at_once_when_it_stops(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            second = Env(env.cluster, Gateway(env.cluster), env.clock)

            def leads(process: Manager) -> float | None:
                assert process.registry is not None
                return process.registry.get_sample_value("leader_election_master_status", {"name": "shops"})

            async with env.operating(options={"lease": LEASE}) as working:
                async with second.operating(options={"lease": FOLLOWER}) as waiting:
                    await env.create(shop())
                    await asyncio.sleep(100)
                    assert (len(env.passes), second.passes, waiting.controllers) == (1, [], ())
                    assert [leads(each) for each in (working, waiting)] == [1, 0]
                    assert [check() for check in waiting.health.ready.values()] == ["", "", ""]
                    assert not second.gateway.writes
                assert now() == 110
            async with second.operating(options={"lease": FOLLOWER}):
                assert len(second.passes) == 1

        run_test(test)

    def test_a_process_that_loses_the_lease_stops_writing_and_waits_for_the_next_term(self, run_test: RunTest) -> None:
        """A running reconcile is cancelled; the next term reconciles everything again."""

        async def test(env: Env) -> None:
            async def cut(_: Any) -> None:
                raise ServerError("connection refused")

            async with env.operating(options={"lease": LEASE}) as process:
                env.before = slowly(60)
                await env.create(shop())
                await asyncio.sleep(1)
                env.gateway.meddle = cut
                await asyncio.sleep(20)
                assert process.controllers == ()
                env.gateway.requests.clear()
                second = Env(env.cluster, Gateway(env.cluster), env.clock)
                async with second.operating(options={"lease": FOLLOWER}):
                    await asyncio.sleep(60)
                    assert await exists(env)
                    assert not [kind for _, kind in env.gateway.writes if kind != "Lease"]
                env.before = env.gateway.meddle = None
                await asyncio.sleep(60)
                assert len(process.controllers) == 1
                await env.edit(key_of(), {"spec": {"motto": "closed"}})
                await asyncio.sleep(1)
                assert (await env.cluster.get(settings_of()))["data"] == {"motto": "closed"}

        run_test(test)

    def test_stopping_releases_the_lease(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            async with env.operating(options={"lease": LEASE}):
                pass
            lease = await env.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default"))
            assert lease["spec"]["holderIdentity"] == ""

        run_test(test)

    def test_a_lease_lost_inside_a_reconcile_is_an_error_like_any_other(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            async def fail(_: Shop, __: ReconcileContext) -> None:
                if len(env.passes) == 1:
                    raise LeaseLostError("default/other", "one", "two holds it")

            env.before = fail
            async with env.operating(options={"lease": LEASE}):
                await env.create(shop())
                await asyncio.sleep(10)
                assert await exists(env)

        run_test(test)


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(600):
        while not true():  # noqa: ASYNC110 (the condition has no event)
            await asyncio.sleep(0)


class TestServing:
    async def test_probes_and_metrics_are_served_and_a_signal_ends_it(self) -> None:
        cluster = EmbeddedCluster(namespaces=[NAMESPACE])
        await cluster.apply(DEFINITION, field_manager="setup")
        operator = Operator(name="shops", owner=SHOPS, components=components_of)
        options = ManagerOptions(listen=Listen(0, "127.0.0.1"), metrics_prefix="shops")
        process = Manager(cluster, [operator], options)
        task = asyncio.create_task(process.run())
        await process.started()
        assert process.endpoints is not None
        async with ClientSession(process.endpoints.url) as session:
            await cluster.create(shop(), field_manager="kubectl")
            controller = process.controllers[0]
            await _until(lambda: bool(controller.owners) and not controller.queue.running)
            for path, text in [("/healthz", "ok"), ("/readyz", "ok"), ("/readyz/owners", "ok")]:
                async with session.get(path) as answer:
                    assert (answer.status, await answer.text()) == (200, text)
            async with session.get("/metrics") as answer:
                metrics = await answer.text()
        for line in (
            'workqueue_depth{controller="shops",name="shops",priority="0"} 0.0',
            'controller_runtime_reconcile_total{controller="shops",result="success"}',
            'shops_controller_condition{condition="WebReady"',
            'ocf_cached_objects{api_version="example.com/v1",kind="Shop",namespace=""} 1.0',
        ):
            assert line in metrics
        process.stop()
        await task

    async def test_a_signal_stops_it_gracefully(self) -> None:
        cluster = EmbeddedCluster(namespaces=[NAMESPACE])
        await cluster.apply(DEFINITION, field_manager="setup")
        operator = Operator(name="shops", owner=SHOPS, components=components_of)
        task = asyncio.create_task(run(cluster, operator, options=ManagerOptions(listen=None, lease=LEASE)))
        lease = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default")
        await _until(lambda: any(one.kind == "Lease" and one.changed for one in cluster.requests))
        os.kill(os.getpid(), signal.SIGTERM)
        await task
        assert (await cluster.get(lease))["spec"]["holderIdentity"] == ""

    def test_an_event_stops_it_gracefully(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            stop = asyncio.Event()
            task = asyncio.create_task(run(env.gateway, env.operator(), options=env.options(), stop=stop))
            await env.create(shop())
            await asyncio.sleep(5)
            stop.set()
            await task
            assert await exists(env)

        run_test(test)


def test_several_operators_share_a_process(run_test: RunTest) -> None:
    """One cache and one set of metrics; an object of one operator may trigger the other."""

    async def test(env: Env) -> None:
        seen: list[str] = []

        def note(owner: dict[str, Any]) -> list[Any]:
            seen.append(owner["metadata"]["name"])
            return []

        notes = Operator[dict[str, Any]](name="notes", owner=OwnerType("v1", "ConfigMap"), components=note)
        operators = (env.operator(), notes)
        async with running(env.gateway, *operators, options=env.options()) as process:
            await env.create(shop())
            await asyncio.sleep(5)
            assert "corner-settings" in seen
            assert [controller.operator.name for controller in process.controllers] == ["shops", "notes"]
            watches = [one.kind for one in env.gateway.requests if one.verb == "watch"]
            assert sorted(watches) == ["ConfigMap", "Service", "Shop"]

    run_test(test)


def test_the_end_of_one_of_several_operators_ends_the_process(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        notes = Operator[dict[str, Any]](name="notes", owner=OwnerType("v1", "ConfigMap"), components=lambda _: ())
        with pytest.raises(OcfError, match="ended unexpectedly"):  # noqa: PT012 (the block is cancelled)
            async with running(env.gateway, env.operator(), notes, options=env.options()):
                await asyncio.sleep(5)
                (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "notes"]
                task.cancel()
                await asyncio.sleep(1000)
        assert now() < 10

    run_test(test)


def test_an_operator_of_some_namespaces_reads_no_others(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        for name in ("village", "city"):
            await env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        elsewhere = shop("far")
        elsewhere["metadata"]["namespace"] = "city"
        async with env.operating(options={"namespaces": [NAMESPACE, "village"]}, owns=[("v1", "ConfigMap")]):
            await env.create(shop())
            await env.create(elsewhere)
            await asyncio.sleep(5)
            assert [name for name, _ in env.passes] == ["corner"]
            await env.edit(settings_of(), {"data": {"motto": "changed by hand"}})
            await asyncio.sleep(5)
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "open"}
            assert {one.namespace for one in env.gateway.requests} <= {NAMESPACE, "village"}

    run_test(test)


@pytest.mark.parametrize("names", [[], ["shops", "shops"]])
def test_operators_need_different_names(names: list[str]) -> None:
    async def main() -> None:
        operators = [Operator(name=name, owner=SHOPS, components=components_of) for name in names]
        with pytest.raises(BuildError, match="need different names"):
            Manager(EmbeddedCluster(), operators, ManagerOptions())

    run_in_virtual_time(main())


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        pytest.param({"name": ""}, "needs a name", id="no name"),
        pytest.param({"workers": 0}, "workers must be at least 1, got 0", id="no workers"),
        pytest.param({"reconcile_timeout": 0 * SECOND}, "reconcile_timeout must be positive", id="no time"),
        pytest.param({"resync": 0 * SECOND}, "resync must be positive", id="no period"),
        pytest.param(
            {"published_conditions": "Ready"},
            r'published_conditions must be a list of condition types, such as \["Ready"\], not a text',
            id="published conditions as a text",
        ),
        pytest.param(
            {"abnormal_conditions": "Degraded"},
            r'abnormal_conditions must be a list of condition types, such as \["Degraded"\], not a text',
            id="abnormal conditions as a text",
        ),
        pytest.param(
            {"owns": [("v1", "Secret")], "uncached": [("v1", "Secret")]},
            "Secret is in `uncached`, so it cannot be watched",
            id="watched and not cached",
        ),
        pytest.param(
            {"uncached": [("example.com/v1", "*")]},
            r'uncached: \("example.com/v1", "\*"\) is not a wildcard: \("example.com/\*", "\*"\) is for all kinds',
            id="all kinds of a version",
        ),
        pytest.param({"uncached": [("*", "Secret")]}, "is not a wildcard", id="a kind of any group"),
        pytest.param({"reads": [("*.example.com/*", "*")]}, "reads: .* is not a wildcard", id="a part of a group"),
        pytest.param({"writes": [("apps/*", "Dep*/scale")]}, "writes: .* is not a wildcard", id="a part of a kind"),
        pytest.param({"deletes": [("apps/*", "Deployment")]}, "deletes: .* is not a wildcard", id="any version"),
        pytest.param({"uncached": [("v1/*", "*")]}, "uncached: .* is not a wildcard", id="a version as a group"),
        pytest.param({"deletes": [("*", "*/scale")]}, "deletes: .* names a subresource of all", id="deletes a part"),
        pytest.param({"uncached": [("*", "*/scale")]}, "uncached: .* a subresource of all", id="a part in memory"),
        pytest.param({"reads": [("apps/*", "*/*")]}, "reads: .* names a subresource of all", id="all parts of all"),
        pytest.param({"owns": [("apps/*", "*")]}, "owns or watches: .* name them", id="a wildcard that is watched"),
    ],
)
def test_an_invalid_declaration_is_rejected(wrong: dict[str, Any], problem: str) -> None:
    given: dict[str, Any] = {"name": "shops", "owner": SHOPS, "components": components_of}
    with pytest.raises(BuildError, match=problem):
        Operator(**{**given, **wrong})


def test_the_timing_of_the_cache_is_used(run_test: RunTest) -> None:
    """A cache that lists everything again each minute does so in an operator, too."""

    async def test(env: Env) -> None:
        timing = CacheTiming(relist_every=60, idle_timeout=10, monotonic=now, random=lambda: 0.0)
        async with env.operating(options={"cache_timing": timing}):
            await env.create(shop())
            await asyncio.sleep(3600)
            assert len([one for one in env.gateway.requests if one.verb == "list"]) > 100
            assert len(env.passes) == 1

    run_test(test)


VALUES = [
    pytest.param(lambda: datetime(2026, 1, 1, tzinfo=UTC), id="datetime"),
    pytest.param(lambda: {"a"}, id="set"),
    pytest.param(lambda: float("nan"), id="not a number"),
    pytest.param(lambda: {("a", 1): "b"}, id="a tuple as key"),
    pytest.param(object, id="object"),
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_json_does_not_have_ends_no_operator(run_test: RunTest, value: Callable[[], object]) -> None:
    """The owner shows the failure, and the operator reconciles it and the others."""

    async def test(env: Env) -> None:
        async def spoil(owner: Shop, context: ReconcileContext) -> None:
            if owner.spec.motto == "spoilt":
                context.status["visits"] = value()

        env.before = spoil
        async with env.operating(report=env.report):
            await env.create(shop(motto="spoilt"))
            await env.create(shop("other"))
            await asyncio.sleep(10)
            failure = (await env.read_conditions(key_of()))["shops/Reconciled"]
            assert (failure["status"], failure["reason"]) == ("False", "Error")
            assert failure["message"].startswith("writing the status failed: Shop town/corner: status.visits")
            assert (await env.read_status(key_of()))["motto"] == "spoilt"
            assert "WebReady" in await env.read_conditions(key_of("other"))
            env.forget()
            await env.edit(key_of(), {"spec": {"motto": "open"}})
            await asyncio.sleep(100)
            assert "shops/Reconciled" not in await env.read_conditions(key_of())
            assert (await env.read_status(key_of()))["motto"] == "open"

    run_test(test)
