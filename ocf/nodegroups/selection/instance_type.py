"""Choice of the instance type of a new node: the preferred one if it is valid, otherwise the first available one."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ocf.nodegroups.instance_types import InstanceType, Offering
from ocf.nodegroups.model import Catalog, NodeGroup
from ocf.nodegroups.packing import NodeTemplate
from ocf.nodegroups.selection.learned import Learned
from ocf.nodegroups.snapshot import Node
from ocf.objects.suggestions import nearest

__all__ = ["Selection", "promised_node", "select_instance_type", "templates"]

_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_ZONE_LABEL: Final = "topology.kubernetes.io/zone"


class Selection(NamedTuple):
    """The instance types that a group can use, in the order in which they are tried.

    Args:
        offerings: Pairs of a type and its cheapest available offering in a zone.
        reasons: Why other types or zones are left out.
        problems: Those of the reasons that do not pass by themselves: types and zones that do not exist, or cannot be
            read.
    """

    offerings: tuple[tuple[InstanceType, Offering], ...]
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[InstanceType, Offering] | None:
        """The type and the offering of the next node; None if there is none."""
        return self.offerings[0] if self.offerings else None


def select_instance_type(
    group: NodeGroup, catalog: Catalog, *, backed_off: frozenset[tuple[str, str]] = frozenset()
) -> Selection:
    """Return the instance types that a group can use, the best first.

    The preferred type comes first if it is one of the group's types. The others follow in the order of the group. Each
    type is tried in the zones of the group, in their order.

    Args:
        group: The group.
        catalog: The types of the provider.
        backed_off: Types and zones that the provider refused a short time ago.

    Returns:
        The offerings that are available, and why others are not used.

    Example:
        >>> from ocf.objects import Quantity
        >>> small = InstanceType("small", {"cpu": Quantity.parse(2)}, offerings=(Offering("a", 0.1),))
        >>> group = NodeGroup(name="g", instance_types=("gone", "small"), zones=("a",), member_labels={"pool": "g"})
        >>> selection = select_instance_type(group, Catalog.of([small]))
        >>> selection.first[0].name, selection.reasons
        ('small', ('instance type gone is unknown',))
    """
    found: list[tuple[InstanceType, Offering]] = []
    reasons: list[str] = []
    problems: list[str] = []
    for name in _names(group):
        if problem := _problem_of(name, catalog):
            reasons.append(problem)
            problems.append(problem)
            continue
        known = catalog.types[name]
        for zone in group.zones or catalog.zones(name):
            there = catalog.offerings(name, zone)
            available = [offering for offering in there if offering.available]
            if not there:
                problem = f"instance type {name} does not exist in {zone}{_hint(zone, catalog.zones(name))}"
                reasons.append(problem)
                problems.append(problem)
            elif not available:
                reasons.append(f"instance type {name} is not available in {zone}")
            # After availability, which the provider knows better than an older refusal.
            elif (name, zone) in backed_off:
                reasons.append(f"instance type {name} was refused in {zone} and is tried again later")
            else:
                found.append((known, available[0]))
    return Selection(tuple(found), tuple(reasons), tuple(problems))


def templates(group: NodeGroup, selection: Selection, learned: Learned) -> tuple[NodeTemplate, ...]:
    """Return what new nodes of a group would look like, in the order of the selection.

    Args:
        group: The group, with its labels and taints.
        selection: The types that it can use.
        learned: What is known of its nodes.
    """
    return tuple(
        NodeTemplate(
            group=group.name,
            instance_type=instance_type.name,
            zone=offering.zone,
            price=offering.price,
            node=learned.expected(promised_node(group, instance_type, offering.zone, learned.catalog), group),
        )
        for instance_type, offering in selection.offerings
    )


def promised_node(group: NodeGroup, instance_type: InstanceType, zone: str, catalog: Catalog) -> Node:
    """Return what a new node of a group looks like by the catalog and by the settings of the group.

    Args:
        zone: The zone of the node; empty for a provider without zones.
        catalog: The types of the provider.
    """
    return Node(
        name="",
        labels={
            **instance_type.labels,
            **dict.fromkeys(_TYPE_LABELS, instance_type.name),
            **({_ZONE_LABEL: zone} if zone else {}),
            # After those of the type, as the controller sets them on the Node that has joined.
            **group.labels,
            **group.member_labels,
        },
        taints=group.taints,
        allocatable=catalog.allocatable(instance_type.name),
        offering=(instance_type.name, zone),
    )


def _problem_of(name: str, catalog: Catalog) -> str:
    """Return why a type cannot be used in any zone; empty if it can."""
    known = catalog.types.get(name)
    if known is None:
        return f"instance type {name} is unknown{_hint(name, catalog.types)}"
    if known.problem:
        return f"instance type {name} cannot be used: {known.problem}"
    return "" if known.offerings else f"instance type {name} is offered nowhere"


def _hint(name: str, known: Iterable[str]) -> str:
    found = nearest(name, known)
    return f', did you mean "{found}"?' if found else ""


def _names(group: NodeGroup) -> list[str]:
    preferred = [group.preferred] if group.preferred in group.instance_types else []
    return list(dict.fromkeys((*preferred, *group.instance_types)))
