"""Evictions and bindings over HTTP; the replies are those of a real API server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Subresource, WatchOptions
from ocf.objects import ObjectKey
from ocf_server import EmbeddedCluster

Client = Callable[..., Awaitable[Any]]
Kubectl = Callable[..., Awaitable[Any]]
PODS = "/api/v1/namespaces/shop/pods"
BUDGETS = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web"}, "target": {"name": "n1"}}
POD_KEY = ObjectKey("v1", "Pod", "web", "shop")


async def running(ask: Client, cluster: EmbeddedCluster, **metadata: Any) -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]}
    await ask("POST", PODS, {"metadata": {"name": "web", "labels": {"app": "web"}, **metadata}, "spec": spec})
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubelet", subresource=Subresource.STATUS)
    ready = [{"type": "Ready", "status": "True"}]
    await cluster.patch(POD_KEY, {"status": {"phase": "Running", "conditions": ready}}, options)


async def protected(ask: Client, *names: str) -> None:
    for name in names:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        await ask("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})


def failure(code: int, message: str, **content: Any) -> dict[str, Any]:
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    return {**head, "message": message, **content}


async def test_an_eviction_is_answered_with_a_status(ask: Client, cluster: EmbeddedCluster) -> None:
    await running(ask, cluster)
    reply = await ask("POST", f"{PODS}/web/eviction", EVICTION)
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    assert (reply.status, reply.json) == (201, success)
    assert "deletionTimestamp" in (await cluster.get(POD_KEY))["metadata"]


@pytest.mark.parametrize("api_version", ["policy/v1", "policy/v1beta1"])
async def test_a_budget_rejects_an_eviction(api_version: str, ask: Client, cluster: EmbeddedCluster) -> None:
    await running(ask, cluster)
    await protected(ask, "a")
    reply = await ask("POST", f"{PODS}/web/eviction", {**EVICTION, "apiVersion": api_version})
    text = "The disruption budget a is still being processed by the server."
    details = {"causes": [{"reason": "DisruptionBudget", "message": text}], "retryAfterSeconds": 10}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    assert (reply.status, reply.json) == (429, failure(429, message, reason="TooManyRequests", details=details))
    assert reply.headers["Retry-After"] == "10"


async def test_several_budgets_are_an_error(ask: Client, cluster: EmbeddedCluster) -> None:
    await running(ask, cluster)
    await protected(ask, "a", "b")
    reply = await ask("POST", f"{PODS}/web/eviction", EVICTION)
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert (reply.status, reply.json) == (500, failure(500, message))


@pytest.mark.parametrize("metadata", [{"name": "other"}, {}], ids=["another name", "no name"])
async def test_the_name_has_to_match_the_path(metadata: dict[str, str], ask: Client, cluster: EmbeddedCluster) -> None:
    await running(ask, cluster)
    reply = await ask("POST", f"{PODS}/web/eviction", {**EVICTION, "metadata": metadata})
    message = "name in URL does not match name in Eviction object"
    assert (reply.status, reply.json) == (400, failure(400, message, reason="BadRequest"))


async def test_another_kind_is_rejected(ask: Client, cluster: EmbeddedCluster) -> None:
    await running(ask, cluster)
    reply = await ask("POST", f"{PODS}/web/eviction", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}})
    message = (
        'Pod in version "v1" cannot be handled as a Eviction: converting (v1.Pod) to (policy.Eviction): '
        "unknown conversion"
    )
    assert (reply.status, reply.json) == (400, failure(400, message, reason="BadRequest"))


async def test_a_bound_pod_is_not_bound_again(ask: Client, cluster: EmbeddedCluster) -> None:
    await running(ask, cluster)
    reply = await ask("POST", f"{PODS}/web/binding", BINDING)
    message = 'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
    details = {"name": "web", "kind": "pods/binding"}
    assert (reply.status, reply.json) == (409, failure(409, message, reason="Conflict", details=details))


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "web"), ("POST", "web/status"), ("GET", "web/eviction"), ("PUT", "web/binding")],
)
async def test_other_verbs_are_not_allowed(method: str, path: str, ask: Client, cluster: EmbeddedCluster) -> None:
    await running(ask, cluster)
    body = None if method == "GET" else {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    reply = await ask(method, f"{PODS}/{path}", body)
    message = "the server does not allow this method on the requested resource"
    assert (reply.status, reply.json) == (405, failure(405, message, reason="MethodNotAllowed", details={}))


@pytest.mark.parametrize("place", ["query", "body"])
async def test_the_grace_period_of_a_delete_is_in_the_query_or_the_body(
    place: str, ask: Client, cluster: EmbeddedCluster
) -> None:
    await running(ask, cluster)
    if place == "query":
        await ask("DELETE", f"{PODS}/web?gracePeriodSeconds=7")
    else:
        await ask("DELETE", f"{PODS}/web", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 7})
    assert (await cluster.get(POD_KEY))["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_kubectl_drains_a_node(kubectl: Kubectl, ask: Client, cluster: EmbeddedCluster) -> None:
    await ask("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    await running(ask, cluster, ownerReferences=[controller])
    planned = await kubectl("drain", "n1", "--dry-run=server")
    assert planned.out.splitlines()[-1] == "node/n1 drained (server dry run)"

    async def kubelet() -> None:
        async for event in cluster.watch("v1", "Pod", WatchOptions(resource_version="")):
            if "deletionTimestamp" in event.object["metadata"]:
                assert event.object["metadata"]["deletionGracePeriodSeconds"] == 9
                await cluster.delete(POD_KEY, DeleteOptions(grace_period_seconds=0))
                return

    done, _ = await asyncio.gather(kubectl("drain", "n1", "--grace-period=9"), kubelet())
    assert done.out.splitlines()[-3:] == ["evicting pod shop/web", "pod/web evicted", "node/n1 drained"]
    assert (await cluster.get(ObjectKey("v1", "Node", "n1")))["spec"]["unschedulable"] is True
