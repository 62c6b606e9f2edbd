"""Instance types: the sizes of machines that a provider offers, with their prices."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ocf.objects import Quantity

__all__ = ["InstanceType", "Offering"]


@dataclass(frozen=True, slots=True)
class Offering:
    """An instance type in one zone.

    Args:
        zone: The zone or datacenter; empty for a provider without zones.
        price: Price per hour; all prices of a provider have one currency.
        available: Whether the provider has machines of the type in the zone now.
        spot: Whether the provider may take the machine away.
    """

    zone: str
    price: float
    available: bool = True
    spot: bool = False


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A size of machines.

    Args:
        name: Name by which the provider knows it.
        capacity: What a machine has: `cpu`, `memory`, `pods` and extended resources.
        allocatable: What pods may request on its node; the capacity if it is not given.
        offerings: The zones that have it, with prices; at least one.
        labels: Labels of its nodes beyond those that every node has.
        problem: Why no node of it can be added, such as a capacity that cannot be read; empty if there is no problem.
            Such a type keeps no other from being used.
        undeletable: Why its machines cannot be deleted now, such as a rollout of the provider; empty if they can.

    Example:
        >>> small = InstanceType("small", {"cpu": Quantity.parse(2)}, offerings=(Offering("fra", 0.02),))
        >>> str(small.allocatable["cpu"]), small.offering("fra"), small.offering("ams")
        ('2', Offering(zone='fra', price=0.02, available=True, spot=False), None)
    """

    name: str
    capacity: Mapping[str, Quantity]
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)
    offerings: tuple[Offering, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    undeletable: str = ""

    def __post_init__(self) -> None:
        if not self.allocatable:
            object.__setattr__(self, "allocatable", self.capacity)

    def offering(self, zone: str) -> Offering | None:
        """Return the cheapest available offering in a zone, or in any zone if it is empty; None without one."""
        there = [each for each in self.offerings if each.available and zone in ("", each.zone)]
        return min(there, key=lambda each: (each.price, each.zone, each.spot), default=None)
