"""Values that the store keeps about requests: what was known when one was sent, and what an answer left open."""

from dataclasses import dataclass, field

from ocf.cluster.cache.keys import NamespacedName

__all__ = ["StaleMark", "WriteSnapshot"]


@dataclass(frozen=True, slots=True, eq=False)
class StaleMark:
    """The cached state of an object may be older than our own write, so it is read from the cluster until then.

    Args:
        listing: The number of lists that had begun when the object was marked; a later list removes the mark.
        version: The version that our write made, if known; an event that has reached it removes the mark.
        uid: The uid of the object that we deleted, if known; its `DELETED` event removes the mark.
    """

    listing: int
    version: str = ""
    uid: str = ""


@dataclass(slots=True, eq=False)
class WriteSnapshot:
    """The state of the store, concerning one object, when a request about that object was sent.

    Args:
        name: Namespace and name of the object.
        known: Version of the object, or of its absence; None if neither is known.
        stream: Version of the watch.
        epoch: The number of lists that had replaced the content of the store.
        mark: The stale mark of the object; None if it was not stale.
    """

    name: NamespacedName
    known: str | None
    stream: str
    epoch: int
    mark: StaleMark | None
    seen: set[str] = field(default_factory=set)
    """The versions of the object that the watch has reported since then."""
