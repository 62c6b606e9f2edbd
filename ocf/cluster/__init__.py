"""The `Cluster` protocol, its request log, and the cache of apply results.

There are several implementations: `ocf.cluster.client` is a client of an API server, `ocf_server` is an API server
inside the process, and `ocf.cluster.cache` is a cache in front of either.
"""

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.impersonation import ServiceAccount
from ocf.cluster.indexes import Index
from ocf.cluster.interceptor import InterceptingCluster
from ocf.cluster.protocol import (
    Cluster,
    DeleteOptions,
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
from ocf.cluster.request_log import Request, Verb

__all__ = [
    "ApplyCache",
    "Cluster",
    "DeleteOptions",
    "Index",
    "InterceptingCluster",
    "ListOptions",
    "ObjectList",
    "PatchOptions",
    "PatchType",
    "Preconditions",
    "Propagation",
    "Request",
    "ServiceAccount",
    "Subresource",
    "Verb",
    "WatchEvent",
    "WatchOptions",
]
