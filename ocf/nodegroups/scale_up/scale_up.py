"""Scale-up: which nodes to add, for the minimum of each group and for pods without a place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ocf.nodegroups.model import GroupStatus, Membership, NodeGroup, TypeChoice
from ocf.nodegroups.packing import (
    PRIORITY_CUTOFF,
    Demand,
    NewNode,
    NodeTemplate,
    Packing,
    Unplaced,
    add_nodes,
    fill_in_turn,
    fill_room,
    group_pods,
    is_expendable,
    place_daemons,
    prepare,
    reference_size,
)
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.scale_up.formulas import calculate_desired_nodes, calculate_nodes_to_add, is_in_cooldown
from ocf.nodegroups.scale_up.shortfalls import Shortfall, find_shortfalls
from ocf.nodegroups.scale_up.topologies import over_offered
from ocf.nodegroups.selection import Learned, cheapest_packing, select_instance_type, templates
from ocf.nodegroups.snapshot import ClusterSnapshot
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["GroupScaleUp", "ScaleUp", "plan_scale_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScaleUp:
    """What a group adds.

    Args:
        group: The name of the group.
        current: The number of its nodes, including those in flight, without those that are being drained.
        desired: The desired number of its nodes.
        add: The nodes to add in this reconcile.
        deferred: How many more nodes it wants, which the batch size or the cooldown keep for later.
        reasons: What limits it: types that are not available, the maximum, the cooldown.
        problems: Those of the reasons that do not pass by themselves: types and zones that do not exist.
        shortfalls: The instance types of which nodes lack what pods need, although the type promises it.
    """

    group: str
    current: int
    desired: int
    add: tuple[NewNode, ...] = ()
    deferred: int = 0
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUp:
    """What all groups add.

    Args:
        groups: The groups, sorted by name.
        placements: The name of the node by the key of each pending pod that has a place, new nodes included.
        unplaced: The pending pods without a place.
    """

    groups: tuple[GroupScaleUp, ...]
    placements: Mapping[str, str]
    unplaced: tuple[Unplaced, ...]

    @property
    def grows(self) -> bool:
        """Whether any node is added or wanted."""
        return any(each.add or each.deferred for each in self.groups)


@dataclass(slots=True)
class _Candidate:
    """A group while it is planned."""

    group: NodeGroup
    status: GroupStatus
    current: int
    draining: int
    templates: tuple[NodeTemplate, ...]
    reasons: list[str]
    problems: tuple[str, ...]
    new: list[NewNode]
    for_minimum: int = 0
    shortfalls: tuple[Shortfall, ...] = ()

    @property
    def room(self) -> int:
        """How many more nodes the maximum allows; nodes that are being drained count until they are gone."""
        return max(self.group.max_nodes - self.current - self.draining - len(self.new), 0)

    @property
    def may_grow(self) -> bool:
        """Whether nodes can be added for pods."""
        return bool(self.templates) and self.group.grows and self.room > 0

    def pack(self, state: ClusterState, demands: Sequence[Demand]) -> Packing:
        """Return how its new nodes would take pods."""
        limits = {self.group.name: self.room}
        if self.group.choice is TypeChoice.CHEAPEST:
            return cheapest_packing(state, demands, self.templates, limits=limits)
        mark = state.mark()
        packing = add_nodes(state, demands, self.templates, limits=limits)
        state.rollback(mark)
        return packing


def plan_scale_up(  # noqa: PLR0913 (keyword-only, each a part of the cluster)
    snapshot: ClusterSnapshot,
    pods: Sequence[SnapshotPod],
    groups: Sequence[NodeGroup],
    *,
    membership: Membership,
    statuses: Mapping[str, GroupStatus],
    learned: Mapping[str, Learned],
    now: datetime,
    cutoff: int = PRIORITY_CUTOFF,
) -> ScaleUp:
    """Return which nodes to add.

    First the gap to the minimum of each group is filled. Then pods are packed: onto the room that is there, onto nodes
    in flight, onto the nodes of the gap, and the rest onto new nodes. Groups are asked in rounds: each packs all pods
    that are left, and the best of them takes the pods that it can. A pod is given to one group only. The best is the
    first by

    1. the higher priority,
    2. the fewer pods left without a place,
    3. the lower price of the new nodes,
    4. the fewer new nodes,
    5. the name.

    Pods with a hard spread over zones use the zones of all groups, even those without a node.

    Args:
        snapshot: The snapshot, with nodes in flight.
        pods: The pods that wait for a node.
        membership: Which nodes belong to which group.
        statuses: The status of each group by its name.
        learned: What each group has learned of its nodes, by its name.
        now: The time of the reconcile.
        cutoff: No node is added for pods with a lower priority; they get what room the others leave.
    """
    expendable = [pod for pod in pods if is_expendable(pod, cutoff)]
    pods = [pod for pod in pods if not is_expendable(pod, cutoff)]
    candidates = [
        _candidate(group, statuses.get(group.name, GroupStatus()), membership, learned[group.name], now)
        for group in sorted(groups, key=lambda group: group.name)
    ]
    state = prepare(snapshot)
    sizes = [template for candidate in candidates for template in candidate.templates]
    placements, demands = fill_in_turn(state, snapshot, group_pods(pods, reference_size(state, sizes)))
    for candidate in candidates:
        candidate.shortfalls = find_shortfalls(state, candidate.group, demands, learned[candidate.group.name])
        candidate.reasons += [each.text for each in candidate.shortfalls]
        _fill_gap(state, candidate)
    more, demands = fill_room(state, demands)
    placements |= more
    offers = [template for candidate in candidates if candidate.may_grow for template in candidate.templates]
    wide = over_offered(state, demands, offers)
    if wide != demands:
        # First over all topologies that could be; one of which no node comes does not keep pods waiting.
        unplaced = _grow_repeatedly(state, candidates, wide, placements)
        more, demands = fill_room(state, [Demand(each.pods[0].shape, each.pods) for each in unplaced])
        placements |= more
    unplaced = _grow_repeatedly(state, candidates, demands, placements)
    for demand in fill_room(state, group_pods(expendable, reference_size(state, sizes)))[1]:
        reason = f"no node is added for a priority below {cutoff}, and it has {demand.pods[0].priority}"
        unplaced.append(Unplaced(demand.pods, reason, never=False))
    return ScaleUp(
        groups=tuple(_limited(candidate, now) for candidate in candidates),
        placements=placements,
        unplaced=tuple(unplaced),
    )


def _candidate(
    group: NodeGroup, status: GroupStatus, membership: Membership, learned: Learned, now: datetime
) -> _Candidate:
    selection = select_instance_type(group, learned.catalog, backed_off=status.backed_off(now))
    names = membership.nodes.get(group.name, ())
    draining = sum(name in status.draining for name in names)
    made = templates(group, selection, learned)
    reasons = list(selection.reasons)
    if not group.grows:
        reasons.append("the group adds no nodes for pods")
    return _Candidate(group, status, len(names) - draining, draining, made, reasons, selection.problems, [])


def _fill_gap(state: ClusterState, candidate: _Candidate) -> None:
    """Add the nodes that a group lacks to its minimum: of the first type, or of the cheapest."""
    group = candidate.group
    missing = min(max(group.min_nodes, 0) - candidate.current, candidate.room)
    if missing <= 0 or not candidate.templates:
        return
    template = candidate.templates[0]
    # The packing is compared with other groups first, so the state has to be as before.
    if group.choice is TypeChoice.CHEAPEST:
        template = min(candidate.templates, key=lambda each: (each.price, each.key))
    candidate.for_minimum = missing
    for number in range(missing):
        name = f"{group.name}-min-{number + 1}"
        place_daemons(state, state.add_node(template.make(name)))
        candidate.new.append(NewNode(name, template))


def _grow_repeatedly(
    state: ClusterState, candidates: Sequence[_Candidate], demands: list[Demand], placements: dict[str, str]
) -> list[Unplaced]:
    """Give pods to groups until no pod finds a place because another one has found its own."""
    while True:
        before = len(placements)
        shapes = {pod.key: demand.shape for demand in demands for pod in demand.pods}
        unplaced = _grow(state, candidates, demands, placements)
        demands = [Demand(shapes[each.pods[0].key], each.pods) for each in unplaced]
        # Only rules about other pods can be met by what was placed in between.
        follows = any(demand.shape.affinity or demand.shape.spread for demand in demands)
        if len(placements) == before or not follows:
            return unplaced
        more, demands = fill_room(state, demands)
        placements |= more
        if not demands:
            return []


def _grow(
    state: ClusterState, candidates: Sequence[_Candidate], demands: list[Demand], placements: dict[str, str]
) -> list[Unplaced]:
    """Give pods to groups, the best group first, until no group takes any."""
    waiting = [candidate for candidate in candidates if candidate.templates and candidate.group.grows]
    unplaced: dict[str, Unplaced] = {}
    while demands and waiting:
        offers = [(candidate, candidate.pack(state, demands)) for candidate in waiting]
        # Only in the first round, in which every group has seen every pod.
        if not unplaced:
            _note(unplaced, offers)
        useful = [(candidate, packing) for candidate, packing in offers if packing.new_nodes]
        if not useful:
            break
        candidate, packing = min(useful, key=lambda offer: _rank(*offer))
        # Each group once per round of pods: what it left it would leave again.
        waiting.remove(candidate)
        candidate.new += packing.new_nodes
        placements.update(packing.placements)
        demands = _take(state, packing, demands)
    return [_reason(demand, unplaced, candidates) for demand in demands]


def _rank(candidate: _Candidate, packing: Packing) -> tuple[int, int, float, int, str]:
    left = sum(len(each.pods) for each in packing.unplaced)
    # Rounded, because sums of the same prices in another order differ in the last digits.
    return -candidate.group.priority, left, round(packing.price, 9), len(packing.new_nodes), candidate.group.name


def _take(state: ClusterState, packing: Packing, demands: list[Demand]) -> list[Demand]:
    """Put the new nodes with their pods into the state, and return the pods that are left."""
    shapes = {pod.key: demand.shape for demand in demands for pod in demand.pods}
    for new in packing.new_nodes:
        place_daemons(state, state.add_node(new.template.make(new.name)))
    for key, name in packing.placements.items():
        state.place(shapes[key], state.index[name])
    left = [
        Demand(demand.shape, tuple(pod for pod in demand.pods if pod.key not in packing.placements))
        for demand in demands
    ]
    return [demand for demand in left if demand.pods]


def _note(unplaced: dict[str, Unplaced], offers: Sequence[tuple[_Candidate, Packing]]) -> None:
    """Remember for each pod why groups do not take it: only a pod that all types of all groups reject never fits."""
    for candidate, packing in offers:
        for each in packing.unplaced:
            for pod in each.pods:
                known = unplaced.get(pod.key)
                reason = each.reason if known is None else "; ".join(dict.fromkeys((known.reason, each.reason)))
                # A type that is sold out or backed off now may take the pod later.
                never = each.never and not candidate.reasons and (known is None or known.never)
                unplaced[pod.key] = Unplaced((pod,), reason, never)


def _reason(demand: Demand, unplaced: Mapping[str, Unplaced], candidates: Sequence[_Candidate]) -> Unplaced:
    known = unplaced.get(demand.pods[0].key)
    if known is not None:
        return known._replace(pods=demand.pods)
    if not candidates:
        return Unplaced(demand.pods, "there is no node group", never=True)
    reasons = dict.fromkeys(reason for candidate in candidates for reason in candidate.reasons)
    return Unplaced(demand.pods, "; ".join(reasons) or "there is no node to add", never=False)


def _limited(candidate: _Candidate, now: datetime) -> GroupScaleUp:
    """Return what a group adds now: not more than its maximum, its batch size and its cooldown allow."""
    group, reasons = candidate.group, list(candidate.reasons)
    wanted = len(candidate.new)
    desired = calculate_desired_nodes(candidate.current, wanted, max(group.min_nodes, 0), group.max_nodes)
    # The formula also counts what is missing to the minimum, for which there may be no template.
    number = min(calculate_nodes_to_add(desired, candidate.current, group.max_nodes, group.batch_size), wanted)
    # The nodes of the minimum come first, and wait for nothing.
    if number > candidate.for_minimum and is_in_cooldown(now, candidate.status.last_scale_up, group.scale_up_cooldown):
        number = candidate.for_minimum
        reasons.append("the scale-up cooldown is not over")
    elif number < wanted:
        reasons.append(f"{group.batch_size} nodes are added at a time")
    if not candidate.room:
        reasons.append(f"maxNodes {group.max_nodes} is reached")
    return GroupScaleUp(
        group=group.name,
        current=candidate.current,
        desired=desired,
        add=tuple(candidate.new[:number]),
        deferred=wanted - number,
        reasons=tuple(reasons),
        problems=candidate.problems,
        shortfalls=candidate.shortfalls,
    )
