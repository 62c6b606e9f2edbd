"""The topology counters of a state, all kept up to date with its nodes and placements."""

from collections.abc import Callable, Iterable, Sequence

from ocf.nodegroups.predicates.counters import DomainCounter, PodCounter
from ocf.nodegroups.predicates.static import matches_node_affinity
from ocf.nodegroups.snapshot import AffinityTerm, ClusterSnapshot, Node, PodShape, SpreadConstraint, untolerated

__all__ = ["CounterTable"]


class CounterTable:
    """Topology counters, each created when a shape first needs it.

    Args:
        nodes: The nodes of the state; the state changes the list.
    """

    def __init__(self, snapshot: ClusterSnapshot, nodes: Sequence[Node]) -> None:
        self._namespaces = snapshot.namespaces
        self._nodes = nodes
        self._where: dict[PodShape, dict[int, int]] = {}
        self._values: dict[str, list[str | None]] = {}
        self._counters: dict[object, PodCounter] = {}
        self._counter_list: list[PodCounter] = []
        self._touched: dict[PodShape, tuple[list[PodCounter], int]] = {}
        self._terms: list[AffinityTerm] = []
        self._known_terms: set[AffinityTerm] = set()

    def change(self, shape: PodShape, index: int, count: int) -> None:
        """Count pods that are placed on a node; a negative number for pods that leave it."""
        where = self._where.get(shape)
        if where is None:
            where = self._where[shape] = {}
            self._note_terms(shape.anti_affinity)
        total = where.get(index, 0) + count
        if total:
            where[index] = total
        else:
            where.pop(index, None)
        for counter in self._touched_by(shape):
            counter.add(index, count)

    def node_added(self, index: int) -> None:
        """Count a new node."""
        labels = self._nodes[index].labels
        for key, values in self._values.items():
            values.append(labels.get(key))
        for counter in self._counter_list:
            counter.node_added(index)

    def node_removed(self, index: int) -> None:
        """Stop counting the last node, which has no pods any more."""
        for counter in self._counter_list:
            counter.node_removed(index)
        for values in self._values.values():
            values.pop()

    def leave(self, index: int, placed: Iterable[tuple[PodShape, int]]) -> None:
        """Count a node with its pods out of topologies that depend on its taints, before these change."""
        pods = tuple(placed)
        for counter in self._counter_list:
            if counter.by_taints:
                # Only a spread constraint with `nodeTaintsPolicy: Honor` has topologies that depend on taints.
                counter.add(index, -sum(count for shape, count in pods if counter.selects(shape)))
                counter.node_removed(index)

    def enter(self, index: int, placed: Iterable[tuple[PodShape, int]]) -> None:
        """Count a node with its pods into topologies that depend on its taints, after these have changed."""
        pods = tuple(placed)
        for counter in self._counter_list:
            if counter.by_taints:
                counter.node_added(index)
                counter.add(index, sum(count for shape, count in pods if counter.selects(shape)))

    def pods(self, identity: object, selects: Callable[[PodShape], bool], key: str) -> PodCounter:
        """Return the counter of the selected pods by the label `key`; it is kept up to date from then on."""
        known = self._counters.get((identity, key))
        return known or self._register((identity, key), PodCounter(selects, self._topology(key)))

    def spread(self, shape: PodShape, constraint: SpreadConstraint) -> DomainCounter:
        """Return the counter of a spread constraint; shapes that count the same nodes and pods share it."""
        keys = tuple(each.topology_key for each in shape.spread)
        affinity = (shape.node_selector, shape.node_affinity) if constraint.honor_affinity else None
        tolerations = shape.tolerations if constraint.honor_taints else None
        identity = (constraint.topology_key, constraint.selector, shape.namespace, keys, affinity, tolerations)
        known = self._counters.get(identity)
        if isinstance(known, DomainCounter):
            return known

        def is_eligible(index: int) -> bool:
            node = self._nodes[index]
            # A node that lacks one of the topology keys counts for no constraint (nodeLabelsMatchSpreadConstraints).
            if any(key not in node.labels for key in keys):
                return False
            if constraint.honor_affinity and not matches_node_affinity(shape, node):
                return False
            return not constraint.honor_taints or untolerated(node.taints, shape.tolerations) is None

        def counts(other: PodShape) -> bool:
            # The scheduler leaves out pods that are being deleted, too (countPodsMatchSelector).
            return not other.deleting and constraint.counts(
                other.namespace, other.label_map, own_namespace=shape.namespace
            )

        values = self._topology(constraint.topology_key)
        counter = DomainCounter(counts, values, is_eligible, by_taints=constraint.honor_taints)
        self._register(identity, counter)
        return counter

    def existing_terms(self, seen: int) -> list[AffinityTerm]:
        """Return the anti-affinity terms of pods that are or were placed, from the `seen`th on."""
        return self._terms[seen:] if seen < len(self._terms) else []

    def selects_incoming(self, term: AffinityTerm, other: PodShape) -> bool:
        """Return whether a term of the pod to place selects a placed pod."""
        return term.selects_for_incoming(other.namespace, other.label_map, self._namespaces)

    def selects_existing(self, term: AffinityTerm, shape: PodShape) -> bool:
        """Return whether a term of a placed pod selects the pod to place."""
        return term.selects_for_existing(shape.namespace, shape.label_map, self._namespaces)

    def _register(self, identity: object, counter: PodCounter) -> PodCounter:
        for shape, nodes in self._where.items():
            if nodes and counter.selects(shape):
                # A counter that is asked for late begins with all that is placed already.
                for index, count in nodes.items():
                    counter.add(index, count)
        self._counters[identity] = counter
        self._counter_list.append(counter)
        return counter

    def _touched_by(self, shape: PodShape) -> list[PodCounter]:
        """Return the counters that pods of a shape belong to."""
        found, seen = self._touched.get(shape, ([], 0))
        # Counters are only ever added, so the number of those that were looked at says where to go on.
        if seen < len(self._counter_list):
            found = found + [counter for counter in self._counter_list[seen:] if counter.selects(shape)]
            self._touched[shape] = (found, len(self._counter_list))
        return found

    def _note_terms(self, terms: Iterable[AffinityTerm]) -> None:
        for term in terms:
            if term not in self._known_terms:
                self._known_terms.add(term)
                self._terms.append(term)

    def _topology(self, key: str) -> list[str | None]:
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = [node.labels.get(key) for node in self._nodes]
        return values
