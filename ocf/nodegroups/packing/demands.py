"""Pods that need a place, grouped by shape and sorted by size."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ocf.nodegroups.snapshot import AffinityTerm, ClusterSnapshot, PodShape, Resources
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["PRIORITY_CUTOFF", "Demand", "group_pods", "is_expendable", "pending_pods"]

PRIORITY_CUTOFF: Final = -10
"""Pods with a lower priority are expendable: as cluster-autoscaler's `--expendable-pods-priority-cutoff` by default."""


class Demand(NamedTuple):
    """Equal pods that need a place.

    Args:
        shape: Their shape.
        pods: The pods, sorted by key.
    """

    shape: PodShape
    pods: tuple[SnapshotPod, ...]


def pending_pods(snapshot: ClusterSnapshot) -> tuple[SnapshotPod, ...]:
    """Return the pods that wait for a node.

    Left out are pods that are being deleted, that scheduling gates keep back, and pods of DaemonSets, which wait for
    their own node. A pod counts from the moment that it exists, even before the scheduler has tried to place it: it
    takes room either way.
    """
    # Not by the condition `PodScheduled`: a scale-up would begin only after the scheduler has tried each pod.
    return tuple(
        pod for pod in snapshot.pods.values() if not (pod.node_name or pod.deleting or pod.gated or pod.of_daemon_set)
    )


_HOSTNAME: Final = "kubernetes.io/hostname"


def is_expendable(pod: SnapshotPod, cutoff: int) -> bool:
    """Return whether a pod is left out of account: no node is added or kept for it.

    The scheduler evicts such a pod for any other one. Pods that belong to a node, of DaemonSets and static ones, are
    never left out.

    Args:
        cutoff: Pods with a lower priority are expendable.
    """
    return pod.priority < cutoff and not (pod.of_daemon_set or pod.mirror)


def group_pods(pods: Iterable[SnapshotPod], reference: Resources) -> list[Demand]:
    """Group pods by shape and sort the groups by size, largest first.

    The size is the share of CPU plus the share of memory of a reference node, so that both count alike. Groups of
    equal size are sorted by the keys of their pods: the order of the pods does not matter. Pods with a required
    affinity to others on their host come right behind these.

    Args:
        reference: The resources of the reference node.

    Example:
        >>> group_pods([], Resources(cpu=4000, memory=2**33))
        []
    """
    groups: dict[PodShape, list[SnapshotPod]] = {}
    for pod in pods:
        groups.setdefault(pod.shape, []).append(pod)
    demands = [Demand(shape, tuple(sorted(found, key=lambda pod: pod.key))) for shape, found in groups.items()]
    cpu, memory = max(reference.cpu, 1), max(reference.memory, 1)

    def size(demand: Demand) -> tuple[float, str]:
        requests = demand.shape.requests
        return -(requests.cpu / cpu + requests.memory / memory), demand.pods[0].key

    return _beside(sorted(demands, key=size))


def _beside(demands: list[Demand]) -> list[Demand]:
    """Return demands with those that have to share a host with others right behind these.

    Smaller pods that may be anywhere would otherwise take the room beside them, and no new node makes up for it.
    """
    for follower in [demand for demand in demands if any(map(_is_of_host, demand.shape.affinity))]:
        hosts = [term for term in follower.shape.affinity if _is_of_host(term)]
        places = [
            place
            for place, other in enumerate(demands)
            if other is not follower and any(_selects(term, other.shape) for term in hosts)
        ]
        place = demands.index(follower)
        if places and places[-1] < place - 1:
            demands.insert(places[-1] + 1, demands.pop(place))
    return demands


def _is_of_host(term: AffinityTerm) -> bool:
    return term.topology_key == _HOSTNAME


def _selects(term: AffinityTerm, shape: PodShape) -> bool:
    # Without the labels of namespaces, which are not known here: it is about an order only.
    return term.selects_for_existing(shape.namespace, shape.label_map, {})
