"""The predicate: whether a pod fits a node, and why not."""

from collections.abc import Iterator

from ocf.nodegroups.predicates.reasons import IN_USE, PORTS, TOO_MANY_PODS, Misfit
from ocf.nodegroups.predicates.state import ClusterState
from ocf.nodegroups.snapshot import PodShape, Snapshot
from ocf.nodegroups.snapshot.pods import Pod

__all__ = ["explain", "fits"]


def fits(pod: Pod, node: str, snapshot: Snapshot) -> Misfit | None:
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
        >>> pod = Pod.of({"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}})
        >>> print(fits(pod, "n1", Snapshot.of(nodes=[node])))
        Insufficient cpu
    """
    state = ClusterState(snapshot.without_pod(pod.key) if pod.node_name else snapshot)
    return explain(pod.shape, state.index[node], state)


def explain(shape: PodShape, index: int, state: ClusterState) -> Misfit | None:
    """Return why a pod of a shape does not fit a node of a state; None if it does.

    Args:
        shape: The shape.
        index: The index of the node.
        state: The state.
    """
    view = state.view(shape)
    node = state.nodes[index]
    found = view.static.check_node(node)
    if found is None and shape.ports and not state.has_ports(shape, index):
        found = Misfit("NodePorts", (PORTS,))
    if found is None:
        short = list(_shortages(shape, index, state))
        if short:
            found = Misfit("NodeResourcesFit", tuple(reason for reason, _ in short), tuple(text for _, text in short))
    if found is None and state.in_use(view):
        found = Misfit("VolumeRestrictions", (IN_USE,))
    if found is None:
        found = view.static.check_volumes(node)
    if found is None and view.rules.refresh():
        found = view.rules.misfit(index)
    return found


def _shortages(shape: PodShape, index: int, state: ClusterState) -> Iterator[tuple[str, str]]:
    requests, allocatable = shape.requests, state.nodes[index].allocatable
    if state.free_pods[index] < 1:
        yield TOO_MANY_PODS, f"pods: {allocatable.pods - state.free_pods[index]} of {allocatable.pods} used"
    free = state.free_scalars[index]
    capacity = dict(allocatable.scalars)
    amounts = [
        ("cpu", requests.cpu, state.free_cpu[index], allocatable.cpu),
        ("memory", requests.memory, state.free_memory[index], allocatable.memory),
        ("ephemeral-storage", requests.storage, state.free_storage[index], allocatable.storage),
        *((name, amount, free.get(name, 0), capacity.get(name, 0)) for name, amount in requests.scalars),
    ]
    for name, wanted, left, size in amounts:
        if wanted > 0 and wanted > left:
            unit = "m" if name == "cpu" else ""
            yield f"Insufficient {name}", f"{name}: {wanted}{unit} requested, {left}{unit} free of {size}{unit}"
