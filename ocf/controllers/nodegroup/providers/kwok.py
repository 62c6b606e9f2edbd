"""`KwokProvider`: nodes that kwok simulates, in a real cluster with a real scheduler.

The Node object is the machine. kwok (https://kwok.sigs.k8s.io) plays the kubelet of every Node with its annotation: it
makes the node ready and runs its pods.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ocf.cluster import Cluster, ListOptions
from ocf.controllers.nodegroup.providers.node_manifest import node_manifest
from ocf.errors import (
    AlreadyExistsError,
    ApiError,
    CapacityExhaustedError,
    ForbiddenError,
    InvalidError,
    MachineNotFoundError,
    NotFoundError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from ocf.nodegroups import InstanceType, Machine, MachineRequest, MachineState
from ocf.objects import Manifest, ObjectKey, parse_time
from ocf.objects.manifest import PREFIX

__all__ = ["KwokProvider"]

_MANAGED: Final = f"{PREFIX}/provider"
_ANNOTATION: Final = "kwok.x-k8s.io/node"
_FIELD_MANAGER: Final = "ocf-kwok"
_BOOTING: Final = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "the node is booting"}


class KwokProvider:
    """A `Provider` whose machines are Node objects that kwok keeps ready."""

    def __init__(self, cluster: Cluster, types: Iterable[InstanceType]) -> None:
        self._cluster = cluster
        self._types = {each.name: each for each in types}

    @property
    def keeps_names(self) -> bool:
        """True; as `Provider`."""
        return True

    async def instance_types(self) -> Sequence[InstanceType]:
        """Return the instance types."""
        return list(self._types.values())

    async def create(self, request: MachineRequest) -> Machine:
        """Create a Node; as `Provider`."""
        node = self._node(request)
        with _provider_errors(f"Node {request.name}"):
            try:
                return _machine(await self._cluster.create(node, field_manager=_FIELD_MANAGER))
            except AlreadyExistsError:
                return await self.get(request)

    async def get(self, request: MachineRequest) -> Machine:
        """Return the Node of a request; as `Provider`."""
        with _provider_errors(f"Node {request.name}"):
            try:
                return _machine(await self._cluster.get(_key(request.name)))
            except NotFoundError:
                raise MachineNotFoundError(f"there is no Node {request.name}") from None

    async def list(self) -> Sequence[Machine]:
        """Return all Nodes that this provider created, sorted by name."""
        with _provider_errors("Nodes"):
            found = await self._cluster.list("v1", "Node", ListOptions(label_selector=f"{_MANAGED}=kwok"))
        return sorted((_machine(node) for node in found.items), key=lambda each: each.name)

    async def delete(self, machine: Machine) -> None:
        """Delete a Node; as `Provider`."""
        with _provider_errors(f"Node {machine.id}"):
            try:
                await self._cluster.delete(_key(machine.id))
            except NotFoundError:
                return

    def _node(self, request: MachineRequest) -> Manifest:
        known = self._types.get(request.instance_type)
        if known is None:
            names = ", ".join(sorted(self._types))
            raise ProviderRefusedError(f"unknown instance type {request.instance_type!r}, known are {names}")
        if known.offering(request.zone) is None:
            raise CapacityExhaustedError(f"no {request.instance_type} is available in zone {request.zone or 'any'}")
        node = node_manifest(request, known, provider="kwok")
        node["metadata"]["labels"][_MANAGED] = "kwok"
        node["metadata"]["annotations"] = {_ANNOTATION: "fake"}
        # Without the condition, the node lifecycle controller takes the taint away that keeps pods off a new node.
        node["status"]["conditions"] = [dict(_BOOTING)]
        return node


def _key(name: str) -> ObjectKey:
    return ObjectKey("v1", "Node", name)


def _machine(node: Manifest) -> Machine:
    metadata = node["metadata"]
    labels = metadata.get("labels") or {}
    name = str(metadata["name"])
    return Machine(
        id=name,
        state=_state(node),
        name=name,
        node_name=name,
        provider_id=str(node.get("spec", {}).get("providerID", "")),
        instance_type=str(labels.get("node.kubernetes.io/instance-type", "")),
        zone=str(labels.get("topology.kubernetes.io/zone", "")),
        created_at=parse_time(metadata["creationTimestamp"]) if "creationTimestamp" in metadata else None,
    )


def _state(node: Manifest) -> MachineState:
    if "deletionTimestamp" in node["metadata"]:
        return MachineState.DELETING
    conditions = node.get("status", {}).get("conditions") or []
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return MachineState.RUNNING if ready else MachineState.PENDING


@contextmanager
def _provider_errors(what: str) -> Iterator[None]:
    """Convert errors of the API server to those of a provider."""
    try:
        yield
    except (ForbiddenError, InvalidError) as error:
        raise ProviderRefusedError(f"{what}: {error}") from error
    except ApiError as error:
        raise ProviderUnavailableError(f"{what}: {error}", retry_after=error.retry_after) from error
