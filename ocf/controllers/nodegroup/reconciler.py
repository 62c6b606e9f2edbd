"""`Reconciler`: one reconcile of all node groups: machines, drains, decision, and what follows from it.

The order makes a crash at any point harmless: a request is stored before it is sent, a drain is stored in its node
before the group counts it, what steers scaling is stored before nodes are created, and a failure is counted before the
object that shows it is deleted.
"""

import logging
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from ocf.cluster import Cluster
from ocf.concepts import Clock
from ocf.concepts.tracing import SpanAttributes, SpanStart, annotate_span, requeue_attributes, spanning
from ocf.controllers.nodegroup.carry_out import GroupWriter
from ocf.controllers.nodegroup.drains import DrainSteps, has_to_drain, waits_for_pods
from ocf.controllers.nodegroup.group_status import failed_status, invalid_status, problem_of
from ocf.controllers.nodegroup.lifecycle import may_be_late
from ocf.controllers.nodegroup.machines import MachineSteps
from ocf.controllers.nodegroup.metrics import GroupSize
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject
from ocf.controllers.nodegroup.observation import ClusterReader, ClusterView
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.orphans import Orphans
from ocf.controllers.nodegroup.pacing import PacedProvider
from ocf.controllers.nodegroup.plan import NodeGroupPlan, make_plan
from ocf.controllers.nodegroup.reconcile_context import NodeGroupContext
from ocf.controllers.nodegroup.repair import held_nodes, is_overdue
from ocf.controllers.nodegroup.reporter import Reporter
from ocf.controllers.nodegroup.steady_clock import SteadyClock, server_time
from ocf.controllers.nodegroup.writes import delete_object, remove_finalizer, store_group_status, store_node_status
from ocf.errors import ApiError, ProviderError
from ocf.nodegroups import Blocked, Catalog, ClusterSnapshot, IncompleteListError, Machine, Provider
from ocf.nodegroups.scale_down import is_sick

__all__ = ["Reconciler"]

_log: Final = logging.getLogger(__name__)


