"""What a finding is, and in which order causes are named."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from ocf.ownership import values

__all__ = ["Finding", "Rank"]


class Rank(IntEnum):
    """How specific a cause is, the most specific first: of two, the one that only a change ends is named."""

    MISSING = 10
    """Something that is named does not exist."""
    REFUSED = 12
    """The API server or a webhook refuses an object."""
    VOLUME = 18
    """A volume is missing, for which a pod waits."""
    NOT_STARTED = 20
    """A pod cannot be scheduled or started."""
    UNBOUND = 25
    """A claim is not bound, and why is not known."""
    ENDED = 30
    """A program ends with an error."""
    FAILED = 40
    """A controller has given up."""
    SUSPENDED = 48
    """It is paused or suspended."""
    REPORTED = 50
    """A condition reports an error."""
    NOT_READY = 55
    """A program runs and is not ready."""
    HELD = 57
    """A finalizer or a kubelet holds an object that is being deleted."""
    WAITING = 60
    """Another controller has not done its part yet."""
    COUNTED = 70
    """Only the status of the object itself says that it is not ready."""
    OWN = 75
    """The owner waits for something else than its objects."""
    UNUSED = 78
    """It selects nothing, which may be intended."""
    FOLLOWS = 80
    """It waits for another object, which says more, or is of the past."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an object.

    Args:
        what: The predicate, `is Pending`.
        why: The reason; may be empty.
        since: Since when; None if that is not known.
    """

    rank: Rank
    what: str
    why: str = ""
    since: datetime | None = None

    def clause(self, subject: str, now: datetime) -> str:
        """Return the fact as a clause, with its subject and its duration."""
        duration = f" for {values.age(self.since, now)}" if self.since is not None else ""
        return values.flat(f"{subject} {self.what}{duration}{f': {self.why}' if self.why else ''}")
