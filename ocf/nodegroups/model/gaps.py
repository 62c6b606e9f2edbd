"""Gaps between what an instance type promises and what its nodes have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from ocf.nodegroups.snapshot import Node, Resources, Taint

__all__ = ["FIRST_GAP", "LONGEST_GAP", "MOST_FAILURES", "TypeGap", "amounts", "next_gaps"]

FIRST_GAP: Final = timedelta(hours=1)
"""How long a gap still counts after the last node that showed it is gone."""

LONGEST_GAP: Final = timedelta(hours=24)
"""How long it counts at most; the time doubles whenever a new node shows the gap again."""

MOST_FAILURES: Final = 2**31 - 1
"""The largest number of failures that the API server stores: more are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeGap:
    """What the nodes of an instance type lack of what the type promises.

    Args:
        resources: What pods can request of each resource of which a node has less.
        labels: The promised labels that a node lacks, with their values.
        taints: The taints that a node has beyond those of its group.
        overhead: What DaemonSet pods and static pods use of each resource beyond the templates of the DaemonSets.
        failures: How many times in a row nodes of the type showed a gap.
        until: Until when it counts without such a node; None while there is one.
    """

    instance_type: str
    zone: str
    resources: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    overhead: Mapping[str, int] = field(default_factory=dict)
    failures: int = 1
    until: datetime | None = None

    @property
    def kind(self) -> tuple[str, str]:
        """Instance type and zone."""
        return self.instance_type, self.zone

    @property
    def empty(self) -> bool:
        """Whether nothing is lacking."""
        return not (self.resources or self.labels or self.taints or self.overhead)

    def holds(self, now: datetime) -> bool:
        """Return whether a new node is expected to have the gap, too."""
        return self.until is None or now < self.until

    def apply(self, node: Node) -> Node:
        """Return a promised node as it will be: without what its type lacks.

        Example:
            >>> gap = TypeGap(instance_type="small", zone="a", resources={"cpu": 3600}, overhead={"cpu": 100})
            >>> gap.apply(Node(name="n1", allocatable=Resources(cpu=4000, pods=110))).allocatable.cpu
            3500
        """
        sizes = amounts(node.allocatable)
        sizes |= {name: min(size, sizes.get(name, 0)) for name, size in self.resources.items()}
        for name, used in self.overhead.items():
            sizes[name] = sizes.get(name, 0) - used
        labels = {key: value for key, value in node.labels.items() if self.labels.get(key) != value}
        taints = (*node.taints, *(each for each in self.taints if each not in node.taints))
        return replace(node, allocatable=_resources(sizes), labels=labels, taints=taints)


def next_gaps(known: Iterable[TypeGap], seen: Mapping[tuple[str, str], TypeGap], now: datetime) -> tuple[TypeGap, ...]:
    """Return the gaps of a group as of now.

    Args:
        known: The gaps of the last reconcile.
        seen: The gap of each instance type and zone of which there is a node; an empty one if the node lacks nothing.
        now: The time of the reconcile.
    """
    before = {each.kind: each for each in known}
    found = []
    for kind, gap in seen.items():
        last = before.pop(kind, None)
        if not gap.empty:
            # Bought again after the time was over, and no better.
            again = last is not None and not last.holds(now)
            failures = 1 if last is None else min(last.failures + again, MOST_FAILURES)
            found.append(replace(gap, failures=failures))
    for gap in before.values():
        until = gap.until or now + _wait(gap.failures)
        # Remembered for as long again, so that the next failure doubles the time.
        if now < until + _wait(gap.failures):
            found.append(replace(gap, until=until))
    return tuple(sorted(found, key=lambda each: each.kind))


def amounts(resources: Resources) -> dict[str, int]:
    """Return resources by name."""
    plain = {"cpu": resources.cpu, "memory": resources.memory, "ephemeral-storage": resources.storage}
    return {**plain, "pods": resources.pods, **dict(resources.scalars)}


def _resources(sizes: Mapping[str, int]) -> Resources:
    plain = ("cpu", "memory", "ephemeral-storage", "pods")
    scalars = tuple(sorted((name, size) for name, size in sizes.items() if name not in plain))
    cpu, memory, storage, pods = (sizes.get(name, 0) for name in plain)
    return Resources(cpu, memory, storage, pods, scalars)


def _wait(failures: int) -> timedelta:
    # Limited before the multiplication, which overflows beyond some dozens of failures.
    doubled: timedelta = FIRST_GAP * 2 ** min(max(failures - 1, 0), 10)
    return min(doubled, LONGEST_GAP)
