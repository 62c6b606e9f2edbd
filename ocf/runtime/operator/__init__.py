"""The engine of an operator: it is told what happened, and brings owners to their desired state, one pass at a time.

The parts: `declaring` says what an operator is; `sights` know what is news; `controller` makes keys of events and
passes of keys; `passing` is one pass; `process` runs operators with all that a process needs besides.
"""

from ocf.runtime.operator.leader_runner import LeaderRunner, Runnable
from ocf.runtime.operator.manager import Manager
from ocf.runtime.operator.operator import Kind, Operator, OwnerType, Watch
from ocf.runtime.operator.options import Lease, Listen, ManagerOptions
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
    "main",
    "reconcile_owner",
    "run",
    "running",
]
