"""The right that no request shows: to block the deletion of a group until its nodes are deleted."""

from __future__ import annotations

import asyncio
import json

import pytest

from ocf.cluster import ServiceAccount
from ocf.controllers.nodegroup.manifests import cluster_role
from ocf.errors import ForbiddenError
from ocf.objects import Manifest
from ocf.runtime.rbac import roles
from tests.controllers.nodegroup.whole_cluster.environment import NODE_GROUP_USER, SYSTEM, Environment
from tests.controllers.nodegroup.whole_cluster.history import API
from tests.controllers.nodegroup.whole_cluster.rights import FINALIZERS
from tests.support import until_granted

LIMITED = ServiceAccount("limited", SYSTEM)


async def node_of_the_group(env: Environment) -> Manifest:
    """Return a node whose owner reference blocks the deletion of its group, as the controller creates them."""
    group = await env.cluster.get(env.key(API, "NodeGroup", "workers"))
    owner = {"apiVersion": API, "kind": "NodeGroup", "name": "workers", "uid": group["metadata"]["uid"]}
    return {
        "apiVersion": API,
        "kind": "VPSieNode",
        "metadata": {
            "name": "workers-a",
            "namespace": env.namespace,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {"nodeGroupName": "workers", "instanceType": "small", "datacenterID": "fra"},
    }


@pytest.mark.promise("node-groups-rights", runs="a role without it, on a real API server that enforces it")
async def test_a_role_without_the_finalizers_of_groups_cannot_create_their_nodes(env: Environment) -> None:
    granted = cluster_role(lease_namespace=SYSTEM) - {FINALIZERS}
    limited = roles(granted, name="limited", account=LIMITED)
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": limited})
    await asyncio.to_thread(env.plane.kubectl, "apply", "--filename=-", stdin=items)
    user = f"system:serviceaccount:{SYSTEM}:{LIMITED.name}"
    await until_granted(env.cluster, user, granted)
    await env.add_group()
    manifest = await node_of_the_group(env)

    async def create_as(user: str) -> None:
        kubeconfig = await asyncio.to_thread(env.plane.kubeconfig_for, user)
        async with await env.plane.cluster(kubeconfig) as cluster:
            await cluster.create(manifest, field_manager="test", dry_run=True)

    with pytest.raises(ForbiddenError, match="cannot set blockOwnerDeletion"):
        await create_as(user)
    await create_as(NODE_GROUP_USER)
