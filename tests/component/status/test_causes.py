"""The message of a component names what it waits for, the cause first, on both servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import Component, Reason
from ocf.primitives import deployment, pvc

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
