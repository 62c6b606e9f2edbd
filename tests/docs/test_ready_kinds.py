"""The table of which kinds become ready without a real cluster is true: one component of each, under both."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.component import Builder, Component
from ocf.primitives import (
    configmap,
    daemonset,
    deployment,
    hpa,
    ingress,
    job,
    pdb,
    pod,
    pv,
    pvc,
    replicaset,
    service,
    statefulset,
)
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import Operator, OwnerType
from ocf.testing import OwnerEnv, VirtualClock
from ocf_server import EmbeddedCluster
from tests.docs.reader import ROOT

SECTION: Final = re.compile(r"^### When an object is ready\n(.*?)^### ", re.MULTILINE | re.DOTALL)
ROW: Final = re.compile(r"^\| ([A-Z][^|]+) \| (yes|no)\b[^|]*\| (yes|no)\b[^|]*\|$", re.MULTILINE)
POD: Final = {"containers": [{"name": "web", "image": "web:1"}]}
WORKLOAD: Final = {"spec": {"template": {"spec": POD}}}
ONE_GIGABYTE: Final = {"storage": "1Gi"}
BUILDERS: Final[dict[str, Any]] = {
    "Deployment": deployment.Builder(WORKLOAD),
    "StatefulSet": statefulset.Builder({"spec": {**WORKLOAD["spec"], "serviceName": "web"}}),
    "DaemonSet": daemonset.Builder(WORKLOAD),
    "ReplicaSet": replicaset.Builder(WORKLOAD),
    "Pod": pod.Builder({"spec": POD}),
    "Job": job.Builder({"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}),
    "PersistentVolumeClaim": pvc.Builder(
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": ONE_GIGABYTE}}}
    ),
    "PersistentVolume": pv.Builder(
        {
            "metadata": {"name": "disk"},
            "spec": {"capacity": ONE_GIGABYTE, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/disk"}},
        }
    ),
    "Service of type `LoadBalancer`": service.Builder({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
    "Ingress": ingress.Builder({"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}}),
    "HorizontalPodAutoscaler": hpa.Builder(
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}
    ),
    "ConfigMap": configmap.Builder({"data": {}}),
    "PodDisruptionBudget": pdb.Builder({"spec": {"minAvailable": 1}}),
}
SHOP: Final = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "default"}}


class ShopSpec(CamelModel):
    """Nothing."""


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


def rows() -> Iterator[tuple[str, bool, bool]]:
    """Yield what the table says of each kind: without and with the built-in controllers."""
    (section,) = SECTION.findall((ROOT / "docs/testing/serve.md").read_text(encoding="utf-8"))
    for kinds, *ready in ROW.findall(section):
        for kind in kinds.partition(" and other")[0].split(", "):
            yield kind, ready[0] == "yes", ready[1] == "yes"


def test_the_table_has_each_kind_once() -> None:
    assert sorted(kind for kind, *_ in rows()) == sorted(BUILDERS)


@pytest.mark.parametrize("is_built_in", [False, True], ids=["roll_out", "built-in"])
@pytest.mark.parametrize("kind", BUILDERS)
def test_a_kind_becomes_ready_as_the_table_says(kind: str, *, is_built_in: bool) -> None:
    expected = {name: each for name, *each in rows()}[kind][is_built_in]

    def components(shop: Shop) -> Component:
        return Builder("web", owner=shop.key).with_resource(BUILDERS[kind]).build()

    async def test() -> str:
        clock = VirtualClock()
        cluster = EmbeddedCluster(now=clock.now)
        controllers = cluster.controllers() if is_built_in else None
        operator = Operator(name="shops", owner=OwnerType.of(Shop), components=components)
        env = await OwnerEnv.create(operator, SHOP, cluster, clock, controllers=controllers)
        for _ in range(6):
            await env.settle()
            clock.advance(timedelta(seconds=2))
        return str((await env.conditions())["Ready"]["reason"])

    assert (asyncio.run(test()) == "Healthy") is expected
