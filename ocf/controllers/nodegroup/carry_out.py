"""Carry out the decision about one group: begin drains, store its status, then delete and create nodes.

The status holds what steers scaling. A crash before it is stored loses nothing: the time of a drain is also in the
status of its node. So drains begin before, and new nodes are created after the time of the scale-up is stored.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from ocf.cluster import Cluster
from ocf.controllers.nodegroup.drains import begin, waiting_text
from ocf.controllers.nodegroup.group_decision import GroupDecision
from ocf.controllers.nodegroup.group_status import GroupProgress, next_status, shortfall_text
from ocf.controllers.nodegroup.lifecycle import may_be_late
from ocf.controllers.nodegroup.model import NodeGroupSpec
from ocf.controllers.nodegroup.node_model import PlacedPod, VPSieNodeSpec
from ocf.controllers.nodegroup.objects import API_VERSION, FINALIZER, GroupObject, node_name
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.controllers.nodegroup.writes import (
    FIELD_MANAGER,
    add_finalizer,
    delete_object,
    store_group_status,
    store_node_status,
)
from ocf.errors import AlreadyExistsError
from ocf.objects import Manifest

__all__ = ["GroupWriter", "member_manifest", "new_node_specs"]

# As the definition allows.
_MOST_PODS: Final = 1000


class GroupWriter:
    """Carries out decisions about groups."""

    def __init__(self, cluster: Cluster, reporter: Reporter) -> None:
        self._cluster = cluster
        self._reporter = reporter

    async def carry_out(
        self,
        view: ClusterView,
        plan: NodeGroupPlan,
        group: GroupObject,
        *,
        problem: tuple[str, str] | None,
        now: datetime,
    ) -> None:
        """Store the status of a group, then do what was decided about it.

        Args:
            problem: Reason and message of what went wrong apart from the decision; None if nothing did.
        """
        spec = group.spec
        assert spec is not None  # noqa: S101 (only valid groups are decided about)
        decided = plan.groups[group.name]
        # Before the first node exists: a group that is deleted meanwhile must wait for it.
        if decided.add:
            group = replace(group, manifest=await add_finalizer(self._cluster, group.manifest))
        await self._begin_drains(view, group, decided, now)
        messages = plan.messages[group.name]
        nodes = view.nodes_of(group.name)
        progress = GroupProgress(
            ready=plan.ready(group.name),
            on_the_way=sum(node.booting for node in nodes) + plan.starting(group.name),
            waiting=waiting_text(nodes),
            problem=problem,
        )
        status = next_status(group, spec, decided, progress, messages=messages, now=now)
        await store_group_status(self._cluster, group, status)
        error = next((each for each in status.conditions or () if each.type == "Error"), None)
        if error is not None and error.reason == "InstanceTypeInvalid" and error not in (group.status.conditions or ()):
            self._reporter.event(group, "ScaleUpFailed", error.message)
        self._report(group, decided, messages)
        # After the status is stored, which has counted their failures.
        for node in view.nodes_of(group.name):
            if node.status.phase == "Failed" and not node.ending and not may_be_late(node.status, now):
                await delete_object(self._cluster, node.manifest)
        await self._add_nodes(view, group, spec, decided, now)

    async def _begin_drains(self, view: ClusterView, group: GroupObject, decided: GroupDecision, now: datetime) -> None:
        if decided.removals:
            self._reporter.monitor.count("scale_down", group.name)
        for outcome in decided.removals:
            node = view.node_names[outcome.node]
            await store_node_status(self._cluster, node, begin(node.status, now))
            self._reporter.event(group, "ScalingDown", f"remove node {outcome.node}: {outcome.reason}", node=node)

    def _report(self, group: GroupObject, decided: GroupDecision, messages: Mapping[str, str]) -> None:
        monitor = self._reporter.monitor
        monitor.count("scaling_decisions", group.name, decided.outcome, decided.reason)
        for instance_type, message in messages.items():
            self._reporter.event(group, "ScaleUpFailed", f"{instance_type}: {message}")
        # Once per type for as long as pods wait because of it: the stored status has what was reported.
        reported = {each.instance_type for each in group.status.type_gaps or () if each.pod}
        for shortfall in decided.scale_up.shortfalls:
            if shortfall.instance_type not in reported:
                self._reporter.event(group, "ScaleUpFailed", shortfall_text([shortfall]))
        known = {(each.name, each.reason) for each in group.status.blocked or ()}
        for each in decided.blocked:
            # Reported when the drain was given up.
            if each.reason == "drain":
                continue
            # Once for as long as the same rule blocks the node: the stored status has what was reported.
            if (each.node, each.reason) not in known:
                monitor.count("scale_down_blocked", group.name, each.reason)
                note = f"node {each.node} stays: {each.reason}: {each.message}"
                self._reporter.event(group, "ScaleDownBlocked", f"{note} ({each.pod})" if each.pod else note)

    async def _add_nodes(
        self, view: ClusterView, group: GroupObject, spec: NodeGroupSpec, decided: GroupDecision, now: datetime
    ) -> None:
        if not decided.add:
            return
        number = 0
        for wanted in new_node_specs(group.key.name, spec, decided):
            # Another reconcile of the same second has used these names; times have whole seconds.
            while f"{group.key.namespace}/{node_name(group, now, number)}" in view.nodes:
                number += 1
            await self._create(member_manifest(group, wanted, node_name(group, now, number)))
            number += 1
        self._reporter.monitor.count("scale_up", group.name)
        types = ", ".join(sorted({new.template.instance_type for new in decided.add}))
        self._reporter.event(group, "ScalingUp", f"add {_count(len(decided.add))} of type {types}")

    async def _create(self, manifest: Manifest) -> None:
        try:
            await self._cluster.create(manifest, field_manager=FIELD_MANAGER)
        except AlreadyExistsError:
            # An earlier reconcile of the same second created it, and did not see the answer.
            return


def _count(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"


def member_manifest(group: GroupObject, spec: VPSieNodeSpec, name: str) -> Manifest:
    """Return the VPSieNode of a new node of a group."""
    return {
        "apiVersion": API_VERSION,
        "kind": "VPSieNode",
        "metadata": {
            "name": name,
            "namespace": group.key.namespace,
            "labels": dict(group.member_labels),
            "finalizers": [FINALIZER],
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": "NodeGroup",
                    "name": group.key.name,
                    "uid": group.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec.model_dump(mode="json", by_alias=True, exclude_none=True),
    }


def new_node_specs(group: str, spec: NodeGroupSpec, decided: GroupDecision) -> list[VPSieNodeSpec]:
    """Return the specs of the nodes that a decision adds.

    Each carries the pods for which it is requested, so that the decision holds while it starts. The first one also
    carries the pods for which the decision found a place on nodes that there are: without them, the next decision could
    place these pods in another order, and need one more node.
    """
    own: dict[str, list[str]] = {new.name: [] for new in decided.add}
    others: list[PlacedPod] = []
    for pod, node in sorted(decided.placements.items()):
        if node in own:
            own[node].append(pod)
        elif node in decided.known_nodes:
            others.append(PlacedPod(pod=pod, node=node))
    return [
        VPSieNodeSpec.model_validate(
            {
                "nodeGroupName": group,
                "instanceType": new.template.instance_type,
                "datacenterID": new.template.zone or spec.datacenter_id,
                "pods": own[new.name][:_MOST_PODS] or None,
                "placedPods": (others[:_MOST_PODS] or None) if number == 0 else None,
            }
        )
        for number, new in enumerate(decided.add)
    ]
