"""Drains of nodes: carry out the steps of `ocf.nodegroups.next_step`, with the state in the status of each node."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from ocf.cluster import Cluster, Subresource
from ocf.controllers.nodegroup.groups import to_group, to_group_status
from ocf.controllers.nodegroup.lifecycle import NodeState
from ocf.controllers.nodegroup.node_model import DrainStatus, VPSieNodeStatus
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.controllers.nodegroup.writes import FIELD_MANAGER, delete_object, patch_node, store_node_status
from ocf.errors import ApiError, NotFoundError, TooManyRequestsError
from ocf.nodegroups import Blocked, ClusterSnapshot, Machine, MachineState, Removal, SafetyRule, next_step
from ocf.nodegroups.drain import ActionKind, Drain, DrainAction, DrainPhase, DrainSettings, ObservedNode
from ocf.nodegroups.rules import RULES, first_block, movable_pods
from ocf.objects import Manifest
from ocf.objects.durations import parse_duration

__all__ = ["DrainSteps", "begin", "has_to_drain"]

_log: Final = logging.getLogger(__name__)
# The default of `drainTimeout`, for a node whose group is gone.
_TIMEOUT: Final = timedelta(minutes=10)
# The other rules are about the moment of the decision (see `DrainSteps.blocked`).
_LASTING: Final = ("unknown", "local_storage", "system_pods", "protected", "safe_to_evict", "do_not_disrupt")


def begin(status: VPSieNodeStatus, now: datetime) -> VPSieNodeStatus:
    """Return the status of a node whose drain begins."""
    drain = DrainStatus(started_at=now, phase=DrainPhase.CORDON.value)
    return status.model_copy(update={"phase": "Draining", "drain": drain})


def has_to_drain(node: NodeObject, machine: Machine | None, state: NodeState) -> bool:
    """Return whether the pods of a node have to leave before anything else happens to it.

    Args:
        machine: Its machine; None if the provider does not list it.
        state: The state of its Node.
    """
    drain = node.status.drain
    if node.status.phase not in ("Ready", "Draining") or (not node.ending and drain is None):
        return False
    # Nothing runs on such a node any more, and an eviction would wait for a kubelet that does not answer.
    if state is not NodeState.READY and machine is None:
        return False
    if machine is not None and machine.state is not MachineState.RUNNING:
        return False
    # Without a Node there are no pods to evict.
    if node.ending and state is NodeState.ABSENT:
        return False
    # Once the node is deleted, only its machine is left.
    return not (node.ending and drain is not None and drain.phase in (DrainPhase.DELETE, DrainPhase.DONE))


class DrainSteps:
    """Takes one step in each drain."""

    def __init__(self, cluster: Cluster, reporter: Reporter, rules: Sequence[SafetyRule] = ()) -> None:
        self._cluster = cluster
        self._reporter = reporter
        self._rules = (*(rule for rule in RULES if rule.name in _LASTING), *rules)
        self._refused: dict[str, dict[str, str]] = {}

    def keep(self, nodes: Sequence[NodeObject]) -> None:
        """Forget the refused evictions of all other nodes."""
        known = {node.uid for node in nodes}
        self._refused = {uid: refused for uid, refused in self._refused.items() if uid in known}

    async def step(self, view: ClusterView, snapshot: ClusterSnapshot, node: NodeObject, now: datetime) -> None:
        """Take one step in the drain of a node."""
        if node.status.drain is None:
            await store_node_status(self._cluster, node, begin(node.status, now))
        # The time of a node that dies in its drain runs on, so that it is replaced when that is up.
        ready = view.index.state(node.status.node_name) is NodeState.READY
        since = None if ready else node.status.unready_since or now
        if since != node.status.unready_since:
            await store_node_status(self._cluster, node, node.status.model_copy(update={"unready_since": since}))
        stored = node.status.drain
        assert stored is not None  # noqa: S101 (begun above)
        name = node.status.node_name
        manifest = view.index.by_name.get(name)
        group = view.groups.get(node.group)
        drain = Drain(node=name, started=stored.started_at, phase=DrainPhase(stored.phase), message=stored.message)
        observed = ObservedNode(
            exists=manifest is not None,
            cordoned=bool(((manifest or {}).get("spec") or {}).get("unschedulable")),
            pods=snapshot.pods_on(name),
            refused=self._refused.get(node.uid, {}),
            # A user who deletes a node means it.
            blocked=None if node.ending else self.blocked(snapshot, name, group, now),
        )
        step = next_step(drain, observed, now, DrainSettings(deadline=_deadline(group)))
        # A node that is being deleted cannot go back to work.
        if node.ending and step.drain.phase in (DrainPhase.UNCORDON, DrainPhase.GAVE_UP):
            await self._force(node, step.drain, now)
            return
        await self._store(node, step.drain, group, now)
        for action in step.actions:
            await self._act(view, node, action)
        if step.drain.phase is DrainPhase.DONE:
            await delete_object(self._cluster, node.manifest)

    async def _force(self, node: NodeObject, drain: Drain, now: datetime) -> None:
        """End the drain of a node that is being deleted: its machine goes, with the pods that are left."""
        self._observe(node, drain, "timeout", now)
        status = DrainStatus(started_at=drain.started, phase=DrainPhase.DELETE.value, message=drain.message)
        await store_node_status(
            self._cluster, node, node.status.model_copy(update={"drain": status, "last_error": drain.message})
        )

    async def _store(self, node: NodeObject, drain: Drain, group: GroupObject | None, now: datetime) -> None:
        before = node.status.drain
        if drain.phase is DrainPhase.GAVE_UP:
            message = before.message if before is not None and not drain.message else drain.message
            back = {"drain": None, "phase": "Ready", "last_error": f"the drain was given up: {message}"}
            await store_node_status(self._cluster, node, node.status.model_copy(update=back))
            self._observe(node, drain, "timeout", now)
            self._reporter.monitor.count("scale_down_blocked", node.group, "drain")
            note = f"the drain of node {drain.node} was given up: {message}"
            self._reporter.event(group, "ScaleDownBlocked", note, node=node)
            return
        # The message of an eviction may change with each answer, and is worth no write of its own.
        if before is not None and before.phase == drain.phase.value and before.started_at == drain.started:
            return
        status = DrainStatus(started_at=drain.started, phase=drain.phase.value, message=drain.message)
        await store_node_status(
            self._cluster, node, node.status.model_copy(update={"phase": "Draining", "drain": status})
        )
        if drain.phase in (DrainPhase.DELETE, DrainPhase.DONE):
            self._observe(node, drain, "success", now)

    async def _act(self, view: ClusterView, node: NodeObject, action: DrainAction) -> None:
        name = node.status.node_name
        match action.kind:
            case ActionKind.CORDON:
                await patch_node(self._cluster, name, {"spec": {"unschedulable": True}})
            case ActionKind.UNCORDON:
                await patch_node(self._cluster, name, {"spec": {"unschedulable": None}})
            case ActionKind.EVICT:
                pods = view.core.pod_table.by_key
                self._refused[node.uid] = refused = {}
                for key in action.pods:
                    message = await self._evict(key, pods[key].uid)
                    if message:
                        refused[key] = message
            case ActionKind.DELETE:
                if not node.ending:
                    await delete_object(self._cluster, node.manifest)

    async def _evict(self, key: str, uid: str) -> str:
        """Evict a pod.

        Returns:
            Why the API server refused it; empty if it did not.
        """
        namespace, _, name = key.partition("/")
        eviction: Manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            # Another pod of the same name, on another node, is not the one to evict.
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        try:
            await self._cluster.create(eviction, field_manager=FIELD_MANAGER, subresource=Subresource.EVICTION)
        except NotFoundError:
            # The pod has ended, or another one has its name, which the precondition on the uid answers with a conflict.
            return ""
        except TooManyRequestsError as error:
            # A PodDisruptionBudget allows no disruption now; the next step tries again.
            return error.message
        except ApiError as error:
            _log.warning("pod %s cannot be evicted: %s", key, error)
            return error.message
        return ""

    def blocked(self, snapshot: ClusterSnapshot, name: str, group: GroupObject | None, now: datetime) -> Blocked | None:
        """Return the safety rule that keeps a node in a drain, or a node that is not ready.

        The number of nodes, cooldowns and places for pods are about the moment of a decision; evictions heed disruption
        budgets, and a node that is not ready disrupts its pods already.
        """
        node = snapshot.nodes.get(name)
        if node is None or group is None or group.spec is None or group.ending:
            return None
        removal = Removal(
            snapshot=snapshot,
            node=node,
            pods=movable_pods(snapshot.pods_on(name)),
            group=to_group(group, group.spec),
            status=to_group_status(group, group.spec),
            # As many as never violate the rule about `minNodes`, which was checked when the drain began.
            remaining=group.spec.max_nodes,
            disrupted={},
            move=lambda: None,
            now=now,
        )
        return first_block(removal, self._rules)

    def _observe(self, node: NodeObject, drain: Drain, result: str, now: datetime) -> None:
        seconds = (now - drain.started).total_seconds()
        self._reporter.monitor.observe("node_drain_duration_seconds", node.group, result, seconds=seconds)


def _deadline(group: GroupObject | None) -> timedelta:
    if group is None or group.spec is None:
        return _TIMEOUT
    return parse_duration(group.spec.scale_down_policy.drain_timeout)
