"""`VPSieProvider`: workers of a cluster that VPSie manages.

The caller cannot name a worker, and adding one may be answered with `true` alone. So a worker belongs to the first
request that finds it among the workers that did not exist before and belong to no other node. A request that may have
been sent before looks for such a worker first, because repeating it would add a second one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from ocf.controllers.nodegroup.providers.vpsie.connection import VPSieConnection
from ocf.controllers.nodegroup.providers.vpsie.decoding import (
    GroupEntry,
    instance_types,
    read_groups,
    read_workers,
    worker_identifier,
)
from ocf.errors import MachineNotFoundError, ProviderRefusedError, ProviderUnavailableError
from ocf.nodegroups import InstanceType, Machine, MachineRequest, MachineState

__all__ = ["VPSieProvider"]

_GROUP_PREFIX: Final = "ocf"


class VPSieProvider:
    """A `Provider` for workers of a managed cluster of VPSie.

    Args:
        connection: The connection, with the settings.
    """

    def __init__(self, connection: VPSieConnection) -> None:
        self._connection = connection
        self._settings = connection.settings

    @property
    def keeps_names(self) -> bool:
        """False; as `Provider`."""
        return False

    async def instance_types(self) -> Sequence[InstanceType]:
        """Return the Kubernetes sizes of all datacenters; the name of a type is the id of the size."""
        path = self._settings.paths.offers
        offers = {
            each: await self._send("POST", path, body={"dcIdentifier": each}) for each in self._settings.datacenters
        }
        return instance_types(offers, self._settings.fields)

    async def create(self, request: MachineRequest) -> Machine:
        """Add a worker, or return the one that an earlier request added; as `Provider`.

        The machine has no id if the answer does not name the worker; `get` finds it later.
        """
        if request.retried and (found := _unclaimed(await self.list(), request)):
            return found
        group = await self._group(request.instance_type)
        answer = await self._send("POST", self._path(self._settings.paths.add_worker, group=str(group)))
        name = str(answer.get("hostname") or "").lower() if isinstance(answer, dict) else ""
        return Machine(
            id=name, node_name=name, state=MachineState.PENDING, instance_type=request.instance_type, zone=request.zone
        )

    async def get(self, request: MachineRequest) -> Machine:
        """Return the worker of a request; as `Provider`."""
        workers = await self.list()
        if not request.machine_id:
            found = _unclaimed(workers, request)
        else:
            found = next((each for each in workers if each.id == request.machine_id.lower()), None)
        if found is None:
            raise MachineNotFoundError(f"no worker of cluster {self._settings.cluster} belongs to {request.name}")
        return replace(found, instance_type=request.instance_type, zone=request.zone)

    async def list(self) -> Sequence[Machine]:
        """Return all workers of the cluster, sorted by host name."""
        return read_workers(await self._cluster(), self._settings)

    async def delete(self, machine: Machine) -> None:
        """Delete a worker; as `Provider`.

        A worker whose identifier is not reported yet is not deleted but an error, so that it is not forgotten.
        """
        identifier = worker_identifier(await self._cluster(), machine.id, self._settings)
        if identifier is None:
            return
        if not identifier:
            raise ProviderUnavailableError(f"worker {machine.id} has no identifier yet, it cannot be deleted")
        path = self._path(self._settings.paths.delete_worker)
        try:
            await self._connection.send("DELETE", path, body={"identifier": identifier})
        except MachineNotFoundError:
            # The answer for a worker that is gone, and for other things that are: the list decides.
            if worker_identifier(await self._cluster(), machine.id, self._settings) is not None:
                raise ProviderUnavailableError(f"DELETE {path}: not found, but {machine.id} is in the list") from None

    async def _group(self, size: str) -> int:
        """Return the group of workers of a size; a cluster has one for each size at most."""
        path = self._path(self._settings.paths.groups)
        found = _group_of(await self._groups(path), size)
        if found is None:
            body = {
                "clusterIdentifier": self._settings.cluster,
                "groupName": f"{_GROUP_PREFIX}-{size}",
                "KubeSizeID": _number(size),
            }
            await self._send("POST", self._settings.paths.add_group, body=body)
            found = _group_of(await self._groups(path), size)
        if found is None:
            raise ProviderUnavailableError(f"the group of workers of size {size} was created but is not listed yet")
        return found

    async def _groups(self, path: str) -> Sequence[GroupEntry]:
        return read_groups(await self._send("GET", path))

    async def _cluster(self) -> object:
        return await self._send("GET", self._path(self._settings.paths.cluster))

    async def _send(self, method: str, path: str, *, body: object = None) -> Any:
        """Send a request whose path names no worker, so that "not found" does not mean that a worker is gone."""
        try:
            return await self._connection.send(method, path, body=body)
        except MachineNotFoundError as error:
            raise ProviderRefusedError(f"cluster {self._settings.cluster} or a datacenter: {error}") from error

    def _path(self, template: str, **names: str) -> str:
        return template.format(cluster=quote(self._settings.cluster, safe=""), **names)


def _unclaimed(workers: Sequence[Machine], request: MachineRequest) -> Machine | None:
    return next((each for each in workers if each.id not in request.excluded), None)


def _group_of(groups: Sequence[GroupEntry], size: str) -> int | None:
    return min((number for number, _, its_size in groups if its_size == size), default=None)


def _number(size: str) -> int:
    if not size.isdigit():
        raise ProviderRefusedError(f"instance type {size!r} is not the number of a size, such as 12")
    return int(size)
