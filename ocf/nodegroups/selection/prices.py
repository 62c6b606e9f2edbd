"""Prices of resources, which a mix of nodes is compared by."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ocf.nodegroups.packing import NodeTemplate
from ocf.nodegroups.snapshot import Resources

__all__ = ["UnitPrices", "unit_prices"]


class UnitPrices(NamedTuple):
    """The value of resources, such that no node is worth more than its price.

    Args:
        cpu: Of a milli-CPU per hour.
        memory: Of a byte per hour.
    """

    cpu: float
    memory: float

    def of(self, amount: Resources) -> float:
        """Return the value of an amount: no mix of nodes that has it costs less."""
        return self.cpu * amount.cpu + self.memory * amount.memory


def unit_prices(templates: Sequence[NodeTemplate], wanted: Resources) -> UnitPrices:
    """Return the values of CPU and memory with which an amount is worth most.

    This is the dual of the linear program that buys fractions of nodes: its optimum is where two types are worth
    exactly their price, or where one resource is worth nothing.

    Args:
        templates: The nodes that could be added.
        wanted: The requests of all pods.

    Example:
        >>> from ocf.nodegroups.snapshot import Node
        >>> def offer(cpu: int, price: float) -> NodeTemplate:
        ...     size = Resources(cpu=cpu, memory=4 * 2**30)
        ...     return NodeTemplate(group="g", price=price, node=Node(name="", allocatable=size))
        >>> prices = unit_prices([offer(2000, 0.1), offer(4000, 0.18)], Resources(cpu=8000, memory=12 * 2**30))
        >>> round(prices.of(Resources(cpu=4000, memory=4 * 2**30)), 9)
        0.18
    """
    best = UnitPrices(0.0, 0.0)
    sizes = sorted({(each.node.allocatable.cpu, each.node.allocatable.memory, each.price) for each in templates})
    for prices in _corners(sizes):
        # A corner lies on two of the limits, and rounding may put it just outside.
        if prices.of(wanted) > best.of(wanted) and all(
            prices.cpu * cpu + prices.memory * memory <= price * (1 + 1e-9) for cpu, memory, price in sizes
        ):
            best = prices
    return best


def _corners(sizes: Sequence[tuple[int, int, float]]) -> Iterable[UnitPrices]:
    """Yield the values at which two constraints hold with equality."""
    for position, (cpu, memory, price) in enumerate(sizes):
        if cpu > 0:
            yield UnitPrices(price / cpu, 0.0)
        if memory > 0:
            yield UnitPrices(0.0, price / memory)
        for other_cpu, other_memory, other_price in sizes[:position]:
            determinant = cpu * other_memory - other_cpu * memory
            if determinant:
                per_cpu = (price * other_memory - other_price * memory) / determinant
                per_memory = (cpu * other_price - other_cpu * price) / determinant
                if per_cpu >= 0 and per_memory >= 0:
                    yield UnitPrices(per_cpu, per_memory)
