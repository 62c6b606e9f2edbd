"""Instance types: what a provider offers, where, and at what price."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ocf.nodegroups.snapshot import Resources

__all__ = ["Catalog", "InstanceType", "Offer"]


@dataclass(frozen=True, slots=True)
class Offer:
    """An instance type in a zone.

    Args:
        zone: The zone or datacenter.
        price: Price per hour.
        available: Whether it can be had at the moment.
    """

    zone: str
    price: float
    available: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """An instance type.

    Args:
        name: Its name.
        allocatable: The resources that pods can request on one of its nodes.
        labels: The labels of its nodes, in addition to instance type and zone.
        offers: Where it can be had.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog:
    """The instance types of a provider.

    Args:
        types: The instance types by name.

    Example:
        >>> small = InstanceType(name="small", allocatable=Resources(cpu=2000), offers=(Offer("a", 0.1),))
        >>> Catalog.of([small]).offer("small", "a")
        Offer(zone='a', price=0.1, available=True)
    """

    types: Mapping[str, InstanceType] = field(default_factory=dict)

    @classmethod
    def of(cls, types: Iterable[InstanceType]) -> "Catalog":
        """Return a catalog of instance types."""
        return cls({each.name: each for each in types})

    def offer(self, name: str, zone: str) -> Offer | None:
        """Return the offer of a type in a zone; None if there is none."""
        known = self.types.get(name)
        return next((offer for offer in known.offers if offer.zone == zone), None) if known else None
