"""Where objects live: the `Cluster` protocol, and what an operator keeps of its own writes.

The implementations are rooms of their own: `ocf.cluster.apiserver` speaks to a real API server,
`ocf.cluster.embedded` is one inside the process, and `ocf.cluster.cached` reads either from memory.
"""

from ocf.cluster.memory import Rewrites, WriteMemory
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

__all__ = [
    "Cluster",
    "EventType",
    "ObjectList",
    "PatchType",
    "Preconditions",
    "Propagation",
    "Rewrites",
    "Subresource",
    "WatchEvent",
    "WriteMemory",
]
