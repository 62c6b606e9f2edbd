"""A group and its instance types, for tests."""

from datetime import UTC, datetime
from typing import Any, Final

from ocf.nodegroups.instance_types import InstanceType, Offering
from ocf.nodegroups.model import Catalog, NodeGroup
from ocf.objects import Quantity

__all__ = ["CATALOG", "NOW", "POOL", "group"]

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
POOL: Final = {"pool": "workers"}
GI: Final = 2**30


def _type(name: str, cpu: int, memory: int, price: float) -> InstanceType:
    amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Gi", "pods": "110"}
    size = {resource: Quantity.parse(amount) for resource, amount in amounts.items()}
    return InstanceType(name, size, offerings=(Offering("a", price), Offering("b", price)))


CATALOG: Final = Catalog.of(
    [_type("small", 2000, 8, 0.10), _type("medium", 4000, 16, 0.20), _type("large", 16000, 64, 0.72)]
)
"""Three types; the largest is the cheapest per CPU."""


def group(name: str = "workers", **parts: Any) -> NodeGroup:
    """Return a group of up to ten nodes of the type medium in zone a."""
    defaults: dict[str, Any] = {
        "max_nodes": 10,
        "instance_types": ("medium",),
        "zones": ("a",),
        "member_labels": {"pool": name},
    }
    return NodeGroup(name=name, **(defaults | parts))
