"""Consolidation: replacing nodes by one cheaper node where their pods fit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ocf.nodegroups.model import Catalog, GroupStatus, Membership, NodeGroup
from ocf.nodegroups.packing import NewNode, NodeTemplate, add_nodes, fill_room, group_pods
from ocf.nodegroups.rules import RULES, Removal, Rule, first_block, movable_pods
from ocf.nodegroups.scale_down.simulation import DrainSimulation
from ocf.nodegroups.scale_down.utilization import removal_order, utilization_of
from ocf.nodegroups.selection import select_instance_type, templates
from ocf.nodegroups.snapshot import Node, Snapshot
from ocf.nodegroups.snapshot.pods import Pod

__all__ = ["Replacement", "plan_replacement"]

_MOST_NODES: Final = 50
_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
_ZONE_LABEL: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Nodes that one cheaper node replaces.

    Args:
        group: The name of the group.
        nodes: The names of the nodes that can go once the new one is ready.
        new: The new node.
        saving: The price per hour that is saved.
    """

    group: str
    nodes: tuple[str, ...]
    new: NewNode
    saving: float


def plan_replacement(
    snapshot: Snapshot,
    group: NodeGroup,
    *,
    membership: Membership,
    status: GroupStatus,
    catalog: Catalog,
    rules: Sequence[Rule] = (),
    now: datetime,
) -> Replacement | None:
    """Return the replacement that saves most; None if there is none.

    The pods of the nodes go to the room on other nodes first, and the rest onto one new node. Single nodes are tried,
    and the first nodes of the order of removal together, as many as possible. Nodes that a safety rule blocks stay, as
    do nodes whose price is not known. While a node of the group is on its way, nothing is replaced.

    Args:
        snapshot: The snapshot.
        group: The group.
        membership: Which nodes belong to the group.
        status: Its status.
        catalog: The types of the provider, with prices.
        rules: Rules of the user.
        now: The time of the reconcile.
    """
    members = [snapshot.nodes[name] for name in membership.nodes.get(group.name, ())]
    if any(node.in_flight for node in members) or status.draining:
        return None
    selection = select_instance_type(group, catalog, backed_off=status.backed_off(now))
    offers = templates(group, selection, catalog)
    prices = {node.name: price for node in members if (price := _price(node, catalog)) is not None}
    candidates = [
        node
        for node in sorted(members, key=lambda node: removal_order(node, utilization_of(node, snapshot)))
        if node.name in prices and first_block(_removal(node, snapshot, group, status, now), (*RULES, *rules)) is None
    ][:_MOST_NODES]
    found = []
    for nodes in _choices(candidates, prices):
        price = sum(prices[node.name] for node in nodes)
        cheaper = sorted((each for each in offers if each.price < price), key=lambda each: (each.price, each.key))
        new = _replacing(snapshot, nodes, cheaper)
        if new is not None:
            names = tuple(node.name for node in nodes)
            found.append(Replacement(group=group.name, nodes=names, new=new, saving=price - new.template.price))
    return max(found, key=lambda each: (each.saving, -len(each.nodes)), default=None)


def _choices(candidates: Sequence[Node], prices: Mapping[str, float]) -> Iterable[Sequence[Node]]:
    """Yield sets of nodes to replace: each node alone, the most expensive first, and several at once."""
    yield from ((node,) for node in sorted(candidates, key=lambda node: (-prices[node.name], node.name)))
    size = len(candidates)
    while size > 1:
        yield candidates[:size]
        size //= 2


def _replacing(snapshot: Snapshot, nodes: Sequence[Node], offers: Sequence[NodeTemplate]) -> NewNode | None:
    """Return the cheapest new node that takes the pods of nodes, beside the room that is there."""
    simulation = DrainSimulation(snapshot)
    state = simulation.state
    pods: list[Pod] = []
    for node in nodes:
        state.close(state.index[node.name])
        moving = movable_pods(snapshot.pods_on(node.name))
        pods += moving
        for pod in moving:
            state.remove(pod.shape, state.index[node.name])
    _, left = fill_room(state, group_pods(pods, nodes[0].allocatable))
    for template in offers:
        mark = state.mark()
        packing = add_nodes(state, left, (template,), most=1)
        if packing.new_nodes and not packing.unplaced:
            return packing.new_nodes[0]
        state.rollback(mark)
    return None


def _removal(node: Node, snapshot: Snapshot, group: NodeGroup, status: GroupStatus, now: datetime) -> Removal:
    """Return the removal of a node as far as it is judged by itself; where its pods go is judged later."""
    return Removal(
        snapshot=snapshot,
        node=node,
        pods=movable_pods(snapshot.pods_on(node.name)),
        group=group,
        status=status,
        # A new node comes before this one goes.
        remaining=max(group.min_nodes, 0),
        disrupted={},
        move=lambda: None,
        now=now,
    )


def _price(node: Node, catalog: Catalog) -> float | None:
    return catalog.price(node.labels.get(_TYPE_LABEL, ""), node.labels.get(_ZONE_LABEL, ""))
