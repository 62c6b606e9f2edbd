"""Where objects live: the `Cluster` protocol, what was asked of one, and what an operator keeps of its own writes.

The implementations are rooms of their own: `ocf.cluster.client` speaks to a real API server,
`ocf.embedded` is one inside the process, and `ocf.cluster.cache` reads either from memory.
"""

from ocf.cluster.apply_cache import ApplyCache, LastWrite, Rewrites
from ocf.cluster.interceptor import InterceptingCluster
from ocf.cluster.protocol import (
    Cluster,
    EventType,
    ObjectList,
    PatchType,
    Preconditions,
    Propagation,
    Subresource,
    WatchEvent,
)
from ocf.cluster.request_log import Request, RequestLog, Verb

__all__ = [
    "ApplyCache",
    "Cluster",
    "EventType",
    "InterceptingCluster",
    "LastWrite",
    "ObjectList",
    "PatchType",
    "Preconditions",
    "Propagation",
    "Request",
    "RequestLog",
    "Rewrites",
    "Subresource",
    "Verb",
    "WatchEvent",
]
