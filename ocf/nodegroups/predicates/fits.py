"""The predicate: whether a pod fits a node, and why not."""

from collections.abc import Iterator

from ocf.nodegroups.predicates.reasons import IN_USE, PORTS, VOLUME_COUNT, Misfit, Shortage
from ocf.nodegroups.predicates.state import ClusterState
from ocf.nodegroups.snapshot import ClusterSnapshot, PodShape
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["count_reasons", "explain", "fits"]


def fits(pod: SnapshotPod, node: str, snapshot: ClusterSnapshot) -> Misfit | None:
    """Return why the scheduler would not place a pod on a node; None if it would.

    The filters are those of the default profile of kube-scheduler 1.36, in its order, and the reasons are its texts:
    the first plugin that rejects the node gives the reasons. To ask about many pods or nodes, use `explain`.

    Args:
        pod: The pod. If it is on a node in the snapshot, it is taken off first.
        node: The name of the node.
        snapshot: The snapshot.

    Raises:
        KeyError: If the node is not in the snapshot.

    Example:
        >>> node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "110"}}}
        >>> pod = SnapshotPod.of({"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}})
        >>> print(fits(pod, "n1", ClusterSnapshot.of(nodes=[node])))
        Insufficient cpu
    """
    state = ClusterState(snapshot.without_pod(pod.key) if pod.node_name else snapshot)
    return explain(pod.shape, state.index[node], state)


def explain(shape: PodShape, index: int, state: ClusterState) -> Misfit | None:
    """Return why a pod of a shape does not fit a node of a state; None if it does.

    Args:
        index: The index of the node.
    """
    view = state.view(shape)
    node = state.nodes[index]
    found = view.static.check_node(node)
    # In the order of the default profile: the first plugin that rejects a node gives the message that users compare.
    if found is None and shape.ports and not state.has_ports(shape, index):
        found = Misfit("NodePorts", (PORTS,))
    # Most nodes have room, and reasons are asked for on thousands of them.
    if found is None and not state.has_room(view, index):
        short = tuple(_shortages(shape, index, state))
        found = Misfit("NodeResourcesFit", tuple(each.reason for each in short), short)
    if found is None and view.exclusive and state.in_use(view):
        found = Misfit("VolumeRestrictions", (IN_USE,))
    if found is None and view.volumes and not state.attaches(view, index):
        found = Misfit("NodeVolumeLimits", (VOLUME_COUNT,))
    if found is None:
        found = view.static.check_volumes(node)
    if found is None and view.rules.refresh():
        found = view.rules.misfit(index)
    return found


def count_reasons(shape: PodShape, state: ClusterState) -> dict[str, int]:
    """Return how many nodes reject a pod of a shape for each reason, as the scheduler counts them in its message.

    Closed nodes are left out.
    """
    view = state.view(shape)
    candidates = set(view.candidates)
    counts: dict[str, int] = {}
    plain = not shape.ports and not shape.claims and not shape.requests.scalars and not shape.requests.storage
    cpu, memory, _ = view.needs
    short = dict.fromkeys(("cpu", "memory", "pods"), 0)
    for index in range(len(state.nodes)):
        if index in state.closed:
            continue
        # The common case without a Misfit per node: a full cluster of 5 000 nodes is counted in every message.
        if plain and index in candidates and not state.has_room(view, index):
            short["cpu"] += state.free_cpu[index] < cpu
            short["memory"] += state.free_memory[index] < memory
            short["pods"] += state.free_pods[index] < 1
            continue
        misfit = explain(shape, index, state)
        for reason in misfit.reasons if misfit else ():
            counts[reason] = counts.get(reason, 0) + 1
    for name, count in short.items():
        if count:
            reason = Shortage(name, 0, 0, 0).reason
            counts[reason] = counts.get(reason, 0) + count
    return dict(sorted(counts.items()))


def _shortages(shape: PodShape, index: int, state: ClusterState) -> Iterator[Shortage]:
    requests, allocatable = shape.requests, state.nodes[index].allocatable
    if state.free_pods[index] < 1:
        yield Shortage("pods", 1, state.free_pods[index], allocatable.pods)
    # A request of 0 fits even on an overcommitted node (fitsRequest of noderesources).
    if 0 < requests.cpu > state.free_cpu[index]:
        yield Shortage("cpu", requests.cpu, state.free_cpu[index], allocatable.cpu)
    if 0 < requests.memory > state.free_memory[index]:
        yield Shortage("memory", requests.memory, state.free_memory[index], allocatable.memory)
    if 0 < requests.storage > state.free_storage[index]:
        yield Shortage("ephemeral-storage", requests.storage, state.free_storage[index], allocatable.storage)
    free = state.free_scalars[index]
    for name, amount in requests.scalars:
        if 0 < amount > free.get(name, 0):
            yield Shortage(name, amount, free.get(name, 0), dict(allocatable.scalars).get(name, 0))
