"""`SimulatedProvider`: a cloud inside the process, for demos, tests and simulations.

Machines boot after a while, may fail, run out of stock or exceed a quota, and spot machines can be taken away. Time is
that of the clock that is passed in, so a day passes in milliseconds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource
from ocf.concepts import Clock
from ocf.controllers.nodegroup.providers.node_manifest import node_manifest
from ocf.errors import CapacityExhaustedError, MachineNotFoundError, NotFoundError, ProviderRefusedError
from ocf.nodegroups import InstanceType, Machine, MachineRequest, MachineState
from ocf.objects import Manifest, ObjectKey, format_time

__all__ = ["SimulatedProvider"]

_SCHEME: Final = "simulated"
_SECONDS_PER_HOUR: Final = 3600


def _never(_: MachineRequest) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class _Record:
    """A machine that was requested.

    Args:
        boots_at: When it runs; None if it never does.
        deleted_at: When its deletion was requested; None if it was not.
        price: Price per hour.
    """

    request: MachineRequest
    created_at: datetime
    boots_at: datetime | None
    price: float
    deleted_at: datetime | None = None


class SimulatedProvider:
    """A `Provider` whose machines exist in memory only.

    Args:
        types: The instance types.
        clock: Gives the time.
        boot_time: How long a machine is `PENDING`.
        deletion_time: How long a deleted machine is `DELETING` before it is gone.
        quota: Most machines that exist at once; None for no limit.
        fails: Returns whether the machine of a request never boots, and is `FAILED` after its boot time.

    Example:
        >>> import asyncio
        >>> from ocf.nodegroups import Offering
        >>> from ocf.objects import Quantity
        >>> from ocf.testing import VirtualClock
        >>> clock = VirtualClock()
        >>> small = InstanceType("small", {"cpu": Quantity.parse(2)}, offerings=(Offering("fra", 0.02),))
        >>> cloud = SimulatedProvider([small], clock, boot_time=timedelta(minutes=1))
        >>> request = MachineRequest("pool-1", "pool", "small")
        >>> asyncio.run(cloud.create(request)).state
        <MachineState.PENDING: 'Pending'>
        >>> clock.advance(timedelta(minutes=1))
        >>> asyncio.run(cloud.get(request)).state
        <MachineState.RUNNING: 'Running'>
    """

    def __init__(
        self,
        types: Iterable[InstanceType],
        clock: Clock,
        *,
        boot_time: timedelta = timedelta(seconds=45),
        deletion_time: timedelta = timedelta(0),
        quota: int | None = None,
        fails: Callable[[MachineRequest], bool] = _never,
    ) -> None:
        self._types = {each.name: each for each in types}
        self._clock = clock
        self._boot_time = boot_time
        self._deletion_time = deletion_time
        self._quota = quota
        self._fails = fails
        self._records: dict[str, _Record] = {}
        self._spent = 0.0

    @property
    def keeps_names(self) -> bool:
        """True; as `Provider`."""
        return True

    async def instance_types(self) -> Sequence[InstanceType]:
        """Return the instance types."""
        return list(self._types.values())

    async def create(self, request: MachineRequest) -> Machine:
        """Create a machine; as `Provider`."""
        self._forget_deleted()
        if request.name not in self._records:
            self._records[request.name] = self._record(request)
        return self._machine(self._records[request.name])

    async def get(self, request: MachineRequest) -> Machine:
        """Return the machine of a request; as `Provider`."""
        self._forget_deleted()
        if request.name not in self._records:
            raise MachineNotFoundError(f"there is no machine {request.name}")
        return self._machine(self._records[request.name])

    async def list(self) -> Sequence[Machine]:
        """Return all machines, sorted by name."""
        return self.machines()

    def machines(self) -> Sequence[Machine]:
        """Return the machines that there are, sorted by name."""
        self._forget_deleted()
        return [self._machine(self._records[name]) for name in sorted(self._records)]

    async def delete(self, machine: Machine) -> None:
        """Delete a machine; as `Provider`."""
        self._delete(machine.name or machine.id)

    def set_available(self, instance_type: str, *, available: bool, zone: str = "") -> None:
        """Change whether machines of a type can be created.

        Args:
            instance_type: Name of the type.
            available: Whether they can be created.
            zone: The zone; empty changes all of them.
        """
        known = self._types[instance_type]
        offerings = tuple(
            replace(each, available=available) if zone in ("", each.zone) else each for each in known.offerings
        )
        self._types[instance_type] = replace(known, offerings=offerings)

    def interrupt(self, name: str) -> None:
        """Take a machine away at once, as a cloud does with spot machines."""
        self._delete(name)

    def cost(self) -> float:
        """Return what all machines have cost so far; a machine costs from its creation to its deletion."""
        return self._spent + sum(self._cost(record, self._clock.now()) for record in self._records.values())

    async def register_nodes(self, cluster: Cluster) -> None:
        """Create a ready Node for every running machine that has none, and delete Nodes without machine.

        A kubelet and the node lifecycle controller of a cloud do this in a real cluster.

        Args:
            cluster: The cluster.
        """
        listed = await cluster.list("v1", "Node", ListOptions())
        known = {str(node["metadata"]["name"]): node for node in listed.items}
        machines = {each.name: each for each in self.machines()}
        for name, node in known.items():
            ours = str(node.get("spec", {}).get("providerID", "")).startswith(f"{_SCHEME}://")
            if ours and name not in machines:
                await _delete_node(cluster, name)
        for name, machine in machines.items():
            if name not in known and self.may_join(machine):
                await self._register(cluster, self._records[name].request)

    def may_join(self, machine: Machine) -> bool:
        """Return whether the Node of a machine that runs may join the cluster."""
        return machine.state is MachineState.RUNNING

    def node_of(self, request: MachineRequest) -> Manifest:
        """Return the Node that a machine registers, without conditions."""
        return node_manifest(request, self._types[request.instance_type], provider=_SCHEME)

    async def _register(self, cluster: Cluster, request: MachineRequest) -> None:
        node = self.node_of(request)
        now = format_time(self._clock.now())
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        await cluster.create(node, field_manager=_SCHEME)
        await cluster.patch(
            ObjectKey.of(node),
            {"status": {**node["status"], "conditions": [ready]}},
            PatchOptions(field_manager=_SCHEME, patch_type=PatchType.MERGE, subresource=Subresource.STATUS),
        )

    def _record(self, request: MachineRequest) -> _Record:
        known = self._types.get(request.instance_type)
        if known is None:
            names = ", ".join(sorted(self._types))
            raise ProviderRefusedError(f"unknown instance type {request.instance_type!r}, known are {names}")
        offering = known.offering(request.zone)
        if offering is None:
            raise CapacityExhaustedError(f"no {request.instance_type} is available in zone {request.zone or 'any'}")
        # Machines that are being deleted still count, as with a cloud.
        if self._quota is not None and len(self._records) >= self._quota:
            raise ProviderRefusedError(f"the quota of {self._quota} machines is used up")
        now = self._clock.now()
        placed = replace(request, zone=offering.zone)
        boots_at = None if self._fails(request) else now + self._boot_time
        return _Record(placed, now, boots_at, offering.price)

    def _machine(self, record: _Record) -> Machine:
        request = record.request
        state = self._state(record)
        return Machine(
            id=request.name,
            state=state,
            name=request.name,
            node_name=request.name,
            provider_id=f"{_SCHEME}://{request.name}",
            instance_type=request.instance_type,
            zone=request.zone,
            created_at=record.created_at,
            problem="the machine did not boot" if state is MachineState.FAILED else "",
        )

    def _state(self, record: _Record) -> MachineState:
        if record.deleted_at is not None:
            return MachineState.DELETING
        now = self._clock.now()
        if record.boots_at is None:
            return MachineState.FAILED if now >= record.created_at + self._boot_time else MachineState.PENDING
        return MachineState.RUNNING if now >= record.boots_at else MachineState.PENDING

    def _delete(self, name: str) -> None:
        record = self._records.get(name)
        if record is not None and record.deleted_at is None:
            self._records[name] = replace(record, deleted_at=self._clock.now())
        self._forget_deleted()

    def _forget_deleted(self) -> None:
        now = self._clock.now()
        for name, record in list(self._records.items()):
            if record.deleted_at is not None and now >= record.deleted_at + self._deletion_time:
                self._spent += self._cost(record, now)
                del self._records[name]

    def _cost(self, record: _Record, now: datetime) -> float:
        until = record.deleted_at or now
        return record.price * max(0.0, (until - record.created_at).total_seconds()) / _SECONDS_PER_HOUR


async def _delete_node(cluster: Cluster, name: str) -> None:
    try:
        await cluster.delete(ObjectKey("v1", "Node", name))
    except NotFoundError:
        return
