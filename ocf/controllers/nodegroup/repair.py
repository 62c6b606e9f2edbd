"""Repair of nodes that are not ready: which of them may be replaced now, and why the others stay; pure.

The rules are those of scale-down, so that no protected pod and no local data is lost, and a common cause, such as the
network or the control plane, replaces only a few nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from ocf.controllers.nodegroup.lifecycle import NodeState, is_lost
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.nodegroups import Blocked
from ocf.objects.durations import parse_duration

__all__ = ["boot_timeout", "held_nodes", "is_overdue"]

# The default of `bootTimeout`, for a node whose group is gone.
_BOOT_TIMEOUT: Final = timedelta(minutes=15)
# A share of each group at a time, and a share beyond which the nodes are hardly the cause; one node always may be.
_AT_A_TIME_PERCENT: Final = 20
_MOST_SICK: Final = 3  # one third
_SICK_TOGETHER: Final = 2


def boot_timeout(group: GroupObject | None) -> timedelta:
    """Return how long a node of a group may take to be ready, or be missing or not ready."""
    if group is None or group.spec is None:
        return _BOOT_TIMEOUT
    return parse_duration(group.spec.scale_up_policy.boot_timeout)


def is_overdue(node: NodeObject, group: GroupObject | None, now: datetime) -> bool:
    """Return whether a node has been missing or not ready for longer than its group allows."""
    since = node.status.unready_since
    return since is not None and now - since >= boot_timeout(group)


def held_nodes(
    view: ClusterView, now: datetime, *, sick: str, blocked: Callable[[NodeObject], Blocked | None]
) -> dict[str, str]:
    """Return why nodes stay that have not been ready for too long, by the uid of their object.

    A Node that is missing has no pods, and is not held.

    Args:
        now: The time of the reconcile.
        sick: Why nothing is removed from the whole cluster; empty if nodes may be.
        blocked: Returns the safety rule that keeps a node; None if no rule does.
    """
    by_group: dict[str, list[NodeObject]] = {}
    for node in view.nodes.values():
        if node.spec is not None and not node.problems:
            by_group.setdefault(node.group, []).append(node)
    held: dict[str, str] = {}
    for name, nodes in by_group.items():
        held |= _held_of(view, view.groups.get(name), nodes, now, sick=sick, blocked=blocked)
    return held


def _held_of(
    view: ClusterView,
    group: GroupObject | None,
    nodes: Sequence[NodeObject],
    now: datetime,
    *,
    sick: str,
    blocked: Callable[[NodeObject], Blocked | None],
) -> Mapping[str, str]:
    working = [node for node in nodes if node.status.phase in ("Ready", "Draining") and not node.ending]
    unready = [node for node in working if view.index.state(node.status.node_name) is NodeState.NOT_READY]
    overdue = [node for node in unready if is_overdue(node, group, now)]
    # The list may be wrong. If it is not, the machines are gone, and no share of them comes back by waiting.
    lost = {node.uid: blocked(node) for node in unready if is_lost(node.status, now) and node not in overdue}
    held = {uid: _text(why) for uid, why in lost.items() if why is not None}
    if len(unready) >= _SICK_TOGETHER and len(unready) * _MOST_SICK > len(working):
        sick = sick or f"{len(unready)} of {len(working)} nodes of the group are not ready"
    if sick:
        text = f"{sick}: the nodes are hardly the cause, and none is replaced"
        return {**held, **dict.fromkeys((node.uid for node in overdue), text)}
    # Those on their way out that failed after they were ready; one that never was is no repair.
    leaving = sum(node.status.failed_at is not None and node.status.ready_at is not None for node in nodes)
    free = max(len(working) * _AT_A_TIME_PERCENT // 100, 1) - leaving
    for node in sorted(overdue, key=lambda node: (node.status.unready_since or now, node.name)):
        why = blocked(node)
        if why is not None:
            held[node.uid] = _text(why)
        elif free <= 0:
            held[node.uid] = "enough nodes of the group are being replaced"
        else:
            free -= 1
    return held


def _text(why: Blocked) -> str:
    pod = f" ({why.pod})" if why.pod else ""
    return f"{why.reason}: {why.message}{pod}"
