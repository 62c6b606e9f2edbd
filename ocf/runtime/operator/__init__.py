"""The engine of an operator: it is told what happened, and brings owners to their desired state, one pass at a time.

The parts: `declaring` says what an operator is; `sights` know what is news; `controller` makes keys of events and
passes of keys; `passing` is one pass; `process` runs operators with all that a process needs besides.
"""

from ocf.runtime.operator.manager import Process
from ocf.runtime.operator.operator import Kind, Operator, Outcome, OwnerType, Watch
from ocf.runtime.operator.options import Lease, Listen, Options
from ocf.runtime.operator.reconciler import pass_over
from ocf.runtime.operator.run import main, run, running
from ocf.runtime.operator.webhook_options import Admission

__all__ = [
    "Admission",
    "Kind",
    "Lease",
    "Listen",
    "Operator",
    "Options",
    "Outcome",
    "OwnerType",
    "Process",
    "Watch",
    "main",
    "pass_over",
    "run",
    "running",
]
