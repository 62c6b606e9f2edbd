"""Consolidation: replacing nodes by cheaper ones that take their pods."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from ocf.nodegroups.model import Catalog, GroupStatus, Membership, NodeGroup
from ocf.nodegroups.packing import Demand, NewNode, NodeTemplate, Packing, fill_room, group_pods
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.rules import RULES, Removal, SafetyRule, first_block, movable_pods
from ocf.nodegroups.scale_down.outcomes import ScaleDown, Verdict
from ocf.nodegroups.scale_down.simulation import DrainSimulation
from ocf.nodegroups.scale_down.utilization import removal_order, utilization_of
from ocf.nodegroups.selection import (
    Learned,
    cheap_packings,
    quick_packing,
    quick_packings,
    select_instance_type,
    templates,
    total_requests,
    unit_prices,
)
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, total
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["Replacement", "age_left", "is_still_replacing", "next_look", "plan_replacement"]

# Bounds of one search, which runs in every reconcile at rest: how many nodes are looked at, of how many sets of them
# the best replacement is taken, and how many pods are packed for single nodes if none of these can be replaced.
_MOST_NODES: Final = 50
_MOST_SEARCHED: Final = 8
_MOST_PODS: Final = 1_000
# Below, the pods would move for next to nothing, and rounding of prices could make a saving of none.
_LEAST_SHARE: Final = 0.01
_PERCENT: Final = 100
_TURN: Final = 60  # seconds
_ROUNDING: Final = 1e-6
# By then the new nodes have long joined or failed (`bootTimeout` is 15 minutes by default).
_LONGEST: Final = timedelta(hours=1)
# How many times as long as for pods that wait a refused type is not bought to save money: 1, 2, 4, 6 hours.
_RETRIED_AFTER: Final = 12
# Blocks that end by themselves, so the replacement waits for them.
_PASSING: Final = ("cooldown", "pdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Nodes that cheaper nodes replace.

    Args:
        nodes: The names of the nodes that can go once the new ones are ready.
        saving: The price per hour that is saved.
    """

    group: str
    nodes: tuple[str, ...]
    new_nodes: tuple[NewNode, ...]
    saving: float


def plan_replacement(
    snapshot: ClusterSnapshot,
    group: NodeGroup,
    *,
    membership: Membership,
    status: GroupStatus,
    learned: Learned,
    rules: Sequence[SafetyRule] = (),
    now: datetime,
) -> Replacement | None:
    """Return the replacement that saves most; None if there is none.

    The pods of the nodes go to the room on other nodes first, and the rest onto the cheapest new nodes. Single nodes
    are tried, and several together: the first ones in the order of removal, and the least utilized ones. Nodes that a
    safety rule blocks stay, as do young ones and those whose price is not known. While a node of the group is on its
    way or leaves, nothing is replaced.

    In a large group the 50 nodes are looked at whose pods use the least of their price, and if none of them can be
    replaced, 50 of the others: other ones each minute.
    """
    members = [snapshot.nodes[name] for name in membership.nodes.get(group.name, ())]
    # One at a time: the saving of the next one depends on how this one ends.
    if status.draining or status.replaced or any(node.in_flight for node in members):
        return None
    selection = select_instance_type(group, learned.catalog, backed_off=status.backed_off(now, times=_RETRIED_AFTER))
    offers = templates(group, selection, learned)
    prices = {node.name: price for node in members if (price := _price(node, learned.catalog)) is not None}
    all_rules = (*RULES, *rules)
    candidates = [
        node
        for node in members
        if node.name in prices
        and age_left(node, group, now, replaced=True) <= timedelta(0)
        and first_block(_removal(node, snapshot, group, status, now), all_rules) is None
    ]
    if not (candidates and offers):
        return None
    search = _Search(snapshot, group, offers, size=len(members))
    for nodes in _windows(candidates, lambda node: search.waste(node, prices[node.name]), now):
        ordered = sorted(nodes, key=lambda node: removal_order(node, utilization_of(node, snapshot)))
        useful = []
        for chosen in _choices(ordered, prices, snapshot):
            price = sum(prices[node.name] for node in chosen)
            estimate = search.estimate(chosen, price)
            if estimate is not None:
                useful.append((estimate, chosen, price))
        found = _best(search, useful)
        if found is not None:
            return found
    return None


