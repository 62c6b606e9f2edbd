"""The nodes of a simulation while it runs: machines, scheduler and the controller of node groups."""

from collections.abc import Sequence
from typing import Final

from ocf.simulation.engine.clock import Clock
from ocf.simulation.engine.nodes.controller import NodeController
from ocf.simulation.engine.nodes.fleet import NodeFleet
from ocf.simulation.engine.nodes.machines import NodeState, SimulatedNode
from ocf.simulation.engine.pods import Pods
from ocf.simulation.result import ScalingAction

__all__ = ["NodeCluster"]

_NAN: Final = float("nan")
_Sums = tuple[tuple[float, ...], tuple[float, ...], int, int]


class NodeCluster:
    """The nodes of a simulation.

    Args:
        fleet: The groups, with their nodes.
        pods: The pods, which the scheduler of the groups binds.
        period: Microseconds between two syncs of the controller.
        full: Whether every sync decides.

    Attributes:
        fleet: The groups, with their nodes.
    """

    def __init__(self, fleet: NodeFleet, pods: Pods, *, clock: Clock, period: int, full: bool = False) -> None:
        self.fleet = fleet
        self._pods = pods
        self._summed = -1
        self._sums: _Sums = ((), (), 0, 0)
        self.controller = NodeController(fleet, pods, clock=clock, period=period, full=full)

    def due_after(self, now: int) -> int:
        """Return the instant at which something happens next.

        Args:
            now: The present instant, at which all has happened.
        """
        return min(self.fleet.pool.due, self.controller.due_after(now))

    @property
    def actions(self) -> tuple[ScalingAction, ...]:
        """What the controller and the provider did so far."""
        return tuple(self.controller.actions)

    def advance(self, now: int) -> bool:
        """Let nodes boot, be interrupted, vanish and shut down.

        Args:
            now: The instant in microseconds.

        Returns:
            Whether something happened.
        """
        pool = self.fleet.pool
        if pool.due > now:
            return False

        def evict(node: SimulatedNode) -> None:
            self.controller.note_interruption(node, now)
            self._pods.evict([pod for pod in node.pods.values() if not pod.deleted], now)

        pool.advance(now, on_notice=evict, on_vanished=lambda node: self._pods.lose([*node.pods.values()], now))
        self._pods.schedule(now)
        return True

    def sync(self, now: int) -> bool:
        """Run the controller, if that is due.

        Args:
            now: The instant in microseconds.

        Returns:
            Whether a pod or a node has changed.
        """
        return self.controller.sync(now)

    def numbers(self) -> tuple[float, ...]:
        """Return the values of the columns of nodes, those of each group last."""
        pool, bound, requests = self.fleet.pool, self.fleet.scheduler.bound, self.fleet.shape.requests
        # Rows are more frequent than changes of nodes.
        if self._summed != pool.version:
            self._summed, self._sums = pool.version, self._sum()
        totals, groups, cpu, memory = self._sums
        shares = (bound * requests.cpu / cpu, bound * requests.memory / memory) if cpu else (_NAN, _NAN)
        return len(self._pods.waiting), *totals, *shares, *groups

    def _sum(self) -> _Sums:
        """Return numbers by state and price of all nodes and of each group, and what the nodes that are up have."""
        totals, groups = _Numbers(), [_Numbers() for _ in self.fleet.groups]
        cpu = memory = 0
        for kind, counts in self.fleet.pool.counts:
            size = kind.template.node.allocatable
            up = sum(counts) - counts[NodeState.BOOTING]
            cpu += up * size.cpu
            memory += up * size.memory
            totals.add(counts, kind.template.price)
            groups[kind.group].add(counts, kind.template.price)
        return totals.values(), tuple(value for group in groups for value in group.values()), cpu, memory


class _Numbers:
    """Number of nodes by state, and their price for an hour."""

    def __init__(self) -> None:
        self._counts = [0] * len(NodeState)
        self._price = 0.0

    def add(self, counts: Sequence[int], price: float) -> None:
        """Add the nodes of a kind."""
        self._counts = [mine + more for mine, more in zip(self._counts, counts, strict=True)]
        self._price += sum(counts) * price

    def values(self) -> tuple[float, ...]:
        """Return the values of the columns."""
        return *self._counts, self._price
