"""Settings of the controller."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ocf.controllers.metrics_client.client import NodeMetricsClient
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.nodegroups import SafetyRule
from ocf.nodegroups.packing import PRIORITY_CUTOFF

__all__ = ["NodeGroupControllerOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupControllerOptions:
    """The settings of the controller.

    Args:
        busy_period: Time between two reconciles while machines boot or nodes are drained.
        idle_period: Time between two reconciles otherwise; changes in the cluster start one earlier.
        catalog_period: How long the instance types of the provider are used before they are read again.
        quiet_period: How long nothing has to change in the cluster before a change starts a reconcile.
        longest_wait: How long a change waits for such a quiet period at most.
        dry_run: Only decide and report: nothing is written, and no machine is created or deleted.
        rules: Safety rules of the user, after those that always apply.
        priority_cutoff: No node is added or kept for pods with a lower priority; for all groups, as no pod belongs to
            one before it has a node.
        report: Receives the plan of each reconcile.
        metrics: The client of the metrics of nodes, for groups whose nodes are removed by their measured use; without
            it no node of such a group counts as underutilized.
    """

    busy_period: timedelta = timedelta(seconds=10)
    idle_period: timedelta = timedelta(minutes=1)
    catalog_period: timedelta = timedelta(minutes=5)
    quiet_period: timedelta = timedelta(seconds=1)
    longest_wait: timedelta = timedelta(seconds=10)
    dry_run: bool = False
    rules: Sequence[SafetyRule] = ()
    priority_cutoff: int = PRIORITY_CUTOFF
    metrics: NodeMetricsClient | None = None
    report: Callable[[NodeGroupPlan], None] = field(default=lambda _: None)