def age_left(node: Node, group: NodeGroup, now: datetime, *, replaced: bool = False) -> timedelta:
    """Return for how long consolidation leaves a node alone: it may have been added for pods that have not come yet.

    Args:
        node: The node; one without a creation time is old.
        replaced: Whether a cheaper node is to replace it, in place of other nodes that take its pods.
    """
    policy = group.scale_down
    least = max(policy.duration, policy.replace_after) if replaced else policy.duration
    # A creation in the future, by another clock, would lead beyond the longest duration.
    return timedelta(0) if node.created is None else least - max(now - node.created, timedelta(0))


def _windows(candidates: Sequence[Node], waste: Callable[[Node], float], now: datetime) -> Iterator[Sequence[Node]]:
    """Yield the candidates to look at: those that waste most, then some of the others, in turn."""
    ordered = sorted(candidates, key=lambda node: (-waste(node), node.name))
    yield ordered[:_MOST_NODES]
    others = ordered[_MOST_NODES:]
    if others:
        turns = -(-len(others) // _MOST_NODES)
        # By the clock, because nothing is remembered between two reconciles.
        start = int(now.timestamp() // _TURN) % turns * _MOST_NODES
        yield others[start : start + _MOST_NODES]


def next_look(nodes: int, now: datetime) -> datetime | None:
    """Return when `plan_replacement` looks at other nodes of a group; None if it looks at all of them each time.

    Args:
        nodes: The number of nodes of the group.
    """
    if nodes <= 2 * _MOST_NODES:
        return None
    return datetime.fromtimestamp((now.timestamp() // _TURN + 1) * _TURN, tz=now.tzinfo)


def is_still_replacing(status: GroupStatus, scale_down: ScaleDown, now: datetime) -> bool:
    """Return whether the nodes of a replacement can still go.

    Once none of them can, because pods took the room meanwhile, or an hour has passed without a change of the group,
    the replacement is given up: its nodes are like any other again, and the new ones go if they are not needed.
    """
    if status.last_scale is None or now - status.last_scale > _LONGEST:
        return False
    mine = (each for each in scale_down.outcomes if each.node in status.replaced)
    return any(each.verdict is not Verdict.BLOCKED or each.reason in _PASSING for each in mine)


class _Estimate(NamedTuple):
    """What a replacement would save per hour.

    Args:
        saving: About that much.
        most: More than that is impossible.
    """

    saving: float
    most: float


_Choice = tuple[_Estimate, Sequence[Node], float]


class _Packings(Protocol):
    """A search for packings onto new nodes, the cheapest first."""

    def __call__(
        self,
        state: ClusterState,
        demands: Sequence[Demand],
        templates: Sequence[NodeTemplate],
        *,
        limits: Mapping[str, int],
    ) -> list[Packing]: ...


def _best(search: "_Search", choices: Iterable[_Choice]) -> Replacement | None:
    """Return the possible replacement that saves most: of those that save as much, the one with the fewest nodes.

    Packing takes long, so the sets are searched that promise most. If none of them can be replaced, the single nodes
    follow, those with few pods first.
    """
    ordered = sorted(choices, key=lambda each: (-each[0].saving, len(each[1])))
    best: Replacement | None = None
    for estimate, nodes, price in sorted(ordered[:_MOST_SEARCHED], key=lambda each: -each[0].most):
        # The bound is optimistic (fractions of nodes), so what it excludes cannot win.
        if best is not None and estimate.most < best.saving - _ROUNDING * price:
            continue
        found = search.replace(nodes, price)
        if found is not None and (best is None or _rank(found) < _rank(best)):
            best = found
    budget = _MOST_PODS
    alone = (each for each in ordered if len(each[1]) == 1)
    for _, nodes, price in sorted(alone, key=lambda each: search.size(each[1])):
        budget -= search.size(nodes)
        if best is not None or budget < 0:
            break
        best = search.replace(nodes, price, packings=quick_packings)
    return best


def _rank(replacement: Replacement) -> tuple[float, int, tuple[str, ...]]:
    return -round(replacement.saving, 9), len(replacement.nodes), replacement.nodes


class _Search:
    """Search for replacements over one simulation."""

    def __init__(
        self, snapshot: ClusterSnapshot, group: NodeGroup, offers: Sequence[NodeTemplate], *, size: int
    ) -> None:
        self._group = group
        self._offers = offers
        self._limits = {group.name: group.max_nodes - size}
        self._spare = size - min(group.min_nodes, group.max_nodes)
        self._share = max(group.scale_down.saving_threshold / _PERCENT, _LEAST_SHARE)
        self._simulation = DrainSimulation(snapshot)
        self._pods = {name: movable_pods(snapshot.pods_on(name)) for name in snapshot.nodes}
        self._values = unit_prices(offers, total(pod.shape.requests for pods in self._pods.values() for pod in pods))

    def waste(self, node: Node, price: float) -> float:
        """Return the part of the price of a node that its pods do not use."""
        return price - self._values.of(total(pod.shape.requests for pod in self._pods[node.name]))

    def size(self, nodes: Iterable[Node]) -> int:
        """Return the number of pods on nodes."""
        return sum(len(self._pods[node.name]) for node in nodes)

    def estimate(self, nodes: Sequence[Node], price: float) -> _Estimate | None:
        """Return how much cheaper other nodes would be; None if no nodes could be cheaper."""
        state = self._simulation.state
        mark = state.mark()
        left = self._left(state, nodes)
        least = self._values.of(total_requests(left))
        found = None
        if left and least <= price * (1 - self._share):
            packing = quick_packing(state, left, self._offers, limits=self._limits)
            # Another order of the pods may place them all.
            found = _Estimate(saving=0.0 if packing.unplaced else price - packing.price, most=price - least)
        state.rollback(mark)
        return found

    def replace(
        self, nodes: Sequence[Node], price: float, *, packings: _Packings = cheap_packings
    ) -> Replacement | None:
        """Return the cheapest nodes that can replace these; None if none cost enough less."""
        state = self._simulation.state
        mark = state.mark()
        found = packings(state, self._left(state, nodes), self._offers, limits=self._limits)
        state.rollback(mark)
        names = tuple(sorted(node.name for node in nodes))
        for packing in found:
            saving = price - packing.price
            # In parts of the price, which may be tiny. A saving of nothing is none, however small the price is.
            if not (saving > 0 and saving >= price * (self._share - _ROUNDING)):
                break
            added = sorted((new.template.instance_type, new.template.zone) for new in packing.new_nodes)
            if added == sorted(node.kind for node in nodes):
                continue
            # Fewer nodes than the group must keep would be filled up again, at the full price.
            if len(nodes) - len(packing.new_nodes) <= self._spare and self._is_possible(nodes, packing.new_nodes):
                return Replacement(group=self._group.name, nodes=names, new_nodes=packing.new_nodes, saving=saving)
        return None

    def _is_possible(self, nodes: Sequence[Node], new_nodes: Sequence[NewNode]) -> bool:
        """Return whether all pods have a place once the new nodes are ready: as it is found out when they are."""
        simulation = self._simulation
        mark = simulation.state.mark()
        simulation.append(new.template.make(new.name) for new in new_nodes)
        blocked = simulation.drain_together([(node, self._pods[node.name]) for node in nodes])[1]
        simulation.undo(mark)
        return blocked is None

    def _left(self, state: ClusterState, nodes: Sequence[Node]) -> list[Demand]:
        """Take the pods off nodes, and return those that find no room on the others."""
        pods: list[SnapshotPod] = []
        for node in nodes:
            index = state.index[node.name]
            state.close(index)
            for pod in self._pods[node.name]:
                state.remove(pod.shape, index)
                pods.append(pod)
        # In the order of the drain, so that the same pods find room.
        largest = max(node.allocatable for node in nodes)
        return fill_room(state, group_pods(pods, largest))[1]


def _choices(
    candidates: Sequence[Node], prices: Mapping[str, float], snapshot: ClusterSnapshot
) -> Iterator[Sequence[Node]]:
    """Yield sets of nodes to replace: each node alone, the most expensive first, and several at once."""
    yield from ((node,) for node in sorted(candidates, key=lambda node: (-prices[node.name], node.name)))
    seen = set()
    for nodes in (candidates, sorted(candidates, key=lambda node: _used(node, snapshot))):
        size = len(nodes)
        while size > 1:
            chosen = nodes[:size]
            names = frozenset(node.name for node in chosen)
            if names not in seen:
                seen.add(names)
                yield chosen
            # By a quarter each time, so that 50 candidates give about a dozen sets and not 2^50.
            size = min(size * 3 // 4, size - 1)


def _used(node: Node, snapshot: ClusterSnapshot) -> tuple[float, str]:
    utilization = utilization_of(node, snapshot)
    return (0.0 if utilization is None else utilization.highest), node.name


def _removal(node: Node, snapshot: ClusterSnapshot, group: NodeGroup, status: GroupStatus, now: datetime) -> Removal:
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
        replaced=True,
    )


def _price(node: Node, catalog: Catalog) -> float | None:
    """Return the price of a node; None if it is not known, or no node can be cheaper."""
    price = catalog.price(*node.kind)
    return price if price is not None and 0 < price < math.inf else None
