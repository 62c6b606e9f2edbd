"""`Provider`: interface to whatever makes the machines that nodes run on.

A machine is created for one node and named by it. The controller stores the request before it sends it, so that after
a crash it asks again for the same machine; `create` therefore has to be idempotent by the name of the request. A cloud
without idempotency keys can look for machines that belong to no node instead, see `MachineRequest.retried`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Protocol

from ocf.errors import ProviderError
from ocf.nodegroups.instance_types import InstanceType

__all__ = ["IncompleteListError", "Machine", "MachineRequest", "MachineState", "Provider"]


class MachineState(Enum):
    """State of a machine, as the provider reports it."""

    PENDING = "Pending"
    """Requested or booting."""
    RUNNING = "Running"
    """Booted; its node may not have joined the cluster yet."""
    DELETING = "Deleting"
    """Being deleted; no more than that is known of it."""
    REPLACING = "Replacing"
    """Being deleted, but not by this controller; the provider creates another one for the same request."""
    FAILED = "Failed"
    """It will never run; the controller deletes it and asks for another one."""


@dataclass(frozen=True, slots=True)
class MachineRequest:
    """Request for one machine.

    Args:
        name: Name of the machine, unique in the cluster; two requests of one name are one machine.
        group: Name of the node group.
        instance_type: Name of the instance type.
        zone: The zone or datacenter; empty lets the provider choose.
        labels: Labels that the node should have when it joins the cluster.
        taints: Taints that the node should have when it joins, in API spelling.
        settings: Settings of the group that only this provider reads.
        machine_id: Id of its machine, as soon as one was returned.
        retried: Whether a request of this name may have been sent before, so that a provider whose cloud has no
            idempotency keys looks for an existing machine first.
        excluded: Ids of the machines that cannot be the result of this request: those that belong to other nodes, and
            those that existed before it was sent for the first time. Only such a provider reads them.
    """

    name: str
    group: str
    instance_type: str
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    machine_id: str = ""
    retried: bool = False
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a provider.

    Args:
        id: Identifier of the machine; empty as long as the provider does not report one. A machine of the same name and
            of another id is a replacement, whose node is expected anew.
        state: State of the machine.
        name: Name of the request that created it; empty if the provider does not keep it.
        node_name: Name of the node that it runs, usually its host name; empty while unknown.
        provider_id: `spec.providerID` of that node; empty if the provider sets none.
        addresses: Its IP addresses.
        instance_type: Name of its instance type; empty if the provider does not report it.
        zone: Its zone or datacenter; empty if the provider does not report it.
        created_at: When it was created; None if the provider does not report it.
        problem: Why it failed; empty unless the state is `FAILED`.
        may_be_foreign: Whether another cluster may have created it. Such a machine is deleted only together with its
            `VPSieNode`.
    """

    id: str
    state: MachineState
    name: str = ""
    node_name: str = ""
    provider_id: str = ""
    addresses: tuple[str, ...] = ()
    instance_type: str = ""
    zone: str = ""
    created_at: datetime | None = None
    problem: str = ""
    may_be_foreign: bool = False


class IncompleteListError(ProviderError):
    """The machines of some instance types could not be read; those of the others are known.

    Args:
        machines: The machines that could be read.
        failed: Why the machines of an instance type could not be read, by the name of the type.

    Example:
        >>> error = IncompleteListError([], {"small": "page 2: the request timed out"})
        >>> str(error), error.failed["small"]
        ('page 2: the request timed out', 'page 2: the request timed out')
    """

    def __init__(self, machines: Sequence[Machine], failed: Mapping[str, str]) -> None:
        self.machines = machines
        self.failed = failed
        super().__init__("; ".join(failed.values()))


class Provider(Protocol):
    """Creates and deletes machines.

    Every method raises a `ocf.errors.ProviderError`, and nothing else, when the provider fails:
    `ProviderUnavailableError` if the same call may succeed later, `ProviderRefusedError` if it cannot (a quota, a
    plan, a permission), `CapacityExhaustedError` if the provider has no machine of that type now.
    `ocf.testing.provider_suite` has the tests that every provider has to pass.
    """

    @property
    def keeps_names(self) -> bool:
        """Whether `list` has a machine, with the name of its request, as soon as `create` has returned.

        If it is false, a machine belongs to the request that finds it, and requests are sent one at a time, each once.
        One whose machine has not appeared after a while is given up, and gets it if it appears later.
        """
        ...

    async def instance_types(self) -> Sequence[InstanceType]:
        """Return all instance types, with their prices and zones."""
        ...

    async def create(self, request: MachineRequest) -> Machine:
        """Create a machine, or return the one that an earlier request of the same name created.

        Args:
            request: The machine to create.

        Returns:
            The machine; its state is usually `PENDING`, and its id may still be empty.

        Raises:
            CapacityExhaustedError: If there is no machine of that type in that zone now.
            ProviderRefusedError: If the request is refused for good.
            ProviderUnavailableError: If the provider does not answer; the machine may have been created, unless the
                error has `had_no_effect`.
        """
        ...

    async def get(self, request: MachineRequest) -> Machine:
        """Return the machine of a request.

        Args:
            request: The request that created it, with `excluded` as of now.

        Raises:
            MachineNotFoundError: If there is no such machine.
            ProviderUnavailableError: If the provider does not answer.
        """
        ...

    async def list(self) -> Sequence[Machine]:
        """Return all machines that this provider manages in the cluster, those that belong to no node included.

        Raises:
            IncompleteListError: If the machines of some instance types cannot be read. Their nodes are left alone, and
                the others go on.
            ProviderUnavailableError: If the provider does not answer.
        """
        ...

    async def delete(self, machine: Machine) -> None:
        """Delete a machine; one that does not exist any more is deleted.

        The call only starts the deletion. The machine is gone when `list` does not contain it any more.

        Args:
            machine: The machine, with its id or, where the provider keeps names, its name.

        Raises:
            ProviderRefusedError: If the provider refuses to delete it.
            ProviderUnavailableError: If the provider does not answer.
        """
        ...
