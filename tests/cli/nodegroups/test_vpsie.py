"""`ocf nodegroups run --provider=vpsie`: from a pending pod to a worker and back, against a stub of the VPSie API."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.controllers.nodegroup.providers.vpsie import stub as vpsie
from tests.controllers.nodegroup.providers.vpsie.stub import CLUSTER, DATACENTER, VPSieStub
from tests.support import eventually

API: Final = "autoscaling.ocf.dev/v1alpha1"
WORKER: Final = "fra-kubernetes-01"  # the name of the Node of the first worker


class Env:
    """A cluster with a group of workers of VPSie.

    Args:
        stub: The API of VPSie.
    """

    def __init__(self, stub: VPSieStub) -> None:
        self.cluster = EmbeddedCluster(namespaces=["shop"])
        self.stub = stub

    async def create(self, manifest: Manifest) -> Manifest:
        return await self.cluster.create(manifest, field_manager="user")

    async def until(self, kind: str, holds: Callable[[list[Manifest]], bool]) -> list[Manifest]:
        """Wait until the objects of a kind are as expected, and return them."""

        async def read() -> list[Manifest]:
            return list((await self.cluster.list(API, kind)).items)

        return await eventually(read, holds)

    async def join(self) -> None:
        """Register the worker as a Node that is ready, as its kubelet does."""
        await self.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": WORKER}})
        ready = {"type": "Ready", "status": "True"}
        status = {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}, "conditions": [ready]}
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubelet", subresource=Subresource.STATUS)
        await self.cluster.patch(ObjectKey("v1", "Node", WORKER), {"status": status}, options)


@asynccontextmanager
async def running(env: Env, folder: Path) -> AsyncIterator[None]:
    """Run the command with the cluster and the stub; it has to stop when it is asked to."""
    async with serving(env.cluster) as server, vpsie.serving(env.stub) as url:
        write_kubeconfig(server.kubeconfig(), folder / "kubeconfig")
        options = [f"--vpsie-cluster={CLUSTER}", f"--datacenter={DATACENTER}", f"--vpsie-url={url}"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from ocf.cli import main\nmain()", "nodegroups", "run", "--provider=vpsie"),
            *(*options, f"--kubeconfig={folder / 'kubeconfig'}", "--no-leader-elect", "--host=127.0.0.1", "--port=0"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "VPSIE_TOKEN": "fixed"},
        )
        try:
            yield
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            _, err = await process.communicate()
            assert process.returncode == 0, err.decode()


def phases(nodes: list[Manifest]) -> list[str]:
    return [(each.get("status") or {}).get("phase", "") for each in nodes]


async def test_a_pending_pod_gets_a_worker_which_goes_with_its_group(tmp_path: Path) -> None:
    env = Env(VPSieStub())
    for definition in (node_group_definition(), node_definition()):
        await env.create(definition)
    spec = {"minNodes": 0, "maxNodes": 2, "datacenterID": DATACENTER, "offeringIDs": ["12"]}
    metadata = {"name": "workers", "namespace": "default"}
    await env.create({"apiVersion": API, "kind": "NodeGroup", "metadata": metadata, "spec": spec})
    async with running(env, tmp_path):
        container: dict[str, Any] = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
        pod = {"name": "web", "namespace": "shop"}
        await env.create({"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": {"containers": [container]}})
        (node,) = await env.until("VPSieNode", lambda nodes: phases(nodes) == ["Joining"])
        assert len(env.stub.workers) == 1
        assert node["status"]["nodeName"] in ("", WORKER)
        await env.join()
        (node,) = await env.until("VPSieNode", lambda nodes: phases(nodes) == ["Ready"])
        assert node["status"]["nodeName"] == WORKER
        await env.cluster.delete(ObjectKey("v1", "Pod", "web", "shop"))
        await env.cluster.delete(ObjectKey(API, "NodeGroup", "workers", "default"))
        await env.until("NodeGroup", lambda groups: not groups)
    assert env.stub.workers == {}
    assert sum(each.endswith("/add/slave/group/1") for each in env.stub.requests) == 1
