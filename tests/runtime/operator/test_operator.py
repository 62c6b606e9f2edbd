"""Declarations: how an owner is read, and which functions are taken."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from ocf import component
from ocf.cluster import Cluster
from ocf.component import CleanupPending, Component, ContextKey, ReconcileContext
from ocf.concepts.recorder import NullRecorder
from ocf.errors import BuildError, ConfigError, ManifestError, NotFoundError, OcfError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.runtime.operator.supervised_tasks import supervised_tasks
from ocf.testing import LoopClock, RecordingCluster, run_in_virtual_time

from .conftest import DEFINITION, SECOND, SHOPS, Env, RunTest, Shop, components_of, key_of, new_cluster, shop


class Old(BaseModel):
    motto: str = ""


class New(BaseModel):
    motto: str = ""
    size: int = 1


Old.__name__ = New.__name__ = "Shop"
TWO = crd("example.com", CRDVersion("v1", Old), CRDVersion("v2", New, stored=True))


def test_the_version_that_is_read_is_the_stored_one_unless_another_is_named() -> None:
    assert OwnerType.of(New, TWO).api_version == "example.com/v2"
    assert OwnerType.of(Old, TWO, version="v1").api_version == "example.com/v1"
    with pytest.raises(BuildError, match=r'has no version "v3", only v1, v2'):
        OwnerType.of(New, TWO, version="v3")


def test_an_owner_is_read_as_its_model_and_what_is_wrong_is_named() -> None:
    owners = OwnerType.of(New, TWO)
    manifest: Manifest = {"apiVersion": "example.com/v2", "kind": "Shop", "metadata": {"name": "corner"}, "size": 3}
    assert owners.read(manifest).size == 3
    with pytest.raises(ManifestError, match=r"Shop/corner: .*size: must be a valid integer.*got 'big'"):
        owners.read({**manifest, "size": "big"})


def test_a_definition_that_is_a_function_is_called_only_where_definitions_are_read() -> None:
    calls = []

    def definition() -> Manifest:
        calls.append(1)
        return TWO

    owners = OwnerType("example.com/v2", "Shop", New, definition)
    operator = Operator(name="shops", owner=owners, components=lambda _: (), definitions=[DEFINITION])
    assert owners.read({"size": 3}).size == 3
    assert calls == []
    assert operator.all_definitions == [TWO, DEFINITION]
    assert len(calls) == 1


def one(owner: Shop) -> Component:
    return components_of(owner)


def several(owner: Shop) -> list[Component]:
    return [components_of(owner)]


async def one_later(owner: Shop) -> Component:
    await asyncio.sleep(0)
    return components_of(owner)


def with_pass(owner: Shop, context: ReconcileContext) -> Component:
    assert context.owned_by.key == key_of()
    return components_of(owner)


async def with_pass_later(owner: Shop, context: ReconcileContext) -> list[Component]:
    await asyncio.sleep(0)
    return [with_pass(owner, context)]


def with_setting(owner: Shop, motto: str = "") -> Component:
    return components_of(owner, motto=motto)


class Callable:
    def __call__(self, owner: Shop) -> Component:
        return components_of(owner)


@pytest.mark.parametrize(
    "function",
    [one, several, one_later, with_pass, with_pass_later, with_setting, Callable()],
)
def test_any_function_from_an_owner_to_components_is_taken(run_test: RunTest, function: Any) -> None:
    async def test(env: Env) -> None:
        async with env.operating(components=function):
            await env.create(shop())
            await asyncio.sleep(1)
        assert [kind for _, kind in env.gateway.writes if kind != "Event"] == ["ConfigMap", "Service", "Shop"]

    run_test(test)


async def test_an_operator_takes_over_the_field_managers_that_it_names() -> None:
    cluster = await new_cluster()
    live = await cluster.create(shop(), field_manager="kubectl")
    key = ObjectKey("v1", "ConfigMap", f"{key_of().name}-settings", key_of().namespace)
    metadata = {"name": key.name, "namespace": key.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "1"}}
    await cluster.create(theirs, field_manager="former")
    operator = declared(former_managers=["former"])
    await reconcile_owner(operator, live, cluster, clock=LoopClock(), recorder=NullRecorder())
    assert "theirs" not in (await cluster.get(key))["data"]
    with pytest.raises(BuildError, match=r'the pattern "\*" matches every field manager'):
        declared(former_managers=["*"])


async def passed(operator: Operator[Any], statuses: list[Manifest] | None = None) -> timedelta | None:
    """Make one pass over one shop, and note the status that it leaves."""
    cluster = await new_cluster()
    live = await cluster.create(shop(), field_manager="kubectl")
    recording = RecordingCluster(cluster)
    try:
        return await reconcile_owner(operator, live, recording, clock=LoopClock(), recorder=NullRecorder())
    finally:
        assert len([write for write in recording.writes if write.kind == "Shop"]) <= 1
        if statuses is not None:
            statuses.append((await cluster.get(key_of()))["status"])


def declared(**given: Any) -> Operator[Any]:
    return Operator(**{"name": "shops", "owner": SHOPS, "components": components_of, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"components": lambda _: 1}, "must return components, got an object of type int", id="a number"),
        pytest.param({"components": lambda _: ["x"]}, "got an object of type str", id="texts"),
        pytest.param(
            {"report": lambda *_: 3 * SECOND},
            "must return None, got an object of type timedelta: ask for another reconcile with `context.requeue_after",
            id="a report that returns a delay",
        ),
        pytest.param(
            {"report": lambda context, *_: context.requeue_after(3)},
            "the delay must be a timedelta, got an object of type int",
            id="a delay without a unit",
        ),
    ],
)
def test_what_a_function_must_not_return_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run_in_virtual_time(passed(declared(**given)))


DELAYS = [None, 7 * SECOND, timedelta(0), -SECOND, timedelta(microseconds=1)]


@pytest.mark.parametrize("first", DELAYS, ids=str)
@pytest.mark.parametrize("second", DELAYS, ids=str)
def test_the_earliest_delay_counts_wherever_it_is_asked_for(first: timedelta | None, second: timedelta | None) -> None:
    def asking(owner: Shop, context: ReconcileContext) -> Component:
        if first is not None:
            context.requeue_after(first)
        return components_of(owner)

    def report(context: ReconcileContext, *_: object) -> None:
        if second is not None:
            context.requeue_after(second)

    earliest = min((delay for delay in (first, second) if delay is not None), default=None)
    assert run_in_virtual_time(passed(declared(components=asking, report=report))) == earliest


VISITORS = ContextKey[int]("visitors")


@pytest.mark.parametrize("fails", [False, True], ids=["components succeed", "components fail"])
def test_a_value_reaches_the_report_of_the_same_reconcile_and_no_other(run_test: RunTest, *, fails: bool) -> None:
    seen: list[tuple[int | None, int | None]] = []

    def count(owner: Shop, context: ReconcileContext) -> Component:
        before = context.values.get(VISITORS)
        context.values[VISITORS] = len(seen)
        seen.append((before, None))
        if fails:
            raise ServerError("no answer")
        return components_of(owner)

    def report(context: ReconcileContext, *_: object) -> None:
        seen[-1] = seen[-1][0], context.values[VISITORS]

    async def test(env: Env) -> None:
        async with env.operating(components=count, report=report):
            await env.create(shop())
            await asyncio.sleep(1.5)
            await env.edit(key_of(), {"spec": {"motto": "changed"}})
            await asyncio.sleep(1)
            assert seen == [(None, number) for number in range(len(seen))]
            assert len(seen) > 1

    run_test(test)


def test_a_value_of_the_clean_up_reaches_the_report(run_test: RunTest) -> None:
    seen: list[int | None] = []

    async def drop(_: Shop, context: ReconcileContext, __: Cluster) -> CleanupPending | None:
        context.values[VISITORS] = len(seen)
        return CleanupPending(SECOND) if len(seen) < 3 else None

    def report(context: ReconcileContext, *_: object) -> None:
        seen.append(context.values.get(VISITORS))

    async def test(env: Env) -> None:
        async with env.operating(on_delete=drop, report=report):
            await env.create(shop())
            await asyncio.sleep(1)
            await env.cluster.delete(key_of())
            await asyncio.sleep(10)
            assert seen[:3] == [None, 1, 2]

    run_test(test)


def test_a_report_is_asked_after_an_error_too_and_its_own_error_hides_none() -> None:
    outcomes: list[ReconcileOutcome] = []
    statuses: list[Manifest] = []

    def fail(_: Shop) -> Component:
        raise ServerError("no answer")

    async def report(context: ReconcileContext, owner: Shop, outcome: ReconcileOutcome) -> None:
        outcomes.append(outcome)
        context.status["motto"] = owner.spec.motto
        raise NotFoundError("nothing to report")

    with pytest.raises(ServerError, match="no answer") as caught:
        run_in_virtual_time(passed(declared(components=fail, report=report), statuses))
    assert outcomes[0].error is caught.value
    assert caught.value.__notes__ == ["the report failed, too: NotFoundError"]
    assert statuses[0]["motto"] == "open"
    with pytest.raises(NotFoundError, match="nothing to report"):
        run_in_virtual_time(passed(declared(report=report)))
    assert (list(outcomes[1].results), outcomes[1].error) == (["web"], None)


def test_several_components_that_fail_are_told_together_and_one_as_it_is() -> None:
    def broken(name: str) -> Component:
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "nowhere"}}
        builder = component.Builder(name, condition_type=f"{name.title()}Ready")
        return builder.with_resource(configmap.Builder(settings).build()).build()

    for names in (["one"], ["one", "two"]):
        outcomes: list[ReconcileOutcome] = []
        operator = declared(
            components=lambda owner, names=names: [*map(broken, names), components_of(owner)],
            report=lambda *given, outcomes=outcomes: outcomes.append(given[-1]),
        )
        with pytest.raises(Exception, match=r"2 of 3 components failed|\"one\"") as caught:
            run_in_virtual_time(passed(operator))
        assert isinstance(caught.value, ExceptionGroup) is (len(names) > 1)
        assert (list(outcomes[0].errors), list(outcomes[0].results)) == (names, ["web"])


class TestSteady:
    @pytest.mark.parametrize("how", ["cancelled", "returned", "raised"])
    def test_the_end_of_a_task_ends_the_block(self, how: str) -> None:
        async def work() -> None:
            if how == "raised":
                raise ZeroDivisionError
            if how == "cancelled":
                await asyncio.sleep(1000)

        async def main() -> None:
            with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 (the block is cancelled)
                async with supervised_tasks() as start:
                    start(work(), "watch")
                    await asyncio.sleep(1)
                    for task in asyncio.all_tasks():
                        if task.get_name() == "watch":
                            task.cancel()
                    await asyncio.sleep(1000)
            (error,) = caught.value.exceptions
            assert isinstance(error, ZeroDivisionError if how == "raised" else OcfError)
            assert asyncio.get_running_loop().time() < 2

        run_in_virtual_time(main())

    def test_the_end_of_the_block_ends_the_tasks(self) -> None:
        async def main() -> None:
            async with supervised_tasks() as start:
                start(asyncio.sleep(1000), "watch")
                await asyncio.sleep(1)
            assert asyncio.get_running_loop().time() == 1

        run_in_virtual_time(main())

    def test_being_cancelled_is_no_error_of_a_task(self) -> None:
        async def block() -> None:
            async with supervised_tasks() as start:
                start(asyncio.sleep(1000), "watch")
                await asyncio.sleep(1000)

        async def main() -> None:
            task = asyncio.create_task(block())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run_in_virtual_time(main())
