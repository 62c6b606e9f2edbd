"""The `Cluster` protocol, its request log, and the cache of apply results.

There are several implementations: `ocf.cluster.client` is a client of an API server, `ocf_server` is an API server
inside the process, and `ocf.cluster.cache` is a cache in front of either.
"""

from ocf.cluster.apply_cache import ApplyCache, LastWrite, Rewrites, UnstoredStatus
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
    "UnstoredStatus",
    "Verb",
    "WatchEvent",
    "WatchOptions",
]
