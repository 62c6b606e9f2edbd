"""Crash matrices of an operator in place of a function."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from ocf import component
from ocf.cluster import Cluster
from ocf.component import Component, ReconcileContext
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.testing import VirtualClock, crash_at_each_write
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
