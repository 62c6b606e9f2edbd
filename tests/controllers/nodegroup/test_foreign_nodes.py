"""Nodes of others: the name of a VPSieNode alone gives it no Node."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.cluster import Subresource
from ocf.objects import Manifest, ObjectKey
from tests.controllers.nodegroup.conftest import API, Env, run

LABEL = "autoscaling.ocf.dev/node-group"
FINALIZER = "autoscaling.ocf.dev/finalizer"


async def add_node(env: Env, name: str, labels: dict[str, str] | None = None, *, provider_id: str = "") -> Manifest:
    size = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    metadata = {"name": name, "labels": labels or {}}
    spec = {"providerID": provider_id} if provider_id else {}
    status = {"allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}
    return await env.cluster.create(node, field_manager="kubelet")


async def add_object(env: Env, name: str, **metadata: Any) -> ObjectKey:
    spec = {"nodeGroupName": "workers", "instanceType": "small", "datacenterID": "fra"}
    named = {"name": name, "namespace": "default", **metadata}
    body = {"apiVersion": API, "kind": "VPSieNode", "metadata": named, "spec": spec}
    return ObjectKey.of(await env.cluster.create(body, field_manager="user"))


# https://github.com/rancher/rancher/issues/45646
@pytest.mark.parametrize("labels", [{}, {LABEL: "default.others"}], ids=["no label", "label of another group"])
@pytest.mark.parametrize("finalizers", [[], [FINALIZER]], ids=["", "with the finalizer"])
def test_an_object_with_the_name_of_a_foreign_node_does_not_get_it(
    env: Env, labels: dict[str, str], finalizers: list[str]
) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"], taints=[{"key": "dedicated", "effect": "NoSchedule"}])
        before = await add_node(env, "database", labels)
        key = await add_object(env, "database", finalizers=finalizers)
        await env.tick(40)
        (node,) = await env.objects("Node")
        assert node["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        assert (await env.machines(), env.cloud.requests) == (0, [])
        problem = (await env.read_status(key))["lastError"]
        assert problem.startswith("metadata.name: a Node database exists, and it does not have the label")
        assert env.events.reasons() == ["ValidationFailed"]
        assert (await env.status())["currentNodes"] == 0
        await env.cluster.delete(key)
        await env.tick(40)
        assert await env.gone(key)
        assert await env.nodes() == ["database"]

    run(scenario())


# https://github.com/gardener/machine-controller-manager/issues/633, https://github.com/castai/cluster-controller/pull/188
def test_a_node_that_runs_on_another_machine_does_not_belong_to_an_object_of_its_name(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"], minNodes=1, maxNodes=1)
        await env.controller.reconcile()
        await env.controller.reconcile()
        (found,) = await env.objects("VPSieNode")
        name = found["metadata"]["name"]
        node = await add_node(env, name, provider_id="other://1")
        # Longer than a node may take to join, after which its machine is replaced.
        await env.tick(50)
        (after,) = [each for each in await env.objects("Node") if each["metadata"]["name"] == name]
        assert after["metadata"]["resourceVersion"] == node["metadata"]["resourceVersion"]

    run(scenario())


def test_an_object_that_has_lost_its_status_gets_its_node_again(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"], minNodes=1)
        await env.tick(5)
        (found,) = await env.objects("VPSieNode")
        await env.cluster.update({**found, "status": {}}, field_manager="backup", subresource=Subresource.STATUS)
        await env.tick(5)
        assert (await env.phases(), await env.machines()) == (["Ready"], 1)

    run(scenario())
