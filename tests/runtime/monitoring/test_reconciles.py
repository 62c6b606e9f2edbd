"""What passes over real components look like from outside: as metrics, and as words that the rules ask for."""

from dataclasses import dataclass
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from ocf import component
from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Verb
from ocf.component import Component, reconciling
from ocf.concepts import Recorder
from ocf.errors import ForbiddenError, ReconcileError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.runtime.events import EventBroadcaster, broadcasting_events, multi_recorder
from ocf.runtime.events.poster import Drop
from ocf.runtime.monitoring import PrometheusRecorder
from ocf.testing import FaultyCluster, VirtualClock, faults
from ocf_server import CustomKind, EmbeddedCluster

SHOP: Final[Manifest] = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "town"},
}
BACKEND: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: backend, namespace: town, labels: {team: shop}}
spec:
  selector: {matchLabels: {app: backend}}
  template:
    metadata: {labels: {app: backend}}
    spec: {containers: [{name: app, image: "backend:2"}]}
"""
OWNER: Final = ObjectKey.of(SHOP)
DEPLOYMENT: Final = ObjectKey("apps/v1", "Deployment", "backend", "town")


@dataclass
class Operator:
    """An operator of one component, and what it counts."""

    cluster: EmbeddedCluster
    clock: VirtualClock
    metrics: PrometheusRecorder
    component: Component

    async def run(self, cluster: Cluster | None = None, recorder: Recorder | None = None) -> None:
        owner = await self.cluster.get(OWNER)
        async with reconciling(
            owner, cluster or self.cluster, clock=self.clock, recorder=recorder or multi_recorder(self.metrics)
        ) as context:
            await self.component.reconcile(context)

    def counted(self, metric: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return the values of a metric by some of its labels."""
        families = parse(self.metrics.render().body.decode())
        found = [sample for family in families for sample in family.samples if sample.name == metric]
        return {tuple(sample.labels[label] for label in labels): sample.value for sample in found}


@pytest.fixture
async def operator(clock: VirtualClock) -> Operator:
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"], now=clock.now)
    await cluster.create(SHOP, field_manager="user")
    web = component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(BACKEND).build()).build()
    return Operator(cluster, clock, PrometheusRecorder("shops", controller="shop"), web)


async def test_writes_and_rest_are_told_apart(operator: Operator) -> None:
    for _ in range(4):
        await operator.run()

    counted = operator.counted("ocf_resource_apply_total", "operation", "why")
    assert counted == {("created", "absent"): 1, ("none", "equal"): 1, ("none", "in sync"): 2}


async def test_a_failure_is_counted_once_per_pass(operator: Operator) -> None:
    broken = FaultyCluster(operator.cluster, [faults.server_error(verbs=[Verb.APPLY], times=None)])
    for _ in range(3):
        with pytest.raises(ReconcileError):
            await operator.run(broken)

    labels = ("controller", "owner_kind", "component", "resource", "kind")
    failed = {("shop", "Shop", "web", "deployment", "Deployment"): 3}
    assert operator.counted("ocf_resource_apply_errors_total", *labels) == failed
    assert operator.counted("ocf_resource_apply_total", *labels) == {}


async def test_the_condition_metric_says_what_the_owner_says(operator: Operator) -> None:
    await operator.run()

    (stored,) = (await operator.cluster.get(OWNER))["status"]["conditions"]
    shown = operator.counted("shops_controller_condition", "id", "condition", "status", "reason")
    assert shown == {("town/corner", "WebReady", stored["status"], stored["reason"]): operator.clock.now().timestamp()}


async def test_a_condition_that_could_not_be_stored_is_not_shown(operator: Operator) -> None:
    broken = FaultyCluster(operator.cluster, [faults.server_error(kind="Shop", times=None)])
    with pytest.raises(ServerError):
        await operator.run(broken)

    assert operator.counted("shops_controller_condition", "id") == {}


async def test_a_write_war_shows_as_backing_off(operator: Operator) -> None:
    """The rule for it asks for this very word."""
    for _ in range(5):
        await operator.run()
        theirs = {"metadata": {"labels": {"team": "platform"}}}
        await operator.cluster.patch(
            DEPLOYMENT, theirs, PatchOptions(patch_type=PatchType.MERGE, field_manager="platform")
        )

    assert operator.counted("ocf_resource_apply_total", "operation", "why")["none", "backing off"] == 2


async def test_a_pass_without_a_recorder_is_the_same_pass(operator: Operator) -> None:
    async with reconciling(await operator.cluster.get(OWNER), operator.cluster, clock=operator.clock) as context:
        result = await operator.component.reconcile(context)

    assert result.writes == 1
    assert operator.counted("ocf_resource_apply_total", "why") == {}


async def test_what_was_done_is_told_on_the_owner(operator: Operator) -> None:
    """Once per real change, on the owner as it is now, and nothing where nothing was done."""
    poster = EventBroadcaster(operator.cluster, controller="example.com/shop", clock=operator.clock)
    for labels in ({}, {}, {"team": "platform"}, {}):
        theirs = {"metadata": {"labels": labels}}
        if labels:
            await operator.cluster.patch(
                DEPLOYMENT, theirs, PatchOptions(patch_type=PatchType.MERGE, field_manager="platform")
            )
        await operator.run(recorder=multi_recorder(operator.metrics, poster))
    await poster.close()

    events = (await operator.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace="town"))).items
    uid = (await operator.cluster.get(OWNER))["metadata"]["uid"]
    assert [(event["reason"], event["action"], event["note"]) for event in events] == [
        ("CreatedDeployment", "Create", "Created Deployment 'backend'"),
        ("UpdatedDeployment", "Update", "Updated Deployment 'backend'"),
    ]
    assert {(event["regarding"]["uid"], event["related"]["name"]) for event in events} == {(uid, "backend")}
    assert poster.dropped == {}


async def test_no_permission_to_tell_events_is_no_failure(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    """The pass succeeds, the log says what is missing."""
    forbidding = FaultyCluster(operator.cluster, [faults.rejected(ForbiddenError("may not"), kind="Event", times=None)])
    async with broadcasting_events(forbidding, controller="example.com/shop", clock=operator.clock) as events:
        await operator.run(forbidding, events)

    assert events.dropped == {Drop.REFUSED: 1}
    assert [record.name for record in caplog.records if record.levelname == "WARNING"] == ["ocf.runtime.events.poster"]
