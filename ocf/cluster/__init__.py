"""Where objects live: the `Cluster` protocol, what was asked of one, and what an operator keeps of its own writes.

The implementations are rooms of their own: `ocf.cluster.apiserver` speaks to a real API server,
`ocf.embedded` is one inside the process, and `ocf.cluster.cached` reads either from memory.
"""

from ocf.cluster.interception import InterceptingCluster
from ocf.cluster.memory import LastWrite, Rewrites, WriteMemory
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
from ocf.cluster.requests import Request, RequestLog, Verb

__all__ = [
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
    "WriteMemory",
]
