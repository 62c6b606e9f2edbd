"""Fake controllers make workloads, claims and load balancers ready, and write nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType
from ocf.concepts import AliveStatus, ApplyOperation, OperationalStatus
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import daemonset, deployment, ingress, pvc, service, statefulset
from ocf.testing.fake_controllers import fake_workload_controllers, roll_out
from ocf_server import EmbeddedCluster


def workload(kind: str, **more: Any) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "default"}, "spec": spec}


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster()


async def settled(cluster: EmbeddedCluster) -> None:
    """Wait until no more writes are sent."""
    version = ""
    while version != cluster.resource_version:
        version = cluster.resource_version
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("kind", "builder", "more"),
    [
        pytest.param("Deployment", deployment.Builder, {"replicas": 2}, id="Deployment"),
        pytest.param("StatefulSet", statefulset.Builder, {"replicas": 2, "serviceName": "web"}, id="StatefulSet"),
        pytest.param("DaemonSet", daemonset.Builder, {}, id="DaemonSet"),
    ],
)
async def test_a_workload_is_healthy_by_its_primitive(
    cluster: EmbeddedCluster, kind: str, builder: Any, more: dict[str, Any]
) -> None:
    resource = builder(workload(kind, **more)).build()
    await cluster.create(resource.render(), field_manager="author")
    async with fake_workload_controllers(cluster):
        await settled(cluster)

    live = await cluster.get(resource.key)
    assert resource.alive_status(ApplyOperation.NONE, live).status is AliveStatus.HEALTHY


async def test_a_change_is_reported_and_nothing_is_written_without_one(cluster: EmbeddedCluster) -> None:
    web = workload("Deployment", replicas=2)
    async with fake_workload_controllers(cluster):
        await cluster.create(web, field_manager="author")
        await settled(cluster)
        await cluster.patch(
            ObjectKey.of(web),
            {"spec": {"replicas": 5}},
            PatchOptions(patch_type=PatchType.MERGE, field_manager="author"),
        )
        await settled(cluster)
        before = cluster.requests.writes
        await settled(cluster)

    assert (await cluster.get(ObjectKey.of(web)))["status"]["readyReplicas"] == 5
    assert cluster.requests.writes == before


async def test_a_workload_without_pods_is_rolled_out_once(cluster: EmbeddedCluster) -> None:
    """The API server does not store counts of zero."""
    await cluster.create(workload("Deployment", replicas=0), field_manager="author")

    assert await roll_out(cluster)
    assert not await roll_out(cluster)


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}


@pytest.mark.parametrize(
    ("builder", "spec"),
    [
        pytest.param(pvc.Builder, CLAIM, id="PersistentVolumeClaim"),
        pytest.param(ingress.Builder, {"defaultBackend": BACKEND}, id="Ingress"),
        pytest.param(service.Builder, {"type": "LoadBalancer", "ports": [{"port": 80}]}, id="Service"),
    ],
)
async def test_what_storage_and_network_provide_is_there_once(
    cluster: EmbeddedCluster, builder: Any, spec: Manifest
) -> None:
    resource = builder({"metadata": {"name": "web", "namespace": "default"}, "spec": spec}).build()
    pending = await cluster.create(resource.render(), field_manager="author")
    assert resource.operational_status(ApplyOperation.NONE, pending).status is OperationalStatus.PENDING

    assert await roll_out(cluster)
    assert not await roll_out(cluster)

    live = await cluster.get(resource.key)
    assert resource.operational_status(ApplyOperation.NONE, live).status is OperationalStatus.OPERATIONAL


async def test_a_service_without_a_load_balancer_is_left_alone(cluster: EmbeddedCluster) -> None:
    spec = {"ports": [{"port": 80}]}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    await cluster.create(made, field_manager="author")

    assert not await roll_out(cluster)
