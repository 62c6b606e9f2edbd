"""The nodes of a simulation while it runs: machines, scheduler and the controller of node groups."""

from ocf.simulation.engine.clock import Clock
from ocf.simulation.engine.nodes.controller import NodeController
from ocf.simulation.engine.nodes.fleet import NodeFleet
from ocf.simulation.engine.nodes.machines import NodeState, SimulatedNode
from ocf.simulation.engine.pods import Pods
from ocf.simulation.result import Action

__all__ = ["NodeCluster"]

_NAN = float("nan")


class NodeCluster:
    """The nodes of a simulation.

    Args:
        fleet: The groups, with their nodes.
        pods: The pods, which the scheduler of the groups binds.
        clock: The clock.
        period: Microseconds between two syncs of the controller.
        full: Whether every sync decides.

    Attributes:
        fleet: The groups, with their nodes.
        controller: The controller.
    """

    def __init__(self, fleet: NodeFleet, pods: Pods, *, clock: Clock, period: int, full: bool = False) -> None:
        self.fleet = fleet
        self._pods = pods
        self.controller = NodeController(fleet, pods, clock=clock, period=period, full=full)

    def due_after(self, now: int) -> int:
        """Return the instant at which something happens next.

        Args:
            now: The present instant, at which all has happened.
        """
        return min(self.fleet.pool.due, self.controller.due_after(now))

    @property
    def actions(self) -> tuple[Action, ...]:
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
        totals, groups = [0, 0, 0, 0.0], [[0, 0, 0, 0.0] for _ in self.fleet.groups]
        cpu = memory = 0
        for kind, counts in self.fleet.pool.counts:
            number, size = sum(counts), kind.template.node.allocatable
            up = number - counts[NodeState.BOOTING]
            cpu += up * size.cpu
            memory += up * size.memory
            for sums in (totals, groups[kind.group]):
                for state in NodeState:
                    sums[state] += counts[state]
                sums[-1] += number * kind.template.price
        bound, requests = self.fleet.scheduler.bound, self.fleet.shape.requests
        shares = (bound * requests.cpu / cpu, bound * requests.memory / memory) if cpu else (_NAN, _NAN)
        return (len(self._pods.waiting), *totals, *shares, *(value for group in groups for value in group))
