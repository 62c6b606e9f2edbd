"""The nodes of a simulation while it runs: machines, scheduler and the controller of node groups."""

from collections.abc import Sequence
from typing import Final

from ocf.simulation.engine.clock import Clock
from ocf.simulation.engine.nodes.controller import NodeController
from ocf.simulation.engine.nodes.fleet import NodeFleet
from ocf.simulation.engine.nodes.machines import NodeState, SimulatedNode
from ocf.simulation.engine.nodes.scheduler import Scheduler
from ocf.simulation.engine.pods import Pods
from ocf.simulation.result import ScalingAction

__all__ = ["NodeCluster"]

_NAN: Final = float("nan")
_Sums = tuple[tuple[float, ...], tuple[float, ...], int, int]


class NodeCluster:
    """The nodes of a simulation.

    Args:
        fleet: The groups, with their nodes; the pods join its scheduler.
        period: Microseconds between two syncs of the controller.
        full: Whether every sync decides.

    Attributes:
        fleet: The groups, with their nodes.
    """

    def __init__(self, fleet: NodeFleet, *, clock: Clock, period: int, full: bool = False) -> None:
        self.fleet = fleet
        self._summed = -1
        self._sums: _Sums = ((), (), 0, 0)
        self.controller = NodeController(fleet, clock=clock, period=period, full=full)

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
        pool, scheduler = self.fleet.pool, self.fleet.scheduler
        if pool.due > now:
            return False

        pool.advance(now, _Happening(self.controller, scheduler, now))
        scheduler.schedule(now)
        return True

    def sync(self, now: int) -> bool:
        """Run the controller, if that is due.

        Args:
            now: The instant in microseconds.

        Returns:
            Whether a pod or a node has changed.
        """
        return self.controller.sync(now)

    def numbers(self, pods: Pods) -> tuple[float, ...]:
        """Return the values of the columns of nodes in the rows of a workload, those of each group last."""
        pool, bound = self.fleet.pool, self.fleet.scheduler.bound
        # Rows are more frequent than changes of nodes.
        if self._summed != pool.version:
            self._summed, self._sums = pool.version, self._sum()
        totals, groups, cpu, memory = self._sums
        shares = (_NAN, _NAN)
        if cpu:
            requests = [each.requests for each in self.fleet.shapes]
            shares = (
                sum(number * each.cpu for number, each in zip(bound, requests, strict=True)) / cpu,
                sum(number * each.memory for number, each in zip(bound, requests, strict=True)) / memory,
            )
        return len(pods.waiting), *totals, *shares, *groups

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


class _Happening:
    """What happens to pods, and what the controller learns, when something happens to nodes."""

    def __init__(self, controller: NodeController, scheduler: Scheduler, now: int) -> None:
        self._controller = controller
        self._scheduler = scheduler
        self._now = now

    def noticed(self, node: SimulatedNode) -> None:
        """Evict the pods of a node that the provider is about to take away."""
        self._controller.note_interruption(node, self._now, f"the provider takes node {node.name} away")
        self._scheduler.evict([pod for pod in node.pods.values() if not pod.deleted], self._now)

    def vanished(self, node: SimulatedNode, reason: str) -> None:
        """Lose the pods of a node."""
        # An interruption was noted at its notice.
        if reason and not node.interrupted:
            self._controller.note_interruption(node, self._now, f"node {node.name} is gone: {reason}")
        self._scheduler.lose([*node.pods.values()], self._now)

    def booted(self, node: SimulatedNode) -> None:
        """Let the controller order the instance type again, if it was left alone."""
        self._controller.note_boot(node)

    def failed(self, node: SimulatedNode, reason: str) -> None:
        """Let the controller leave the instance type alone for a while."""
        self._controller.note_failure(node, self._now, f"node {node.name} is given up: {reason}")


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
