"""What is remembered between a request and its answer, and after an answer that leaves something open."""

from dataclasses import dataclass, field

from ocf.cluster.cache.keys import NamespacedName

__all__ = ["StaleMark", "WriteSnapshot"]


@dataclass(frozen=True, slots=True, eq=False)
class StaleMark:
    """Memory may be older than what we did to an object, so the cluster is asked until that is cleared up.

    Args:
        listing: How many lists had begun when it arose: a later one clears it up.
        version: The version that our write made, where it is known: an event that has reached it clears it up.
        uid: The uid of what we deleted, where it is known: its `DELETED` event clears it up.
    """

    listing: int
    version: str = ""
    uid: str = ""


@dataclass(slots=True, eq=False)
class WriteSnapshot:
    """What was known of an object when a request about it was sent.

    Args:
        place: Where the object is.
        known: Version of the object, or of its absence; None where nothing said either.
        stream: Version of the watch.
        epoch: How many lists had been taken over.
        doubt: What was in doubt.
    """

    place: NamespacedName
    known: str | None
    stream: str
    epoch: int
    doubt: StaleMark | None
    seen: set[str] = field(default_factory=set)
    """The versions of the object that the watch has reported since."""