class Reconciler:
    """Reconciles all node groups of a cluster at once, so that one pod grows one group only."""

    def __init__(
        self,
        cluster: Cluster,
        provider: Provider,
        *,
        clock: Clock,
        reporter: Reporter,
        options: NodeGroupControllerOptions,
    ) -> None:
        self._cluster = cluster
        self._reader = ClusterReader(options.metrics)
        self._provider = provider = PacedProvider(provider, clock)
        self._clock = clock
        self._steady: SteadyClock | None = None
        self._reporter = reporter
        self._options = options
        self._machines = MachineSteps(cluster, provider, reporter)
        self._drains = DrainSteps(cluster, reporter, options.rules)
        self._orphans = Orphans(cluster, provider, reporter)
        self._writer = GroupWriter(cluster, reporter)
        self._catalog = Catalog()
        self._catalog_at: datetime | None = None

    async def reconcile(self) -> timedelta:
        """Reconcile all node groups once.

        Returns:
            The time until the next reconcile, if nothing changes before.
        """
        with spanning(SpanStart, name="sync NodeGroups"):
            delay = await self._reconcile()
            annotate_span(requeue_attributes, delay)
            return delay

    async def _reconcile(self) -> timedelta:
        # The API stores times in seconds: a decision must not depend on whether its input was stored meanwhile.
        now = (await self._steady_clock()).now().replace(microsecond=0)
        view = await self._reader.read(self._cluster)
        try:
            machines, unknown = await self._list()
            await self._refresh_catalog(now)
        except ProviderError as error:
            _log.warning("the provider failed: %s", error)
            await self._report_outage(view, error, now)
            return self._delay(error.retry_after)
        current = NodeGroupContext(view=view, machines=machines, now=now, unknown=unknown)
        if not self._options.dry_run:
            await self._step_machines(current)
        plan = self._plan(current)
        if self._catalog_at != now and any(each.removals for each in plan.groups.values()):
            # What the provider said some minutes ago is no reason to drain a node: a rollout may have begun since.
            try:
                await self._read_catalog(now)
            except ProviderError as error:
                _log.warning("the provider failed: %s", error)
                await self._report_outage(view, error, now)
                return self._delay(error.retry_after)
            plan = self._plan(current)
        self._options.report(plan)
        if not self._options.dry_run:
            await self._reject_invalid(view, now)
            for group in plan.groups:
                await self._carry_out(current, plan, view.groups[group])
            await self._show_errors(current, plan)
            await self._safely("machines", self._orphans.check(view, machines, now), current)
        self._measure(view, plan)
        busy = current.failures or current.problems or _is_busy(view)
        return self._delay(0) if busy else self._options.idle_period

    async def _steady_clock(self) -> SteadyClock:
        if self._steady is None:
            # The stored times are those of an earlier process, whose clock may have been another one.
            start = None if self._options.dry_run else await server_time(self._cluster)
            self._steady = SteadyClock(self._clock, start)
        return self._steady

    async def _carry_out(self, current: NodeGroupContext, plan: NodeGroupPlan, group: GroupObject) -> None:
        name, view, now = group.name, current.view, current.now
        held = _held_text(view, name, current.held)
        before = current.errors.get(name, "")
        problem = problem_of(before, current.problems.get(name, ""), held)
        step = self._writer.carry_out(view, plan, group, problem=problem, now=now)
        await self._safely(name, step, current, group=name)
        if not before and name in current.errors:
            await self._store_error(current, group)

    def _plan(self, current: NodeGroupContext) -> NodeGroupPlan:
        """Return what would be done now; a group about which no decision can be made is left out."""
        try:
            return self._plan_of(current)
        except Exception:  # noqa: BLE001 (logged; each group is tried)
            _log.exception("no decision about all groups; each is decided about alone")
        left_out = set()
        for name in [group.name for group in current.view.desired_groups()]:
            try:
                self._plan_of(current, name)
            except Exception as error:  # noqa: BLE001 (logged; the other groups go on)
                left_out.add(name)
                current.unexpected(name, error, group=name)
                _log.exception("%s: no decision; the other groups go on", name)
        names = [group.name for group in current.view.desired_groups() if group.name not in left_out]
        try:
            return self._plan_of(current, *names)
        except Exception as error:  # noqa: BLE001 (logged and shown in each group)
            for name in names:
                current.unexpected(name, error, group=name)
            _log.exception("no decision about the groups together")
            return self._plan_of(current, "")

    def _plan_of(self, current: NodeGroupContext, *names: str) -> NodeGroupPlan:
        """Return what would be done now with the groups of these names; with all without any."""
        options = self._options
        return make_plan(
            current.view,
            self._catalog,
            current.now,
            options.rules,
            only=names or None,
            priority_cutoff=options.priority_cutoff,
        )

    async def _show_errors(self, current: NodeGroupContext, plan: NodeGroupPlan) -> None:
        """Show unexpected errors of groups: in the conditions that no decision has set, and once in an event."""
        for name, text in current.errors.items():
            group = current.view.groups.get(name)
            if group is None:
                continue
            if name not in plan.groups:
                await self._store_error(current, group)
            # Afterwards the condition has it.
            if not any(each.reason == "ReconcileFailed" for each in group.status.conditions or ()):
                self._reporter.event(group, "ReconcileFailed", text)

    async def _store_error(self, current: NodeGroupContext, group: GroupObject) -> None:
        status = failed_status(group, "ReconcileFailed", current.errors[group.name], current.now)
        await self._safely(group.name, store_group_status(self._cluster, group, status), current)

    async def _list(self) -> tuple[Sequence[Machine], Mapping[str, str]]:
        """Return the machines of the provider, and why those of some instance types could not be read."""
        try:
            return await self._provider.list(), {}
        except IncompleteListError as error:
            _log.warning("the list of machines is incomplete: %s", error)
            return error.machines, error.failed

    async def _refresh_catalog(self, now: datetime) -> None:
        known = self._catalog_at
        if known is None or now - known >= self._options.catalog_period:
            await self._read_catalog(now)

    async def _read_catalog(self, now: datetime) -> None:
        self._catalog = Catalog.of(await self._provider.instance_types())
        self._catalog_at = now

    async def _step_machines(self, current: NodeGroupContext) -> None:
        """Take one step with each machine and in each drain, and with each group that is being deleted."""
        view = current.view
        for group in view.groups.values():
            if group.ending:
                await self._safely(group.name, self._end_group(view, group), current, group=group.name)
        keeps_names = self._provider.keeps_names
        nodes = list(view.nodes.values())
        for node in nodes:
            # Stored, so that the time begins to pass.
            bounded = store_node_status(self._cluster, node, node.status.until(current.now))
            await self._safely(node.name, bounded, current, group=node.group)
            current.find_node(node, keeps_names=keeps_names)
        snapshot = view.snapshot(self._catalog) if any(map(_is_leaving_or_unready, nodes)) else None
        if snapshot is not None:
            current.held = self._held(view, snapshot, current.now)
        # Nodes in a drain take no step of their life, so that no machine is deleted under pods that are being evicted.
        draining = [
            node
            for node in nodes
            if not node.problems
            and not self._is_given_up(current, node)
            and has_to_drain(
                node,
                current.machine_of(node, keeps_names=keeps_names),
                view.index.state(node.status.node_name),
                waits=snapshot is not None and waits_for_pods(view, snapshot, node, current.now),
            )
        ]
        self._drains.keep(draining)
        for node in draining:
            assert snapshot is not None  # noqa: S101 (made for drains)
            step = self._drains.step(view, snapshot, node, current.now)
            await self._safely(f"{node.key.namespace}/{node.name}", step, current, group=node.group)
        others = {id(node) for node in draining}
        await self._machines.advance_all(current, [node for node in nodes if id(node) not in others])
        for node in nodes:
            # Those of other groups are deleted once their failure is counted (see `carry_out`).
            failed = node.status.phase == "Failed" and not node.ending and not may_be_late(node.status, current.now)
            if failed and not _is_decided(view, node):
                await self._safely(node.name, delete_object(self._cluster, node.manifest), current)

    def _held(self, view: ClusterView, snapshot: ClusterSnapshot, now: datetime) -> dict[str, str]:
        """Return why nodes stay that have not been ready for too long."""

        def blocked(node: NodeObject) -> Blocked | None:
            return self._drains.blocked(snapshot, node.status.node_name, view.groups.get(node.group), now)

        return held_nodes(view, now, sick=is_sick(snapshot), blocked=blocked)

    @staticmethod
    def _is_given_up(current: NodeGroupContext, node: NodeObject) -> bool:
        """Return whether a node in a drain is replaced without its end, as it has not been ready for too long."""
        group = current.view.groups.get(node.group)
        return not node.ending and node.uid not in current.held and is_overdue(node, group, current.now)

    async def _end_group(self, view: ClusterView, group: GroupObject) -> None:
        """Delete the nodes of a group that is being deleted, then let it go."""
        nodes = view.nodes_of(group.name)
        for node in nodes:
            if not node.ending:
                await delete_object(self._cluster, node.manifest)
        # Nodes of the view still exist, so the finalizer goes in a later reconcile at the earliest.
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
            before = [each for each in group.status.conditions or () if each.type == "Error" and each.status == "True"]
            current = NodeGroupContext(view=view, machines=(), now=now)
            await self._safely(group.name, store_group_status(self._cluster, group, status), current)
            # Once per outage, with its first failure: afterwards the condition has it.
            if not before:
                self._reporter.event(group, "ScaleUpFailed", f"the provider failed: {error}")

    async def _safely(self, name: str, step: Awaitable[object], current: NodeGroupContext, *, group: str = "") -> None:
        """Wait for a step; an error ends it, and no other one.

        Args:
            group: The name of the group whose condition shows an unexpected error; empty for none.
        """
        try:
            await step
        except ApiError as error:
            current.failures.append(f"{name}: {error}")
            _log.warning("%s: %s", name, error)
        except Exception as error:  # noqa: BLE001 (logged; the other groups go on)
            current.unexpected(name, error, group=group)
            _log.exception("%s failed; the others go on", name)

    def _measure(self, view: ClusterView, plan: NodeGroupPlan) -> None:
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
        annotate_span(_total, sizes)

    def _delay(self, asked: float | None) -> timedelta:
        return max(self._options.busy_period, timedelta(seconds=asked or 0))


def _total(sizes: Mapping[str, GroupSize]) -> SpanAttributes:
    return {
        "ocf.nodegroups.groups": len(sizes),
        "ocf.nodegroups.current": sum(size.current for size in sizes.values()),
        "ocf.nodegroups.desired": sum(size.desired for size in sizes.values()),
    }


def _held_text(view: ClusterView, group: str, held: Mapping[str, str]) -> str:
    """Return which nodes of a group are not ready and stay, and why; empty if none does."""
    nodes = [node for node in view.nodes_of(group) if node.uid in held]
    return "; ".join(f"node {node.node_name}: {held[node.uid]}" for node in nodes)


def _is_unready(node: NodeObject) -> bool:
    return node.status.unready_since is not None


def _is_leaving_or_unready(node: NodeObject) -> bool:
    return node.leaving or _is_unready(node)


def _is_decided(view: ClusterView, node: NodeObject) -> bool:
    """Return whether the group of a node is decided about, so that its status counts the failure first."""
    group = view.groups.get(node.group)
    return group is not None and group.spec is not None and not group.ending


def _is_busy(view: ClusterView) -> bool:
    return any(node.leaving or node.booting or _is_unready(node) for node in view.nodes.values())
