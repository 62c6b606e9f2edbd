"""Counts of pods per topology, updated with every placement.

The scheduler counts anew for every pod, over all pods of the cluster. A simulation places thousands of pods, so each
count is computed once, and every placement adds to those that its shape belongs to.
"""

from collections.abc import Callable, Sequence

from ocf.nodegroups.snapshot import PodShape

__all__ = ["DomainCounter", "PodCounter"]


class PodCounter:
    """The number of selected pods per value of a label of nodes.

    Args:
        values: The value of the label by node; None for nodes without it.
    """

    __slots__ = ("_values", "by_taints", "counts", "selects", "total")

    def __init__(self, selects: Callable[[PodShape], bool], values: Sequence[str | None]) -> None:
        self.selects = selects
        self._values = values
        self.counts: dict[str, int] = {}
        self.total = 0
        self.by_taints = False

    def add(self, index: int, pods: int) -> None:
        """Count pods that are placed on a node; a negative number for pods that leave it."""
        value = self._values[index]
        if value is not None:
            self.counts[value] = self.counts.get(value, 0) + pods
            self.total += pods

    def at(self, index: int) -> int | None:
        """Return the number of pods in the topology of a node; None if the node does not have the label."""
        value = self._values[index]
        return None if value is None else self.counts.get(value, 0)

    def node_added(self, index: int) -> None:
        """Count a new node."""

    def node_removed(self, index: int) -> None:
        """Stop counting a node; its pods have left it."""


class DomainCounter(PodCounter):
    """The number of selected pods per topology, and the fewest pods of a topology: for topology spread.

    Args:
        is_eligible: Whether a node counts as part of its topology.
        by_taints: Whether that depends on its taints.
    """

    __slots__ = ("_eligible", "_histogram", "_is_eligible", "_lowest", "_members")

    def __init__(
        self,
        selects: Callable[[PodShape], bool],
        values: Sequence[str | None],
        is_eligible: Callable[[int], bool],
        *,
        by_taints: bool = False,
    ) -> None:
        super().__init__(selects, values)
        self.by_taints = by_taints
        self._is_eligible = is_eligible
        self._eligible: set[int] = set()
        self._members: dict[str, int] = {}
        self._histogram: dict[int, int] = {}
        self._lowest = 0
        for index in range(len(values)):
            self.node_added(index)

    @property
    def domains(self) -> int:
        """The number of topologies."""
        return len(self._members)

    def lowest(self, min_domains: int) -> int:
        """Return the fewest pods of a topology.

        Args:
            min_domains: With fewer topologies than this it is 0.
        """
        # As if one more, empty topology existed, so that the pods wait for it (minMatchNum of podtopologyspread).
        return 0 if len(self._members) < min_domains else self._lowest

    def add(self, index: int, pods: int) -> None:
        """Count pods that are placed on a node; pods on nodes that do not count are ignored."""
        value = self._values[index]
        if value is None or index not in self._eligible:
            return
        before = self.counts.get(value, 0)
        self.counts[value] = before + pods
        self.total += pods
        self._move(before, before + pods)

    def node_added(self, index: int) -> None:
        """Count a new node: its topology may be new, and then has no pods."""
        value = self._values[index]
        if value is None or not self._is_eligible(index):
            return
        self._eligible.add(index)
        members = self._members.get(value, 0)
        self._members[value] = members + 1
        if not members:
            count = self.counts.setdefault(value, 0)
            self._histogram[count] = self._histogram.get(count, 0) + 1
            self._lowest = count if len(self._members) == 1 else min(self._lowest, count)

    def node_removed(self, index: int) -> None:
        """Stop counting a node; a topology without nodes is none."""
        value = self._values[index]
        if value is None or index not in self._eligible:
            return
        self._eligible.discard(index)
        self._members[value] -= 1
        if not self._members[value]:
            del self._members[value]
            self._forget(self.counts.pop(value, 0))

    def _move(self, before: int, after: int) -> None:
        histogram = self._histogram
        histogram[after] = histogram.get(after, 0) + 1
        self._lowest = min(self._lowest, after)
        self._forget(before)

    def _forget(self, count: int) -> None:
        histogram = self._histogram
        histogram[count] -= 1
        if not histogram[count]:
            del histogram[count]
            # The minimum is searched anew only when the last topology with it has left; a histogram is short.
            if count == self._lowest:
                self._lowest = min(histogram, default=0)
