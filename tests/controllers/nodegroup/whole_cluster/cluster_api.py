"""The controllers of Cluster API in a whole cluster, and a provider of infrastructure for them.

The cluster is its own workload cluster. The test plays the provider: for each machine that Cluster API creates, it
creates a Node, which kwok makes ready.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from ocf.cluster import ListOptions
from ocf.errors import AlreadyExistsError, NotFoundError
from ocf.objects import Manifest, ObjectKey, load_document
from ocf.objects.documents import load_documents
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.startup import free_port
from tests import support
from tests.clients import go_programs
from tests.controllers.nodegroup.whole_cluster.environment import Environment
from tests.requirements import leave_out

__all__ = ["DELETE", "VERSION", "ClusterAPI", "program", "running"]

VERSION: Final = "cluster.x-k8s.io/v1beta2"
DELETE: Final = "cluster.x-k8s.io/delete-machine"
CLUSTER: Final = "prod"
GROUP: Final = "infrastructure.tests.ocf.dev"
KINDS: Final = ("TestCluster", "TestControlPlane", "TestMachine", "TestMachineTemplate")
CONTRACT: Final = {"cluster.x-k8s.io/v1beta2": "v1"}
CAPACITY: Final = "capacity.cluster-autoscaler.kubernetes.io"
DEPLOYMENT: Final = "cluster.x-k8s.io/deployment-name"
READY: Final = b"Starting workers"
FREE: Final[Manifest] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def program() -> Path:
    """Return the manager of Cluster API; skip the test if it is not built."""
    return go_programs.program("cluster-api") or leave_out(
        "cluster-api", "the controllers of Cluster API are not built: `make cluster-api` builds them"
    )


def _definition(kind: str) -> Manifest:
    """Return the definition of a kind of the provider of infrastructure."""
    schema = {"type": "object", "properties": {"spec": FREE, "status": FREE}}
    definition = support.definition_of(kind, GROUP, schema)
    definition["metadata"]["labels"] = CONTRACT
    return definition


def _webhooks(text: str, plane: ControlPlane, port: int) -> list[Manifest]:
    """Return the webhooks of Cluster API, called by URL."""
    authority = base64.b64encode(plane.authority.read_bytes()).decode()
    configurations = load_documents(text)
    for hook in (hook for each in configurations for hook in each["webhooks"]):
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}
    return list(configurations)


@asynccontextmanager
async def running(env: Environment, folder: Path) -> AsyncIterator[ClusterAPI]:
    """Run the controllers of Cluster API until the block ends, which is entered once they work."""
    manager, port = program(), free_port()
    definitions = [load_document(each.read_text()) for each in sorted(manager.parent.glob("bases/*.yaml"))]
    await asyncio.to_thread(env.plane.install_crds, *definitions, *map(_definition, KINDS))
    served = env.plane.certificate_for("webhooks")
    (folder / "tls.crt").write_bytes(served.certificate.read_bytes())
    (folder / "tls.key").write_bytes(served.key.read_bytes())
    flags = {
        "webhook-port": port,
        "webhook-cert-dir": folder,
        "health-addr": f"127.0.0.1:{free_port()}",
        "diagnostics-address": "0",
        "namespace": env.namespace,
    }
    log = folder / "log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            manager,
            *(f"--{name}={value}" for name, value in flags.items()),
            env={**os.environ, "KUBECONFIG": str(env.plane.kubeconfig)},
            stdout=output,
            stderr=output,
        )
    try:

        async def works() -> bool:
            assert process.returncode is None, log.read_text()
            text = log.read_bytes()
            return all(b'"controller":"%s"' % name in text or b'controller="%s"' % name in text for name in _NAMES)

        await env.until("the controllers of Cluster API work", works)
        for each in _webhooks((manager.parent / "manifests.yaml").read_text(), env.plane, port):
            await env.cluster.create(each, field_manager="admin")
        capi = ClusterAPI(env)
        await capi.set_up()
        infrastructure = asyncio.create_task(capi.provide())
        try:
            yield capi
        finally:
            infrastructure.cancel()
    finally:
        process.kill()
        await process.wait()


_NAMES: Final = (b"machinedeployment", b"machineset", b"machine", b"machinehealthcheck", b"cluster")


class ClusterAPI:
    """The objects of Cluster API, and the provider of infrastructure.

    Args:
        env: The cluster.
    """

    def __init__(self, env: Environment) -> None:
        self.env = env
        self._made: set[str] = set()

    def key(self, kind: str, name: str) -> ObjectKey:
        return self.env.key(f"{GROUP}/v1" if kind in KINDS else VERSION, kind, name)

    async def create(self, kind: str, name: str, spec: Manifest, **metadata: Any) -> None:
        body = {"kind": kind, "metadata": {"name": name, "namespace": self.env.namespace, **metadata}, "spec": spec}
        api_version = self.key(kind, name).api_version
        await self.env.cluster.create({"apiVersion": api_version, **body}, field_manager="user")

    async def set_up(self) -> None:
        """Create a cluster, whose nodes join the one in which Cluster API runs."""
        kubeconfig = base64.b64encode(self.env.plane.kubeconfig.read_bytes()).decode()
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": f"{CLUSTER}-kubeconfig",
                "namespace": self.env.namespace,
                "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER},
            },
            "type": "cluster.x-k8s.io/secret",
            "data": {"value": kubeconfig},
        }
        await self.env.cluster.create(secret, field_manager="admin")
        # Without Machines of a control plane, Cluster API drains and deletes Nodes only where it is managed elsewhere.
        elsewhere = {"initialization": {"controlPlaneInitialized": True}, "externalManagedControlPlane": True}
        for kind, status in (
            ("TestCluster", {"initialization": {"provisioned": True}}),
            ("TestControlPlane", elsewhere),
        ):
            await self.create(kind, CLUSTER, {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}})
            await self.env.patch_status(self.key(kind, CLUSTER), status, by="infrastructure")
        refs = {
            field: {"apiGroup": GROUP, "kind": kind, "name": CLUSTER}
            for field, kind in (("infrastructureRef", "TestCluster"), ("controlPlaneRef", "TestControlPlane"))
        }
        await self.create("Cluster", CLUSTER, refs)

    async def define(self, name: str, *, replicas: int = 0) -> None:
        """Create a MachineDeployment, which begins with a template of its own name."""
        await self.add_template(name)
        template = {
            "clusterName": CLUSTER,
            "bootstrap": {"dataSecretName": "boot"},
            "failureDomain": "fra",
            "infrastructureRef": {"apiGroup": GROUP, "kind": "TestMachineTemplate", "name": name},
        }
        capacities = {f"{CAPACITY}/cpu": "2", f"{CAPACITY}/memory": "8Gi"}
        spec = {"clusterName": CLUSTER, "replicas": replicas, "selector": {}, "template": {"spec": template}}
        await self.create("MachineDeployment", name, spec, annotations=capacities)

    async def add_template(self, name: str) -> None:
        await self.create("TestMachineTemplate", name, {"template": {"spec": {}}})

    async def roll_out(self, name: str, template: str) -> None:
        """Change the template of a MachineDeployment, which replaces its Machines."""
        await self.add_template(template)
        await self.change(name, {"spec": {"template": {"spec": {"infrastructureRef": {"name": template}}}}})

    async def change(self, name: str, patch: Manifest, kind: str = "MachineDeployment") -> None:
        await self.env.merge_patch(self.key(kind, name), patch, by="user")

    async def provide(self) -> None:
        """Make the machines that are asked for, for ever: each is a Node, which kwok makes ready."""
        while True:
            for machine in await self.env.objects(f"{GROUP}/v1", "TestMachine"):
                name = machine["metadata"]["name"]
                if name not in self._made and "deletionTimestamp" not in machine["metadata"]:
                    await self._boot(name)
                    self._made.add(name)
            await asyncio.sleep(0.2)

    async def _boot(self, name: str) -> None:
        provider_id = f"test://{name}"
        size = {"cpu": "2", "memory": "8Gi", "pods": "110"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{name}",
                "labels": {"node.kubernetes.io/instance-type": "small", "topology.kubernetes.io/zone": "fra"},
            },
            "spec": {"providerID": provider_id},
            "status": {"allocatable": size, "capacity": size},
        }
        key = self.key("TestMachine", name)
        try:
            await self.env.cluster.create(node, field_manager="kubelet")
            await self.env.merge_patch(key, {"spec": {"providerID": provider_id}}, by="infrastructure")
            status = {"initialization": {"provisioned": True}}
            await self.env.patch_status(key, status, by="infrastructure")
        except (AlreadyExistsError, NotFoundError):
            # It was deleted while it booted.
            return

    async def replicas(self, name: str) -> int:
        return await self.env.read_replicas(self.key("MachineDeployment", name))

    async def machines(self, name: str) -> dict[str, Manifest]:
        options = ListOptions(namespace=self.env.namespace, label_selector=f"{DEPLOYMENT}={name}")
        found = await self.env.cluster.list(VERSION, "Machine", options)
        return {each["metadata"]["name"]: each for each in found.items}

    async def marked(self, name: str) -> list[str]:
        """Return the Machines that are marked for deletion."""
        found = await self.machines(name)
        return [each for each, machine in found.items() if DELETE in (machine["metadata"].get("annotations") or {})]
