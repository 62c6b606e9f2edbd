"""A cache of a cluster: watches keep it up to date, and the operator's own writes are visible at once.

`CachedCluster` wraps any other `Cluster`. A reconcile that changes nothing then sends no request at all.

Guarantees:

* A get or list never returns an object older than the operator's own last write of it, however far the watch lags
  behind. Where the cache cannot know that, it reads from the cluster.
* A change by another client is seen when the watch delivers its event, usually within milliseconds. A watch that is
  idle, lost, expired or went back to older versions is detected and replaced; after that, the cache equals the cluster.
* What is returned belongs to the caller.

Not guaranteed: that two objects are from the same instant, that an object written by another client is never returned
older than before, and anything about the side effects of the operator's writes (dependents that a delete removes
disappear from the cache with their own events). Kinds that should not be held in memory, Secrets for example, are
named in `uncached`.

The parts: `store` keeps the newest state of each object and does not depend on time; `informer` is the task that feeds
it; `selective` has the informers of a kind of which not all objects are listed; `write_tracker` follows the operator's
own writes; `cluster` implements the verbs; `projection` keeps values that
are computed from objects.
"""

from ocf.cluster.cache.cluster import CachedCluster
from ocf.cluster.cache.projection import Projection
from ocf.cluster.cache.selection import Selection
from ocf.cluster.cache.timing import CacheTiming

__all__ = [
    "CacheTiming",
    "CachedCluster",
    "Projection",
    "Selection",
]
