"""Work queue: a queue of keys without duplicates, and workers that process one key at a time.

The semantics are those of client-go's `util/workqueue`. Time is that of the running event loop, so a test in virtual
time (`ocf.testing.run_in_virtual_time`) covers hours at once.
"""

from ocf.runtime.workqueue.queue import FixedDelay, Priority, WorkQueue
from ocf.runtime.workqueue.workers import work

__all__ = [
    "FixedDelay",
    "Priority",
    "WorkQueue",
    "work",
]
