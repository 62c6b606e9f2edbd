"""A cluster read from memory: watches keep it up to date, and our own writes are visible at once.

`CachedCluster` wraps any other `Cluster`. A reconcile that changes nothing then sends nothing at all.

What a reader may rely on:

* A get or list never shows an object older than our own last write of it, however far the watch lags behind. Where
  memory cannot know that, the cluster is asked.
* What others did is seen when the watch tells it, usually within milliseconds. A watch that is silent, lost, expired
  or went back in time is noticed and replaced; after that, memory equals the cluster.
* What is returned belongs to the caller.

What it does not promise: that two objects are shown as they were at one instant, that an object of others is never
shown older than before, and anything about what follows from our writes elsewhere (a delete that takes dependents with
it is seen there when the watch tells). Kinds that should not be held in memory, Secrets for example, are named in
`uncached`.

The parts: `store` knows what is newest and has no notion of time; `informer` is the task that feeds it; `flights`
follow our own writes; `cluster` puts the verbs on top.
"""

from ocf.cluster.cache.cluster import CachedCluster
from ocf.cluster.cache.informer import InformerState
from ocf.cluster.cache.timing import CacheTiming

__all__ = ["CacheTiming", "CachedCluster", "InformerState"]
