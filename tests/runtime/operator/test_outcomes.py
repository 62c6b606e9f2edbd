"""Outcomes of single resources reach the report, also when another resource of the component fails.

As Crossplane and Argo CD users ask for where one of many objects fails:
https://github.com/crossplane/crossplane/issues/5824 (only one error is shown for a whole pipeline).
"""

from __future__ import annotations

from typing import Any

import pytest

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.errors import ReconcileError
from ocf.primitives import configmap
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.testing import FaultyCluster, OwnerEnv, VirtualClock, faults
from ocf_server import EmbeddedCluster

from .conftest import Shop, shop

NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("independent", "failing", "expected"),
    [
        pytest.param(True, (), "Created Created Created Created", id="nothing fails"),
        pytest.param(True, ("b",), "Created Failed Created Created", id="one of independent ones"),
        pytest.param(True, ("b", "d"), "Created Failed Created Failed", id="two of independent ones"),
        pytest.param(False, ("c",), "Created Created Failed", id="in order, later ones are not reached"),
        pytest.param(False, ("a",), "Failed", id="the first one"),
    ],
)
async def test_each_resource_that_was_reached_has_its_outcome(
    independent: bool, failing: tuple[str, ...], expected: str
) -> None:
    seen: list[ReconcileOutcome] = []

    def copies(owner: Shop) -> Component:
        parts = component.Builder("copies", owner=owner.key, condition_type="Copied")
        for name in NAMES:
            resource = configmap.Builder({"metadata": {"name": name}, "data": {}})
            parts.with_resource(resource, independent=independent)
        return parts.build()

    def report(context: ReconcileContext, _: Shop, outcome: ReconcileOutcome) -> None:
        assert {name: tuple(found.values()) for name, found in context.outcomes.items()} == outcome.outcomes
        seen.append(outcome)

    operator = Operator(name="shops", owner=OwnerType.of(Shop), components=copies, report=report)
    clock = VirtualClock()
    rules = [faults.server_error(503, kind="ConfigMap", name=name, times=None) for name in failing]
    cluster: Any = FaultyCluster(EmbeddedCluster(now=clock.now), rules)
    env = await OwnerEnv.create(operator, shop(), cluster, clock)
    if failing:
        with pytest.raises(ReconcileError):
            await env.reconcile()
    else:
        await env.reconcile()
    found = sorted(seen[0].outcomes["copies"], key=lambda one: one.resource)
    assert " ".join(one.action for one in found) == expected
    assert all(bool(one.detail) is (one.action == "Failed") for one in found)


async def test_a_component_that_is_not_reached_has_no_outcomes() -> None:
    seen: list[ReconcileOutcome] = []

    def fails(_: Shop) -> Component:
        raise LookupError("hunter2")

    operator = Operator(
        name="shops", owner=OwnerType.of(Shop), components=fails, report=lambda _, __, outcome: seen.append(outcome)
    )
    clock = VirtualClock()
    env = await OwnerEnv.create(operator, shop(), EmbeddedCluster(now=clock.now), clock)
    with pytest.raises(LookupError):
        await env.reconcile()
    assert seen[0].outcomes == {}
