"""Packing that looks ahead: each new node is the one that costs least for the value of the pods that it takes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ocf.nodegroups.packing import Demand, NewNode, NodeTemplate, Packing, assign, fill, place_daemons
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.selection.prices import UnitPrices
from ocf.nodegroups.snapshot import Node
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["look_ahead"]


class _Load(NamedTuple):
    """What a new node would take.

    Args:
        ratio: Its price for the value of its pods.
    """

    ratio: float
    template: NodeTemplate
    counts: tuple[tuple[int, int], ...]


def look_ahead(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    prices: UnitPrices,
    *,
    limits: Mapping[str, int],
    budget: int,
) -> Packing | None:
    """Return a packing onto new nodes, each chosen for the pods of all demands.

    It is None if a pod has no place, or if looking for it takes too long. Otherwise the state contains the new nodes
    and their pods afterwards.

    Args:
        state: The state; its own nodes are not used.
        limits: How many nodes each group may add.
        budget: How often pods may be tried on a node.
    """
    return _Packer(state, demands, templates, prices, limits, budget).pack()


class _Packer:
    def __init__(  # noqa: PLR0917 (private, the arguments of `look_ahead`)
        self,
        state: ClusterState,
        demands: Sequence[Demand],
        templates: Sequence[NodeTemplate],
        prices: UnitPrices,
        limits: Mapping[str, int],
        budget: int,
    ) -> None:
        self._state = state
        self._shapes = [demand.shape for demand in demands]
        self._left = [len(demand.pods) for demand in demands]
        self._pods: list[tuple[SnapshotPod, ...]] = [demand.pods for demand in demands]
        self._values = [prices.of(demand.shape.requests) for demand in demands]
        # A node to try a template with. Only names differ from those of the nodes that are added.
        self._trials = [(template, template.make("look-ahead")) for template in templates]
        self._limits = dict(limits)
        self._budget = budget
        self._first = len(state.nodes)
        self._plain = not any(each.affinity or each.anti_affinity or each.spread for each in self._shapes)
        self._names = 0
        self._new_nodes: list[NewNode] = []
        self._placements: dict[str, str] = {}

    def pack(self) -> Packing | None:
        for seed in range(len(self._shapes)):
            self._fill(seed)
            while self._left[seed]:
                load = self._best(seed)
                if load is None or self._budget < 0:
                    return None
                self._open(load)
                # Equal pods give the same best node again, so the trials of all templates are spared.
                while self._plain and self._may_grow(load.template) and self._repeats(load):
                    self._open(load)
                self._fill(seed)
        return Packing(self._placements, tuple(self._new_nodes))

    def _fill(self, demand: int) -> None:
        """Place pods on the new nodes that there are: others may have made room for them in their topology."""
        if not self._plain and self._left[demand]:
            state = self._state
            placed = fill(state, state.view(self._shapes[demand]), self._left[demand], first=self._first)
            self._take(demand, placed)

    def _repeats(self, load: _Load) -> bool:
        return all(self._left[demand] >= count for demand, count in load.counts)

    def _may_grow(self, template: NodeTemplate) -> bool:
        return self._limits.get(template.group, 1) > 0

    def _best(self, seed: int) -> _Load | None:
        """Return the load of the best new node that takes a pod of a demand."""
        best: _Load | None = None
        taken: set[str] = set()
        for template, trial in self._trials:
            # Where pods have no rules about topology, the cheapest zone of a type is as good as the others.
            if not self._may_grow(template) or (self._plain and template.instance_type in taken):
                continue
            load = self._load(seed, template, trial)
            if load is None:
                continue
            taken.add(template.instance_type)
            # Strictly better beyond rounding, so that equal offers keep the order of the templates.
            if best is None or load.ratio < best.ratio * (1 - 1e-9):
                best = load
        return best

    def _load(self, seed: int, template: NodeTemplate, trial: Node) -> _Load | None:
        """Return what a new node takes: first of a demand, then of all later ones."""
        state = self._state
        mark = state.mark()
        index = state.add_node(trial)
        place_daemons(state, index)
        counts, value = [], 0.0
        for demand in range(seed, len(self._shapes)):
            number = self._left[demand]
            if not number:
                continue
            self._budget -= 1
            placed = fill(state, state.view(self._shapes[demand]), number, first=index)
            count = sum(each for _, each in placed)
            if count:
                counts.append((demand, count))
                value += count * self._values[demand]
            elif demand == seed:
                break
        state.rollback(mark)
        return _Load(template.price / max(value, 1e-12), template, tuple(counts)) if counts else None

    def _open(self, load: _Load) -> None:
        name = self._free_name(load.template.group)
        index = self._state.add_node(load.template.make(name))
        place_daemons(self._state, index)
        self._new_nodes.append(NewNode(name, load.template))
        if load.template.group in self._limits:
            self._limits[load.template.group] -= 1
        for demand, count in load.counts:
            self._state.place(self._shapes[demand], index, count)
            self._take(demand, [(index, count)])

    def _free_name(self, group: str) -> str:
        while True:
            self._names += 1
            name = f"{group}-new-{self._names}"
            if name not in self._state.index:
                return name

    def _take(self, demand: int, placed: Sequence[tuple[int, int]]) -> None:
        """Note where pods of a demand are."""
        self._pods[demand] = assign(self._state, self._pods[demand], placed, self._placements)
        self._left[demand] = len(self._pods[demand])
