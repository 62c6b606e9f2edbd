"""Spans of reconciles: one tree per reconcile, with what was done to each resource, and without any value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest

from ocf import component
from ocf.cluster import Cluster, Verb
from ocf.component import Component, Conflicts, reconciling
from ocf.concepts.resource import ResourceBuilder
from ocf.concepts.tracing import tracing_with
from ocf.errors import ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment, hpa, pdb, secret, service
from ocf.testing import FaultyCluster, faults
from ocf_server import CustomKind, EmbeddedCluster
from tests.traces import Traces, attributes

SHOP: Final[Manifest] = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "town"},
}
OWNER: Final = ObjectKey.of(SHOP)
PASSWORD: Final = "hunter2"
LABELS: Final = {"app": "web"}


def named(api_version: str, kind: str, **content: Any) -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": f"web-{kind.lower()}", "namespace": "town"},
        **content,
    }


POD: Final = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "app", "image": "web:1"}]}}
SELECTOR: Final = {"matchLabels": LABELS}
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-deployment"}
BUILDERS: Final[dict[str, ResourceBuilder]] = {
    "ConfigMap": configmap.Builder(named("v1", "ConfigMap", data={"motto": "open"})),
    "Secret": secret.Builder(named("v1", "Secret", stringData={"password": PASSWORD})),
    "Service": service.Builder(named("v1", "Service", spec={"selector": LABELS, "ports": [{"port": 80}]})),
    "Deployment": deployment.Builder(named("apps/v1", "Deployment", spec={"selector": SELECTOR, "template": POD})),
    "HorizontalPodAutoscaler": hpa.Builder(
        named("autoscaling/v2", "HorizontalPodAutoscaler", spec={"scaleTargetRef": TARGET, "maxReplicas": 5})
    ),
    "PodDisruptionBudget": pdb.Builder(
        named("policy/v1", "PodDisruptionBudget", spec={"selector": SELECTOR, "maxUnavailable": 1})
    ),
}


def web(*kinds: str, **options: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady")
    for kind in kinds or BUILDERS:
        builder = builder.with_resource(BUILDERS[kind].build(), **options)
    return builder.build()


@dataclass
class Shop:
    """An owner in a cluster, and the spans of its reconciles."""

    cluster: EmbeddedCluster
    traces: Traces

    async def reconcile(self, one: Component, cluster: Cluster | None = None) -> None:
        self.traces.clear()
        owner = await self.cluster.get(OWNER)
        with tracing_with(self.traces.tracer):
            async with reconciling(owner, cluster or self.cluster) as context:
                await one.reconcile(context)

    def resource(self, kind: str) -> dict[str, Any]:
        """Return the attributes of the span of a resource."""
        return attributes(self.traces.one(f"resource {kind}"))


@pytest.fixture
async def shop(traces: Traces) -> Shop:
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
    await cluster.create(SHOP, field_manager="user")
    return Shop(cluster, traces)


async def test_a_reconcile_is_one_tree_with_each_resource(shop: Shop) -> None:
    await shop.reconcile(web())

    assert shop.traces.tree() == [
        "reconcile Shop",
        "  component web: Creating",
        "    resource ConfigMap: web-configmap, Created, absent",
        "    resource Secret: web-secret, Created, absent",
        "    resource Service: web-service, Created, absent",
        "    resource Deployment: web-deployment, Created, absent",
        "    resource HorizontalPodAutoscaler: web-horizontalpodautoscaler, Created, absent",
        "    resource PodDisruptionBudget: web-poddisruptionbudget, Created, absent",
    ]


async def test_a_reconcile_in_sync_writes_nothing(shop: Shop) -> None:
    for _ in range(2):
        await shop.reconcile(web("ConfigMap", "Secret"))

    assert shop.traces.tree() == [
        "reconcile Shop",
        "  component web: Healthy",
        "    resource ConfigMap: web-configmap, Unchanged, equal",
        "    resource Secret: web-secret, Unchanged, equal",
    ]
    assert attributes(shop.traces.one("component"))["ocf.writes"] == 0


async def test_the_span_of_a_reconcile_names_its_owner(shop: Shop) -> None:
    await shop.reconcile(web("ConfigMap"))

    live = await shop.cluster.get(OWNER)
    assert attributes(shop.traces.one("reconcile")) == {
        "ocf.owner.api_version": "example.com/v1",
        "ocf.owner.kind": "Shop",
        "ocf.owner.name": "corner",
        "ocf.owner.uid": live["metadata"]["uid"],
        "ocf.owner.generation": 1,
        "k8s.namespace.name": "town",
    }


async def test_the_span_of_a_resource_has_the_names_of_the_conventions(shop: Shop) -> None:
    await shop.reconcile(web("Deployment", "HorizontalPodAutoscaler"))

    assert shop.resource("Deployment") == {
        "ocf.resource.api_version": "apps/v1",
        "ocf.resource.kind": "Deployment",
        "ocf.resource.name": "web-deployment",
        "k8s.namespace.name": "town",
        "k8s.deployment.name": "web-deployment",
        "ocf.resource.action": "Created",
        "ocf.resource.why": "absent",
        "ocf.resource.status": "Creating",
        "ocf.writes": 1,
    }
    assert shop.resource("HorizontalPodAutoscaler")["k8s.hpa.name"] == "web-horizontalpodautoscaler"


async def test_a_failed_apply_fails_the_spans_above_it(shop: Shop) -> None:
    broken = FaultyCluster(shop.cluster, [faults.server_error(verbs=[Verb.APPLY], times=None)])
    with pytest.raises(ReconcileError):
        await shop.reconcile(web("ConfigMap", "Secret"), broken)

    assert shop.traces.tree() == [
        "reconcile Shop: failed",
        "  component web: failed",
        "    resource ConfigMap: web-configmap, failed",
    ]
    failed = shop.traces.one("resource")
    (event,) = failed.events
    assert failed.status.description == dict(event.attributes or {})["exception.message"]
    assert attributes(failed)["error.type"] == "ReconcileError"


async def test_a_conflict_names_the_other_manager(shop: Shop) -> None:
    await shop.cluster.apply(named("v1", "ConfigMap", data={"motto": "closed"}), field_manager="kubectl")
    with pytest.raises(ReconcileError):
        await shop.reconcile(web("ConfigMap", on_conflict=Conflicts.FAIL))

    assert "kubectl" in str(shop.traces.one("resource").status.description)


async def test_an_object_that_is_deleted_has_a_span(shop: Shop) -> None:
    await shop.reconcile(web("ConfigMap"))
    await shop.reconcile(web("ConfigMap", delete_when=True))

    assert shop.traces.tree()[2:] == ["    resource ConfigMap: web-configmap, Deleted"]


async def test_a_suspended_resource_has_a_span(shop: Shop) -> None:
    one = component.Builder("web", condition_type="WebReady").with_resource(BUILDERS["Deployment"].build()).suspend()
    await shop.reconcile(one.build())

    assert shop.resource("Deployment")["ocf.resource.status"] == "Suspended"


async def test_no_span_contains_a_value(shop: Shop) -> None:
    """Neither that of the Secret, nor that in the error of an author's function."""

    def raise_password(_: object) -> None:
        raise ValueError(PASSWORD)

    def mutate(mutator: secret.Mutator) -> None:
        mutator.edit_object_metadata(raise_password)

    broken = secret.Builder(named("v1", "Secret")).with_mutation(secret.Mutation("broken", mutate)).build()
    one = component.Builder("web", condition_type="WebReady").with_resource(broken).build()
    with pytest.raises(ReconcileError):
        await shop.reconcile(one)
    texts = [span.to_json() for span in shop.traces.spans]
    await shop.reconcile(web("Secret"))
    texts += [span.to_json() for span in shop.traces.spans]
    assert "ValueError" in texts[0]
    assert PASSWORD not in "".join(texts)


async def test_a_reconcile_belongs_to_the_span_around_it(shop: Shop) -> None:
    with shop.traces.provider.get_tracer("mine").start_as_current_span("my loop"):
        await shop.reconcile(web("ConfigMap"))

    assert shop.traces.tree()[:2] == ["my loop", "  reconcile Shop"]


async def test_without_a_tracer_nothing_is_recorded(shop: Shop) -> None:
    with tracing_with(None):
        async with reconciling(await shop.cluster.get(OWNER), shop.cluster) as context:
            await web().reconcile(context)

    assert shop.traces.spans == []
