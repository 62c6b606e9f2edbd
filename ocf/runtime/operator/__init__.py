"""The engine of an operator: it is told what happened, and brings owners to their desired state, one pass at a time.

The parts: `declaring` says what an operator is; `sights` know what is news; `controller` makes keys of events and
passes of keys; `passing` is one pass; `process` runs operators with all that a process needs besides.
"""

from ocf.runtime.operator.admission import Admission
from ocf.runtime.operator.declaring import Kind, Operator, Outcome, OwnerType, Watch
from ocf.runtime.operator.options import Lease, Listen, Options
from ocf.runtime.operator.passing import pass_over
from ocf.runtime.operator.process import Process
from ocf.runtime.operator.running import main, run, running

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
