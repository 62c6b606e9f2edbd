"""What the operator asks and demands of the database servers; a product implements it with its own protocol."""

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Servers"]


class Servers(Protocol):
    """The servers of the databases, by the names of the members.

    Each method raises a `ConnectionError` if the server cannot be reached.
    """

    async def most_advanced(self, names: Sequence[str]) -> str | None:
        """Return the replica that has lost the least, or None if none of them can be promoted now."""
        ...

    async def least_useful(self, names: Sequence[str]) -> str:
        """Return the replica that leaves a smaller set; another call may return another one."""
        ...

    async def is_primary(self, name: str) -> bool:
        """Return whether a member accepts writes."""
        ...

    async def promote(self, name: str) -> None:
        """Let a replica accept writes."""
        ...

    async def demote(self, name: str) -> None:
        """Let a primary refuse writes, and follow another one."""
        ...

    async def why_not_restart(self, name: str) -> str | None:
        """Return why a member cannot be restarted now; None if it can."""
        ...

    async def back_up(self, name: str, backup: str) -> bool:
        """Begin a backup of this identity from a member, unless it has begun; return whether it is complete."""
        ...
