"""What happens to nodes in a reconcile, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ocf.nodegroups.model import NodeGroup
from ocf.nodegroups.rules import Blocked
from ocf.nodegroups.scale_down.utilization import Utilization
from ocf.nodegroups.snapshot import Node

__all__ = ["CandidateOutcome", "ScaleDown", "Verdict", "outcome_of"]


class Verdict(StrEnum):
    """What happens to a node."""

    REMOVE = "remove"
    """It is drained and deleted."""
    BLOCKED = "blocked"
    """It could go, but a safety rule blocks it."""
    WAITS = "waits"
    """It could go, but not yet: it is underutilized for too short a time, or enough others go in this reconcile."""
    NEEDED = "needed"
    """It is not underutilized."""
    IGNORED = "ignored"
    """It belongs to no group, to several, or it is on its way or being drained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateOutcome:
    """What happens to a node, and why.

    Args:
        node: Its name.
        group: The name of its group; empty if it belongs to none.
        verdict: What happens to it.
        reason: The reason in one word: that of the rule that blocks it, or `underutilized`, `surplus` …
        message: The reason for people.
        pod: The key of the pod that blocks it; empty if it is not a pod.
        placements: The name of the new node by the key of each pod that has to move.
        utilization: Its utilization; None if it is not known.
    """

    node: str
    group: str
    verdict: Verdict
    reason: str
    message: str = ""
    pod: str = ""
    placements: Mapping[str, str] = field(default_factory=dict)
    utilization: Utilization | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """What all groups remove.

    Args:
        outcomes: One for each node of the snapshot, sorted by name.
        stopped: Why no node is removed at all; empty if nodes may be.
    """

    outcomes: tuple[CandidateOutcome, ...]
    stopped: str = ""

    @property
    def removals(self) -> tuple[CandidateOutcome, ...]:
        """The nodes to remove."""
        return tuple(each for each in self.outcomes if each.verdict is Verdict.REMOVE)


def outcome_of(node: Node, group: NodeGroup, verdict: Verdict, why: Blocked) -> CandidateOutcome:
    """Return the outcome of a node of a group."""
    return CandidateOutcome(
        node=node.name, group=group.name, verdict=verdict, reason=why.reason, message=why.message, pod=why.pod
    )
