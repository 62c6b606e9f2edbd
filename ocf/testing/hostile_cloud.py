"""`HostileCloud`: a simulated cloud that does what real ones do now and then.

Its nodes differ from their types and come late or never, a request gets two machines, its calls fail before or after
their effect or ask to wait, and its list of machines is empty, partial or old.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from ocf.concepts import Clock
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import ProviderUnavailableError
from ocf.nodegroups import IncompleteListError, InstanceType, Machine, MachineRequest
from ocf.objects import Manifest

__all__ = ["HostileCloud", "ListAnswer"]


_TWIN: Final = "-twin"


class ListAnswer(Enum):
    """How the list of machines is answered."""

    TRUE = "true"
    """With all machines."""
    EMPTY = "empty"
    """With none."""
    PARTIAL = "partial"
    """Without every second machine."""
    STALE = "stale"
    """As the last time that it was answered truly."""
    FAILS = "fails"
    """Not at all: the provider is not available."""


def _as_is(_: MachineRequest, node: Manifest) -> Manifest:
    return node


class HostileCloud(SimulatedProvider):
    """A `SimulatedProvider` with the faults of real clouds, for tests of controllers and of safety rules.

    Args:
        types: The instance types.
        clock: Gives the time.
        node: Changes the Node that the machine of a request registers: its size, labels and taints.
        settings: Settings of `SimulatedProvider`.

    Attributes:
        answer: How the list of machines is answered from now on.
        unreadable: The instance types whose machines cannot be read from now on.
        loses: The calls, `create` or `delete`, whose answers are lost from now on, after their effect.
        fails_before: The calls that fail from now on, before they have an effect.
        doubles: Whether each request gets two machines from now on, both with its name.
        joins_after: How long after its machine runs a Node joins; None for never.
        calls: The names of the calls so far.

    Example:
        >>> import asyncio
        >>> from ocf.nodegroups import Offering
        >>> from ocf.objects import Quantity
        >>> from ocf.testing import VirtualClock
        >>> small = InstanceType("small", {"cpu": Quantity.parse(2)}, offerings=(Offering("fra", 0.02),))
        >>> cloud = HostileCloud([small], VirtualClock())
        >>> _ = asyncio.run(cloud.create(MachineRequest("pool-1", "pool", "small")))
        >>> cloud.answer = ListAnswer.EMPTY
        >>> asyncio.run(cloud.list())
        []
    """

    def __init__(
        self,
        types: Iterable[InstanceType],
        clock: Clock,
        *,
        node: Callable[[MachineRequest, Manifest], Manifest] = _as_is,
        **settings: Any,
    ) -> None:
        super().__init__(types, clock, **settings)
        self.node = node
        self.answer = ListAnswer.TRUE
        self.unreadable: frozenset[str] = frozenset()
        self.loses: frozenset[str] = frozenset()
        self.fails_before: frozenset[str] = frozenset()
        self.doubles = False
        self.joins_after: timedelta | None = timedelta(0)
        self.calls: list[str] = []
        self._until: datetime | None = None
        self._last: Sequence[Machine] = ()

    def node_of(self, request: MachineRequest) -> Manifest:
        """Return the Node that a machine registers, which may differ from its type."""
        return self.node(request, super().node_of(request))

    def throttle(self, wait: timedelta) -> None:
        """Answer no call for a while, and say so with `Retry-After`.

        Args:
            wait: How long from now on.
        """
        self._until = self._clock.now() + wait

    def may_join(self, machine: Machine) -> bool:
        """Return whether the Node of a machine that runs may join the cluster, as `joins_after` says."""
        runs_since = self._clock.now() - self._boot_time - (machine.created_at or self._clock.now())
        return super().may_join(machine) and self.joins_after is not None and runs_since >= self.joins_after

    async def instance_types(self) -> Sequence[InstanceType]:
        """Return the instance types; as `Provider`."""
        self._begin("instance_types")
        return await super().instance_types()

    async def get(self, request: MachineRequest) -> Machine:
        """Return the machine of a request; as `Provider`."""
        self._begin("get")
        return await super().get(request)

    async def create(self, request: MachineRequest) -> Machine:
        """Create a machine; as `Provider`."""
        self._begin("create")
        machine = await super().create(request)
        if self.doubles:
            await super().create(replace(request, name=f"{request.name}{_TWIN}"))
        self._lose("create")
        return machine

    async def delete(self, machine: Machine) -> None:
        """Delete a machine; as `Provider`."""
        self._begin("delete")
        # Of two machines with one name only that of the id.
        await super().delete(replace(machine, name=machine.id or machine.name))
        self._lose("delete")

    async def list(self) -> Sequence[Machine]:
        """Return machines, as `answer` says."""
        self._begin("list")
        machines = [replace(each, name=each.name.removesuffix(_TWIN)) for each in await super().list()]
        if self.unreadable:
            readable = [each for each in machines if each.instance_type not in self.unreadable]
            raise IncompleteListError(readable, {name: f"{name}: cannot be read" for name in self.unreadable})
        match self.answer:
            case ListAnswer.FAILS:
                raise ProviderUnavailableError("the list of machines is not available")
            case ListAnswer.EMPTY:
                return []
            case ListAnswer.PARTIAL:
                return machines[::2]
            case ListAnswer.STALE:
                return self._last
            case ListAnswer.TRUE:
                self._last = machines
                return machines

    def _begin(self, call: str) -> None:
        self.calls.append(call)
        left = timedelta(0) if self._until is None else self._until - self._clock.now()
        if left > timedelta(0):
            wait = left.total_seconds()
            raise ProviderUnavailableError(f"{call}: too many requests", retry_after=wait, had_no_effect=True)
        if call in self.fails_before:
            raise ProviderUnavailableError(f"{call} is not available")

    def _lose(self, call: str) -> None:
        if call in self.loses:
            raise ProviderUnavailableError(f"the answer of {call} was lost")
