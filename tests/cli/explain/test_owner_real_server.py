"""`ocf explain KIND/NAME` on a real API server, with statuses and events of the real controllers and the scheduler."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cluster import ListOptions, PatchOptions, PatchType
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.testing.envtest import ControllerName
from tests.ownership.world import template
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest, RunControllers, RunScheduler


class StallSpec(CamelModel):
    size: int = 1


class Stall(CustomResource[StallSpec], group="explained.example.com", version="v1", short_names=("stl",)):
    """A stall on a market."""


def owned(envtest: Envtest, owner: Manifest, api_version: str, kind: str, **spec: Any) -> Manifest:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    reference |= {name: owner["metadata"][name] for name in ("name", "uid")}
    metadata = {"name": "web", "namespace": envtest.namespace, "ownerReferences": [reference]}
    selector = {"matchLabels": {"app": "web"}}
    whole = {"selector": selector, "template": template(), **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": whole}


async def stall(envtest: Envtest, cluster: ApiServerCluster) -> Manifest:
    await asyncio.to_thread(envtest.plane.install_crds, Stall.definition())
    metadata = {"name": "corner", "namespace": envtest.namespace}
    made = {"apiVersion": "explained.example.com/v1", "kind": "Stall", "metadata": metadata, "spec": {}}
    return await cluster.create(made, field_manager="user")


async def explained(envtest: Envtest, *words: str) -> Any:
    arguments = [
        "explain",
        *words,
        "-n",
        envtest.namespace,
        "--kubeconfig",
        str(envtest.kubeconfig),
        "--output",
        "json",
    ]
    answer = await asyncio.to_thread(CliRunner().invoke, app, arguments, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


async def test_a_security_standard_that_refuses_the_pods_is_named(
    envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    namespace = ObjectKey("v1", "Namespace", envtest.namespace)
    await envtest_cluster.patch(namespace, {"metadata": {"labels": labels}}, options)
    owner = await stall(envtest, envtest_cluster)
    await envtest_cluster.create(owned(envtest, owner, "apps/v1", "Deployment", replicas=1), field_manager="user")
    with envtest_controllers(ControllerName.DEPLOYMENT, ControllerName.REPLICA_SET):
        found = await eventually(
            lambda: explained(envtest, "stl/corner"), lambda answer: "violates PodSecurity" in answer["sentence"]
        )
    assert "cannot create pods" in found["sentence"]
    assert found["cause"][-1]["object"] == f"explained.example.com/v1/Stall/{envtest.namespace}/corner"
    assert found["unread"] == []


async def test_a_claim_without_a_volume_is_named(
    envtest: Envtest,
    envtest_cluster: ApiServerCluster,
    envtest_controllers: RunControllers,
    envtest_scheduler: RunScheduler,
) -> None:
    owner = await stall(envtest, envtest_cluster)
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": {**storage, "storageClassName": "fast"}}]
    web = owned(envtest, owner, "apps/v1", "StatefulSet", replicas=1, serviceName="web", volumeClaimTemplates=claims)
    await envtest_cluster.create(web, field_manager="user")
    # Without a node the scheduler does not look at claims.
    capacity = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "explained"}, "status": capacity}
    await envtest_cluster.create(node, field_manager="user")
    with envtest_controllers(ControllerName.STATEFUL_SET), envtest_scheduler():
        options = ListOptions(namespace=envtest.namespace)
        await eventually(lambda: envtest_cluster.list("v1", "PersistentVolumeClaim", options), lambda page: page.items)
        # The controller creates the claim before it writes the StatefulSet's status.
        chain = "no StorageClass named fast; so StatefulSet web has 0 of 1 pods ready; so Stall corner"
        found = await eventually(
            lambda: explained(envtest, "stalls.explained.example.com", "corner"),
            lambda answer: chain in answer["sentence"],
        )
        pod = ObjectKey("v1", "Pod", "web-0", envtest.namespace)
        await eventually(
            lambda: envtest_cluster.get(pod),
            lambda found: "unbound immediate" in str(found.get("status", {}).get("conditions")),
        )
        found = await explained(envtest, "stalls.explained.example.com", "corner")
    assert chain in found["sentence"]
    assert found["sentence"].startswith("The claim data-web-0 is Pending for ")
    await envtest_cluster.delete(ObjectKey("v1", "Node", "explained"))
