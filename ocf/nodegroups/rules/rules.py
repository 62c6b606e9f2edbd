"""The safety rules for removing a node, in their order; the first that blocks gives the reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from ocf.nodegroups.model import GroupStatus, NodeGroup
from ocf.nodegroups.rules.pods import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    SAFE_VOLUMES,
    budgets_of,
    check_pdbs,
    has_local_storage,
    is_safe_to_evict,
    is_system_pod,
    must_not_be_disrupted,
)
from ocf.nodegroups.snapshot import ClusterSnapshot, Node
from ocf.nodegroups.snapshot.pods import SnapshotPod
from ocf.objects.manifest import PREFIX

__all__ = ["ANNOTATIONS", "POD_RULES", "RULES", "Blocked", "Removal", "SafetyRule", "first_block"]

_PROTECTED: Final = (
    f"{PREFIX}/protected",
    f"{PREFIX}/scale-down-disabled",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
)
ANNOTATIONS: Final = (*_PROTECTED, *SAFE_TO_EVICT, *SAFE_VOLUMES, *DO_NOT_DISRUPT)
"""The annotations of pods and nodes that decide whether a node is removed."""


class Blocked(NamedTuple):
    """Why a node is not removed.

    Args:
        reason: The reason, the same word in status, events and metrics: `pdb`, `local_storage` …
        message: What blocks, for people.
        pod: The key of the pod that blocks; empty if it is not a pod.
    """

    reason: str
    message: str
    pod: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The removal of a node that rules judge.

    Args:
        snapshot: The snapshot.
        node: The node.
        pods: The pods that have to move.
        group: Its group.
        status: The status of the group.
        remaining: How many nodes the group has without this one, and without those that are being removed.
        disrupted: How many pods of each disruption budget are being evicted in this reconcile, by its key.
        move: Place the pods on the other nodes, and return why that fails; the places are kept if it does not.
        now: The time of the reconcile.
        replaced: Whether nodes are bought to replace it before it goes.
    """

    snapshot: ClusterSnapshot
    node: Node
    pods: tuple[SnapshotPod, ...]
    group: NodeGroup
    status: GroupStatus
    remaining: int
    disrupted: Mapping[str, int]
    move: Callable[[], Blocked | None]
    now: datetime
    replaced: bool = False


class SafetyRule(NamedTuple):
    """A safety rule.

    Args:
        name: Its name, the reason that it gives.
        check: Returns why a node must not be removed; None if this rule allows it.
    """

    name: str
    check: Callable[[Removal], Blocked | None]


def first_block(removal: Removal, rules: Sequence[SafetyRule]) -> Blocked | None:
    """Return why a node must not be removed, by the first rule that blocks; None if all allow it.

    Args:
        rules: The rules, in order.
    """
    return next((blocked for rule in rules if (blocked := rule.check(removal)) is not None), None)


def _unknown(removal: Removal) -> Blocked | None:
    if removal.node.name in removal.snapshot.unknown_nodes:
        found = next(each for each in removal.snapshot.rejected if each.node_name == removal.node.name)
        return Blocked("unknown", f"an object on the node cannot be read: {found}")
    return None


def _pdb(removal: Removal) -> Blocked | None:
    found = check_pdbs(removal.pods, removal.snapshot)
    if found is not None:
        return Blocked("pdb", found[1], found[0].key)
    for pod in removal.pods:
        for budget in budgets_of(pod, removal.snapshot):
            evicted = removal.disrupted.get(budget.key, 0)
            # The status counts the evictions of this reconcile only once they happened. A first node may always use up
            # the budget: its pods are evicted one after the other.
            if evicted >= budget.disruptions_allowed > 0:
                text = f"the disruption budget {budget.key} allows no more disruptions beside those of this reconcile"
                return Blocked("pdb", text, pod.key)
    return None


def _local_storage(removal: Removal) -> Blocked | None:
    for pod in removal.pods:
        if not is_safe_to_evict(pod) and has_local_storage(pod, removal.snapshot):
            volumes = ", ".join(pod.local_volumes) or "a local claim"
            return Blocked("local_storage", f"data is lost with the node: {volumes}", pod.key)
    return None


def _system_pods(removal: Removal) -> Blocked | None:
    found = next((pod for pod in removal.pods if is_system_pod(pod) and not is_safe_to_evict(pod)), None)
    return None if found is None else Blocked("system_pods", "it is part of the control plane", found.key)


def _affinity(removal: Removal) -> Blocked | None:
    return removal.move()


def _min_nodes(removal: Removal) -> Blocked | None:
    # A group whose minimum is above its maximum keeps its maximum.
    fewest = min(removal.group.min_nodes, removal.group.max_nodes)
    # Nodes in flight are not counted: they may never come.
    if removal.remaining < fewest:
        return Blocked("min_nodes", f"the group must keep {fewest} nodes")
    return None


def _cooldown(removal: Removal) -> Blocked | None:
    last, cooldown = removal.status.last_scale, removal.group.scale_down.effective_cooldown
    if last is not None and removal.now - min(last, removal.now) < cooldown:
        return Blocked("cooldown", f"the last scaling was less than {cooldown.total_seconds():.0f} s ago")
    return None


def _protected(removal: Removal) -> Blocked | None:
    for key in _PROTECTED:
        if "true" in (removal.node.annotations.get(key), removal.node.labels.get(key)):
            return Blocked("protected", f"the node has {key}=true")
    return None


def _safe_to_evict(removal: Removal) -> Blocked | None:
    for pod in removal.pods:
        safe = is_safe_to_evict(pod)
        if safe is False:
            return Blocked("safe_to_evict", "its annotation safe-to-evict is false", pod.key)
        if safe is None and pod.controller is None:
            return Blocked("bare_pod", "no controller would create it again", pod.key)
    return None


def _do_not_disrupt(removal: Removal) -> Blocked | None:
    key = next((key for key in DO_NOT_DISRUPT if removal.node.annotations.get(key) == "true"), "")
    if key:
        return Blocked("do_not_disrupt", f"the node has {key}=true")
    found = next((pod for pod in removal.pods if must_not_be_disrupted(pod)), None)
    return None if found is None else Blocked("do_not_disrupt", "its annotation do-not-disrupt is true", found.key)


RULES: Final = (
    SafetyRule("unknown", _unknown),
    SafetyRule("pdb", _pdb),
    SafetyRule("local_storage", _local_storage),
    SafetyRule("system_pods", _system_pods),
    SafetyRule("affinity", _affinity),
    SafetyRule("min_nodes", _min_nodes),
    SafetyRule("cooldown", _cooldown),
    SafetyRule("protected", _protected),
    SafetyRule("safe_to_evict", _safe_to_evict),
    SafetyRule("do_not_disrupt", _do_not_disrupt),
)
"""The rules that apply to every removal, in order. `affinity` also gives the reason `capacity`, and `safe_to_evict`
the reason `bare_pod`. A user adds rules behind them."""

POD_RULES: Final = tuple(
    rule for rule in RULES if rule.check in (_pdb, _local_storage, _system_pods, _safe_to_evict, _do_not_disrupt)
)
"""Those of them about the pods that leave with the node."""
