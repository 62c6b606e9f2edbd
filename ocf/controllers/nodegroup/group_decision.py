"""Decision about one node group: its part of the decision about all, with the reason in a word and in a line."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ocf.controllers.nodegroup.texts import shortened
from ocf.nodegroups.decide import ScalingDecision
from ocf.nodegroups.model import GroupStatus
from ocf.nodegroups.packing import NewNode, Unplaced
from ocf.nodegroups.scale_down import CandidateOutcome, Verdict
from ocf.nodegroups.scale_up import GroupScaleUp

__all__ = ["NOTHING", "GroupDecision", "Outcome", "decision_of"]

NOTHING: Final = "nothing to do"
"""The text of a decision of a group at rest."""

Outcome = Literal["scale_up", "scale_down", "none"]
"""What a decision does to a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDecision:
    """The part of a decision that is about one group.

    Args:
        scale_up: What it adds, and why not more.
        add: The nodes to add, those of a replacement included.
        unplaced: The pending pods without a place.
        after: What steers scaling once the decision is carried out.
        replaced: The nodes that the added ones replace later; empty if they replace none.
        placements: The node, new or not, by the key of each pending pod for which this decision found one.
    """

    scale_up: GroupScaleUp
    add: tuple[NewNode, ...]
    removals: tuple[CandidateOutcome, ...]
    blocked: tuple[CandidateOutcome, ...]
    unplaced: tuple[Unplaced, ...]
    after: GroupStatus
    replaced: tuple[str, ...] = ()
    placements: Mapping[str, str] = field(default_factory=dict)
    known_nodes: Collection[str] = ()

    @property
    def outcome(self) -> Outcome:
        """What it does."""
        return "scale_up" if self.add else "scale_down" if self.removals else "none"

    @property
    def reason(self) -> str:
        """The reason in one word, for metrics."""
        if self.replaced:
            return "consolidation"
        if self.add:
            return "min_nodes" if self._is_for_minimum(self.add[0]) else "pending_pods"
        if self.removals:
            return self.removals[0].reason
        if self.scale_up.deferred:
            return "deferred"
        if self.unplaced:
            return "unschedulable"
        return "blocked" if self.blocked else "in_balance"

    @property
    def text(self) -> str:
        """The decision in a line; the same as long as nothing changes."""
        return shortened(self.full_text)

    @property
    def full_text(self) -> str:
        """The same, however long it is."""
        return "; ".join(self._parts())

    def _parts(self) -> Sequence[str]:
        if self.add:
            return [*self._additions(), *self.scale_up.reasons, *map(_stuck, self.unplaced)]
        if self.removals:
            return [f"remove {each.node}: {each.reason}" for each in self.removals]
        parts = [f"more nodes are wanted: {self.scale_up.deferred}"] if self.scale_up.deferred else []
        parts += map(_stuck, self.unplaced)
        if parts:
            # Reasons explain what is wanted; alone they would look like a problem of a group at rest.
            parts += [each for each in self.scale_up.reasons if not any(each in part for part in parts)]
        parts += [f"{each.node} stays: {each.reason}: {each.message}" for each in self.blocked]
        return parts or [NOTHING]

    def _additions(self) -> Iterator[str]:
        if self.replaced:
            yield f"add {_types(self.add)}: cheaper than {', '.join(self.replaced)}"
            return
        minimum = [each for each in self.add if self._is_for_minimum(each)]
        others = [each for each in self.add if not self._is_for_minimum(each)]
        if minimum:
            yield f"add {_types(minimum)}: the group is below minNodes"
        if others:
            yield f"add {_types(others)}: pods do not fit on the nodes there are"

    def _is_for_minimum(self, node: NewNode) -> bool:
        # The names of new nodes in a decision are not those of objects, and say what they are for.
        return node.name.startswith(f"{self.scale_up.group}-min-")


def decision_of(decision: ScalingDecision, group: str, known_nodes: Collection[str] = ()) -> GroupDecision:
    """Return the part of a decision that is about one group."""
    scale_up = next(each for each in decision.scale_up.groups if each.group == group)
    replacements = [each for each in decision.replacements if each.group == group]
    mine = [each for each in decision.scale_down.outcomes if each.group == group]
    return GroupDecision(
        scale_up=scale_up,
        add=(*scale_up.add, *(new for each in replacements for new in each.new_nodes)),
        removals=tuple(each for each in mine if each.verdict is Verdict.REMOVE),
        blocked=tuple(each for each in mine if each.verdict is Verdict.BLOCKED),
        unplaced=decision.scale_up.unplaced,
        after=decision.statuses[group],
        replaced=tuple(name for each in replacements for name in each.nodes),
        placements=decision.scale_up.placements,
        known_nodes=known_nodes,
    )


def _stuck(unplaced: Unplaced) -> str:
    others = len(unplaced.pods) - 1
    more = f" and {others} like it" if others else ""
    return f"no place for pod {unplaced.pods[0].key}{more}: {unplaced.reason}"


def _types(nodes: Sequence[NewNode]) -> str:
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node.template.instance_type] = counts.get(node.template.instance_type, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
