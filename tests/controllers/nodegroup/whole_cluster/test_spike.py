"""A whole cluster: real API server, scheduler and controllers, kwok as the kubelet, our HPA and node-group controllers.

The HPA controller of kube-controller-manager does not run; ours takes its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import pytest

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Cluster
from ocf.concepts import Recorder
from ocf.controllers.hpa import HpaController, HpaControllerOptions, Mode
from ocf.controllers.hpa.reporter import COMPONENT as HPA
from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.nodegroup.manifests import NAME
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.controllers.nodegroup.providers.kwok import KwokProvider
from ocf.controllers.process import leader_runner
from ocf.runtime.operator import Lease
from ocf.runtime.operator.leader_runner import LeaderRunner
from ocf.testing.metrics_stub import MetricsStub
from tests.controllers.nodegroup.whole_cluster.environment import HPA_USER, NODE_GROUP_USER, SYSTEM, TYPES, Environment
from tests.controllers.nodegroup.whole_cluster.history import API
from tests.controllers.nodegroup.whole_cluster.in_process import shifted_runner
from tests.controllers.nodegroup.whole_cluster.kwok_stages import NEVER_BOOTS
from tests.controllers.nodegroup.whole_cluster.load import SharedLoad
from tests.controllers.nodegroup.whole_cluster.rights import assert_each_right_is_used

BOOT_TIMEOUT: Final = timedelta(minutes=15)
UNDERUTILIZED_FOR: Final = timedelta(minutes=10)
POD: Final = 450  # millicores that the autoscaler wants of each pod: half of its request
OF_PODS: Final = (API, "NodeGroup", "workers")
BUDGET: Final = ("policy/v1", "PodDisruptionBudget", "web")


@dataclass
class Running:
    """Our controllers while they run.

    Args:
        load: The load of the pods.
        stub: The server of their metrics.
        plans: The plan of each reconcile of the node groups.
    """

    load: SharedLoad
    stub: MetricsStub
    plans: list[NodeGroupPlan] = field(default_factory=list)

    def reconciles(self) -> int:
        return len(self.plans)

    def syncs(self) -> int:
        return len(self.stub.queries)


@asynccontextmanager
async def controllers(env: Environment) -> AsyncIterator[Running]:
    """Run both controllers for the length of a block, each with its own account; they stop as in production."""
    load = SharedLoad(env.cluster)
    async with (
        MetricsStub(env.plane, load) as stub,
        await env.plane.cluster(await asyncio.to_thread(env.plane.kubeconfig_for, HPA_USER)) as hpa,
        await env.plane.cluster(await asyncio.to_thread(env.plane.kubeconfig_for, NODE_GROUP_USER)) as nodes,
    ):
        running = Running(load, stub)

        def make(where: Cluster, events: Recorder | None) -> HpaController:
            settings = Settings(sync_period=timedelta(milliseconds=300))
            options = HpaControllerOptions(mode=Mode.REPLACE, settings=settings)
            return HpaController(where, RESTMetricsClient(hpa), options=options, events=events, reader=hpa)

        quick = NodeGroupControllerOptions(
            busy_period=timedelta(milliseconds=500),
            idle_period=timedelta(milliseconds=300),
            quiet_period=timedelta(milliseconds=100),
            report=running.plans.append,
        )
        stopped = asyncio.Event()
        runners: list[LeaderRunner] = [
            leader_runner(hpa, make, component=HPA, stopped=stopped),
            shifted_runner(
                nodes,
                lambda where: KwokProvider(where, TYPES),
                quick,
                lease=Lease(NAME, SYSTEM),
                clock=env.clock,
                stopped=stopped,
            ),
        ]
        tasks = [asyncio.create_task(runner.run()) for runner in runners]
        try:
            yield running
        finally:
            stopped.set()
            await asyncio.gather(*tasks)


@pytest.mark.promise("node-groups-rights", runs="the audit log of a real API server after all of the below")
@pytest.mark.promise(
    "node-pods",
    runs="a spike with a node that never boots, one that fails, and a pod that never fits, with real controllers",
)
async def test_a_spike_with_failing_nodes_ends_with_all_pods_on_as_few_nodes_as_they_need(env: Environment) -> None:
    """The autoscaler follows the load, nodes follow its pods, and disruption budgets hold throughout."""
    await env.add_group(offeringIDs=[NEVER_BOOTS, "small"])
    await env.add_budget("web", 2)
    await env.deploy("web", replicas=None, cpu="900m")
    await env.autoscale("web", least=2, most=9, cpu=50)
    async with controllers(env) as running:
        running.load.millicores = 2 * POD
        await a_node_never_boots(env)
        await a_pod_never_fits(env)
        await the_load_rises(env, running)
        await a_node_fails(env)
        await the_load_falls(env, running)
        await env.assert_idle(running.reconciles, running.syncs, users=(HPA_USER, NODE_GROUP_USER))
        await env.assert_nothing_leaked()
        await everything_is_deleted(env)
    await env.assert_invariants()
    assert_each_right_is_used(env.audit)


async def a_node_never_boots(env: Environment) -> None:
    """The first node never becomes ready; after its deadline it is replaced by one of the next type."""

    async def is_requested() -> bool:
        return [each.get("phase") for each in (await env.machines()).values()] == ["Provisioning"] and bool(
            await env.nodes()
        )

    await env.until("a machine is requested", is_requested)
    (never_ready,) = await env.nodes()
    env.clock.advance(BOOT_TIMEOUT)

    async def is_replaced() -> bool:
        gone = never_ready not in [*await env.nodes(), *await env.machines()]
        return gone and await env.ready("web") == 2

    await env.until("another node has replaced it", is_replaced)
    (backoff,) = (await env.group())["backoffs"]
    assert (backoff["instanceType"], "not ready within 15m" in backoff["message"]) == (NEVER_BOOTS, True)
    assert len(await env.nodes()) == len(await env.machines()) == 1


async def a_pod_never_fits(env: Environment) -> None:
    """A pod that is larger than every node is named, and adds nothing."""
    await env.deploy("giant", replicas=1, cpu="64")

    async def is_named() -> bool:
        return f"no place for pod {env.namespace}/giant" in (await env.group())["lastDecision"]

    await env.until("the pod is named", is_named)
    assert len(await env.machines()) == 1


async def the_load_rises(env: Environment, running: Running) -> None:
    """The autoscaler asks for pods that do not fit, and nodes are added for them."""
    running.load.millicores = 6 * POD

    async def all_run() -> bool:
        return await env.ready("web") == 6 and (await env.group())["readyNodes"] == 3

    await env.until("six pods run", all_run)
    assert len(await env.nodes()) == len(await env.machines()) == 3


async def a_node_fails(env: Environment) -> None:
    """A node stops being ready: its pods are started elsewhere, and it is replaced after a while."""
    failed = min(await env.pods_by_node("web"))
    await env.fail_node(failed)

    async def is_made_up_for() -> bool:
        placed = await env.pods_by_node("web")
        return await env.ready("web") == 6 and failed not in placed and "unreadySince" in (await env.machines())[failed]

    await env.until("its pods run elsewhere", is_made_up_for)
    assert len(await env.nodes()) == 4
    env.clock.advance(BOOT_TIMEOUT)

    async def is_gone() -> bool:
        return failed not in await env.nodes() and failed not in await env.machines()

    await env.until("the node is deleted", is_gone)
    assert (len(await env.nodes()), await env.ready("web")) == (3, 6)


async def the_load_falls(env: Environment, running: Running) -> None:
    """One pod is left on each node; one node is drained as soon as the disruption budget allows it."""
    for pods in (await env.pods_by_node("web")).values():
        cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
        await env.merge_patch(env.key("v1", "Pod", pods[0]), cost, by="user")
    await env.change(*BUDGET, minAvailable=3)
    running.load.millicores = 3 * POD

    async def are_unneeded() -> bool:
        return len((await env.group()).get("unneeded") or ()) == 3 and await env.ready("web") == 3

    await env.until("three nodes are underutilized", are_unneeded)
    assert sorted(map(len, (await env.pods_by_node("web")).values())) == [1, 1, 1]
    env.clock.advance(UNDERUTILIZED_FOR)

    async def is_blocked() -> bool:
        return {each["reason"] for each in (await env.group()).get("blocked") or ()} >= {"pdb"}

    await env.until("the budget forbids it", is_blocked)
    assert len(await env.nodes()) == 3
    await env.change(*BUDGET, minAvailable=2)

    async def is_drained() -> bool:
        return len(await env.nodes()) == len(await env.machines()) == 2 and await env.ready("web") == 3

    await env.until("three pods run on two nodes", is_drained)
    assert env.evictions() == [201]


async def everything_is_deleted(env: Environment) -> None:
    """Without pods the nodes go, and without nodes the group."""
    for kind in (("autoscaling/v2", "HorizontalPodAutoscaler"), ("apps/v1", "Deployment")):
        await env.delete(*kind, "web")

    async def are_unneeded() -> bool:
        unneeded = {each["name"] for each in (await env.group()).get("unneeded") or ()}
        return unneeded >= set(await env.nodes())

    await env.until("all nodes are underutilized", are_unneeded)
    env.clock.advance(UNDERUTILIZED_FOR)

    async def none_is_left() -> bool:
        return not await env.nodes() and not await env.machines()

    await env.until("no node is left", none_is_left)
    await env.delete(*OF_PODS)

    async def is_gone() -> bool:
        return not await env.is_present(env.key(*OF_PODS))

    await env.until("the group is gone", is_gone)


@pytest.mark.promise("node-pods", runs="a node that a user deletes, on a real API server")
async def test_a_drain_waits_for_as_long_as_a_disruption_budget_forbids_it(env: Environment) -> None:
    """A user who deletes a node does not get around the disruption budgets of its pods either."""
    await env.add_group()
    await env.add_budget("web", 2)
    await env.deploy("web", replicas=2, cpu="900m")
    async with controllers(env) as running:

        async def all_run() -> bool:
            return await env.ready("web") == 2 and len(await env.machines()) == 1

        await env.until("two pods run", all_run)
        (drained,) = await env.machines()
        await env.delete(API, "VPSieNode", drained)

        async def are_refused() -> bool:
            return len(env.evictions()) >= 3

        await env.until("evictions are refused", are_refused)
        assert set(env.evictions()) == {429}
        assert await env.nodes() == [drained]
        await env.change(*BUDGET, minAvailable=1)

        async def is_replaced() -> bool:
            return drained not in [*await env.nodes(), *await env.machines()] and await all_run()

        await env.until("both pods run on another node", is_replaced)
        assert env.evictions().count(201) == 2
        await env.assert_idle(running.reconciles, users=[NODE_GROUP_USER])
    await env.assert_nothing_leaked()
    await env.assert_invariants()
