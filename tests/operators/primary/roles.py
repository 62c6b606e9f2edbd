"""The roles of the members of a database, and how they change: functions of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Roles", "is_ready"]


@dataclass(frozen=True, slots=True)
class Roles:
    """Who is the primary of a database, who follows it, and who is about to take its place.

    Args:
        primary: The primary, also while another member takes its place.
        replicas: The other members.
        promoting: The member that becomes the primary; empty for none.
        failed: Members that have failed: they are deleted, and no other one is promoted before they are gone.
        last_index: The last number in the name of a member. No name is used twice, because claims are kept.
    """

    primary: str
    replicas: tuple[str, ...] = ()
    promoting: str = ""
    failed: tuple[str, ...] = ()
    last_index: int = 0

    @classmethod
    def read(cls, database: str, status: Mapping[str, Any], existing: Mapping[str, str]) -> Roles:
        """Return the roles that are stored; if the status was lost, those that the existing members have.

        Args:
            database: The name of the database.
            existing: Names of existing members to their roles.
        """
        found = sorted(existing, key=_index)
        primary = next((one for one in found if existing[one] == "primary"), f"{database}-0")
        return cls(
            primary=status.get("primary") or primary,
            replicas=tuple(status.get("replicas", [one for one in found if one != primary])),
            promoting=status.get("promoting", ""),
            failed=tuple(status.get("failed", ())),
            last_index=max(status.get("lastIndex", 0), *map(_index, [primary, *found])),
        )

    def to_status(self) -> dict[str, Any]:
        """Return the fields of the status."""
        return {
            "primary": self.primary,
            "replicas": [*self.replicas],
            "promoting": self.promoting,
            "failed": [*self.failed],
            "lastIndex": self.last_index,
        }

    @property
    def members(self) -> tuple[str, ...]:
        """All members in the order in which they are updated: the primary last."""
        return (*self.replicas, self.primary)

    @property
    def writable(self) -> str:
        """The member to which clients send their writes: never one that is about to be replaced."""
        return self.promoting or self.primary

    def candidates(self, existing: Sequence[str]) -> list[str]:
        """Return the replicas that may be promoted."""
        return [one for one in self.replicas if one in existing and one not in (*self.failed, self.promoting)]

    def failing_over(self, candidate: str) -> Roles:
        """Replace the primary, and a former candidate that could not be promoted, by a replica."""
        lost = {self.primary, self.promoting} - {"", candidate, *self.failed}
        return replace(self, promoting=candidate, failed=(*self.failed, *sorted(lost)))

    def switching_over(self, candidate: str) -> Roles:
        """Let a primary that works change places with a replica; with itself, to stop such a change."""
        return replace(self, promoting=candidate)

    def promoted(self) -> Roles:
        """Return the roles after the promotion: a primary that has not failed has become a replica."""
        others = [one for one in self.members if one != self.promoting and one not in self.failed]
        return replace(self, primary=self.promoting, replicas=tuple(others), promoting="", failed=())


def is_ready(live: Mapping[str, Any] | None) -> bool:
    """Return whether the StatefulSet of a member exists, is not being deleted, and its pod is ready."""
    if live is None or "deletionTimestamp" in live["metadata"]:
        return False
    return bool((live.get("status") or {}).get("readyReplicas"))


def _index(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0
