"""Crash matrices of an operator in place of a function."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf import component
from ocf.cluster import Cluster
from ocf.component import Component, ReconcileContext
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.operator import Operator, OwnerType, Process, ReconcileOutcome
from ocf.testing import OwnerEnv, VirtualClock, crash_at_each_write, disturbed_call
from ocf.testing.crash_matrix import DisturbanceReport
from ocf.testing.simulated_process import Disturbance
from ocf_server import CustomKind, EmbeddedCluster

KIND: Final = {"apiVersion": "example.com/v1", "kind": "Shop"}


def operator_of(clock: VirtualClock, *, lossy: bool = False, ages: bool = False) -> Operator[Manifest]:
    """Return an operator that opens an hour after it has made the settings of a shop."""

    def components(shop: Manifest) -> Component:
        settings = configmap.Builder({"metadata": {"name": shop["metadata"]["name"]}, "data": {"a": "b"}})
        return component.Builder("web", owner=ObjectKey.of(shop)).with_resource(settings).build()

    async def report(context: ReconcileContext, shop: Manifest, outcome: ReconcileOutcome) -> None:
        if outcome.error is not None:
            return
        context.set_condition("Made", status="True", reason="Made", message="")
        if context.timed_out("Made", timedelta(hours=1)):
            context.status["open"] = True
        if ages:
            context.status.setdefault("age", clock.elapsed().total_seconds())
        made = [one.action for one in outcome.results["web"].outcomes]
        if lossy and made == ["Created"]:
            metadata = {"name": f"{shop['metadata']['name']}-note", "namespace": "town"}
            note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            await context.cluster.create(note, field_manager="shops")

    return Operator(name="shops", owner=OwnerType("example.com/v1", "Shop"), components=components, report=report)


async def crashed(clock: VirtualClock, operator: Operator[Manifest], **more: Any) -> DisturbanceReport:
    async def new_cluster() -> Cluster:
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"], now=clock.now)
        for name in ("one", "two"):
            shop = {**KIND, "metadata": {"name": name, "namespace": "town"}}
            await cluster.create(shop, field_manager="user")
        return cluster

    return await crash_at_each_write(new_cluster, operator, clock=clock, **more)


async def test_every_owner_is_reconciled_and_delays_pass() -> None:
    clock = VirtualClock()
    report = await crashed(clock, operator_of(clock))
    report.assert_same()
    assert {(write.kind, write.name) for write in report.writes} == {
        (kind, name) for kind in ("ConfigMap", "Shop") for name in ("one", "two")
    }
    # The status that is written after the hour, too.
    assert len(report.writes) == 6


async def test_a_step_that_is_lost_by_a_crash_is_found() -> None:
    clock = VirtualClock()
    report = await crashed(clock, operator_of(clock, lossy=True))
    assert {row.disturbance for row in report.different} >= {Disturbance.CRASH_AFTER}


async def test_fields_that_may_differ_are_masked() -> None:
    clock = VirtualClock()
    assert (await crashed(clock, operator_of(clock, ages=True))).different
    (await crashed(clock, operator_of(clock, ages=True), masks=["status.age"])).assert_same()


class Caller:
    """An operator that calls another system, in a reconcile and before its owner is deleted, with `context.cluster`."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def new_cluster(self) -> EmbeddedCluster:
        self.calls.clear()
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
        await cluster.create({**KIND, "metadata": {"name": "corner", "namespace": "town"}}, field_manager="user")
        return cluster

    async def call(self, context: ReconcileContext, name: str) -> None:
        async def send() -> None:
            self.calls.append(name)

        await disturbed_call(context.cluster, name, send)

    async def reconcile(self, cluster: Cluster) -> None:
        async def components(_: Manifest, context: ReconcileContext) -> list[Component]:
            if "opened" not in context.status:
                await self.call(context, "open")
                context.status["opened"] = True
            return []

        async def on_delete(_: Manifest, context: ReconcileContext, _cluster: Cluster) -> None:
            await self.call(context, "close")

        operator = Operator[Manifest](
            name="shops", owner=OwnerType("example.com/v1", "Shop"), components=components, on_delete=on_delete
        )
        key = ObjectKey("example.com/v1", "Shop", "corner", "town")
        with suppress(NotFoundError):
            shop = await cluster.get(key)
            await OwnerEnv(operator, key, cluster, VirtualClock()).reconcile()
            if "opened" in (shop.get("status") or {}):
                await cluster.delete(key)


async def test_calls_with_the_cluster_of_the_context_are_disturbed_and_those_of_one_system_are_compared() -> None:
    """A crash after a call repeats it: the system that all runs share shows it."""
    caller = Caller()
    report = await crash_at_each_write(caller.new_cluster, caller.reconcile, external=lambda _: caller.calls)
    assert [one.name for one in report.writes if one.api_version == "external"] == ["open", "close"]
    repeated = {(row.write.name, row.disturbance) for row in report.different}
    assert repeated >= {(name, Disturbance.CRASH_AFTER) for name in ("open", "close")}
    assert not any(row.disturbance is Disturbance.CRASH_BEFORE for row in report.different if row.write.name == "open")


async def test_an_operator_with_a_lifespan_is_not_run_without_it() -> None:
    @asynccontextmanager
    async def lifespan(_: Process) -> AsyncIterator[None]:
        yield

    operator = replace(operator_of(VirtualClock()), lifespan=lifespan)
    with pytest.raises(ConfigError, match="the lifespan of an operator is not entered here: pass a function"):
        await crash_at_each_write(Caller().new_cluster, operator)
