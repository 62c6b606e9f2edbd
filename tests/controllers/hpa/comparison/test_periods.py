"""The controller beside the built-in one, each at its own pace: the same sizes at the same syncs, at any sync period.

Each scenario has a namespace per controller. A metric has a script: its value depends on which read of the controller
it is, and on the replicas at that time. So a controller that decides on an earlier reading falls out of step.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster
from ocf.cluster.client import ApiServerCluster
from ocf.concepts import Recorder
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.controllers.hpa.crd import definition
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.process import leader_runner
from ocf.errors import NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf.testing.fake_metrics import FakeMetricsClient
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.hpa.comparison.env import Env, external
from tests.controllers.hpa.comparison.gate import Gate
from tests.requirements import Sampled
from tests.support import eventually

SYNCS: Final = 8
FIRST: Final = 4  # replicas
_ATTEMPTS: Final = 5
AT_ONCE: Final = {"stabilizationWindowSeconds": 0}
LOAD: Final = external("load", value="10")
QUEUE: Final = external("queue", average="10")
# A limit of a period that does not end while a scenario runs.
LIMITED: Final = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 1800}]}
HALF: Final = {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 1800}]}


def spread(*loads: int) -> Callable[[int, int], str]:
    """Return a script: the load of each pod, which falls as the target grows."""
    return lambda number, replicas: f"{1000 * loads[min(number, len(loads) - 1)] // replicas}m"


def total(*values: int) -> Callable[[int, int], str]:
    """Return a script: a total that does not depend on the replicas."""
    return lambda number, _: str(values[min(number, len(values) - 1)])


def failing(script: Callable[[int, int], str], error: Exception, *numbers: int) -> Callable[[int, int], str]:
    """Return a script of which some reads fail."""

    def value(number: int, replicas: int) -> str:
        if number in numbers:
            raise error
        return script(number, replicas)

    return value


@dataclass(frozen=True)
class Scenario:
    """A script for each metric, and the spec of the autoscaler."""

    scripts: Mapping[str, Callable[[int, int], str]]
    metrics: tuple[Manifest, ...] = (LOAD,)
    spec: Mapping[str, Any] = field(default_factory=dict)
    behavior: Mapping[str, Any] = field(default_factory=lambda: {"scaleDown": AT_ONCE})


SCENARIOS: Final = {
    "up": Scenario({"load": spread(40, 80, 80, 120, 160)}),
    "down": Scenario({"load": spread(40, 20, 20, 10)}),
    "both": Scenario({"load": spread(40, 120, 40, 120, 40, 120)}),
    "tolerance": Scenario({"load": spread(40, 43, 45, 36, 90)}),
    "limits": Scenario({"load": spread(40, 400, 400, 1)}, spec={"minReplicas": 3, "maxReplicas": 9}),
    "few-pods": Scenario(
        {"load": spread(40, 400, 400, 10)}, behavior={"scaleUp": LIMITED, "scaleDown": {**AT_ONCE, **LIMITED}}
    ),
    "half": Scenario({"load": spread(40, 400, 10)}, behavior={"scaleUp": HALF, "scaleDown": {**AT_ONCE, **HALF}}),
    "disabled": Scenario(
        {"load": spread(40, 20, 400, 20)}, behavior={"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": AT_ONCE}
    ),
    "windows": Scenario(
        {"load": spread(40, 80, 80, 20)},
        behavior={
            "scaleUp": {"stabilizationWindowSeconds": 3600},
            "scaleDown": {"stabilizationWindowSeconds": 3600},
        },
    ),
    "average": Scenario({"queue": total(40, 75, 75, 120, 15)}, (QUEUE,)),
    "two-metrics": Scenario({"load": spread(40, 20, 80, 20), "queue": total(40, 75, 20, 90)}, (LOAD, QUEUE)),
    "missing": Scenario({"load": failing(spread(40, 80, 120, 160, 200), NotFoundError("no load"), 2, 3)}),
    "down-for-a-while": Scenario({"load": failing(spread(40, 20, 20, 80), ServerError("down", code=500), 1)}),
}


class Scripted(FakeMetricsClient):
    """Metrics that follow scripts, and the replicas that each read of the first metric of a namespace has seen."""

    def __init__(self, cluster: ApiServerCluster) -> None:
        super().__init__()
        self._cluster = cluster
        self._reads: Counter[tuple[str, str]] = Counter()
        self.envs: dict[str, tuple[Env, Scenario]] = {}
        self.sizes: dict[str, list[int]] = {}

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Any:
        env, scenario = self.envs[namespace]
        number = self._reads[namespace, metric]
        self._reads[namespace, metric] += 1
        replicas = await env.replicas()
        if metric == next(iter(scenario.scripts)):
            self.sizes.setdefault(namespace, []).append(replicas)
        self.set_external(namespace, metric, scenario.scripts[metric](number, replicas))
        return await super().external_metric(namespace, metric, selector=selector)


async def follow(env: Env) -> None:
    """Act as the controllers of the workload: there are as many ready pods as replicas."""
    while True:
        if await env.replicas() != len(env.running):
            await env.follow()
        await asyncio.sleep(0.05)


@asynccontextmanager
async def ours(cluster: ApiServerCluster, period: timedelta) -> AsyncIterator[None]:
    def make(where: Cluster, events: Recorder | None) -> HpaController:
        options = HpaControllerOptions(mode=Mode.OWN_KIND, settings=Settings(sync_period=period))
        client = RESTMetricsClient(cluster)
        return HpaController(where, client, options=options, events=events, reader=cluster)

    stopped = asyncio.Event()
    task = asyncio.create_task(leader_runner(cluster, make, component=COMPONENT, stopped=stopped).run())
    yield
    stopped.set()
    await task


async def sizes(
    plane: ControlPlane, cluster: ApiServerCluster, names: list[str], period: timedelta
) -> dict[str, tuple[list[int], list[int]]]:
    """Return the sizes at each sync with the built-in controller and with ours, by scenario."""
    homes: dict[str, tuple[str, str]] = {}
    with ExitStack() as blocks:
        async with MetricsStub(plane, Scripted(cluster)) as stub:
            scripted = stub.metrics
            assert isinstance(scripted, Scripted)
            async with asyncio.TaskGroup() as group:
                for name in names:
                    first, second = (blocks.enter_context(plane.namespace(f"{name}-")) for _ in range(2))
                    homes[name] = first, second
                    for home, kind in ((first, BUILT_IN), (second, OWN)):
                        env = Env(cluster, stub, Gate(plane.kubeconfig.parent, 0), home)
                        scripted.envs[home] = env, SCENARIOS[name]
                        group.create_task(create(env, SCENARIOS[name], kind))
            async with asyncio.TaskGroup() as group:
                followers = [group.create_task(follow(env)) for env, _ in scripted.envs.values()]
                with plane.controllers(ControllerName.HORIZONTAL_POD_AUTOSCALER, hpa_sync_period=period):
                    async with ours(cluster, period):
                        await eventually(lambda: complete(scripted))
                for each in followers:
                    each.cancel()
            # Their namespaces stay in deletion.
            for first, second in homes.values():
                await cluster.delete(ObjectKey(*BUILT_IN, "web", first))
                await cluster.delete(ObjectKey(*OWN, "web", second))
    return {
        name: (scripted.sizes[first][:SYNCS], scripted.sizes[second][:SYNCS]) for name, (first, second) in homes.items()
    }


async def complete(scripted: Scripted) -> bool:
    return all(len(scripted.sizes.get(home, ())) >= SYNCS for home in scripted.envs)


async def create(env: Env, scenario: Scenario, kind: tuple[str, str]) -> None:
    await env.workload(FIRST)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    limits = {"minReplicas": 1, "maxReplicas": 20, **scenario.spec}
    spec = {"scaleTargetRef": reference, "metrics": list(scenario.metrics), "behavior": scenario.behavior, **limits}
    await env.create({"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "web"}, "spec": spec})


@pytest.mark.long
@pytest.mark.matrix
async def test_the_sizes_are_those_of_the_built_in_controller(
    envtest_programs: Programs, envtest_controllers: object, sampled: Sampled
) -> None:
    """On a slow host a watch lags behind a whole period: what differs runs again. A true difference is there again.

    The control plane is one of its own, because its many namespaces would keep a namespace controller of a later test
    busy for minutes.
    """
    del envtest_controllers  # requested so that the test is skipped without a controller
    with ControlPlane(envtest_programs) as plane:
        await asyncio.to_thread(plane.install_crds, definition())
        async with await plane.cluster() as cluster:
            for seconds in (1, 2, *sampled([5, 15])):
                period, names = timedelta(seconds=seconds), list(SCENARIOS)
                found: dict[str, tuple[list[int], list[int]]] = {}
                for _ in range(_ATTEMPTS):
                    found |= await sizes(plane, cluster, names, period)
                    names = [name for name, (theirs, own) in found.items() if theirs != own]
                    if not names:
                        break
                assert {name: found[name] for name in names} == {}, seconds
