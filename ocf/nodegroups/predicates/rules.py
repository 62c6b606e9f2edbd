"""Topology rules of one shape against the counts of a state: spread, affinity and anti-affinity."""

from collections.abc import Callable
from typing import Protocol

from ocf.nodegroups.predicates.counters import DomainCounter, PodCounter
from ocf.nodegroups.predicates.reasons import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    SPREAD,
    SPREAD_LABEL,
    Misfit,
)
from ocf.nodegroups.snapshot import AffinityTerm, PodShape, SpreadConstraint

__all__ = ["Counters", "TopologyRules"]


class Counters(Protocol):
    """The counters of a state; each is created when it is first asked for."""

    def pods(self, identity: object, selects: Callable[[PodShape], bool], key: str) -> PodCounter:
        """Return the counter of selected pods by the label `key`."""
        ...

    def spread(self, shape: PodShape, constraint: SpreadConstraint) -> DomainCounter:
        """Return the counter of a spread constraint of a shape."""
        ...

    def existing_terms(self, seen: int) -> list[AffinityTerm]:
        """Return the anti-affinity terms of placed pods, from the `seen`th on."""
        ...

    def selects_incoming(self, term: AffinityTerm, other: PodShape) -> bool:
        """Return whether a term of the pod to place selects a placed pod."""
        ...

    def selects_existing(self, term: AffinityTerm, shape: PodShape) -> bool:
        """Return whether a term of a placed pod selects the pod to place."""
        ...


class TopologyRules:
    """The topology rules for placing pods of one shape."""

    def __init__(self, shape: PodShape, counters: Counters) -> None:
        self._shape = shape
        self._counters = counters
        self._spread = [
            (each, counters.spread(shape, each), int(each.selector.matches(shape.label_map))) for each in shape.spread
        ]
        self._affinity = self._affinity_counters()
        self._anti_affinity = [self._selected_by(term) for term in shape.anti_affinity]
        self._is_first = bool(shape.affinity) and self._selects_all(shape)
        self._existing: list[PodCounter] = []
        self._seen = 0

    def refresh(self) -> bool:
        """Take up the anti-affinity terms of pods that were placed since, and return whether there are any rules."""
        new = self._counters.existing_terms(self._seen)
        self._seen += len(new)
        for term in new:
            if self._counters.selects_existing(term, self._shape):
                self._existing.append(self._owned_by(term))
        return bool(self._spread or self._affinity or self._anti_affinity or self._existing)

    def check(self, index: int) -> str | None:
        """Return the reason why a node is rejected; None if it is not."""
        for constraint, spread, own in self._spread:
            count = spread.at(index)
            if count is None:
                return SPREAD_LABEL
            # The pod itself counts only if its labels match the selector of its constraint (selfMatchNum in
            # filtering.go).
            if count + own - spread.lowest(constraint.min_domains) > constraint.max_skew:
                return SPREAD
        # Spread before affinity, and own rules before those of other pods, as the plugins report them.
        if self._affinity and not self._is_near(index):
            return AFFINITY
        if any(counter.at(index) for counter in self._anti_affinity):
            return ANTI_AFFINITY
        if any(counter.at(index) for counter in self._existing):
            return EXISTING_ANTI_AFFINITY
        return None

    def misfit(self, index: int) -> Misfit | None:
        """Return why a node is rejected, with its plugin; None if it is not."""
        reason = self.check(index)
        if reason is None:
            return None
        plugin = "PodTopologySpread" if reason in (SPREAD, SPREAD_LABEL) else "InterPodAffinity"
        return Misfit(plugin, (reason,))

    def _is_near(self, index: int) -> bool:
        # Every topology label must be on the node, even for the first pod of a series (satisfyPodAffinity in
        # filtering.go).
        found = True
        for counter in self._affinity:
            count = counter.at(index)
            if count is None:
                return False
            found = found and count > 0
        # The first pod of a series that wants to be near itself may go anywhere.
        return found or (self._is_first and not any(counter.total for counter in self._affinity))

    def _affinity_counters(self) -> list[PodCounter]:
        shape = self._shape
        identity = ("near", shape.affinity)
        keys = dict.fromkeys(term.topology_key for term in shape.affinity)
        return [self._counters.pods(identity, self._selects_all, key) for key in keys]

    def _selected_by(self, term: AffinityTerm) -> PodCounter:
        selects = self._counters.selects_incoming
        return self._counters.pods(("far", term), lambda other: selects(term, other), term.topology_key)

    def _owned_by(self, term: AffinityTerm) -> PodCounter:
        return self._counters.pods(("owner", term), lambda owner: term in owner.anti_affinity, term.topology_key)

    def _selects_all(self, other: PodShape) -> bool:
        return all(self._counters.selects_incoming(term, other) for term in self._shape.affinity)
