"""Scale-down: which nodes to remove, and why the others stay."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from ocf.nodegroups.model import GroupStatus, Membership, NodeGroup
from ocf.nodegroups.rules import RULES, Blocked, Removal, SafetyRule, budgets_of, first_block, movable_pods
from ocf.nodegroups.scale_down.consolidate import age_left
from ocf.nodegroups.scale_down.outcomes import CandidateOutcome, ScaleDown, Verdict, outcome_of
from ocf.nodegroups.scale_down.simulation import DrainSimulation
from ocf.nodegroups.scale_down.utilization import removal_order, utilization_of
from ocf.nodegroups.snapshot import ClusterSnapshot, Node
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["is_sick", "plan_scale_down", "update_low_since"]

# As in the cluster autoscaler, `--max-total-unready-percentage` and `--ok-total-unready-count`.
_SICK_PERCENT: Final = 45
_SICK_NODES: Final = 3


def is_sick(snapshot: ClusterSnapshot) -> str:
    """Return why the cluster is too sick for removing nodes; empty if it is not.

    It is if more than 45 % and more than 3 of its nodes are not ready: then the cause is rarely the nodes, and pods
    that are evicted might not start again. Nodes in flight do not count.
    """
    joined = [node for node in snapshot.nodes.values() if not node.in_flight]
    unready = sum(not node.ready for node in joined)
    if unready > _SICK_NODES and unready * 100 > len(joined) * _SICK_PERCENT:
        return f"{unready} of {len(joined)} nodes are not ready"
    return ""


def update_low_since(
    group: NodeGroup, status: GroupStatus, snapshot: ClusterSnapshot, membership: Membership, now: datetime
) -> GroupStatus:
    """Return the status with the nodes that are underutilized now, each since when it has been without a break.

    Args:
        membership: Which nodes belong to the group.
        now: The time of the reconcile.
    """
    low: dict[str, datetime] = {}
    for name in membership.nodes.get(group.name, ()):
        node = snapshot.nodes[name]
        if node.in_flight or name in status.draining:
            continue
        utilization = utilization_of(node, snapshot, group.scale_down.source)
        if utilization is not None and utilization.is_low(group.scale_down):
            # A node that is not in the new map has been busy in between, and starts anew.
            low[name] = status.low_since.get(name, now)
    return replace(status, low_since=low)


class _Planner:
    """The plan for all groups, over one simulation."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        simulation: DrainSimulation,
        membership: Membership,
        rules: Sequence[SafetyRule],
        now: datetime,
    ) -> None:
        self._snapshot = snapshot
        self._simulation = simulation
        self._membership = membership
        self._rules = rules
        self._now = now
        self._disrupted: dict[str, int] = {}
        self.outcomes: dict[str, CandidateOutcome] = {}

    def plan(self, group: NodeGroup, status: GroupStatus) -> None:
        """Decide about the nodes of a group."""
        members = [self._snapshot.nodes[name] for name in self._membership.nodes.get(group.name, ())]
        nodes = [node for node in members if not node.in_flight and node.name not in status.draining]
        utilization = {node.name: utilization_of(node, self._snapshot, group.scale_down.source) for node in nodes}
        moving = {node.name: movable_pods(self._snapshot.pods_on(node.name)) for node in nodes}
        # Empty nodes first: nothing is disrupted, and the room of the others stays for their pods.
        nodes.sort(key=lambda node: (bool(moving[node.name]), removal_order(node, utilization[node.name])))
        # Nodes in flight may never come: they do not stand in for one that is there.
        surplus = len(nodes) - max(group.max_nodes, 0)
        draining = [name for name in self._membership.nodes.get(group.name, ()) if name in status.draining]
        with_pods = sum(bool(movable_pods(self._snapshot.pods_on(name))) for name in draining)
        remaining, empty = len(nodes), len(draining) - with_pods
        # A replacement was planned for all of its nodes at once; one after the other, the first could take the place of
        # the last.
        together = self._replaced_together(status, nodes, moving) if surplus <= 0 else {}
        for node in nodes:
            pods = moving[node.name]
            outcome = self._not_yet(group, status, node, surplus=surplus)
            if outcome is None and _is_limited(group, empty, with_pods, has_pods=bool(pods)):
                text = "enough nodes are being removed"
                outcome = outcome_of(node, group, Verdict.WAITS, Blocked("limit", text))
            if outcome is None:
                known = together.get(node.name)
                placements, blocked = self._judge(group, status, node, pods, remaining=remaining - 1, known=known)
                if blocked is None:
                    why = "replaced" if node.name in status.replaced else "underutilized"
                    reason = Blocked("surplus" if surplus > 0 else why, "")
                    own = {pod.key: placements[pod.key] for pod in pods}
                    outcome = replace(outcome_of(node, group, Verdict.REMOVE, reason), placements=own)
                    remaining, surplus = remaining - 1, surplus - 1
                    empty, with_pods = empty + (not pods), with_pods + bool(pods)
                else:
                    outcome = outcome_of(node, group, Verdict.BLOCKED, blocked)
            self.outcomes[node.name] = replace(outcome, utilization=utilization[node.name])

    def _replaced_together(
        self, status: GroupStatus, nodes: Iterable[Node], moving: Mapping[str, tuple[SnapshotPod, ...]]
    ) -> dict[str, Mapping[str, str]]:
        """Return where the pods of each replaced node go if all of these nodes are drained at once."""
        drained = [(node, moving[node.name]) for node in nodes if node.name in status.replaced]
        if not drained or self._is_on_its_way(drained[0][0]):
            return {}
        placements, blocked = self._simulation.drain_together(drained)
        if blocked is not None:
            return {}
        return {node.name: {pod.key: placements[pod.key] for pod in pods} for node, pods in drained}

    def _is_on_its_way(self, replaced: Node) -> bool:
        """Return whether a node of the same group is in flight."""
        members = self._membership.nodes[self._membership.group_of[replaced.name]]
        return any(self._snapshot.nodes[name].in_flight for name in members)

    def _not_yet(self, group: NodeGroup, status: GroupStatus, node: Node, *, surplus: int) -> CandidateOutcome | None:
        """Return why a node is not a candidate; None if it is one."""
        policy = group.scale_down
        if not policy.enabled:
            return outcome_of(node, group, Verdict.IGNORED, Blocked("disabled", "the group removes no nodes"))
        # Above the maximum nodes go whatever their utilization; the safety rules still apply.
        if surplus > 0:
            return None
        if status.replaced:
            return self._is_replacing(group, status, node)
        return self._too_young(group, node) if policy.consolidate else self._is_needed(group, status, node)

    def _is_needed(self, group: NodeGroup, status: GroupStatus, node: Node) -> CandidateOutcome | None:
        """Return why a node is not underutilized for long enough; None if it is."""
        since = status.low_since.get(node.name)
        if since is None:
            return outcome_of(node, group, Verdict.NEEDED, Blocked("utilized", "it is not underutilized"))
        left = group.scale_down.duration - (self._now - since)
        if left > timedelta(0):
            text = f"it has to be underutilized for {left.total_seconds():.0f} s more"
            return outcome_of(node, group, Verdict.WAITS, Blocked("duration", text))
        return None

    def _is_replacing(self, group: NodeGroup, status: GroupStatus, node: Node) -> CandidateOutcome | None:
        """Return why a node stays while others are replaced; None if it is one of these."""
        if node.name not in status.replaced:
            text = "other nodes of the group are being replaced"
        elif self._is_on_its_way(node):
            text = "the nodes that replace it are on their way"
        else:
            return None
        return outcome_of(node, group, Verdict.WAITS, Blocked("replacing", text))

    def _too_young(self, group: NodeGroup, node: Node) -> CandidateOutcome | None:
        """Return why consolidation leaves a node alone; None if it is old enough."""
        left = age_left(node, group, self._now)
        if left > timedelta(0):
            text = f"it is too young to be consolidated for {left.total_seconds():.0f} s more"
            return outcome_of(node, group, Verdict.WAITS, Blocked("duration", text))
        return None

    def _judge(
        self,
        group: NodeGroup,
        status: GroupStatus,
        node: Node,
        pods: tuple[SnapshotPod, ...],
        *,
        remaining: int,
        known: Mapping[str, str] | None,
    ) -> tuple[Mapping[str, str], Blocked | None]:
        """Check the rules; `known` are the places of the pods if the simulation has moved them already."""
        state = self._simulation.state
        mark = state.mark()
        placements: dict[str, str] = dict(known or {})

        def move() -> Blocked | None:
            if known is not None:
                return None
            found, blocked = self._simulation.drain(node, pods)
            placements.update(found)
            return blocked

        removal = Removal(
            snapshot=self._snapshot,
            node=node,
            pods=pods,
            group=group,
            status=status,
            remaining=remaining,
            disrupted=self._disrupted,
            move=move,
            now=self._now,
        )
        blocked = first_block(removal, self._rules)
        if blocked is not None:
            # A rule behind `affinity` may block after the pods have found places.
            self._simulation.undo(mark)
            return {}, blocked
        for pod in pods:
            for budget in budgets_of(pod, self._snapshot):
                self._disrupted[budget.key] = self._disrupted.get(budget.key, 0) + 1
        return placements, None


