"""Where objects live: the `Cluster` protocol, what was asked of one, and what an operator keeps of its own writes.

The implementations are rooms of their own: `ocf.cluster.client` speaks to a real API server,
`ocf.embedded` is one inside the process, and `ocf.cluster.cache` reads either from memory.
"""

from ocf.cluster.apply_cache import ApplyCache, LastWrite, Rewrites
from ocf.cluster.interceptor import InterceptingCluster
from ocf.cluster.protocol import (
    DEFAULT_DELETE_OPTIONS,
    DEFAULT_LIST_OPTIONS,
    Cluster,
    DeleteOptions,
    EventType,
    ListOptions,
    ObjectList,
    PatchOptions,
    PatchType,
    Preconditions,
    Propagation,
    Subresource,
    WatchEvent,
    WatchOptions,
)
from ocf.cluster.request_log import Request, RequestLog, Verb

__all__ = [
    "DEFAULT_DELETE_OPTIONS",
    "DEFAULT_LIST_OPTIONS",
    "ApplyCache",
    "Cluster",
    "DeleteOptions",
    "EventType",
    "InterceptingCluster",
    "LastWrite",
    "ListOptions",
    "ObjectList",
    "PatchOptions",
    "PatchType",
    "Preconditions",
    "Propagation",
    "Request",
    "RequestLog",
    "Rewrites",
    "Subresource",
    "Verb",
    "WatchEvent",
    "WatchOptions",
]
