"""The message of a component names what it waits for, the cause first, on both servers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Component, Reason, reconciling
from ocf.errors import ForbiddenError, ReconcileError
from ocf.objects import ObjectKey
from ocf.objects.timestamps import format_time
from ocf.primitives import deployment, pvc, statefulset
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from ocf.objects import Manifest
    from tests.component.conftest import Env

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "shop"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
QUOTA = 'pods "web-6d" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0'
NO_PODS = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}


@pytest.mark.promise("cause-in-condition")
class TestCauses:
    async def test_a_claim_comes_before_the_workload_that_waits_for_it(self, env: Env, web_base: Manifest) -> None:
        """Whatever the order of registration; and without a change the second reconcile is the last that writes."""
        web, data = deployment.Builder(web_base).build(), pvc.Builder(CLAIM).build()
        await env.reconcile(only(web, data))
        await env.report(env.web, waiting())
        message = (await env.reconcile(only(web, data))).condition.message
        assert message == (
            "PersistentVolumeClaim data: Waiting for PVC to be bound; Deployment web: Waiting for replicas: 0/1 ready"
        )
        env.cluster.requests.clear()
        for _ in range(3):
            assert (await env.reconcile(only(web, data))).condition.message == message
        assert env.cluster.requests.writes == 0

    async def test_a_rollout_without_pods_fails_without_a_grace_period(self, env: Env, web_base: Manifest) -> None:
        """https://github.com/openstack-k8s-operators/keystone-operator/pull/552."""
        web = deployment.Builder(web_base).build()
        await env.reconcile(only(web))
        await env.report(env.web, waiting(NO_PODS))
        failed = (await env.reconcile(only(web))).condition
        assert (failed.status, failed.reason) == (False, Reason.FAILING)
        assert failed.message == f"Deployment web: FailedCreate: {QUOTA} (Waiting for replicas: 0/1 ready)"
        await env.report(env.web, waiting())
        assert (await env.reconcile(only(web))).condition.reason is Reason.SCALING


FORBIDDEN = ForbiddenError('pods is forbidden: User "shops" cannot list resource "pods"', code=403, reason="Forbidden")
NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
STATEFUL = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": "shop"}}