def _is_limited(group: NodeGroup, empty: int, with_pods: int, *, has_pods: bool) -> bool:
    policy = group.scale_down
    return with_pods >= policy.most_with_pods if has_pods else empty >= policy.most_empty


def plan_scale_down(  # noqa: PLR0913 (keyword-only, each a part of the cluster)
    snapshot: ClusterSnapshot,
    groups: Iterable[NodeGroup],
    *,
    membership: Membership,
    statuses: Mapping[str, GroupStatus],
    pending: Iterable[SnapshotPod] = (),
    rules: Sequence[SafetyRule] = (),
    now: datetime,
    stopped: str = "",
) -> ScaleDown:
    """Return which nodes to remove, and why each other node stays.

    Candidates are the nodes of a group with more nodes than its maximum, and the nodes that have been underutilized for
    the duration of the policy; with `consolidate` all nodes are. Nodes without pods to move come first, then the order
    of `removal_order`. Groups are decided about in the order of their names, all over one simulation, so that no two
    nodes count on the same room.

    Args:
        membership: Which nodes belong to which group.
        statuses: The status of each group by its name, with `low_since` up to date.
        pending: The pods that wait for a node; they keep the room that they need.
        rules: Rules of the user, after those that always apply.
        now: The time of the reconcile.
        stopped: Why no node may be removed now; empty if nodes may be.
    """
    outcomes = {node.name: _outside(node, membership, statuses) for node in snapshot.nodes.values()}
    stopped = stopped or is_sick(snapshot)
    if not stopped:
        simulation = DrainSimulation(snapshot, pending, last=_replacing_nodes(snapshot, membership, statuses))
        for name in sorted(name for status in statuses.values() for name in status.draining):
            if name in snapshot.nodes:
                # Drains of earlier reconciles come first: their pods are about to take the room.
                simulation.reserve(snapshot.nodes[name], movable_pods(snapshot.pods_on(name)))
        planner = _Planner(snapshot, simulation, membership, (*RULES, *rules), now)
        for group in sorted(groups, key=lambda group: group.name):
            planner.plan(group, statuses.get(group.name, GroupStatus()))
        # A pod may have moved on from a node that was drained after its own.
        places = simulation.places()
        for name, outcome in planner.outcomes.items():
            placements = {key: places[key] for key in outcome.placements}
            outcomes[name] = replace(outcome, placements=placements) if placements else outcome
    return ScaleDown(outcomes=tuple(outcomes[name] for name in sorted(outcomes)), stopped=stopped)


