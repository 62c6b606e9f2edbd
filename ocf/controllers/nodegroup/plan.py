"""Plan of a reconcile: the decision about all groups, from what was read; pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ocf.controllers.nodegroup.drains import drain_backoff_rule
from ocf.controllers.nodegroup.group_decision import GroupDecision, decision_of
from ocf.controllers.nodegroup.group_status import count_refusals
from ocf.controllers.nodegroup.groups import to_group_status
from ocf.controllers.nodegroup.objects import NodeObject
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.nodegroups import Blocked, Catalog, ClusterSnapshot, Node, Removal, SafetyRule, decide
from ocf.nodegroups.decide import ScalingDecision
from ocf.nodegroups.packing import PRIORITY_CUTOFF

__all__ = ["NodeGroupPlan", "make_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupPlan:
    """What would be done now.

    Args:
        decision: The decision about all groups.
        groups: Its part about each group, by the name of the group.
        messages: Why instance types were refused since the last reconcile, by group and by type.
        snapshot: What was decided about.
    """

    decision: ScalingDecision
    groups: Mapping[str, GroupDecision]
    messages: Mapping[str, Mapping[str, str]]
    snapshot: ClusterSnapshot

    def ready(self, group: str) -> int:
        """Return how many nodes of a group are ready and set up, and not on their way out.

        Args:
            group: The name of the group.
        """
        away = self.decision.statuses[group].draining | self.decision.starting
        return sum(node.ready and not node.in_flight and node.name not in away for node in self._members(group))

    def starting(self, group: str) -> int:
        """Return how many nodes of a group have joined and are not set up yet.

        Args:
            group: The name of the group.
        """
        return sum(node.name in self.decision.starting for node in self._members(group))

    def _members(self, group: str) -> Iterator[Node]:
        return (self.snapshot.nodes[name] for name in self.decision.membership.nodes.get(group, ()))


def make_plan(
    view: ClusterView,
    catalog: Catalog,
    now: datetime,
    rules: Sequence[SafetyRule] = (),
    *,
    only: Collection[str] | None = None,
    priority_cutoff: int = PRIORITY_CUTOFF,
) -> NodeGroupPlan:
    """Return what would be done now.

    Args:
        view: What was read from the cluster.
        catalog: The instance types.
        now: The time.
        rules: Safety rules of the user.
        only: The names of the groups that are decided about; None for all. The nodes of others stay as they are.
        priority_cutoff: No node is added or kept for pods with a lower priority.
    """
    snapshot = view.snapshot(catalog)
    groups = [each for each in view.desired_groups() if only is None or each.name in only]
    statuses, messages = {}, {}
    for group in groups:
        found = view.groups[group.name]
        assert found.spec is not None  # noqa: S101 (only valid groups are desired)
        status = to_group_status(found, found.spec, view.draining(group.name), view.drained_at(group.name))
        statuses[group.name], messages[group.name] = count_refusals(status, view.nodes_of(group.name), now)
    decision = decide(
        snapshot,
        groups,
        catalog=catalog,
        now=now,
        statuses=statuses,
        nominations=view.nominations(now),
        rules=(_unmanaged(view), _undeletable(catalog), drain_backoff_rule(view, now), *rules),
        priority_cutoff=priority_cutoff,
    )
    return NodeGroupPlan(
        decision=decision,
        groups={group.name: decision_of(decision, group.name, snapshot.nodes) for group in groups},
        messages=messages,
        snapshot=snapshot,
    )


def _unmanaged(view: ClusterView) -> SafetyRule:
    """Return the rule that keeps Nodes of a group that this controller did not create."""
    managed = {name for name, node in view.node_names.items() if _is_managed(node)}

    def check(removal: Removal) -> Blocked | None:
        if removal.node.name in managed:
            return None
        return Blocked("unmanaged", "no VPSieNode that is ready belongs to the node")

    return SafetyRule("unmanaged", check)


def _is_managed(node: NodeObject) -> bool:
    # One that drains already is on its way out and needs no decision.
    return node.spec is not None and not node.problems and node.status.phase == "Ready"


def _undeletable(catalog: Catalog) -> SafetyRule:
    """Return the rule that keeps nodes whose machines the provider cannot delete now."""

    def check(removal: Removal) -> Blocked | None:
        known = catalog.types.get(removal.node.offering[0]) if removal.node.offering else None
        return Blocked("undeletable", known.undeletable) if known is not None and known.undeletable else None

    return SafetyRule("undeletable", check)
