"""Concurrency of independent resources in a component, and of the components of one owner."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import ListOptions, Verb
from ocf.component import Component, Reason, depends_on, reconcile_all, reconciling
from ocf.component.status.results import Action
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.errors import BuildError, ConfigError, InvalidError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.testing import FaultyCluster, InterceptingCluster, faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Request
    from tests.component.conftest import Env, StaticKind


class Meeting(InterceptingCluster):
    """Holds each apply until a number of them have started."""

    def __init__(self, env: Env, number: int) -> None:
        super().__init__(env.cluster)
        self._barrier = asyncio.Barrier(number)

    async def intercept(self, request: Request, send: Any) -> Any:
        if request.verb is Verb.APPLY:
            await self._barrier.wait()
        return await super().intercept(request, send)


def settings(name: str, resource: Any, *prerequisites: Any) -> Component:
    builder = component.Builder(name, condition_type=f"{name.title()}Ready").with_resource(resource)
    return builder.with_prerequisite(*prerequisites).build()


def rejecting(**when: Any) -> faults.Fault:
    return faults.rejected(InvalidError("no"), kind="ConfigMap", verbs=[Verb.APPLY], times=None, **when)


async def names(env: Env) -> set[str]:
    return {
        found["metadata"]["name"]
        for found in (await env.cluster.list("v1", "ConfigMap", ListOptions(namespace="shop"))).items
    }


class Counting(InterceptingCluster):
    """Counts the requests that have no answer yet; each takes a few turns of the loop."""

    def __init__(self, env: Env) -> None:
        super().__init__(env.cluster)
        self.open = self.most = self.applies = 0

    async def intercept(self, request: Request, send: Any) -> Any:
        self.open += 1
        self.most = max(self.most, self.open)
        self.applies += request.verb is Verb.APPLY
        try:
            for _ in range(5):
                await asyncio.sleep(0)
            return await super().intercept(request, send)
        finally:
            self.open -= 1


class TestBound:
    @pytest.mark.parametrize(
        ("components", "resources"),
        [
            pytest.param(1, 60, id="many resources"),
            pytest.param(60, 1, id="many components"),
            pytest.param(10, 6, id="many of both"),
        ],
    )
    async def test_the_requests_of_one_owner_at_once_are_bounded(
        self, env: Env, config_map: Callable[..., StaticKind], components: int, resources: int
    ) -> None:
        """And none of them is left out.

        https://github.com/kubernetes/kubernetes/issues/4866 (1 000 creates at once for a count of 1 000).
        """
        made = []
        for number in range(components):
            builder = component.Builder(f"part-{number}", condition_type=f"Part{number}Ready")
            for at in range(resources):
                builder.with_resource(config_map(f"c{number}-{at}").build(), independent=True)
            made.append(builder.build())
        counting = Counting(env)
        async with reconciling(await env.owner_manifest(), counting, clock=env.clock) as context:
            await reconcile_all(context, *made)
        assert counting.applies == components * resources
        assert 10 < counting.most <= 25


class TestResources:
    async def test_they_are_applied_together(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        """Three applies that wait for each other; one after the other, none would end."""
        builder = component.Builder("web", condition_type="WebReady")
        for name in ("a", "b", "c"):
            builder.with_resource(config_map(name).build(), independent=True)
        async with reconciling(await env.owner_manifest(), Meeting(env, 3), clock=env.clock) as context:
            result = await builder.build().reconcile(context)
        assert [outcome.resource[-1] for outcome in result.outcomes] == ["a", "b", "c"]

    @pytest.mark.parametrize("rejected", range(6))
    async def test_an_error_does_not_stop_independent_resources(
        self, env: Env, config_map: Callable[..., StaticKind], rejected: int
    ) -> None:
        builder = component.Builder("web", condition_type="WebReady")
        for at in range(6):
            builder.with_resource(config_map(f"c{at}").build(), independent=True)
        fault = rejecting(name=f"c{rejected}")
        with pytest.raises(ReconcileError, match=f"v1/ConfigMap/shop/c{rejected}"):
            async with reconciling(
                await env.owner_manifest(), FaultyCluster(env.cluster, [fault]), clock=env.clock
            ) as context:
                await builder.build().reconcile(context)
        assert await names(env) == {f"c{at}" for at in range(6) if at != rejected}
        condition = await env.condition()
        assert condition["reason"] == "Error"
        assert f"v1/ConfigMap/shop/c{rejected}" in condition["message"]

    async def test_a_block_does_not_stop_independent_resources(
        self, env: Env, web_base: Manifest, config_map: Callable[..., StaticKind]
    ) -> None:
        blocked = StatusReport(GuardStatus.BLOCKED, "not yet")
        result = await env.reconcile(
            component.Builder("web", condition_type="WebReady")
            .with_resource(deployment.Builder(web_base).with_guard(lambda _base: blocked).build())
            .with_resource(config_map("in-order").build())
            .with_resource(config_map("beside").build(), independent=True)
            .build()
        )
        assert [outcome.action for outcome in result.outcomes] == [Action.BLOCKED, Action.CREATED]
        assert (result.condition.reason, await names(env)) == (Reason.BLOCKED, {"beside"})

    async def test_several_errors_are_one(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        builder = component.Builder("web", condition_type="WebReady")
        for name in ("a", "b"):
            builder.with_resource(config_map(name).build(), independent=True)
        broken = FaultyCluster(env.cluster, [rejecting()])
        with pytest.raises(ReconcileError) as caught:
            async with reconciling(await env.owner_manifest(), broken, clock=env.clock) as context:
                await builder.build().reconcile(context)
        assert "v1/ConfigMap/shop/a" in caught.value.problem
        assert "v1/ConfigMap/shop/b" in caught.value.problem

    def test_a_resource_with_data_flow_is_not_independent(
        self, web_base: Manifest, config_map: Callable[..., StaticKind]
    ) -> None:
        cell = Data[str]("a")
        source = config_map().extract_into(cell, lambda live: str(live.data["a"])).build()
        reader = deployment.Builder(web_base).with_data_guard(cell).build()
        builder = component.Builder("web", condition_type="WebReady").with_resource(source, independent=True)
        with pytest.raises(BuildError) as caught:
            builder.with_resource(reader, independent=True).build()
        first, second = caught.value.problems
        assert 'ConfigMap/shop/settings" in component "web" is independent, but produces data "a", for which' in first
        assert 'Deployment/shop/web" in component "web" is independent, but reads data "a", and so waits' in second


class TestComponents:
    async def test_they_run_concurrently(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        subjects = [settings(name, config_map(name).build()) for name in ("c", "a", "b")]
        async with reconciling(await env.owner_manifest(), Meeting(env, 3), clock=env.clock) as context:
            results = await reconcile_all(context, *subjects)
        assert [result.condition.type for result in results] == ["CReady", "AReady", "BReady"]

    @pytest.mark.parametrize("first", [0, 1, 2])
    async def test_conditions_are_in_the_given_order(
        self, env: Env, config_map: Callable[..., StaticKind], first: int
    ) -> None:
        order = ["c", "a", "b"]

        class Late(InterceptingCluster):
            async def intercept(self, request: Request, send: Any) -> Any:
                for _ in range(0 if request.name == order[first] else 50):
                    await asyncio.sleep(0)
                return await super().intercept(request, send)

        subjects = [settings(name, config_map(name).build()) for name in order]
        async with reconciling(await env.owner_manifest(), Late(env.cluster), clock=env.clock) as context:
            await reconcile_all(context, *subjects)
        written = (await env.owner_manifest())["status"]["conditions"]
        assert [condition["type"] for condition in written] == ["CReady", "AReady", "BReady"]

    async def test_a_dependent_component_sees_the_condition_of_this_reconcile(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        database = settings("database", config_map("database").build())
        app = settings("app", config_map("app").build(), depends_on("DatabaseReady"))
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            results = await reconcile_all(context, database, app)
        assert [result.condition.reason for result in results] == [Reason.HEALTHY, Reason.HEALTHY]

    async def test_two_that_wait_for_each_other_do_not_hang(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        one = settings("one", config_map("one").build(), depends_on("TwoReady"))
        two = settings("two", config_map("two").build(), depends_on("OneReady"))
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            results = await reconcile_all(context, one, two)
        assert {result.condition.reason for result in results} == {Reason.PREREQUISITE_NOT_MET}

    @pytest.mark.promise("side-by-side")
    async def test_an_error_does_not_affect_the_other_components(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        subjects = [settings(name, config_map(name).build()) for name in ("a", "b", "c")]
        broken = FaultyCluster(env.cluster, [rejecting(name="b")])
        with pytest.raises(ExceptionGroup) as caught:
            async with reconciling(await env.owner_manifest(), broken, clock=env.clock) as context:
                await reconcile_all(context, *subjects)
        assert caught.value.message == "1 of 3 components of example.com/v1/Shop/shop/demo failed"
        reasons = [(await env.condition(f"{name}Ready"))["reason"] for name in "ABC"]
        assert reasons == ["Healthy", "Error", "Healthy"]

    async def test_data_of_one_is_not_seen_by_another(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        cells = [Data[str]("a"), Data[str]("a")]
        seen: list[tuple[str | None, ...]] = []

        def extract(live: Any) -> str:
            seen.append(tuple(one.get() for one in cells))
            return str(live.data["a"])

        subjects = [
            settings(f"c{at}", config_map(f"c{at}", a=str(at)).extract_into(cell, extract).build())
            for at, cell in enumerate(cells)
        ]
        async with reconciling(await env.owner_manifest(), Meeting(env, 2), clock=env.clock) as context:
            await reconcile_all(context, *subjects)
        assert seen == [(None, None), (None, None)]

    @pytest.mark.promise("cancelled")
    async def test_a_cancelled_reconcile_leaves_no_task(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        """The barrier waits for a third apply that never comes, so both wait until they are cancelled."""
        subjects = [settings(name, config_map(name).build()) for name in ("a", "b")]
        before = asyncio.all_tasks()

        async def run() -> None:
            async with reconciling(await env.owner_manifest(), Meeting(env, 3), clock=env.clock) as context:
                await reconcile_all(context, *subjects)

        task = asyncio.create_task(run())
        for _ in range(50):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before
        assert not await env.exists(ObjectKey("v1", "ConfigMap", "a", "shop"))


@pytest.mark.parametrize(
    ("names_and_types", "problem"),
    [
        pytest.param([("web", "AReady"), ("web", "BReady")], 'two components of one owner are named "web"', id="names"),
        pytest.param(
            [("a", "WebReady"), ("b", "WebReady")],
            'components "a" and "b" of one owner have the same condition type "WebReady"',
            id="condition types",
        ),
    ],
)
async def test_components_that_cannot_be_told_apart_are_rejected(
    env: Env, config_map: Callable[..., StaticKind], names_and_types: list[tuple[str, str]], problem: str
) -> None:
    """One would delete the objects of the other, or overwrite its condition."""
    components = [
        component.Builder(name, condition_type=condition_type).with_resource(config_map(f"map-{at}").build()).build()
        for at, (name, condition_type) in enumerate(names_and_types)
    ]
    async with reconciling(await env.cluster.get(env.owner), env.cluster) as context:
        with pytest.raises(ConfigError, match=problem):
            await reconcile_all(context, *components)
    assert await names(env) == set()


async def test_a_condition_that_another_operator_of_the_process_publishes_is_rejected(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    async def reconcile(operator: str, name: str, condition: str) -> None:
        one = component.Builder(name, condition_type=condition).with_resource(config_map(name).build()).build()
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock, operator=operator) as context:
            await reconcile_all(context, one)

    await reconcile("shops", "web", "Ready")
    with pytest.raises(ConfigError, match=r'operators "shops" and "malls" both set the condition "Ready" of .*: use'):
        await reconcile("malls", "api", "Ready")
    assert await names(env) == {"web"}
    await reconcile("malls", "api", "ApiReady")
    await reconcile("shops", "web", "WebReady")
    await reconcile("malls", "api", "Ready")
