"""`Reconciler`: one reconcile of all node groups: machines, drains, decision, and what follows from it.

The order makes a crash at any point harmless: a request is stored before it is sent, what steers scaling is stored
before nodes are created or drained, and a failure is counted before the object that shows it is deleted.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from ocf.cluster import Cluster
from ocf.concepts import Clock
from ocf.controllers.nodegroup.drains import DrainSteps, begin, has_to_drain
from ocf.controllers.nodegroup.group_status import GroupDecision, failed_status, invalid_status, next_status
from ocf.controllers.nodegroup.groups import (
    API_VERSION,
    FINALIZER,
    GroupObject,
    NodeObject,
    node_name,
)
from ocf.controllers.nodegroup.machines import MachineSteps, Round
from ocf.controllers.nodegroup.metrics import GroupSize
from ocf.controllers.nodegroup.model import NodeGroupSpec
from ocf.controllers.nodegroup.observation import ClusterView, read_cluster
from ocf.controllers.nodegroup.orphans import Orphans
from ocf.controllers.nodegroup.plan import Plan, make_plan
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.controllers.nodegroup.writes import (
    FIELD_MANAGER,
    add_finalizer,
    delete_object,
    remove_finalizer,
    store_group_status,
    store_node_status,
)
from ocf.errors import AlreadyExistsError, ApiError, ProviderError
from ocf.nodegroups import Catalog, Machine, Provider, Rule
from ocf.nodegroups.packing import NewNode
from ocf.nodegroups.scale_down import is_sick
from ocf.objects import Manifest

__all__ = ["ControllerOptions", "Reconciler"]

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The settings of the controller.

    Args:
        busy_period: Time between two reconciles while machines boot or nodes are drained.
        idle_period: Time between two reconciles otherwise; changes in the cluster start one earlier.
        catalog_period: How long the instance types of the provider are used before they are read again.
        quiet_period: How long nothing has to change in the cluster before a change starts a reconcile.
        longest_wait: How long a change waits for such a quiet period at most.
        dry_run: Only decide and report: nothing is written, and no machine is created or deleted.
        rules: Safety rules of the user, after those that always apply.
        report: Receives the plan of each reconcile.
    """

    busy_period: timedelta = timedelta(seconds=10)
    idle_period: timedelta = timedelta(minutes=1)
    catalog_period: timedelta = timedelta(minutes=5)
    quiet_period: timedelta = timedelta(seconds=1)
    longest_wait: timedelta = timedelta(seconds=10)
    dry_run: bool = False
    rules: Sequence[Rule] = ()
    report: Callable[[Plan], None] = field(default=lambda _: None)


