"""Working state of a simulation: nodes with their free resources, and pods that are placed and taken away again.

A state is made from a snapshot and belongs to one computation. It is not a value: placements change it, and `rollback`
takes them back. All functions that use one build it themselves, so that they are pure.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from typing import Final, TypeVar

from ocf.nodegroups.predicates.counters import DomainCounter, PodCounter
from ocf.nodegroups.predicates.rules import TopologyRules
from ocf.nodegroups.predicates.static import StaticFilter, matches_node_affinity
from ocf.nodegroups.predicates.volumes import exclusive_claims
from ocf.nodegroups.snapshot import AffinityTerm, HostPort, Node, PodShape, Snapshot, SpreadConstraint, untolerated

__all__ = ["ClusterState", "ShapeView"]

_UNLIMITED: Final = -(1 << 62)
Key = TypeVar("Key", bound=Hashable)


class ShapeView:
    """What a state knows about placing pods of one shape.

    Args:
        shape: The shape.
        state: The state.
    """

    __slots__ = ("candidates", "covered", "exclusive", "needs", "rules", "scalars", "shape", "static")

    def __init__(self, shape: PodShape, state: "ClusterState") -> None:
        self.shape = shape
        self.static = StaticFilter(shape, state.snapshot)
        self.rules = TopologyRules(shape, state)
        self.exclusive = exclusive_claims(shape, state.snapshot) if shape.claims else ()
        self.candidates: list[int] = []
        self.covered = 0
        requests = shape.requests
        # A resource that is not requested is not checked, even on a node that is overcommitted.
        self.needs = tuple(each or _UNLIMITED for each in (requests.cpu, requests.memory, requests.storage))
        self.scalars = tuple((name, amount) for name, amount in requests.scalars if amount)


class ClusterState:
    """Nodes with their free resources and the counts that filters need.

    Args:
        snapshot: The snapshot to start from.

    Example:
        >>> state = ClusterState(Snapshot())
        >>> state.nodes
        []
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.nodes: list[Node] = []
        self.index: dict[str, int] = {}
        self.free_cpu: list[int] = []
        self.free_memory: list[int] = []
        self.free_storage: list[int] = []
        self.free_pods: list[int] = []
        self.free_scalars: list[dict[str, int]] = []
        self.ports: list[dict[HostPort, int]] = []
        self.placed: list[dict[PodShape, int]] = []
        self.kinds: list[int] = []
        self._kind_numbers: dict[object, int] = {}
        self._where: dict[PodShape, dict[int, int]] = {}
        self._values: dict[str, list[str | None]] = {}
        self._counters: dict[object, PodCounter] = {}
        self._counter_list: list[PodCounter] = []
        self._touched: dict[PodShape, tuple[list[PodCounter], int]] = {}
        self._terms: list[AffinityTerm] = []
        self._known_terms: set[AffinityTerm] = set()
        self._claims: dict[str, int] = {}
        self._views: dict[PodShape, ShapeView] = {}
        self._journal: list[Callable[[], None]] = []
        for node in snapshot.nodes.values():
            self._append(node)
        for name, pods in snapshot.on_node.items():
            index = self.index.get(name)
            if index is not None:
                counts: dict[PodShape, int] = {}
                for pod in pods:
                    counts[pod.shape] = counts.get(pod.shape, 0) + 1
                for shape, count in counts.items():
                    self._change(shape, index, count)

    def view(self, shape: PodShape) -> ShapeView:
        """Return what is known about placing pods of a shape, up to date with all nodes and placements."""
        view = self._views.get(shape)
        if view is None:
            view = self._views[shape] = ShapeView(shape, self)
        if view.covered < len(self.nodes):
            is_ok, nodes, kinds = view.static.is_ok, self.nodes, self.kinds
            view.candidates += [index for index in range(view.covered, len(nodes)) if is_ok(nodes[index], kinds[index])]
            view.covered = len(nodes)
        return view

    def has_room(self, view: ShapeView, index: int) -> bool:
        """Return whether a node has the ports and the resources for one more pod."""
        cpu, memory, storage = view.needs
        return (
            self.free_pods[index] >= 1
            and self.free_cpu[index] >= cpu
            and self.free_memory[index] >= memory
            and self.free_storage[index] >= storage
            and (not view.scalars or self._has_scalars(view, index))
            and (not view.shape.ports or self.has_ports(view.shape, index))
        )

    def has_ports(self, shape: PodShape, index: int) -> bool:
        """Return whether the ports that a shape uses are free on a node."""
        used = self.ports[index]
        return not any(port.conflicts(other) for port in shape.ports for other in used)

    def in_use(self, view: ShapeView) -> bool:
        """Return whether a pod uses a claim of this shape that only one pod at a time may use."""
        return any(self._claims.get(key) for key in view.exclusive)

    def place(self, shape: PodShape, index: int, count: int = 1) -> None:
        """Place pods on a node; nothing is checked.

        Args:
            shape: Their shape.
            index: The index of the node.
            count: Their number.
        """
        self._change(shape, index, count)
        self._journal.append(lambda: self._change(shape, index, -count))

    def remove(self, shape: PodShape, index: int, count: int = 1) -> None:
        """Take pods off a node.

        Args:
            shape: Their shape.
            index: The index of the node.
            count: Their number.
        """
        self.place(shape, index, -count)

    def add_node(self, node: Node) -> int:
        """Add a node without pods, and return its index."""
        self._append(node)
        self._journal.append(self._pop)
        return len(self.nodes) - 1

    def replace_node(self, index: int, node: Node) -> None:
        """Replace a node by one that differs in taints, or in being cordoned; labels and resources stay."""
        before = self.nodes[index]
        self._set(index, node)
        self._journal.append(lambda: self._set(index, before))

    def mark(self) -> int:
        """Return the position that `rollback` takes."""
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        """Take back all changes since `mark`."""
        journal = self._journal
        while len(journal) > mark:
            journal.pop()()

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
            node = self.nodes[index]
            if any(key not in node.labels for key in keys):
                return False
            if constraint.honor_affinity and not matches_node_affinity(shape, node):
                return False
            return not constraint.honor_taints or untolerated(node.taints, shape.tolerations) is None

        def counts(other: PodShape) -> bool:
            return not other.deleting and constraint.counts(
                other.namespace, other.label_map, own_namespace=shape.namespace
            )

        counter = DomainCounter(counts, self._topology(constraint.topology_key), is_eligible)
        self._register(identity, counter)
        return counter

    def existing_terms(self, seen: int) -> list[AffinityTerm]:
        """Return the anti-affinity terms of pods that are or were placed, from the `seen`th on."""
        return self._terms[seen:] if seen < len(self._terms) else []

    def selects_incoming(self, term: AffinityTerm, other: PodShape) -> bool:
        """Return whether a term of the pod to place selects a placed pod."""
        return term.selects_for_incoming(other.namespace, other.label_map, self.snapshot.namespaces)

    def selects_existing(self, term: AffinityTerm, shape: PodShape) -> bool:
        """Return whether a term of a placed pod selects the pod to place."""
        return term.selects_for_existing(shape.namespace, shape.label_map, self.snapshot.namespaces)

    def _has_scalars(self, view: ShapeView, index: int) -> bool:
        free = self.free_scalars[index]
        return all(free.get(name, 0) >= amount for name, amount in view.scalars)

    def _register(self, identity: object, counter: PodCounter) -> PodCounter:
        for shape, nodes in self._where.items():
            if nodes and counter.selects(shape):
                for index, count in nodes.items():
                    counter.add(index, count)
        self._counters[identity] = counter
        self._counter_list.append(counter)
        return counter

    def _touched_by(self, shape: PodShape) -> list[PodCounter]:
        """Return the counters that pods of a shape belong to."""
        found, seen = self._touched.get(shape, ([], 0))
        if seen < len(self._counter_list):
            found = found + [counter for counter in self._counter_list[seen:] if counter.selects(shape)]
            self._touched[shape] = (found, len(self._counter_list))
        return found

    def _change(self, shape: PodShape, index: int, count: int) -> None:
        requests = shape.requests
        self.free_cpu[index] -= requests.cpu * count
        self.free_memory[index] -= requests.memory * count
        self.free_pods[index] -= count
        if requests.storage:
            self.free_storage[index] -= requests.storage * count
        if requests.scalars:
            free = self.free_scalars[index]
            for name, amount in requests.scalars:
                free[name] = free.get(name, 0) - amount * count
        for port in shape.ports:
            _add(self.ports[index], port, count)
        for claim in shape.claims:
            _add(self._claims, f"{shape.namespace}/{claim}", count)
        where = self._where.get(shape)
        if where is None:
            where = self._where[shape] = {}
            self._note_terms(shape.anti_affinity)
        _add(where, index, count)
        _add(self.placed[index], shape, count)
        for counter in self._touched_by(shape):
            counter.add(index, count)

    def _note_terms(self, terms: Iterable[AffinityTerm]) -> None:
        for term in terms:
            if term not in self._known_terms:
                self._known_terms.add(term)
                self._terms.append(term)

    def _append(self, node: Node) -> None:
        index = len(self.nodes)
        allocatable = node.allocatable
        self.nodes.append(node)
        self.index[node.name] = index
        self.free_cpu.append(allocatable.cpu)
        self.free_memory.append(allocatable.memory)
        self.free_storage.append(allocatable.storage)
        self.free_pods.append(allocatable.pods)
        self.free_scalars.append(dict(allocatable.scalars))
        self.ports.append({})
        self.placed.append({})
        self.kinds.append(self._kind(node))
        for key, values in self._values.items():
            values.append(node.labels.get(key))
        for counter in self._counter_list:
            counter.node_added(index)

    def _pop(self) -> None:
        index = len(self.nodes) - 1
        for counter in self._counter_list:
            counter.node_removed(index)
        node = self.nodes.pop()
        del self.index[node.name]
        per_node: tuple[list[int], ...] = (
            self.free_cpu,
            self.free_memory,
            self.free_storage,
            self.free_pods,
            self.kinds,
        )
        for numbers in per_node:
            numbers.pop()
        self.free_scalars.pop()
        self.ports.pop()
        self.placed.pop()
        for values in self._values.values():
            values.pop()
        for view in self._views.values():
            self._trim(view, index)

    def _trim(self, view: ShapeView, length: int) -> None:
        if view.covered > length:
            view.covered = length
            while view.candidates and view.candidates[-1] >= length:
                view.candidates.pop()

    def _set(self, index: int, node: Node) -> None:
        counters = [each for each in self._counter_list if isinstance(each, DomainCounter)]
        self._count_node(counters, index, -1)
        self.nodes[index] = node
        self.kinds[index] = self._kind(node)
        self._count_node(counters, index, 1)
        for view in self._views.values():
            if index < view.covered:
                _set_member(view.candidates, index, member=view.static.is_ok(node, self.kinds[index]))

    def _count_node(self, counters: Iterable[DomainCounter], index: int, sign: int) -> None:
        """Count a node with its pods in or out of topologies, because it may become or cease to be eligible."""
        for counter in counters:
            pods = sum(count for shape, count in self.placed[index].items() if counter.selects(shape))
            if sign < 0:
                counter.add(index, -pods)
                counter.node_removed(index)
            else:
                counter.node_added(index)
                counter.add(index, pods)

    def _kind(self, node: Node) -> int:
        return self._kind_numbers.setdefault((node.unschedulable, node.taints), len(self._kind_numbers))

    def _topology(self, key: str) -> list[str | None]:
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = [node.labels.get(key) for node in self.nodes]
        return values


def _add(counts: dict[Key, int], key: Key, count: int) -> None:
    total = counts.get(key, 0) + count
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)


def _set_member(candidates: list[int], index: int, *, member: bool) -> None:
    position = bisect_left(candidates, index)
    present = position < len(candidates) and candidates[position] == index
    if member and not present:
        candidates.insert(position, index)
    elif present and not member:
        del candidates[position]
