"""The controller of node groups: drains step by step, then `ocf.nodegroups.decide` on a snapshot, carried out at once.

It looks at the cluster once per period, as the controller of `ocf.controllers.nodegroup` does. Where nothing changed
since the last decision and no time limit has passed, the decision would be the same, so it is not made again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from ocf.nodegroups import ClusterSnapshot, decide, next_step
from ocf.nodegroups.decide import ScalingDecision
from ocf.nodegroups.drain import ActionKind, Drain, DrainPhase, DrainSettings, ObservedNode
from ocf.nodegroups.model import GroupStatus
from ocf.nodegroups.packing import NewNode
from ocf.nodegroups.scale_down import CandidateOutcome
from ocf.nodegroups.scale_down.consolidate import next_look
from ocf.nodegroups.snapshot import Overlay, PodDisruptionBudget, SnapshotPod
from ocf.objects.owner_references import ControllerReference
from ocf.objects.selectors import LabelSelector
from ocf.simulation.engine.clock import NEVER, SECOND, Clock, microseconds
from ocf.simulation.engine.nodes.fleet import NodeFleet
from ocf.simulation.engine.nodes.machines import NodeKind, SimulatedNode
from ocf.simulation.engine.simulated_pods import SimulatedPod
from ocf.simulation.result import BOOT_FAILED, INTERRUPTED, ScalingAction

__all__ = ["NodeController"]

_REFUSED: Final = "its disruption budget allows no disruption now"
_LONGEST_REPLACEMENT: Final = timedelta(hours=1, microseconds=1)
"""Time after which `ocf.nodegroups` gives up a replacement without a change."""


class NodeController:
    """The controller of node groups.

    Args:
        period: Microseconds between two syncs.
    """

    def __init__(self, fleet: NodeFleet, *, clock: Clock, period: int, full: bool = False) -> None:
        self._fleet = fleet
        self._pool = fleet.pool
        self._scheduler = fleet.scheduler
        self._deleting = [replace(each, deleting=True) for each in fleet.shapes]
        # Pods without a controller would keep their node from being removed.
        names = [f"web-{position}" for position in range(len(fleet.shapes))]
        self._owners = [ControllerReference("apps/v1", "ReplicaSet", name, "") for name in names]
        self._clock = clock
        self._period = period
        self._full = full
        self._statuses = {group.name: GroupStatus() for group in fleet.groups}
        self._refused: dict[str, Mapping[str, str]] = {}
        self._drains: dict[str, Drain] = {}
        self._budgets: tuple[PodDisruptionBudget, ...] = ()
        self._selectors = {
            position: LabelSelector.of({"matchLabels": dict(each.labels)})
            for position, each in enumerate(fleet.shapes)
            if each.labels
        }
        self._wake = 0
        self.actions: list[ScalingAction] = []
        self.decisions = 0

    def due_after(self, now: int) -> int:
        """Return the instant of the next sync that may do something."""
        following = now - now % self._period + self._period
        if self._full or self._drains or self._selectors or self._scheduler.changed or self._wake <= following:
            return following
        # The first sync that is not before the time limit.
        return min(NEVER, -(-self._wake // self._period) * self._period)

    def sync(self, now: int) -> bool:
        """Step drains, decide, and carry out the decision, if a sync is due and may do something."""
        if now % self._period:
            return False
        before = len(self.actions)
        evicted = bool(self._selectors) and self._look_at_budgets(now)
        stepped = [self._step(name, now) for name in list(self._drains)]
        if self._full or self._scheduler.changed or self._wake <= now:
            self._decide(now)
        return evicted or any(stepped) or len(self.actions) > before

    def _decide(self, now: int) -> None:
        # Before it is carried out: what that changes is a reason to decide again.
        self._scheduler.changed = False
        at, statuses = self._clock.at(now), self._current_statuses()
        decision = decide(self.snapshot(), self._fleet.groups, catalog=self._fleet.catalog, now=at, statuses=statuses)
        self.decisions += 1
        self._statuses = dict(decision.statuses)
        if any(self._statuses[name].replaced != status.replaced for name, status in statuses.items()):
            # A replacement that has begun or ended changes what can be decided next.
            self._scheduler.changed = True
        self._carry_out(decision, now)
        start = self._clock.at(0)
        self._wake = min((microseconds(each - start) for each in self._limits(at)), default=NEVER)

    def snapshot(self) -> ClusterSnapshot:
        """Return everything that the controller reads."""
        on_node: dict[str, tuple[SnapshotPod, ...]] = {}
        pods: dict[str, SnapshotPod] = {}
        for name, node in self._pool.nodes.items():
            seen = self._seen_pods(node)
            if seen:
                on_node[name] = tuple(seen.values())
                pods.update(seen)
        for workload, nominated in zip(self._scheduler.workloads, self._scheduler.nominated, strict=True):
            kept = [node.name for node in nominated]
            for waiting in workload.waiting.values():
                pod = self._seen(waiting, "")
                pods[pod.key] = replace(pod, nominated=kept.pop()) if kept else pod
        nodes = {name: node.seen for name, node in self._pool.nodes.items()}
        return ClusterSnapshot(
            nodes=Overlay(nodes), pods=Overlay(pods), on_node=Overlay(on_node), budgets=self._budgets
        )

    def _look_at_budgets(self, now: int) -> bool:
        """Read what the disruption budgets allow, and evict pods that they kept on interrupted nodes.

        Returns:
            Whether pods were evicted.
        """
        evicted = False
        for node in self._pool.nodes.values():
            pods = [pod for pod in node.pods.values() if not pod.deleted]
            if node.interrupted and pods:
                evicted = len(self._scheduler.evict(pods, now)) < len(pods) or evicted
        found = [(position, self._scheduler.workloads[position]) for position in self._selectors]
        budgets = tuple(
            PodDisruptionBudget(
                name=f"web-{position}",
                selector=self._selectors[position],
                disruptions_allowed=pods.disruptions_allowed() or 0,
                counts_unready=not pods.is_healthy,
            )
            for position, pods in found
        )
        if budgets != self._budgets:
            self._budgets = budgets
            self._scheduler.changed = True
        return evicted

    def note_interruption(self, node: SimulatedNode, now: int, reason: str) -> None:
        """Note that the provider takes a node away, which ends its drain."""
        is_drained = self._end_drain(node.name)
        group = node.kind.template.group
        after = self._staying(group)
        # A node in a drain, or that shuts down, does not count as staying any more.
        stayed = not (is_drained or node.leaving)
        self._act(group, after + stayed, after, now, rule=INTERRUPTED, reason=reason)

    def note_boot(self, node: SimulatedNode) -> None:
        """Note that a node has booted: its instance type can be had."""
        template = node.kind.template
        status = self._statuses[template.group]
        self._statuses[template.group] = status.accepted(template.instance_type, template.zone)

    def note_failure(self, node: SimulatedNode, now: int, reason: str) -> None:
        """Note that a node was given up before it took pods."""
        after = self._staying(node.kind.template.group)
        self._act(node.kind.template.group, after + 1, after, now, rule=BOOT_FAILED, reason=reason)
        self._refuse(node.kind, now)

    def _refuse(self, kind: NodeKind, now: int) -> None:
        """Leave an instance type alone for a while; nodes that fail at the same time count once."""
        template, at = kind.template, self._clock.at(now)
        status = self._statuses[template.group]
        kept = [each.at for each in status.refusals if each[:2] == (template.instance_type, template.zone)]
        if at not in kept:
            self._statuses[template.group] = status.refused(template.instance_type, template.zone, at)
        self._scheduler.changed = True

    def _current_statuses(self) -> dict[str, GroupStatus]:
        leaving: dict[str, set[str]] = {name: set() for name in self._statuses}
        for node in self._pool.nodes.values():
            if node.interrupted or node.leaving or node.name in self._drains:
                leaving[node.kind.template.group].add(node.name)
        return {name: replace(status, draining=frozenset(leaving[name])) for name, status in self._statuses.items()}

    def _limits(self, now: datetime) -> Iterator[datetime]:
        """Yield the instants after now at which the decision may change although nothing else does."""
        found: set[datetime] = set()
        for group in self._fleet.groups:
            status, policy = self._statuses[group.name], group.scale_down
            found.update(at + policy.duration for at in status.low_since.values())
            if status.last_scale is not None:
                found |= {status.last_scale + policy.effective_cooldown, status.last_scale + _LONGEST_REPLACEMENT}
            found.update(each.until for each in status.refusals)
            if status.last_scale_up is not None:
                found.add(status.last_scale_up + group.scale_up_cooldown)
            if policy.consolidate:
                nodes = [node.seen for node in self._pool.nodes.values() if node.kind.template.group == group.name]
                created = [node.created for node in nodes if node.created is not None]
                found.update(at + age for at in created for age in (policy.duration, policy.replace_after))
                found |= {at for at in (next_look(len(nodes), now),) if at is not None}
        return (each for each in found if each > now)

    def _carry_out(self, decision: ScalingDecision, now: int) -> None:
        waiting = sum(len(each.waiting) for each in self._scheduler.workloads)
        for group in decision.scale_up.groups:
            if group.add:
                # By these names, `ocf.nodegroups` marks the nodes that it adds for the minimum.
                missing = sum(new.name.startswith(f"{group.group}-min-") for new in group.add)
                reason = "1 pod waits for a node" if waiting == 1 else f"{waiting} pods wait for a node"
                reason = reason if missing < len(group.add) else "the minimum is not reached"
                self._order(group.group, group.add, now, rule="scale_up", reason=reason)
        for outcome in decision.scale_down.removals:
            self._drain(outcome, now)
        for replacement in decision.replacements:
            names = ", ".join(replacement.nodes)
            reason = f"replace {names}, which saves {replacement.saving:g} per hour"
            self._order(replacement.group, replacement.new_nodes, now, rule="replacement", reason=reason)

    def _order(self, group: str, nodes: Sequence[NewNode], now: int, *, rule: str, reason: str) -> None:
        types: dict[str, int] = {}
        refused = [self._fleet.kinds[new.template.key] for new in nodes]
        refused = [kind for kind in refused if self._pool.refusal(kind, now)]
        if refused:
            # The request fails at once, and nothing is ordered; the next decision takes other types or groups.
            before = self._staying(group)
            why = f"{reason}: {self._pool.refusal(refused[0], now)}"
            self._act(group, before, before, now, rule=BOOT_FAILED, reason=why)
            for kind in refused:
                self._refuse(kind, now)
            return
        for new in nodes:
            name = new.template.instance_type.removeprefix(f"{group}/")
            types[name] = types.get(name, 0) + 1
        added = ", ".join(f"{count} {name}" for name, count in types.items())
        before = self._staying(group)
        self._act(group, before, before + len(nodes), now, rule=rule, reason=f"{reason}: add {added}")
        for new in nodes:
            self._pool.order(self._fleet.kinds[new.template.key], now)

    def _drain(self, outcome: CandidateOutcome, now: int) -> None:
        used = "" if outcome.utilization is None else f", {outcome.utilization}"
        reason = f"remove node {outcome.node}: {outcome.reason}{used}"
        before = self._staying(outcome.group)
        self._act(outcome.group, before, before - 1, now, rule=outcome.reason, reason=reason)
        self._drains[outcome.node] = Drain(node=outcome.node, started=self._clock.at(now))
        self._scheduler.changed = True

    def _staying(self, group: str) -> int:
        """Return the number of nodes of a group that are not on their way out."""
        return sum(
            node.kind.template.group == group and not (node.interrupted or node.leaving or node.name in self._drains)
            for node in self._pool.nodes.values()
        )

    def _act(self, group: str, before: int, after: int, now: int, *, rule: str, reason: str) -> None:
        """Note an action."""
        self.actions.append(
            ScalingAction(time=now / SECOND, before=before, after=after, reason=reason, rule=rule, source=group)
        )

    def _step(self, name: str, now: int) -> bool:
        """Take the next step of a drain, and return whether it does something."""
        node = self._pool.nodes[name]
        seen = tuple(self._seen_pods(node).values())
        observed = ObservedNode(cordoned=node.cordoned, pods=seen, refused=self._refused.get(name, {}))
        settings = DrainSettings(deadline=self._fleet.settings[node.kind.template.group].scale_down.drain_timeout)
        step = next_step(self._drains[name], observed, self._clock.at(now), settings)
        self._drains[name] = step.drain
        for action in step.actions:
            if action.kind in (ActionKind.CORDON, ActionKind.UNCORDON):
                self._pool.cordon(node, cordoned=action.kind is ActionKind.CORDON)
                self._scheduler.schedule(now)
            elif action.kind is ActionKind.EVICT:
                keys = frozenset(action.pods)
                evicted = [pod for pod in node.pods.values() if not pod.deleted and _key(pod) in keys]
                kept = self._scheduler.evict(evicted, now)
                self._refused[name] = {_key(pod): _REFUSED for pod in kept}
                if len(kept) == len(evicted):
                    return False
            else:
                self._pool.delete(node, now)
                self._end_drain(name)
        if step.drain.phase is DrainPhase.GAVE_UP:
            budget = "; a disruption budget keeps pods" if self._refused.get(name) else ""
            self._end_drain(name)
            self._scheduler.changed = True
            after = self._staying(node.kind.template.group)
            reason = f"node {name} stays: its drain timed out{budget}"
            self._act(node.kind.template.group, after - 1, after, now, rule="drain", reason=reason)
        return bool(step.actions)

    def _end_drain(self, name: str) -> bool:
        """Forget a drain; return whether there was one."""
        self._refused.pop(name, None)
        return self._drains.pop(name, None) is not None

    def _seen_pods(self, node: SimulatedNode) -> Mapping[str, SnapshotPod]:
        """Return the pods of a node by key, sorted."""
        seen = node.seen_pods
        # With a disruption budget it matters which pods are ready, of which nodes know nothing.
        if seen is None or self._selectors:
            found = {_key(pod): self._seen(pod, node.name) for pod in node.pods.values()}
            seen = node.seen_pods = {key: found[key] for key in sorted(found)}
        return seen

    def _seen(self, pod: SimulatedPod, node: str) -> SnapshotPod:
        position = pod.workload
        return SnapshotPod(
            name=pod.name,
            shape=(self._deleting if pod.deleted else self._fleet.shapes)[position],
            node_name=node,
            # Whether it has started only matters to a disruption budget.
            phase=pod.seen.phase if position in self._selectors or not node else "Running",
            ready=position not in self._selectors or pod.warmth > 0,
            controller=self._owners[position],
            priority=self._scheduler.workloads[position].priority,
        )


def _key(pod: SimulatedPod) -> str:
    return f"default/{pod.name}"
