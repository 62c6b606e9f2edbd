"""The part of Cluster API that creates and deletes Machines, for tests."""

from pathlib import Path
from typing import Final

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource
from ocf.objects import Manifest, ObjectKey
from ocf.objects.documents import load_documents

VERSION: Final = "cluster.x-k8s.io/v1beta2"
DEFINITIONS: Final = load_documents((Path(__file__).parent / "data" / "cluster-api.yaml").read_text(encoding="utf-8"))
CAPACITY: Final = "capacity.cluster-autoscaler.kubernetes.io"
ANNOTATIONS: Final = {
    f"{CAPACITY}/cpu": "4",
    f"{CAPACITY}/memory": "16G",
    f"{CAPACITY}/gpu-count": "1",
    f"{CAPACITY}/labels": "pool=a, disk=ssd",
    "autoscaling.ocf.dev/price-per-hour": "0.25",
}
DELETE: Final = "cluster.x-k8s.io/delete-machine"
RECORD: Final = "autoscaling.ocf.dev/machines"


FINALIZER: Final = "machine.cluster.x-k8s.io"
TEMPLATE: Final = "machine-template-hash"


class FakeClusterAPI:
    """The part of Cluster API that creates and deletes Machines, on demand.

    Args:
        cluster: The cluster.
        namespace: The namespace of the objects.

    Attributes:
        lingers: Whether a Machine that is deleted stays until `finish`, as one whose node is drained does.
        template: The hash of the template of new Machines; another one begins a rollout.
    """

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.lingers = False
        self.template = "a"
        self._created = 0

    async def define(self, name: str, *, replicas: int = 0, annotations: dict[str, str] | None = None) -> None:
        template = {
            "clusterName": "prod",
            "bootstrap": {"dataSecretName": "boot"},
            "failureDomain": "fra-1",
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Template", "name": "small"},
        }
        manifest = {
            "apiVersion": VERSION,
            "kind": "MachineDeployment",
            "metadata": {"name": name, "namespace": self.namespace, "annotations": annotations or ANNOTATIONS},
            "spec": {
                "clusterName": "prod",
                "replicas": replicas,
                "selector": {"matchLabels": {"deployment": name}},
                "template": {"metadata": {"labels": {"deployment": name}}, "spec": template},
            },
        }
        await self.cluster.create(manifest, field_manager="user")

    async def reconcile(self, name: str) -> None:
        """Create the missing Machines, or delete those that are too many, as a MachineSet does.

        One that is being deleted counts until it is gone, and goes first; then marked ones, then the newest.
        """
        deployment = await self.deployment(name)
        machines = await self.machines(name)
        for _ in range(deployment["spec"]["replicas"] - len(machines)):
            await self._create(deployment)
        surplus = len(machines) - deployment["spec"]["replicas"]
        order = sorted(
            machines,
            key=lambda each: (
                "deletionTimestamp" not in each["metadata"],
                DELETE not in (each["metadata"].get("annotations") or {}),
            ),
        )
        for each in order[: max(0, surplus)]:
            await self.cluster.delete(ObjectKey.of(each))

    async def surge(self, name: str) -> None:
        """Create one Machine more, as a rollout does."""
        await self._create(await self.deployment(name))

    async def remove(self, machine: str) -> None:
        """Delete a Machine, as a rollout, a MachineHealthCheck or a user does."""
        await self.cluster.delete(ObjectKey(VERSION, "Machine", machine, self.namespace))

    async def finish(self, machine: str) -> None:
        """Let a Machine go whose node is drained."""
        await self._patch("Machine", machine, {"metadata": {"finalizers": None}})

    async def change(self, name: str, patch: Manifest) -> None:
        """Patch a MachineDeployment as a user, and its status as Cluster API."""
        await self._patch("MachineDeployment", name, patch)
        if "status" in patch:
            await self._patch("MachineDeployment", name, patch, Subresource.STATUS)

    async def _patch(self, kind: str, name: str, patch: Manifest, part: Subresource | None = None) -> None:
        options = PatchOptions(field_manager="user", patch_type=PatchType.MERGE, subresource=part)
        await self.cluster.patch(ObjectKey(VERSION, kind, name, self.namespace), patch, options)

    async def marked(self, name: str) -> list[str]:
        machines = await self.machines(name)
        return [each["metadata"]["name"] for each in machines if DELETE in (each["metadata"].get("annotations") or {})]

    async def boot(self, name: str, *, phase: str = "Running") -> None:
        for machine in await self.machines(name):
            status = {"phase": phase, "nodeRef": {"name": f"node-{machine['metadata']['name']}"}}
            options = PatchOptions(field_manager="capi", patch_type=PatchType.MERGE, subresource=Subresource.STATUS)
            await self.cluster.patch(ObjectKey.of(machine), {"status": status}, options)

    async def deployment(self, name: str) -> Manifest:
        return await self.cluster.get(ObjectKey(VERSION, "MachineDeployment", name, self.namespace))

    async def machines(self, name: str) -> list[Manifest]:
        selector = f"cluster.x-k8s.io/deployment-name={name}"
        options = ListOptions(namespace=self.namespace, label_selector=selector)
        return list((await self.cluster.list(VERSION, "Machine", options)).items)

    async def names(self, name: str) -> list[str]:
        return sorted(each["metadata"]["name"] for each in await self.machines(name))

    async def _create(self, deployment: Manifest) -> None:
        self._created += 1
        name = deployment["metadata"]["name"]
        manifest = {
            "apiVersion": VERSION,
            "kind": "Machine",
            "metadata": {
                "name": f"{name}-{self._created}",
                "namespace": self.namespace,
                "labels": {"cluster.x-k8s.io/deployment-name": name, TEMPLATE: self.template},
                "finalizers": [FINALIZER] if self.lingers else [],
            },
            "spec": deployment["spec"]["template"]["spec"],
        }
        await self.cluster.create(manifest, field_manager="capi")
