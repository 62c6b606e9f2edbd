"""Operators: their declaration, their controllers, and the manager that runs them.

The modules: `operator` declares an operator; `controller` enqueues owners for events and reconciles them;
`recording_reads` records what a reconcile observes, by which `observed_versions` filters events; `reconciler` is one
reconcile; `manager` and `run` run operators together with cache, leader election, probes, metrics, webhooks and events.
"""

from ocf.runtime.operator.environment import environment_options, environment_switch
from ocf.runtime.operator.operator import Operator
from ocf.runtime.operator.options import Lease, Listen, ManagerOptions
from ocf.runtime.operator.owner_type import OwnerType
from ocf.runtime.operator.predicates import annotations_changed, any_of, field_changed, labels_changed, spec_changed
from ocf.runtime.operator.process import BackgroundTask, Process
from ocf.runtime.operator.relations import Relation
from ocf.runtime.operator.run import main, run, running
from ocf.runtime.operator.types import ReconcileOutcome
from ocf.runtime.operator.watches import ALL, Watch
from ocf.runtime.operator.webhook_options import WebhookOptions
from ocf.runtime.sharding import Sharding

__all__ = [
    "ALL",
    "BackgroundTask",
    "Lease",
    "Listen",
    "ManagerOptions",
    "Operator",
    "OwnerType",
    "Process",
    "ReconcileOutcome",
    "Relation",
    "Sharding",
    "Watch",
    "WebhookOptions",
    "annotations_changed",
    "any_of",
    "environment_options",
    "environment_switch",
    "field_changed",
    "labels_changed",
    "main",
    "run",
    "running",
    "spec_changed",
]