class Reconciler:
    """Reconciles all node groups of a cluster at once, so that one pod grows one group only.

    Args:
        cluster: The cluster, usually a cached one.
        provider: The provider of the machines.
        clock: Gives the time of each reconcile.
        reporter: Posts events and counts.
        options: The settings.
    """

    def __init__(
        self, cluster: Cluster, provider: Provider, *, clock: Clock, reporter: Reporter, options: ControllerOptions
    ) -> None:
        self._cluster = cluster
        self._provider = provider
        self._clock = clock
        self._reporter = reporter
        self._options = options
        self._machines = MachineSteps(cluster, provider, reporter)
        self._drains = DrainSteps(cluster, reporter, options.rules)
        self._orphans = Orphans(provider, reporter)
        self._catalog = Catalog()
        self._catalog_at: datetime | None = None

    async def reconcile(self) -> timedelta:
        """Reconcile all node groups once.

        Returns:
            The time until the next reconcile, if nothing changes before.

        Raises:
            ApiError: If the cluster cannot be read.
        """
        # The API stores times in seconds: a decision must not depend on whether its input was stored meanwhile.
        now = self._clock.now().replace(microsecond=0)
        view = await read_cluster(self._cluster)
        problems: dict[str, str] = {}
        failures: list[str] = []
        try:
            machines = await self._provider.list()
            await self._refresh_catalog(now)
        except ProviderError as error:
            _log.warning("the provider failed: %s", error)
            await self._report_outage(view, error, now)
            return self._delay(error.retry_after)
        if not self._options.dry_run:
            current = Round(view=view, machines=machines, now=now)
            await self._step_machines(current)
            problems, failures = current.problems, current.failures
        plan = make_plan(view, self._catalog, now, self._options.rules)
        self._options.report(plan)
        if not self._options.dry_run:
            await self._reject_invalid(view, now)
            for group in plan.groups:
                found = view.groups[group]
                await self._safely(
                    found.name, self._carry_out(view, plan, found, problem=problems.get(group, ""), now=now), failures
                )
            await self._orphans.check(view, machines)
        self._measure(view, plan)
        return self._delay(0) if failures or problems or _is_busy(view) else self._options.idle_period

    async def _refresh_catalog(self, now: datetime) -> None:
        known = self._catalog_at
        if known is None or not timedelta(0) <= now - known < self._options.catalog_period:
            self._catalog = Catalog.of(await self._provider.instance_types())
            self._catalog_at = now

    async def _step_machines(self, current: Round) -> None:
        """Take one step with each machine and in each drain, and with each group that is being deleted."""
        view = current.view
        for group in view.groups.values():
            if group.ending:
                await self._safely(group.name, self._end_group(view, group), current.failures)
        by_name = {each.name: each for each in current.machines if each.name}
        by_id = {each.id: each for each in current.machines if each.id}

        def machine_of(node: NodeObject) -> Machine | None:
            return by_name.get(node.name) if self._provider.keeps_names else by_id.get(node.status.machine_id)

        nodes = list(view.nodes.values())
        draining = [
            node
            for node in nodes
            if not node.problems
            and has_to_drain(node, machine_of(node), joined=node.status.node_name in view.index.by_name)
        ]
        snapshot = view.snapshot(self._catalog) if draining or any(_is_unready(node) for node in nodes) else None
        current.repair = snapshot is None or not is_sick(snapshot)
        self._drains.keep(draining)
        for node in draining:
            assert snapshot is not None  # noqa: S101 (made for drains)
            step = self._drains.step(view, snapshot, node, current.now)
            await self._safely(f"{node.key.namespace}/{node.name}", step, current.failures)
        others = {id(node) for node in draining}
        await self._machines.advance_all(current, [node for node in nodes if id(node) not in others])
        for node in nodes:
            if node.status.phase == "Failed" and not node.ending and not _is_decided(view, node):
                await self._safely(node.name, delete_object(self._cluster, node.manifest), current.failures)

    async def _end_group(self, view: ClusterView, group: GroupObject) -> None:
        """Delete the nodes of a group that is being deleted, then let it go."""
        nodes = view.nodes_of(group.name)
        for node in nodes:
            if not node.ending:
                await delete_object(self._cluster, node.manifest)
        if not nodes:
            await remove_finalizer(self._cluster, group.manifest)

    async def _reject_invalid(self, view: ClusterView, now: datetime) -> None:
        for group in view.groups.values():
            if group.spec is not None or group.ending:
                continue
            status = invalid_status(group, now)
            try:
                written = await store_group_status(self._cluster, group, status)
            except ApiError as error:
                _log.warning("%s: the status cannot be written: %s", group.name, error)
                continue
            if written:
                self._reporter.event(group, "ValidationFailed", "; ".join(map(str, group.problems)))

    async def _report_outage(self, view: ClusterView, error: ProviderError, now: datetime) -> None:
        """Show in each group that the provider failed: nothing can be decided."""
        if self._options.dry_run:
            return
        for group in view.groups.values():
            if group.spec is None or group.ending:
                continue
            status = failed_status(group, "ProviderError", str(error), now)
            await self._safely(group.name, store_group_status(self._cluster, group, status), [])

    async def _carry_out(
        self, view: ClusterView, plan: Plan, group: GroupObject, *, problem: str, now: datetime
    ) -> None:
        """Store the status of a group, then do what was decided about it."""
        spec = group.spec
        assert spec is not None  # noqa: S101 (only valid groups are decided about)
        decided = plan.groups[group.name]
        if decided.add:
            group = replace(group, manifest=await add_finalizer(self._cluster, group.manifest))
        messages = plan.messages[group.name]
        status = next_status(
            group,
            spec,
            decided,
            ready=plan.ready(group.name),
            problem=problem,
            messages=messages,
            now=now,
        )
        await store_group_status(self._cluster, group, status)
        self._report(group, decided, messages)
        for node in view.nodes_of(group.name):
            if node.status.phase == "Failed" and not node.ending:
                await delete_object(self._cluster, node.manifest)
        await self._add_nodes(view, group, spec, decided.add, now)
        for outcome in decided.removals:
            node = view.node_names[outcome.node]
            await store_node_status(self._cluster, node, begin(node.status, now))
            self._reporter.monitor.count("scale_down", group.name)
            self._reporter.event(group, "ScalingDown", f"remove node {outcome.node}: {outcome.reason}", node=node)

    def _report(self, group: GroupObject, decided: GroupDecision, messages: Mapping[str, str]) -> None:
        monitor = self._reporter.monitor
        monitor.count("scaling_decisions", group.name, decided.outcome, decided.reason)
        for instance_type, message in messages.items():
            self._reporter.event(group, "ScaleUpFailed", f"{instance_type}: {message}")
        known = {(each.name, each.reason) for each in group.status.blocked or ()}
        for each in decided.blocked:
            if (each.node, each.reason) not in known:
                monitor.count("scale_down_blocked", group.name, each.reason)
                note = f"node {each.node} stays: {each.reason}: {each.message}"
                self._reporter.event(group, "ScaleDownBlocked", f"{note} ({each.pod})" if each.pod else note)

    async def _add_nodes(
        self, view: ClusterView, group: GroupObject, spec: NodeGroupSpec, nodes: Sequence[NewNode], now: datetime
    ) -> None:
        if not nodes:
            return
        number = 0
        for new in nodes:
            while f"{group.key.namespace}/{node_name(group, now, number)}" in view.nodes:
                number += 1
            await self._create(_node_manifest(group, spec, new, node_name(group, now, number)))
            number += 1
        self._reporter.monitor.count("scale_up", group.name, amount=len(nodes))
        types = ", ".join(sorted({new.template.instance_type for new in nodes}))
        self._reporter.event(group, "ScalingUp", f"add {len(nodes)} nodes of type {types}")

    async def _create(self, manifest: Manifest) -> None:
        try:
            await self._cluster.create(manifest, field_manager=FIELD_MANAGER)
        except AlreadyExistsError:
            # An earlier reconcile of the same second created it, and did not see the answer.
            return

    async def _safely(self, name: str, step: Awaitable[object], failures: list[str]) -> None:
        """Wait for a step; an error of the API server ends it, and no other one."""
        try:
            await step
        except ApiError as error:
            failures.append(f"{name}: {error}")
            _log.warning("%s: %s", name, error)

    def _measure(self, view: ClusterView, plan: Plan) -> None:
        sizes = {}
        for name, decided in plan.groups.items():
            spec = view.groups[name].spec
            assert spec is not None  # noqa: S101 (only valid groups are decided about)
            up = decided.scale_up
            sizes[name] = GroupSize(
                desired=max(up.desired - len(decided.removals), 0),
                current=up.current - len(decided.removals),
                ready=plan.ready(name),
                min=spec.min_nodes,
                max=spec.max_nodes,
            )
        self._reporter.monitor.set_sizes(sizes)

    def _delay(self, asked: float | None) -> timedelta:
        return max(self._options.busy_period, timedelta(seconds=asked or 0))


def _node_manifest(group: GroupObject, spec: NodeGroupSpec, new: NewNode, name: str) -> Manifest:
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
        "spec": {
            "nodeGroupName": group.key.name,
            "instanceType": new.template.instance_type,
            "datacenterID": new.template.zone or spec.datacenter_id,
        },
    }


def _is_unready(node: NodeObject) -> bool:
    return node.status.unready_since is not None


def _is_decided(view: ClusterView, node: NodeObject) -> bool:
    """Return whether the group of a node is decided about, so that its status counts the failure first."""
    group = view.groups.get(node.group)
    return group is not None and group.spec is not None and not group.ending


def _is_busy(view: ClusterView) -> bool:
    return any(node.leaving or node.booting or _is_unready(node) for node in view.nodes.values())
