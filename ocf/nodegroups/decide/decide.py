"""The decision of a reconcile about all node groups."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from ocf.nodegroups.model import Catalog, GroupStatus, Membership, NodeGroup, assign_nodes
from ocf.nodegroups.packing import PRIORITY_CUTOFF, Unplaced, is_expendable, pending_pods
from ocf.nodegroups.rules import POD_RULES, Blocked, Removal, SafetyRule, first_block, movable_pods
from ocf.nodegroups.scale_down import ScaleDown, plan_scale_down, update_low_since
from ocf.nodegroups.scale_down.consolidate import Replacement, is_still_replacing, plan_replacement
from ocf.nodegroups.scale_up import ScaleUp, plan_scale_up
from ocf.nodegroups.selection import Learned, survey
from ocf.nodegroups.snapshot import ClusterSnapshot
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["Direction", "ScalingDecision", "decide"]

# The scheduler tries again after five minutes at the latest (flushUnschedulablePodsLeftover), so its word is not old.
_DISAGREEMENT: Final = timedelta(minutes=6)


class Direction(StrEnum):
    """What a reconcile does; it never adds and removes nodes at once."""

    UP = "up"
    DOWN = "down"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingDecision:
    """The decision of a reconcile.

    Args:
        direction: Whether nodes are added or removed.
        scale_up: What each group adds, and where pending pods find a place or why not.
        scale_down: Which nodes are removed, and why each other node stays.
        replacements: Nodes that are replaced by cheaper ones: the new nodes are added now, the others go later.
        statuses: The status of each group by its name, valid once the decision is carried out.
        nominated: The node that each pending pod keeps, of the scheduler or from an earlier decision, by the key of
            the pod.
        starting: The nodes that are ready and still being set up: they count as on their way.
        membership: Which nodes belong to which group.
        problems: What is wrong with the groups and the objects of the cluster; nothing of it keeps the rest from being
            decided.
    """

    direction: Direction
    scale_up: ScaleUp
    scale_down: ScaleDown
    replacements: tuple[Replacement, ...] = ()
    statuses: Mapping[str, GroupStatus]
    nominated: Mapping[str, str] = field(default_factory=dict)
    starting: frozenset[str] = frozenset()
    membership: Membership
    problems: tuple[str, ...] = ()


def decide(  # noqa: PLR0913 (keyword-only, each a part of the cluster)
    snapshot: ClusterSnapshot,
    groups: Sequence[NodeGroup],
    *,
    catalog: Catalog,
    now: datetime,
    statuses: Mapping[str, GroupStatus] | None = None,
    nominations: Mapping[str, str] | None = None,
    rules: Sequence[SafetyRule] = (),
    priority_cutoff: int = PRIORITY_CUTOFF,
) -> ScalingDecision:
    """Decide about all node groups. Wrong input becomes a reason in the decision, never an exception.

    Adding nodes wins: only if no group wants a node, nodes are removed. A group whose name is used twice is handled
    once, the first one given.

    Args:
        snapshot: The snapshot, with nodes in flight.
        groups: The groups.
        catalog: The types of the provider.
        now: The time of the reconcile.
        statuses: The status of each group by its name, as the last decision returned it.
        nominations: The node that an earlier decision found for each pending pod, by the key of the pod: a pod keeps
            its place while the nodes that were ordered with it start. Those of other pods and nodes are ignored.
        rules: Safety rules of the user, after those that always apply.
        priority_cutoff: Pods with a lower priority are left out of account: no node is added for them, and none is kept
            for them.

    Example:
        >>> from datetime import UTC
        >>> group = NodeGroup(name="workers", min_nodes=2, max_nodes=3, member_labels={"pool": "workers"})
        >>> decision = decide(ClusterSnapshot(), [group], catalog=Catalog(), now=datetime(2026, 1, 31, tzinfo=UTC))
        >>> decision.direction.value, decision.problems
        ('none', ('group workers: the group has no instance types: no node can be added',))
    """
    known, problems = _checked(groups, snapshot)
    membership = assign_nodes(known, snapshot)
    problems += [f"node {name}: claimed by {' and '.join(names)}" for name, names in membership.contested.items()]
    current = {
        group.name: _current(group, (statuses or {}).get(group.name, GroupStatus()), snapshot, membership, now)
        for group in known
    }
    found = survey(snapshot, known, membership=membership, statuses=current, catalog=catalog, now=now)
    snapshot, current = found.snapshot, dict(found.statuses)
    # Before anything is packed: a pod that found its place together with others would take another one alone.
    expendable = [each for each in snapshot.pods.values() if each.node_name and is_expendable(each, priority_cutoff)]
    rules = (_expendable_rule(expendable, snapshot), *rules)
    for pod in expendable:
        snapshot = snapshot.without_pod(pod.key)
    nominated = _nominated(snapshot, nominations or {}, now)
    for key, node in nominated.items():
        snapshot = snapshot.place(snapshot.pods[key], node)
    pending = pending_pods(snapshot)
    scale_up = plan_scale_up(
        snapshot,
        pending,
        known,
        membership=membership,
        statuses=current,
        learned=found.learned,
        now=now,
        cutoff=priority_cutoff,
    )
    scale_up = replace(scale_up, unplaced=(*scale_up.unplaced, *_rejected(pending, scale_up, snapshot, now)))
    # Pods for which no node helps keep no room: otherwise one of them would keep every idle node.
    waiting = [pod for pod in pending if pod.key in scale_up.placements]
    scale_down = plan_scale_down(
        snapshot,
        known,
        membership=membership,
        statuses=current,
        pending=waiting,
        rules=rules,
        now=now,
        stopped="nodes are added first" if scale_up.grows else "",
    )
    decision = ScalingDecision(
        direction=_direction(scale_up, scale_down),
        scale_up=scale_up,
        scale_down=scale_down,
        statuses=_after(current, scale_up, scale_down, now),
        nominated=nominated,
        starting=found.starting,
        membership=membership,
        problems=tuple(problems),
    )
    # A cheaper node is looked for only in a group at rest: what is added or removed changes which one that is.
    if scale_up.grows or scale_down.removals or scale_down.stopped:
        return decision
    replacements = _replacement(decision, snapshot, known, learned=found.learned, rules=rules, now=now)
    after = dict(decision.statuses)
    for each in replacements:
        # As a scale-up: the new nodes are found again by their creation after this time.
        after[each.group] = replace(after[each.group], last_scale_up=now, replaced=frozenset(each.nodes))
    direction = Direction.UP if replacements else Direction.NONE
    return replace(decision, direction=direction, replacements=replacements, statuses=after)


def _nominated(snapshot: ClusterSnapshot, nominations: Mapping[str, str], now: datetime) -> dict[str, str]:
    """Return the nominations of pods that still wait for a node, to nodes that still take pods.

    Those of the scheduler come first: it keeps the node for the pod, and evicts others of a lower priority from it. The
    filters are not asked again: the places were found together, and need not be found again one after the other.
    """
    found = {}
    for pod in pending_pods(snapshot):
        by_scheduler = "" if _is_forgotten(pod, snapshot, now) else pod.nominated
        node = snapshot.nodes.get(by_scheduler) or snapshot.nodes.get(nominations.get(pod.key, ""))
        if node is not None and not node.unschedulable and node.name not in snapshot.unknown_nodes:
            found[pod.key] = node.name
    return found


def _expendable_rule(pods: Iterable[SnapshotPod], snapshot: ClusterSnapshot) -> SafetyRule:
    """Return the rule that asks the rules about pods for expendable ones, which leave with their node."""
    by_node: dict[str, list[SnapshotPod]] = {}
    for pod in pods:
        by_node.setdefault(pod.node_name, []).append(pod)

    def check(removal: Removal) -> Blocked | None:
        found = movable_pods(by_node.get(removal.node.name, ()))
        return first_block(replace(removal, snapshot=snapshot, pods=found), POD_RULES) if found else None

    return SafetyRule("expendable", check)


def _is_forgotten(pod: SnapshotPod, snapshot: ClusterSnapshot, now: datetime) -> bool:
    """Return whether the scheduler does not bind a pod to its nominated node, from which no pod is leaving."""
    if pod.rejected_at is None or now - pod.rejected_at < _DISAGREEMENT:
        return False
    return not any(each.deleting for each in snapshot.pods_on(pod.nominated))


def _rejected(
    pods: Iterable[SnapshotPod], scale_up: ScaleUp, snapshot: ClusterSnapshot, now: datetime
) -> Iterator[Unplaced]:
    """Yield pods that have a place on a node that is ready, but that the scheduler keeps rejecting.

    It knows filters that are not known here: storage capacity, dynamic resource allocation, plugins. No node is added
    for such a pod, because nothing says that it would help.
    """
    found: dict[str, list[SnapshotPod]] = {}
    for pod in pods:
        node = snapshot.nodes.get(scale_up.placements.get(pod.key, ""))
        if node is None or pod.rejected_at is None or node.in_flight or not node.ready:
            continue
        since = pod.rejected_at if node.created is None else max(pod.rejected_at, node.created)
        if now - since >= _DISAGREEMENT:
            text = f"it fits on node {node.name}, but the scheduler rejects it: {pod.rejection}"
            found.setdefault(text, []).append(pod)
    yield from (Unplaced(tuple(each), text, never=False) for text, each in found.items())


def _direction(scale_up: ScaleUp, scale_down: ScaleDown) -> Direction:
    if any(group.add for group in scale_up.groups):
        return Direction.UP
    return Direction.DOWN if scale_down.removals else Direction.NONE


def _checked(groups: Iterable[NodeGroup], snapshot: ClusterSnapshot) -> tuple[tuple[NodeGroup, ...], list[str]]:
    found: dict[str, NodeGroup] = {}
    problems = [str(each) for each in snapshot.rejected]
    for group in groups:
        if group.name in found:
            problems.append(f"group {group.name}: the name is used twice; the first group is used")
            continue
        found[group.name] = group
        problems += [f"group {group.name}: {problem}" for problem in group.problems()]
    return tuple(found[name] for name in sorted(found)), problems


def _current(
    group: NodeGroup, status: GroupStatus, snapshot: ClusterSnapshot, membership: Membership, now: datetime
) -> GroupStatus:
    """Return the status as of now: without nodes that are gone, and with what is underutilized now."""
    status = status.until(now)
    members = frozenset(membership.nodes.get(group.name, ()))
    # Names of nodes that are gone would hold a replacement open for ever.
    status = replace(status, draining=status.draining & members, replaced=status.replaced & members)
    return update_low_since(group, status, snapshot, membership, now)


def _replacement(
    decision: ScalingDecision,
    snapshot: ClusterSnapshot,
    groups: Iterable[NodeGroup],
    *,
    learned: Mapping[str, Learned],
    rules: Sequence[SafetyRule],
    now: datetime,
) -> tuple[Replacement, ...]:
    """Return the first replacement: the next one is planned when it is done."""
    for group in groups:
        if not (group.scale_down.enabled and group.scale_down.consolidate):
            continue
        found = plan_replacement(
            snapshot,
            group,
            membership=decision.membership,
            status=decision.statuses[group.name],
            learned=learned[group.name],
            rules=rules,
            now=now,
        )
        if found is not None:
            return (found,)
    return ()


def _after(
    statuses: Mapping[str, GroupStatus],
    scale_up: ScaleUp,
    scale_down: ScaleDown,
    now: datetime,
) -> dict[str, GroupStatus]:
    """Return the status of each group once the decision is carried out."""
    found = {
        name: status if is_still_replacing(status, scale_down, now) else replace(status, replaced=frozenset())
        for name, status in statuses.items()
    }
    for group in scale_up.groups:
        if group.add:
            found[group.group] = replace(found[group.group], last_scale_up=now)
    for outcome in scale_down.removals:
        status = found[outcome.group]
        low = {name: at for name, at in status.low_since.items() if name != outcome.node}
        found[outcome.group] = replace(
            status, last_scale_down=now, draining=status.draining | {outcome.node}, low_since=low
        )
    return found
