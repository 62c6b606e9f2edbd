"""Nodes are removed by their measured use where a group says so, and never because of missing metrics."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.controllers.nodegroup.observation import read_usage, view_of
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.errors import ServerError
from ocf.nodegroups import Catalog
from ocf.testing.fake_metrics import FakeMetricsClient
from tests.controllers.nodegroup.conftest import SMALL, Env

USAGE: Final = {"cpu": "100m", "memory": "1Gi"}
POLICY: Final = {"utilization": "Usage", "underutilizedFor": "1m"}


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(None, id="no object"),
        pytest.param({"metadata": {"name": "n1"}}, id="no usage"),
        pytest.param({"metadata": {"name": "n1"}, "usage": {"cpu": "1"}}, id="no memory"),
        pytest.param({"metadata": {"name": "n1"}, "usage": {**USAGE, "cpu": "much"}}, id="no quantity"),
        pytest.param({"metadata": {"name": "n1"}, "usage": {**USAGE, "cpu": "-1"}}, id="negative"),
        pytest.param({"metadata": {}, "usage": USAGE}, id="no name"),
    ],
)
def test_an_entry_that_cannot_be_read_measures_nothing(entry: Any) -> None:
    assert read_usage([entry]) == {}


def test_a_snapshot_file_may_have_the_measured_use_of_nodes() -> None:
    measured = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": "n1"}}
    snapshot = view_of([{**measured, "usage": USAGE}]).snapshot(Catalog.of([SMALL]))
    assert snapshot.usage["n1"].cpu == 100


def scenario_of(usage: dict[str, str] | None, *, fails: bool = False) -> int:
    """Return how many of two nodes are left: both have a pod that requests little, and the use is given."""

    async def scenario() -> int:
        env, metrics = Env(), FakeMetricsClient()
        env.restart(options=NodeGroupControllerOptions(metrics=metrics))
        await env.set_up(scaleDownCooldown="0s", scaleDownPolicy=POLICY, offeringIDs=["small"])
        for number in range(2):
            await env.add_pod(f"web-{number}", cpu="1500m")
        await env.tick(6)
        assert len(await env.nodes()) == 2
        await env.remove_pods()
        for number in range(2):
            await env.add_pod(f"api-{number}", cpu="100m")
        for name in await env.nodes():
            if usage is not None:
                metrics.set_node_usage(name, usage)
        if fails:
            metrics.fail("metrics.k8s.io", ServerError("unavailable", code=503))
        await env.tick(16, by=timedelta(seconds=30))
        return len(await env.nodes())

    return asyncio.run(scenario())


@pytest.mark.promise("node-groups-usage")
@pytest.mark.parametrize(
    ("usage", "fails", "left"),
    [
        pytest.param(USAGE, False, 1, id="idle"),
        pytest.param({"cpu": "1800m", "memory": "1Gi"}, False, 2, id="busy"),
        pytest.param(None, False, 2, id="not measured"),
        pytest.param(USAGE, True, 2, id="metrics cannot be read"),
    ],
)
def test_a_node_is_removed_only_if_it_was_measured_to_be_idle(
    usage: dict[str, str] | None, fails: bool, left: int
) -> None:
    assert scenario_of(usage, fails=fails) == left
