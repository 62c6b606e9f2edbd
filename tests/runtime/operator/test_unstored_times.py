"""Conditions whose schema has fewer fields than ours: nothing is written at rest, and periods end in time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.objects import Manifest
from ocf.primitives import deployment
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, ReconcileOutcome, running
from ocf.testing import LoopClock, RecordingCluster, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.support import definition_of

FOUR: Final = ("type", "status", "reason", "message")
LABELS: Final = {"app": "web"}
WORKLOAD: Final[Manifest] = {
    "metadata": {"name": "web", "namespace": "town"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web"}]}},
    },
}


def components(_: Manifest) -> Component:
    builder = component.Builder("web").with_grace_period(timedelta(minutes=5))
    return builder.with_resource(deployment.Builder(WORKLOAD)).build()


def report(context: ReconcileContext, _owner: Manifest, _outcome: ReconcileOutcome) -> None:
    timed_out = context.timed_out("Moving", timedelta(minutes=3))
    context.set_condition("Moving", status="True", reason="TimedOut" if timed_out else "Started", message="")


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(FOUR, id="four fields"),
        pytest.param((*FOUR, "lastTransitionTime"), id="no observed generation"),
        pytest.param((*FOUR, "lastTransitionTime", "observedGeneration"), id="all"),
    ],
)
def test_a_condition_with_fewer_fields_is_quiet_and_its_periods_end(fields: tuple[str, ...]) -> None:
    async def scene() -> None:
        clock = LoopClock()
        cluster = EmbeddedCluster(namespaces=["town"], now=clock.now)
        kept: dict[str, Any] = {one: {"type": "string"} for one in fields}
        if "observedGeneration" in kept:
            kept["observedGeneration"] = {"type": "integer"}
        items = {"type": "object", "properties": kept}
        status = {"type": "object", "properties": {"conditions": {"type": "array", "items": items}}}
        schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": status}}
        await cluster.apply(definition_of("Shop", "example.com", schema), field_manager="admin")
        owner: OwnerType[Manifest] = OwnerType("example.com/v1", "Shop")
        operator = Operator(
            name="shops", owner=owner, components=components, report=report, resync=timedelta(seconds=30)
        )
        process = RecordingCluster(cluster)
        seen: list[tuple[dict[str, str], int]] = []
        async with running(process, operator, options=ManagerOptions(listen=None, clock=clock)):
            metadata = {"name": "corner", "namespace": "town"}
            await cluster.create(
                {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata}, field_manager="me"
            )
            for seconds in (90, 60, 60, 60, 60, 60):
                process.requests.clear()
                await asyncio.sleep(seconds)
                (live,) = (await cluster.list("example.com/v1", "Shop")).items
                reasons = {one["type"]: one["reason"] for one in live["status"]["conditions"]}
                seen.append((reasons, sum(one.kind == "Shop" for one in process.writes)))
        assert [one["Moving"] for one, _ in seen] == ["Started"] * 2 + ["TimedOut"] * 4
        assert [one["Ready"] for one, _ in seen] == ["Creating"] * 4 + ["Down"] * 2
        assert [writes for _, writes in seen] == [1, 0, 1, 0, 1, 0]

    run_in_virtual_time(scene())
