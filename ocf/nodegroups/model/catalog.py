"""Catalog: the instance types of a provider by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ocf.nodegroups.instance_types import InstanceType, Offering
from ocf.nodegroups.snapshot.resources import Resources, to_resources

__all__ = ["Catalog"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The instance types of a provider.

    Args:
        types: The instance types by name.

    Example:
        >>> from ocf.objects import Quantity
        >>> small = InstanceType("small", {"cpu": Quantity.parse(2)}, offerings=(Offering("a", 0.1),))
        >>> catalog = Catalog.of([small])
        >>> catalog.price("small", "a"), catalog.price("small", "b"), catalog.allocatable("small").cpu
        (0.1, None, 2000)
    """

    types: Mapping[str, InstanceType] = field(default_factory=dict)

    @classmethod
    def of(cls, types: Iterable[InstanceType]) -> "Catalog":
        """Return a catalog of instance types."""
        return cls({each.name: each for each in types})

    def allocatable(self, name: str) -> Resources:
        """Return the resources that pods can request on a node of a type."""
        return to_resources({key: amount.nano for key, amount in self.types[name].allocatable.items()})

    def zones(self, name: str) -> tuple[str, ...]:
        """Return the zones that have a type, in the order of its offerings."""
        return tuple(dict.fromkeys(offering.zone for offering in self.types[name].offerings))

    def offerings(self, name: str, zone: str) -> tuple[Offering, ...]:
        """Return the offerings of a type in a zone, whether available or not, the cheapest first."""
        known = self.types.get(name)
        there = (each for each in known.offerings if each.zone == zone) if known else ()
        # At one price a machine that stays comes before one that may be taken away.
        return tuple(sorted(there, key=lambda each: (each.price, each.spot)))

    def price(self, name: str, zone: str) -> float | None:
        """Return the lowest price per hour of a type in a zone; None if the provider does not offer it there."""
        found = self.offerings(name, zone)
        return found[0].price if found else None
