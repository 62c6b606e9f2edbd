"""What a state knows about placing pods of one shape: candidate nodes, and topology rules."""

from bisect import bisect_left
from collections.abc import Container, Sequence
from typing import Final

from ocf.nodegroups.predicates.rules import Counters, TopologyRules
from ocf.nodegroups.predicates.static import StaticFilter
from ocf.nodegroups.predicates.volumes import attached_volume, exclusive_claims
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, PodShape

__all__ = ["ShapeView"]

_UNLIMITED: Final = -(1 << 62)


class ShapeView:
    """What a state knows about placing pods of one shape.

    Args:
        snapshot: The snapshot, with claims and volumes.
        counters: The counters of the state.
    """

    __slots__ = (
        "_grouped",
        "_topologies",
        "candidates",
        "covered",
        "exclusive",
        "hint",
        "needs",
        "rules",
        "scalars",
        "shape",
        "static",
        "turn",
        "volumes",
    )

    def __init__(self, shape: PodShape, snapshot: ClusterSnapshot, counters: Counters) -> None:
        self.shape = shape
        self.static = StaticFilter(shape, snapshot)
        self.rules = TopologyRules(shape, counters)
        self.exclusive = exclusive_claims(shape, snapshot) if shape.claims else ()
        keys = dict.fromkeys(f"{shape.namespace}/{name}" for name in shape.claims)
        self.volumes = frozenset(filter(None, (attached_volume(key, snapshot) for key in keys)))
        self.candidates: list[int] = []
        self.covered = 0
        self.hint = 0
        self.turn = 0
        self._topologies: list[list[int]] = []
        self._grouped: set[int] = set()
        requests = shape.requests
        # A resource that is not requested is not checked, even on a node that is overcommitted.
        self.needs = tuple(each or _UNLIMITED for each in (requests.cpu, requests.memory, requests.storage))
        self.scalars = tuple((name, amount) for name, amount in requests.scalars if amount)

    def extend(self, nodes: Sequence[Node], kinds: Sequence[int], closed: Container[int]) -> None:
        """Take up nodes that were added."""
        is_ok = self.static.is_ok
        self.candidates += [
            index
            for index in range(self.covered, len(nodes))
            if is_ok(nodes[index], kinds[index]) and index not in closed
        ]
        self.covered = len(nodes)
        self._grouped.clear()

    def trim(self, length: int) -> None:
        """Forget nodes that were taken back; only for a view that has taken them up."""
        self.covered = length
        while self.candidates and self.candidates[-1] >= length:
            self.candidates.pop()
        self._grouped.clear()

    def set_candidate(self, index: int, *, is_candidate: bool) -> None:
        """Add or remove a node that may take pods."""
        position = bisect_left(self.candidates, index)
        present = position < len(self.candidates) and self.candidates[position] == index
        if is_candidate and not present:
            self.candidates.insert(position, index)
            # A node that was closed and comes back keeps its place in the groups, which filter closed nodes when they
            # are used.
            if index not in self._grouped:
                self._grouped.clear()
        elif present and not is_candidate:
            del self.candidates[position]

    def topologies(self, nodes: Sequence[Node]) -> list[list[int]]:
        """Return the candidates by the topologies that the pods have to spread over; closed nodes may be among them.

        Topologies that share a wider one are dealt out in turns, so that all zones come early.

        Args:
            nodes: The nodes of the state.
        """
        if self._grouped:
            return self._topologies
        keys = [constraint.topology_key for constraint in self.shape.spread]
        groups: dict[tuple[str | None, ...], list[int]] = {}
        for index in self.candidates:
            labels = nodes[index].labels
            groups.setdefault(tuple([labels.get(key) for key in keys]), []).append(index)
        # The key with the fewest values is the widest topology: zones before hosts.
        widest = min(range(len(keys)), key=lambda place: len({values[place] for values in groups}), default=0)
        turns: dict[str | None, int] = {}
        ordered: list[tuple[int, int, list[int]]] = []
        for values, group in groups.items():
            turn = turns[values[widest]] = turns.get(values[widest], 0) + 1
            ordered.append((turn, len(ordered), group))
        self._topologies = [group for _, _, group in sorted(ordered)]
        self._grouped = set(self.candidates)
        return self._topologies
