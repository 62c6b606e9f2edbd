"""Operators: their declaration, their controllers, and the manager that runs them.

The modules: `operator` declares an operator; `controller` enqueues owners for events and reconciles them;
`recording_reads` records what a reconcile observes, by which `observed_versions` filters events; `reconciler` is one
reconcile; `manager` and `run` run operators together with cache, leader election, probes, metrics, webhooks and events.
"""

from ocf.runtime.operator.environment import environment_options, environment_switch, environment_tracer
from ocf.runtime.operator.leader_runner import LeaderRunner, Runnable
from ocf.runtime.operator.manager import Manager
from ocf.runtime.operator.operator import Kind, Operator, Watch
from ocf.runtime.operator.options import Lease, Listen, ManagerOptions
from ocf.runtime.operator.owner_type import OwnerType
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.runtime.operator.run import main, run, running
from ocf.runtime.operator.types import ReconcileOutcome
from ocf.runtime.operator.webhook_options import WebhookOptions

__all__ = [
    "Kind",
    "LeaderRunner",
    "Lease",
    "Listen",
    "Manager",
    "ManagerOptions",
    "Operator",
    "OwnerType",
    "ReconcileOutcome",
    "Runnable",
    "Watch",
    "WebhookOptions",
    "environment_options",
    "environment_switch",
    "environment_tracer",
    "main",
    "reconcile_owner",
    "run",
    "running",
]
