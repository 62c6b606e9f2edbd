"""Drains of nodes: carry out the steps of `ocf.nodegroups.next_step`, with the state in the status of each node."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from ocf.cluster import Cluster, Subresource
from ocf.controllers.nodegroup.groups import to_group, to_group_status
from ocf.controllers.nodegroup.lifecycle import NodeState
from ocf.controllers.nodegroup.node_model import DrainBackoff, DrainStatus, VPSieNodeStatus
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject
from ocf.controllers.nodegroup.observation import ClusterView
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.controllers.nodegroup.texts import shortened
from ocf.controllers.nodegroup.writes import FIELD_MANAGER, delete_object, patch_node, store_node_status
from ocf.errors import ApiError, NotFoundError, TooManyRequestsError
from ocf.nodegroups import Blocked, ClusterSnapshot, Machine, MachineState, NodeGroup, Removal, SafetyRule, next_step
from ocf.nodegroups.drain import ActionKind, Drain, DrainAction, DrainPhase, DrainSettings, ObservedNode
from ocf.nodegroups.model import MOST_FAILURES, GroupStatus
from ocf.nodegroups.rules import RULES, first_block, movable_pods
from ocf.objects import Manifest, format_time, parse_time
from ocf.objects.durations import parse_duration

__all__ = ["DrainSteps", "begin", "drain_backoff_rule", "has_to_drain", "waiting_text", "waits_for_pods"]

_log: Final = logging.getLogger(__name__)
# The default of `drainTimeout`, for a node whose group is gone.
_TIMEOUT: Final = timedelta(minutes=10)
_UNCORDONED: Final = Blocked("uncordoned", "the node was made schedulable again, but not by this controller")
# A drain that fails costs evictions and time; most of its causes (a budget, a pod that never ends) last for hours.
_FIRST_BACKOFF: Final = timedelta(minutes=15)
_LONGEST_BACKOFF: Final = timedelta(hours=4)
# Each replacement that fails costs a machine for as long as its drain took.
_REPLACED_LATER: Final = timedelta(hours=1)
_AFTER_PODS: Final = (DrainPhase.DELETE, DrainPhase.DONE)
_BEFORE_DELETION: Final = (DrainPhase.CORDON, DrainPhase.EVICT, DrainPhase.WAIT)
_GIVEN_UP: Final = (DrainPhase.UNCORDON, DrainPhase.GAVE_UP)
# The other rules are about the moment of the decision (see `DrainSteps.blocked`).
_LASTING: Final = (
    "unknown",
    "local_storage",
    "system_pods",
    "min_nodes",
    "protected",
    "safe_to_evict",
    "do_not_disrupt",
)


def begin(status: VPSieNodeStatus, now: datetime) -> VPSieNodeStatus:
    """Return the status of a node whose drain begins."""
    drain = DrainStatus(started_at=now, phase=DrainPhase.CORDON.value)
    return status.model_copy(update={"phase": "Draining", "drain": drain})


def has_to_drain(node: NodeObject, machine: Machine | None, state: NodeState, *, waits: bool) -> bool:
    """Return whether the pods of a node have to leave before anything else happens to it.

    Args:
        machine: Its machine; None if the provider does not list it.
        state: The state of its Node.
        waits: Whether the node waits for its pods, see `waits_for_pods`.
    """
    drain = node.status.drain
    # A status that was restored or written by a user may say that the machine is being deleted although it is not.
    running = machine is not None and state is NodeState.READY
    working = node.status.phase in ("Ready", "Draining") or (node.status.phase == "Terminating" and waits and running)
    if not working or (not node.ending and drain is None):
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
    return waits or not (node.ending and drain is not None and drain.phase in _AFTER_PODS)


def waits_for_pods(view: ClusterView, snapshot: ClusterSnapshot, node: NodeObject, now: datetime) -> bool:
    """Return whether pods are on a node that have to move and still have time, whatever its status says."""
    name = node.status.node_name
    if name not in view.index.by_name:
        return False
    left = name in snapshot.unknown_nodes or bool(movable_pods(snapshot.pods_on(name)))
    # Only the API server sets the time of the deletion.
    over = node.ending and now - _started(node, now) >= _deadline(view.groups.get(node.group))
    return left and not over


def _started(node: NodeObject, now: datetime) -> datetime:
    """Return when the drain of a node that is being deleted began: its pods have the whole time from then on."""
    begun = node.status.drain.started_at if node.status.drain is not None else now
    deleted = node.manifest["metadata"].get("deletionTimestamp")
    return min(begun if deleted is None else max(begun, parse_time(deleted)), now)


def drain_backoff_rule(view: ClusterView, now: datetime) -> SafetyRule:
    """Return the rule that keeps nodes whose last drain was given up a while ago."""
    kept = {
        name: found
        for name, node in view.node_names.items()
        # One that is longer than any was written with another clock.
        if (found := node.status.drain_backoff) is not None and -_REPLACED_LATER < found.until - now <= _LONGEST_BACKOFF
    }

    def check(removal: Removal) -> Blocked | None:
        found = kept.get(removal.node.name)
        if found is None or now >= found.until + (_REPLACED_LATER if removal.replaced else timedelta(0)):
            return None
        count = "its drain was" if found.failures == 1 else f"{found.failures} drains were"
        text = f"{count} given up, and the next one begins after {format_time(found.until)}: {found.message}"
        return Blocked("drain", text)

    return SafetyRule("drain", check)


def waiting_text(nodes: Sequence[NodeObject]) -> str:
    """Return which pods the drains of nodes wait for, and since when; empty if they wait for none."""
    found = [(node.node_name, node.status.drain) for node in nodes]
    return "; ".join(
        f"node {name} waits for pod {drain.pod} since {format_time(drain.waiting_since)}: {drain.message}"
        for name, drain in found
        if drain is not None and drain.pod and drain.waiting_since is not None
    )


def _backed_off(before: DrainBackoff | None, message: str, now: datetime) -> DrainBackoff:
    """Return the backoff after a drain was given up."""
    # One that was given up long ago had another cause.
    recent = before is not None and now - min(before.until, now) < _LONGEST_BACKOFF
    # A stored number may be the largest that the definition allows.
    failures = min(before.failures + 1, MOST_FAILURES) if before is not None and recent else 1
    # Limited before the multiplication, which overflows beyond some dozens of failures.
    wait = min(_FIRST_BACKOFF * 2 ** min(failures - 1, 10), _LONGEST_BACKOFF)
    return DrainBackoff(failures=failures, until=now + wait, message=shortened(message))


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
        if node.ending:
            stored = stored.model_copy(update={"started_at": _started(node, now)})
        if stored.phase in _AFTER_PODS and waits_for_pods(view, snapshot, node, now):
            # Pods came after the others had left, or the status was restored, or written by a user.
            anew = DrainStatus(started_at=now, phase=DrainPhase.CORDON.value, cordoned=stored.cordoned)
            await store_node_status(self._cluster, node, node.status.model_copy(update={"drain": anew}))
            stored = anew
        manifest = view.index.by_name.get(name)
        group = view.groups.get(node.group)
        drain = _to_drain(name, stored)
        cordoned = bool(((manifest or {}).get("spec") or {}).get("unschedulable"))
        blocked = self.blocked(snapshot, name, group, now, remaining=_remaining(view, snapshot, group))
        if not cordoned and drain.phase in (DrainPhase.EVICT, DrainPhase.WAIT):
            blocked = blocked or _UNCORDONED
        if _is_invalid(group) and not (node.ending or blocked) and drain.phase in _BEFORE_DELETION:
            # How long it may take, and what has to stay, says only a valid spec.
            return
        observed = ObservedNode(
            exists=manifest is not None,
            cordoned=cordoned,
            pods=snapshot.pods_on(name),
            refused=self._refused.get(node.uid, {}),
            # A user who deletes a node means it.
            blocked=None if node.ending else blocked,
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
        status = _to_status(replace(drain, phase=DrainPhase.DELETE, pod="", waiting_since=None))
        await store_node_status(
            self._cluster, node, node.status.model_copy(update={"drain": status, "last_error": drain.message})
        )

    async def _store(self, node: NodeObject, drain: Drain, group: GroupObject | None, now: datetime) -> None:
        before = node.status.drain
        if drain.phase is DrainPhase.GAVE_UP:
            message = before.message if before is not None and not drain.message else drain.message
            back = {
                "drain": None,
                "phase": "Ready",
                "drain_backoff": _backed_off(node.status.drain_backoff, message, now),
                "last_error": f"the drain was given up: {message}",
            }
            await store_node_status(self._cluster, node, node.status.model_copy(update=back))
            self._observe(node, drain, "timeout", now)
            self._reporter.monitor.count("scale_down_blocked", node.group, "drain")
            note = f"the drain of node {drain.node} was given up: {message}"
            self._reporter.event(group, "ScaleDownBlocked", note, node=node)
            return
        status = _to_status(drain)
        # The message of an eviction may change with each answer, and is worth no write of its own.
        if before is not None and before.model_copy(update={"message": status.message}) == status:
            return
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

    def blocked(
        self,
        snapshot: ClusterSnapshot,
        name: str,
        group: GroupObject | None,
        now: datetime,
        *,
        remaining: int | None = None,
    ) -> Blocked | None:
        """Return the safety rule that keeps a node in a drain, or a node that is not ready.

        Cooldowns and places for pods are about the moment of a decision; evictions heed disruption budgets, and a node
        that is not ready disrupts its pods already.

        Args:
            remaining: How many nodes the group has without those that leave; None for as many as it must keep.
        """
        node = snapshot.nodes.get(name)
        if node is None or group is None or group.ending:
            return None
        removal = Removal(
            snapshot=snapshot,
            node=node,
            pods=movable_pods(snapshot.pods_on(name)),
            # The lasting rules are about the node and its pods, and hold without a valid spec, too.
            group=_without_spec(group) if group.spec is None else to_group(group, group.spec),
            status=GroupStatus() if group.spec is None else to_group_status(group, group.spec),
            remaining=(0 if group.spec is None else group.spec.max_nodes) if remaining is None else remaining,
            disrupted={},
            move=lambda: None,
            now=now,
        )
        return first_block(removal, self._rules)

    def _observe(self, node: NodeObject, drain: Drain, result: str, now: datetime) -> None:
        seconds = (now - drain.started).total_seconds()
        self._reporter.monitor.observe("node_drain_duration_seconds", node.group, result, seconds=seconds)


def _to_drain(name: str, stored: DrainStatus) -> Drain:
    return Drain(
        node=name,
        started=stored.started_at,
        phase=DrainPhase(stored.phase),
        message=stored.message,
        cordoned=stored.cordoned,
        pod=stored.pod,
        waiting_since=stored.waiting_since,
    )


def _to_status(drain: Drain) -> DrainStatus:
    return DrainStatus(
        started_at=drain.started,
        phase=drain.phase.value,
        message=drain.message,
        cordoned=drain.cordoned,
        pod=drain.pod,
        waiting_since=drain.waiting_since,
    )


def _remaining(view: ClusterView, snapshot: ClusterSnapshot, group: GroupObject | None) -> int | None:
    """Return how many nodes of a group stay, counted as for the decision to remove one."""
    wanted = next((each for each in view.desired_groups() if group is not None and each.name == group.name), None)
    if wanted is None:
        return None
    # One whose drain was given up in this reconcile stays.
    leaving = {
        node.node_name
        for node in view.nodes_of(wanted.name)
        if node.leaving and (node.ending or node.status.drain is None or node.status.drain.phase not in _GIVEN_UP)
    }
    stay = (node for node in snapshot.nodes.values() if wanted.claims(node))
    count = sum(not node.in_flight and node.name not in leaving for node in stay)
    # A machine that is given up counts for the maximum, and by that for the minimum, until it is gone.
    return count + (group.spec.min_nodes - wanted.min_nodes if group is not None and group.spec is not None else 0)


def _is_invalid(group: GroupObject | None) -> bool:
    return group is not None and group.spec is None and not group.ending


def _without_spec(group: GroupObject) -> NodeGroup:
    return NodeGroup(name=group.name, member_labels=group.member_labels, min_nodes=0, max_nodes=0)


def _deadline(group: GroupObject | None) -> timedelta:
    if group is None or group.spec is None:
        return _TIMEOUT
    return parse_duration(group.spec.scale_down_policy.drain_timeout)
