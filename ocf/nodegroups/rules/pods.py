"""What a pod needs before its node can be removed."""

from collections.abc import Iterable, Iterator
from typing import Final

from ocf.nodegroups.snapshot import ClusterSnapshot, PodDisruptionBudget
from ocf.nodegroups.snapshot.pods import SnapshotPod
from ocf.objects.manifest import PREFIX

__all__ = [
    "budgets_of",
    "check_pdbs",
    "has_local_storage",
    "is_safe_to_evict",
    "is_system_pod",
    "movable_pods",
    "must_not_be_disrupted",
]

SAFE_TO_EVICT: Final = (f"{PREFIX}/safe-to-evict", "cluster-autoscaler.kubernetes.io/safe-to-evict")
SAFE_VOLUMES: Final = (
    f"{PREFIX}/safe-to-evict-local-volumes",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
)
DO_NOT_DISRUPT: Final = (f"{PREFIX}/do-not-disrupt", "karpenter.sh/do-not-disrupt")
_CONTROL_PLANE: Final = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler")
_SYSTEM: Final = "kube-system"


def movable_pods(pods: Iterable[SnapshotPod]) -> tuple[SnapshotPod, ...]:
    """Return the pods that have to move when their node is removed.

    Pods of DaemonSets and mirrors of static pods belong to the node, finished pods have ended, and pods that are being
    deleted leave anyway.
    """
    return tuple(pod for pod in pods if not (pod.of_daemon_set or pod.mirror or pod.finished or pod.deleting))


def is_safe_to_evict(pod: SnapshotPod) -> bool | None:
    """Return what the annotation `safe-to-evict` of a pod says; None without it."""
    for key in SAFE_TO_EVICT:
        if pod.annotations.get(key) in ("true", "false"):
            return pod.annotations[key] == "true"
    return None


def must_not_be_disrupted(pod: SnapshotPod) -> bool:
    """Return whether the annotation `do-not-disrupt` of a pod is true."""
    return any(pod.annotations.get(key) == "true" for key in DO_NOT_DISRUPT)


def has_local_storage(pod: SnapshotPod, snapshot: ClusterSnapshot | None = None) -> bool:
    """Return whether data of a pod is lost when it leaves its node.

    That is an `emptyDir`, also in memory, a `hostPath`, or a claim that is bound to a volume of the node. Volumes that
    the annotation `safe-to-evict-local-volumes` names do not count. A claim or volume that is not in the snapshot
    counts as local, because it cannot be known.

    Args:
        pod: The pod.
        snapshot: The snapshot with claims and volumes; None to look at the pod alone.
    """
    safe = {name.strip() for key in SAFE_VOLUMES for name in pod.annotations.get(key, "").split(",")}
    if set(pod.local_volumes) - safe:
        return True
    return snapshot is not None and any(_is_local(f"{pod.namespace}/{name}", snapshot) for name in pod.shape.claims)


def is_system_pod(pod: SnapshotPod) -> bool:
    """Return whether a pod is part of the control plane: etcd, API server, scheduler or controller manager."""
    # By a part of the name, because static pods carry the name of their node behind it.
    return pod.namespace == _SYSTEM and any(name in pod.name for name in _CONTROL_PLANE)


def budgets_of(pod: SnapshotPod, snapshot: ClusterSnapshot) -> Iterator[PodDisruptionBudget]:
    """Yield the disruption budgets that the API server asks about the eviction of a pod.

    It asks none about a pod that has not started, and not the only one of a pod that is not ready if that budget lets
    such pods be evicted.
    """
    if pod.phase == "Pending":
        return
    found = [budget for budget in snapshot.budgets if budget.selects(pod)]
    if len(found) > 1 or pod.ready or (found and found[0].counts_unready):
        yield from found


def check_pdbs(pods: Iterable[SnapshotPod], snapshot: ClusterSnapshot) -> tuple[SnapshotPod, str] | None:
    """Return the first pod that disruption budgets keep on its node, and why; None if all may be evicted.

    The API server evicts no pod that several budgets select.

    Args:
        pods: The pods.
        snapshot: The snapshot with the budgets.
    """
    for pod in pods:
        budgets = list(budgets_of(pod, snapshot))
        exhausted = [budget.key for budget in budgets if budget.disruptions_allowed <= 0]
        if exhausted:
            return pod, f"the disruption budget {exhausted[0]} allows no disruption"
        # The eviction subresource answers 500 for such a pod (pkg/registry/core/pod/storage/eviction.go), so a drain
        # would never end.
        if len(budgets) > 1:
            return pod, f"several disruption budgets select it: {', '.join(budget.key for budget in budgets)}"
    return None


def _is_local(key: str, snapshot: ClusterSnapshot) -> bool:
    claim = snapshot.claims.get(key)
    # Not known is treated as local: a wrong guess costs data, a right one only a node.
    if claim is None:
        return True
    if not claim.volume:
        return False
    volume = snapshot.volumes.get(claim.volume)
    return volume is None or volume.local
