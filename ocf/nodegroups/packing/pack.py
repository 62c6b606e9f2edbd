"""Packing: pods onto the room that is there, then onto nodes in flight, then onto new nodes."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ocf.nodegroups.packing.demands import Demand, group_pods
from ocf.nodegroups.packing.fill import fill
from ocf.nodegroups.packing.room import assign, fill_in_turn, prepare, reference_size
from ocf.nodegroups.packing.templates import NodeTemplate, place_daemons
from ocf.nodegroups.predicates import ClusterState, Misfit, explain
from ocf.nodegroups.predicates.shape_view import ShapeView
from ocf.nodegroups.snapshot import ClusterSnapshot, PodShape
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["NewNode", "Packing", "Unplaced", "add_nodes", "pack"]


class NewNode(NamedTuple):
    """A node to add.

    Args:
        name: Its name in the simulation.
        template: What it is made from.
    """

    name: str
    template: NodeTemplate


class Unplaced(NamedTuple):
    """Equal pods without a place.

    Args:
        reason: Why a new node does not help, or why there is none.
        never: Whether no node that could be added takes such a pod, even an empty one.
    """

    pods: tuple[SnapshotPod, ...]
    reason: str
    never: bool


class Packing(NamedTuple):
    """Where pods would be.

    Args:
        placements: The name of the node by the key of each pod that has a place.
        new_nodes: The nodes to add.
        unplaced: The pods without a place.
    """

    placements: Mapping[str, str]
    new_nodes: tuple[NewNode, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()

    @property
    def price(self) -> float:
        """The price of the new nodes per hour."""
        return sum(new.template.price for new in self.new_nodes)


class _Grower:
    """Adding of nodes until all pods have a place or the limits are reached."""

    def __init__(self, state: ClusterState, limits: Mapping[str, int], most: int | None) -> None:
        self._state = state
        self._first = len(state.nodes)
        self._limits = dict(limits)
        self._most = most
        self._names = 0
        self.new_nodes: list[NewNode] = []
        self.placements: dict[str, str] = {}

    def place(self, demand: Demand, templates: Sequence[NodeTemplate]) -> Unplaced | None:
        """Place equal pods on new nodes, and return those that have no place."""
        # On nodes that were added for larger pods: their gaps are paid for.
        pods = self._fill(demand.shape, demand.pods)
        rejecting: dict[tuple[str, str, str], Misfit] = {}
        limited = False
        while pods:
            limited = False
            for template in templates:
                if template.key in rejecting:
                    continue
                if not self._may_grow(template):
                    limited = True
                    continue
                rest, misfit = self._open(demand._replace(pods=pods), template)
                if misfit is None:
                    break
                rejecting[template.key] = misfit
            else:
                break
            pods = rest
            # The verdict of a template holds until pods are placed elsewhere, which only spread depends on.
            if demand.shape.spread:
                # A node in one zone makes room in the others.
                rejecting.clear()
                pods = self._fill(demand.shape, pods)
        return _unplaced(pods, rejecting, limited=limited) if pods else None

    def _fill(self, shape: PodShape, pods: tuple[SnapshotPod, ...]) -> tuple[SnapshotPod, ...]:
        view = self._state.view(shape)
        placed = fill(self._state, view, len(pods), first=self._first_for(view))
        return assign(self._state, pods, placed, self.placements)

    def _first_for(self, view: ShapeView) -> int:
        """Return the first node to use: a spread may have kept pods from room that new nodes elsewhere open to them."""
        known = view.candidates[: bisect_left(view.candidates, self._first)] if view.shape.spread else ()
        return 0 if any(self._state.has_room(view, index) for index in known) else self._first

    def _may_grow(self, template: NodeTemplate) -> bool:
        if self._most is not None and len(self.new_nodes) >= self._most:
            return False
        # A group without an entry has no limit.
        return self._limits.get(template.group, 1) > 0

    def _open(self, demand: Demand, template: NodeTemplate) -> tuple[tuple[SnapshotPod, ...], Misfit | None]:
        """Add a node; take it back if an empty one does not take the pod, and return why."""
        state = self._state
        mark = state.mark()
        name = self._free_name(template)
        index = state.add_node(template.make(name))
        # Before the pods: DaemonSet pods run on the node in any case, and their room is not there for others.
        place_daemons(state, index)
        placed = fill(state, state.view(demand.shape), len(demand.pods), first=index)
        if not placed:
            found = explain(demand.shape, index, state)
            state.rollback(mark)
            return demand.pods, found
        self.new_nodes.append(NewNode(name, template))
        if template.group in self._limits:
            self._limits[template.group] -= 1
        return assign(state, demand.pods, placed, self.placements), None

    def _free_name(self, template: NodeTemplate) -> str:
        while True:
            self._names += 1
            name = f"{template.group}-new-{self._names}"
            if name not in self._state.index:
                return name


def add_nodes(
    state: ClusterState,
    demands: Iterable[Demand],
    templates: Sequence[NodeTemplate] | Callable[[Demand], Sequence[NodeTemplate]],
    *,
    limits: Mapping[str, int] | None = None,
    most: int | None = None,
) -> Packing:
    """Place pods on new nodes: first on those that were added for other pods, then on another one.

    Args:
        state: The state; its own nodes are used only by pods that spread, once new nodes let them.
        demands: The pods, largest first.
        templates: The nodes that could be added, in order of preference; or a function that returns them for a demand.
        limits: How many nodes each group may add; a group without an entry is not limited.
        most: How many nodes may be added in total.
    """
    grower = _Grower(state, limits or {}, most)
    unplaced = []
    for demand in demands:
        left = grower.place(demand, templates(demand) if callable(templates) else templates)
        if left is not None:
            unplaced.append(left)
    return Packing(grower.placements, tuple(grower.new_nodes), tuple(unplaced))


def pack(
    snapshot: ClusterSnapshot,
    pods: Iterable[SnapshotPod],
    templates: Sequence[NodeTemplate] = (),
    *,
    limits: Mapping[str, int] | None = None,
    most: int | None = None,
) -> Packing:
    """Find places for pods: first fit by size, on the room that is there before new nodes.

    Args:
        snapshot: The snapshot.
        pods: The pods.
        templates: The nodes that could be added, in order of preference.
        limits: How many nodes each group may add.
        most: How many nodes may be added in total.

    Example:
        >>> node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "110"}}}
        >>> ready = node | {"status": node["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}}
        >>> snapshot = ClusterSnapshot.of(nodes=[ready], pods=[{"metadata": {"name": "web-0"}}])
        >>> pack(snapshot, snapshot.pods.values()).placements
        {'default/web-0': 'n1'}
    """
    state = prepare(snapshot)
    demands = group_pods(pods, reference_size(state, templates))
    placements, left = fill_in_turn(state, snapshot, demands)
    packing = add_nodes(state, left, templates, limits=limits, most=most)
    return packing._replace(placements={**placements, **packing.placements})


def _unplaced(
    pods: tuple[SnapshotPod, ...], rejecting: Mapping[tuple[str, str, str], Misfit], *, limited: bool
) -> Unplaced:
    reasons = dict.fromkeys(
        f"{misfit} on {instance_type or group}" for (group, instance_type, _), misfit in rejecting.items()
    )
    if limited:
        return Unplaced(pods, "; ".join((*reasons, "the limit of nodes is reached")), never=False)
    # A rule about other pods may be met later; a node that is too small stays too small.
    never = not any(misfit.depends_on_pods for misfit in rejecting.values())
    return Unplaced(pods, "; ".join(reasons) or "there is no node to add", never)