@pytest.mark.promise("cause-in-condition")
class TestPods:
    """What the pods of a workload report; https://github.com/arkmq-org/arkmq-org-broker-operator/issues/1004."""

    async def test_the_pods_are_read_only_while_the_component_waits(self, env: Env, web_base: Manifest) -> None:
        """A rollout that is quicker than the poll interval costs nothing, and a component at rest neither."""
        web = deployment.Builder(web_base).build()
        result = await env.reconcile(explained(web))
        assert result.requeue_after == timedelta(seconds=10)
        await env.report(env.web, waiting())
        await pod(env, "web-a", NO_NODE)
        env.cluster.requests.clear()
        assert (await env.reconcile(explained(web))).condition.message == WAITING
        assert lists(env) == []
        env.clock.advance(timedelta(seconds=10))
        message = (await env.reconcile(explained(web))).condition.message
        assert message == f"Deployment web: {CAUSE} (pod web-a) (Waiting for replicas: 0/1 ready)"
        env.cluster.requests.clear()
        for _ in range(2):
            assert (await env.reconcile(explained(web))).condition.message == message
        assert (env.cluster.requests.writes, lists(env)) == (0, ["Pod", "Pod"])
        ready = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
        await env.report(env.web, {**ready, "availableReplicas": 1})
        await env.reconcile(explained(web))
        env.cluster.requests.clear()
        result = await env.reconcile(explained(web))
        assert (result.condition.status, result.requeue_after, lists(env)) == (True, None, [])

    async def test_after_the_grace_period_the_cause_is_still_named(self, env: Env, web_base: Manifest) -> None:
        made = explained(deployment.Builder(web_base).build(), grace=timedelta(minutes=1))
        await env.reconcile(made)
        await env.report(env.web, waiting())
        await pod(env, "web-a", NO_NODE)
        await env.reconcile(made)
        env.clock.advance(timedelta(minutes=2))
        condition = (await env.reconcile(made)).condition
        assert condition.reason is Reason.DOWN
        assert condition.message == (f"Component is down: Deployment web: {CAUSE} (pod web-a) (No replicas are ready)")

    async def test_pods_of_others_do_not_count(self, env: Env, web_base: Manifest) -> None:
        made = explained(deployment.Builder(web_base).build())
        await env.reconcile(made)
        await env.report(env.web, waiting())
        await pod(env, "other-a", NO_NODE, app="other")
        await env.reconcile(made)
        env.clock.advance(timedelta(minutes=2))
        assert (await env.reconcile(made)).condition.message == WAITING

    async def test_refused_pods_of_a_stateful_set_are_known_by_events(self, env: Env, web_base: Manifest) -> None:
        base = {**STATEFUL, "spec": {**web_base["spec"], "serviceName": "web"}}
        made, key = explained(statefulset.Builder(base).build()), ObjectKey("apps/v1", "StatefulSet", "web", "shop")
        await env.reconcile(made)
        uid = (await env.cluster.get(key))["metadata"]["uid"]
        refused = 'Create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: small'
        about = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "namespace": "shop"}
        for at, of in enumerate((uid, "another-uid")):
            event: Manifest = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"web.{at}", "namespace": "shop"},
                "involvedObject": {**about, "uid": of},
                "reason": "FailedCreate",
                "message": refused if of == uid else "another one",
                "type": "Warning",
                "lastTimestamp": format_time(env.clock.now()),
            }
            await env.cluster.create(event, field_manager="controller")
        env.clock.advance(timedelta(minutes=1))
        message = (await env.reconcile(made)).condition.message
        assert message.startswith(
            "StatefulSet web: FailedCreate: Create Pod web-0 in StatefulSet web failed error: pods is forbidden: "
            "exceeded quota: small ("
        )

    async def test_a_missing_right_is_named_in_place_of_the_cause(self, env: Env, web_base: Manifest) -> None:
        made = explained(deployment.Builder(web_base).build())
        await env.reconcile(made)
        await env.report(env.web, waiting())
        await env.reconcile(made)
        env.clock.advance(timedelta(minutes=1))
        cluster = FaultyCluster(env.cluster, [faults.rejected(FORBIDDEN, kind="Pod", verbs=[Verb.LIST])])
        async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
            message = (await made.reconcile(context)).condition.message
        assert "Deployment web: its pods are not known: " in message
        assert 'User "shops" cannot list resource "pods"' in message

    async def test_a_list_that_fails_is_an_error_that_names_the_workload(self, env: Env, web_base: Manifest) -> None:
        made = explained(deployment.Builder(web_base).build())
        await env.reconcile(made)
        await env.report(env.web, waiting())
        await env.reconcile(made)
        env.clock.advance(timedelta(minutes=1))
        cluster = FaultyCluster(env.cluster, [faults.server_error(kind="Pod", verbs=[Verb.LIST])])
        async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
            with pytest.raises(
                ReconcileError, match="failed to read the pods of resource apps/v1/Deployment/shop/web: "
            ):
                await made.reconcile(context)

    async def test_without_the_option_no_pod_is_read(self, env: Env, web_base: Manifest) -> None:
        made = only(deployment.Builder(web_base).build())
        await env.reconcile(made)
        await env.report(env.web, waiting())
        await env.reconcile(made)
        env.clock.advance(timedelta(minutes=1))
        env.cluster.requests.clear()
        assert (await env.reconcile(made)).requeue_after is None
        assert lists(env) == []


WAITING = "Deployment web: Waiting for replicas: 0/1 ready"
CAUSE = "Unschedulable: 0/3 nodes are available"


def explained(*resources: Any, grace: timedelta = timedelta(0)) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_pod_causes().with_grace_period(grace)
    for resource in resources:
        builder.with_resource(resource)
    return builder.build()


async def pod(env: Env, name: str, condition: Manifest, *, app: str = "web") -> None:
    """Create a pod with a condition, as scheduler and controllers do."""
    key = ObjectKey("v1", "Pod", name, "shop")
    spec = {"containers": [{"name": "web", "image": "web:1"}], "schedulerName": "none"}
    await env.create(key, metadata={"labels": {"app": app}}, spec=spec)
    at = "2026-01-31T12:00:00Z"
    await env.report(key, {"phase": "Pending", "conditions": [{**condition, "lastTransitionTime": at}]})


def lists(env: Env) -> list[str]:
    return [one.kind for one in env.cluster.requests if one.verb is Verb.LIST]


def only(*resources: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource)
    return builder.build()


def waiting(*conditions: dict[str, Any]) -> Manifest:
    """Return the status of a Deployment whose only pod is not ready."""
    times = {"lastTransitionTime": "2026-01-31T12:00:00Z", "lastUpdateTime": "2026-01-31T12:00:00Z"}
    counts = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}
    return {**counts, "conditions": [{**condition, **times} for condition in conditions]}
