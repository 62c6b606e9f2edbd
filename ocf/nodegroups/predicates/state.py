"""Working state of a simulation: nodes with their free resources, and pods that are placed and taken away again.

A state is made from a snapshot and belongs to one computation. It is not a value: placements change it, and `rollback`
takes them back. All functions that use one build it themselves, so that they are pure.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

from ocf.nodegroups.predicates.counter_table import CounterTable
from ocf.nodegroups.predicates.shape_view import ShapeView
from ocf.nodegroups.predicates.volumes import attached_volume
from ocf.nodegroups.snapshot import ClusterSnapshot, HostPort, Node, PodShape

__all__ = ["ClusterState"]

Key = TypeVar("Key", bound=Hashable)


class ClusterState:
    """Nodes with their free resources and the counts that filters need.

    Args:
        snapshot: The snapshot to start from.

    Example:
        >>> state = ClusterState(ClusterSnapshot())
        >>> state.nodes
        []
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
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
        self.closed: set[int] = set()
        self._kind_numbers: dict[object, int] = {}
        self.counters = CounterTable(snapshot, self.nodes)
        self.attached: list[dict[tuple[str, str], int]] = []
        self._claims: dict[str, int] = {}
        self._volumes: dict[str, tuple[str, str] | None] = {}
        self._views: dict[PodShape, ShapeView] = {}
        self._journal: list[Callable[[], None]] = []
        # Room that is there is used before room that is on its way.
        for node in sorted(snapshot.nodes.values(), key=lambda node: (node.in_flight, node.name)):
            self._append(node)
        # What runs there cannot be read, so no pod is planned onto it.
        for name in snapshot.unknown_nodes & self.index.keys():
            self.close(self.index[name])
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
            view = self._views[shape] = ShapeView(shape, self.snapshot, self.counters)
        if view.covered < len(self.nodes):
            view.extend(self.nodes, self.kinds, self.closed)
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

    def accepts(self, view: ShapeView, index: int) -> bool:
        """Return whether a node that passes the static filters takes one more pod.

        Args:
            view: What is known about the shape of the pod; its rules have to be refreshed.
            index: The index of the node.
        """
        return (
            self.has_room(view, index)
            and not (view.exclusive and self.in_use(view))
            and (not view.volumes or self.attaches(view, index))
            and (not view.rules.refresh() or view.rules.check(index) is None)
        )

    def in_use(self, view: ShapeView) -> bool:
        """Return whether a pod uses a claim of this shape that only one pod at a time may use."""
        return any(self._claims.get(key) for key in view.exclusive)

    def attaches(self, view: ShapeView, index: int) -> bool:
        """Return whether the CSI drivers of a node can attach the volumes of one more pod, as `NodeVolumeLimits`."""
        attached = self.attached[index]
        for driver, most in self.nodes[index].attach_limits:
            # One that another pod uses there is attached already.
            new = sum(each[0] == driver and each not in attached for each in view.volumes)
            if new and new + sum(each[0] == driver for each in attached) > most:
                return False
        return True

    def place(self, shape: PodShape, index: int, count: int = 1) -> None:
        """Place pods on a node; nothing is checked.

        Args:
            shape: Their shape.
            index: The index of the node.
            count: Their number.
        """
        self._change(shape, index, count)
        # A journal in place of copies: trials of thousands of nodes undo a few changes each.
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

    def close(self, index: int) -> None:
        """Let a node take no more pods; those that are on it still count."""
        if index not in self.closed:
            self._close(index)
            self._journal.append(lambda: self._reopen(index))

    def mark(self) -> int:
        """Return the position that `rollback` takes."""
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        """Take back all changes since `mark`."""
        journal = self._journal
        while len(journal) > mark:
            journal.pop()()

    def _has_scalars(self, view: ShapeView, index: int) -> bool:
        free = self.free_scalars[index]
        return all(free.get(name, 0) >= amount for name, amount in view.scalars)

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
            key = f"{shape.namespace}/{claim}"
            _add(self._claims, key, count)
            volume = self._volume(key)
            if volume is not None:
                _add(self.attached[index], volume, count)
        _add(self.placed[index], shape, count)
        self.counters.change(shape, index, count)

    def _volume(self, claim: str) -> tuple[str, str] | None:
        if claim not in self._volumes:
            self._volumes[claim] = attached_volume(claim, self.snapshot)
        return self._volumes[claim]

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
        self.attached.append({})
        self.placed.append({})
        self.kinds.append(self._kind(node))
        self.counters.node_added(index)

    def _pop(self) -> None:
        index = len(self.nodes) - 1
        self.counters.node_removed(index)
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
        self.attached.pop()
        self.placed.pop()
        for view in self._views.values():
            if view.covered > index:
                view.trim(index)

    def _set(self, index: int, node: Node) -> None:
        placed = self.placed[index].items()
        self.counters.leave(index, placed)
        self.nodes[index] = node
        self.kinds[index] = self._kind(node)
        self.counters.enter(index, placed)
        for view in self._views.values():
            if index < view.covered:
                member = index not in self.closed and view.static.is_ok(node, self.kinds[index])
                view.set_candidate(index, is_candidate=member)

    def _close(self, index: int) -> None:
        self.closed.add(index)
        for view in self._views.values():
            view.set_candidate(index, is_candidate=False)

    def _reopen(self, index: int) -> None:
        self.closed.discard(index)
        # Not only reopened: views that were made while it was closed have never judged it.
        self._set(index, self.nodes[index])

    def _kind(self, node: Node) -> int:
        # A number per combination, so that filters hash a small integer and not the taints for each node and shape.
        return self._kind_numbers.setdefault((node.unschedulable, node.taints), len(self._kind_numbers))


def _add(counts: dict[Key, int], key: Key, count: int) -> None:
    total = counts.get(key, 0) + count
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)
