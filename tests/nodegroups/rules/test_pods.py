"""Forecasts of evictions: those that the API server refuses, and no others."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource
from ocf.errors import ApiError
from ocf.nodegroups import ClusterSnapshot, check_pdbs
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

POD = ObjectKey("v1", "Pod", "web", "default")
EVICTION: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}
PHASES = (("Running", "True"), ("Running", "False"), ("Running", ""), ("Pending", "False"))
NUMBERS = ((0, 0, 0), (0, 1, 1), (0, 2, 1), (0, 1, 2), (1, 2, 1), (1, 1, 2))


async def set_status(cluster: EmbeddedCluster, key: ObjectKey, status: Manifest) -> None:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="controller", subresource=Subresource.STATUS)
    await cluster.patch(key, {"status": status}, options)


async def add_pod(cluster: EmbeddedCluster, phase: str, ready: str) -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]}
    metadata = {"name": "web", "namespace": "default", "labels": {"app": "web"}}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    await cluster.create(manifest, field_manager="user")
    await set_status(
        cluster, POD, {"phase": phase, "conditions": [{"type": "Ready", "status": ready}] if ready else []}
    )


async def add_budget(
    cluster: EmbeddedCluster, name: str, policy: str | None, numbers: tuple[int, int, int], *, stale: bool
) -> None:
    spec: dict[str, Any] = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    metadata = {"name": name, "namespace": "default"}
    manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    await cluster.create(manifest, field_manager="user")
    allowed, healthy, desired = numbers
    counted = {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": 3}
    status = {**counted, "observedGeneration": 0 if stale else 1}
    await set_status(cluster, ObjectKey("policy/v1", "PodDisruptionBudget", name, "default"), status)


async def forecast(cluster: EmbeddedCluster) -> str:
    pods = (await cluster.list("v1", "Pod", ListOptions())).items
    budgets = (await cluster.list("policy/v1", "PodDisruptionBudget", ListOptions())).items
    snapshot = ClusterSnapshot.of(pods=pods, budgets=budgets)
    found = check_pdbs(snapshot.pods.values(), snapshot)
    return "" if found is None else found[1]


async def answer(cluster: EmbeddedCluster) -> str:
    try:
        await cluster.create(EVICTION, field_manager="user", subresource=Subresource.EVICTION)
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize(("phase", "ready"), PHASES)
@pytest.mark.parametrize("policy", [None, "IfHealthyBudget", "AlwaysAllow"])
async def test_the_forecast_is_the_answer_of_the_api_server(phase: str, ready: str, policy: str | None) -> None:
    """https://github.com/kubernetes/kubernetes/issues/72320: a pod that does not start keeps no node."""
    for numbers, count, stale in itertools.product(NUMBERS, (0, 1, 2), (False, True)):
        cluster = EmbeddedCluster()
        await add_pod(cluster, phase, ready)
        for number in range(count):
            await add_budget(cluster, f"b{number}", policy, numbers, stale=stale)
        expected = await forecast(cluster)
        assert bool(expected) is bool(await answer(cluster)), (numbers, count, stale, expected)
