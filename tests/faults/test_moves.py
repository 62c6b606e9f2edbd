"""Faults: each write is disturbed while a resource moves between components, and while a component is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.cluster.interceptor import describe
from ocf.component import BEFORE_SUSPENSION, Component, finalize, reconcile_all, reconciling
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.primitives import configmap, deployment, hpa
from ocf.testing import VirtualClock, assert_quiet, crash_at_each_write
from ocf.testing.crash_matrix import DisturbanceReport
from ocf.testing.simulated_process import Disturbance
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from ocf.cluster import Cluster

SHOP: Final[Manifest] = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "demo", "namespace": "shop"},
    "spec": {},
}
OWNER: Final = ObjectKey.of(SHOP)
WEB: Final = ObjectKey("apps/v1", "Deployment", "web", "shop")
COUNT: Final = 6


def web(**spec: Any) -> deployment.Resource:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    }
    content = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    metadata = {"name": WEB.name, "namespace": WEB.namespace, "labels": {"by": "old"} if spec else {}}
    return deployment.Builder(
        {"apiVersion": WEB.api_version, "kind": WEB.kind, "metadata": metadata, "spec": content}
    ).build()


def scaler() -> hpa.Resource:
    target = {"apiVersion": WEB.api_version, "kind": WEB.kind, "name": WEB.name}
    return hpa.Builder(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 10},
        }
    ).build()


def settings() -> configmap.Resource:
    metadata = {"name": "settings", "namespace": "shop"}
    return configmap.Builder(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
    ).build()


def of(name: str, *resources: Any, suspended: bool = False, **options: Any) -> Component:
    builder = component.Builder(name, condition_type=f"{name.title()}Ready").suspend(suspended).with_prune()
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


class Operator:
    """An operator that reconciles the components of a step, and the clients that scale."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.components: Sequence[Component] = ()
        self.counts: set[int] = set()
        self.uids: set[str] = set()

    async def new_cluster(self, before: Sequence[Sequence[Component]]) -> EmbeddedCluster:
        """Return a cluster after earlier steps; the Deployment is scaled after the first of them."""
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
        await cluster.create(SHOP, field_manager="user")
        for number, components in enumerate(before):
            self.components = components
            await self.reconcile(cluster)
            if not number:
                await self.scale(cluster)
        return cluster

    async def scale(self, cluster: Cluster) -> None:
        patch = {"spec": {"replicas": COUNT}}
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="keda", subresource=Subresource.SCALE)
        await cluster.patch(WEB, patch, options)

    async def reconcile(self, cluster: Cluster) -> None:
        async with reconciling(await cluster.get(OWNER), cluster, clock=self.clock) as context:
            if await finalize(context, *self.components) is None:
                await reconcile_all(context, *self.components)

    async def observe(self, cluster: Cluster) -> None:
        """Note the count and the identity of the Deployment after each reconcile, however it ended."""
        live = await cluster.get(WEB)
        self.counts.add(live["spec"]["replicas"])
        self.uids.add(live["metadata"]["uid"])
        assert len(self.uids) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A step whose writes are disturbed.

    Args:
        before: The components of the steps before; the Deployment is scaled after the first of them.
        step: The components of the step.
        counts: The replica counts that may be seen on the way.
    """

    before: Sequence[Sequence[Component]]
    step: Sequence[Component]
    counts: frozenset[int] = frozenset({COUNT})


SUSPENDABLE: Final = frozenset({0, COUNT})
MOVES: Final = {
    "to a component that comes later": Scenario(
        before=[[of("old", web(), settings())]], step=[of("old", settings()), of("new", web())]
    ),
    "to a component that comes first, with delete_when": Scenario(
        before=[[of("old", web(), settings())]],
        step=[of("new", web(), settings()), of("old", web(), settings(), delete_when=True)],
    ),
    "to a component that drops fields": Scenario(
        before=[[of("old", web(revisionHistoryLimit=3))]], step=[of("new", web())]
    ),
    "from a suspended component to a running one": Scenario(
        before=[[of("old", web(), scaler())], [of("old", web(), scaler(), suspended=True)]],
        step=[of("new", web(), scaler())],
        counts=SUSPENDABLE,
    ),
    "of a fixed count to a component with an autoscaler": Scenario(
        before=[[of("old", web(replicas=4), settings())], [of("old", web(replicas=4), settings())]],
        step=[of("old", settings()), of("new", web(replicas=4), scaler())],
        counts=frozenset({4}),
    ),
}
RESUMPTIONS: Final = {
    "suspended without an autoscaler": Scenario(
        before=[[of("old", web())]], step=[of("old", web(), suspended=True)], counts=SUSPENDABLE
    ),
    "resumed without an autoscaler": Scenario(
        before=[[of("old", web())], [of("old", web(), suspended=True)]], step=[of("old", web())], counts=SUSPENDABLE
    ),
    "resumed after its autoscaler was dropped": Scenario(
        before=[[of("old", web(), scaler())], [of("old", web(), scaler(), suspended=True)]],
        step=[of("old", web())],
        counts=SUSPENDABLE,
    ),
}


@pytest.mark.promise("move", runs="each write of 5 moves, in 6 ways")
@pytest.mark.promise("crash", runs="each write of 5 moves between components, in 6 ways")
@pytest.mark.parametrize("move", MOVES)
async def test_a_move_ends_in_the_same_way_whatever_happens(move: str) -> None:
    report, cluster = await disturbed(MOVES[move])
    assert any(describe(write).startswith("patch apps/v1/Deployment") for write in report.writes)
    entries = ManagedFields.of(await cluster.get(WEB)).entries
    assert not [entry for entry in entries if entry.manager.name.startswith("ocf/Shop/old/")]


@pytest.mark.promise("count-survives", runs="each write of a suspension and of two resumptions, in 6 ways")
@pytest.mark.promise("crash", runs="each write of a suspension and of two resumptions, in 6 ways")
@pytest.mark.parametrize("name", RESUMPTIONS)
async def test_a_resumption_ends_in_the_same_way_whatever_happens(name: str) -> None:
    scenario = RESUMPTIONS[name]
    _, cluster = await disturbed(scenario)
    is_suspended = scenario.step[0].suspended
    live = await cluster.get(WEB)
    assert live["spec"]["replicas"] == (0 if is_suspended else COUNT)
    assert (BEFORE_SUSPENSION in live["metadata"].get("annotations", {})) is is_suspended


async def disturbed(scenario: Scenario) -> tuple[DisturbanceReport, Cluster]:
    """Disturb each write of a step in every way.

    No run may end differently, replace the Deployment, or show another count on the way.

    Returns:
        The report, and the cluster of the last run.
    """
    operator, made = Operator(), list[EmbeddedCluster]()
    begun = await operator.new_cluster(scenario.before)

    async def make_cluster() -> Cluster:
        made.append(begun.clone())
        operator.components, operator.uids = scenario.step, set()
        return made[-1]

    report = await crash_at_each_write(
        make_cluster, operator.reconcile, others=operator.observe, disturbances=tuple(Disturbance)
    )
    report.assert_same()
    assert len(report.rows) == len(Disturbance) * len(report.writes)
    assert operator.counts <= scenario.counts
    for cluster in made:
        await assert_quiet(cluster, operator.reconcile)
    return report, made[-1]