def _replacing_nodes(
    snapshot: ClusterSnapshot, membership: Membership, statuses: Mapping[str, GroupStatus]
) -> frozenset[str]:
    """Return the nodes that were added to replace others: they take what finds no place elsewhere, as planned."""
    found = set()
    for group, status in statuses.items():
        added = status.last_scale_up
        for name in membership.nodes.get(group, ()) if status.replaced and added else ():
            created = snapshot.nodes[name].created
            if name not in status.replaced and created is not None and added is not None and created >= added:
                found.add(name)
    return frozenset(found)


def _outside(node: Node, membership: Membership, statuses: Mapping[str, GroupStatus]) -> CandidateOutcome:
    """Return the outcome of a node that is not judged."""
    group = membership.group_of.get(node.name, "")
    reason, message = "stopped", "no node is removed at the moment"
    if node.name in membership.contested:
        claiming = ", ".join(membership.contested[node.name])
        reason, message = "contested", f"several groups claim it: {claiming}"
    elif not group:
        reason, message = "no_group", "it belongs to no group"
    elif node.in_flight:
        reason, message = "in_flight", "it is on its way"
    elif node.name in statuses.get(group, GroupStatus()).draining:
        reason, message = "draining", "it is being drained"
    return CandidateOutcome(node=node.name, group=group, verdict=Verdict.IGNORED, reason=reason, message=message)
