"""Work on keys: a queue without doubles, and workers that take one key at a time.

The semantics are those of client-go's `util/workqueue`. Time is that of the running event loop, so that a loop in
virtual time (`ocf.testing.run_in_virtual_time`) tests hours of it at once.
"""

from ocf.concepts.backoff import ExponentialBackoff
from ocf.runtime.workqueue.metrics import QueueMetrics
from ocf.runtime.workqueue.queue import WorkQueue
from ocf.runtime.workqueue.rate_limiters import FixedDelay, RateLimiter
from ocf.runtime.workqueue.workers import asked_delay, work

__all__ = ["ExponentialBackoff", "FixedDelay", "QueueMetrics", "RateLimiter", "WorkQueue", "asked_delay", "work"]
