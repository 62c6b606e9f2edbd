"""The nodes of all groups: they are ordered, boot, take pods, are interrupted, shut down and vanish."""

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import Final, Protocol

from ocf.objects.durations import format_duration
from ocf.simulation.engine.clock import NEVER, SECOND, Clock, microseconds
from ocf.simulation.engine.delays import drawn, exponential
from ocf.simulation.engine.nodes.machines import NodeKind, NodeState, SimulatedNode
from ocf.simulation.engine.nodes.scheduler import Scheduler
from ocf.simulation.scenario.node_groups import BootFailures, NodeGroupSettings, ZoneOutage

__all__ = ["Happening", "NodePool"]

_HOUR: Final = 3600 * SECOND


class _Step(IntEnum):
    BOOTED = 0
    FAILED = 1
    NOTICE = 2
    VANISHED = 3
    GONE = 4


class Happening(Protocol):
    """Receives what happens to the nodes of a pool."""

    def noticed(self, node: SimulatedNode) -> None:
        """The provider is about to take a node away."""
        ...

    def vanished(self, node: SimulatedNode, reason: str) -> None:
        """A node is gone with its pods; the reason is empty if `noticed` was called before."""
        ...

    def booted(self, node: SimulatedNode) -> None:
        """A node takes pods."""
        ...

    def failed(self, node: SimulatedNode, reason: str) -> None:
        """A node is given up that never took pods."""
        ...


class _Streams:
    """Random numbers of a group, a stream for each purpose, so that one does not shift the others."""

    def __init__(self, seed: int, group: str) -> None:
        self.boot, self.termination, self.interruption, self.failure = (
            Random(f"{seed}/nodes/{group}/{part}")  # noqa: S311 (a simulation)
            for part in ("boot", "termination", "interruption", "boot failure")
        )


class NodePool:
    """The nodes, and what happens to them next.

    Attributes:
        nodes: The nodes by name, in the order of their creation.
    """

    def __init__(
        self,
        groups: Sequence[NodeGroupSettings],
        scheduler: Scheduler,
        *,
        outages: Sequence[ZoneOutage],
        clock: Clock,
        seed: int,
    ) -> None:
        self._groups = groups
        self._outages = [(each.zone, *_range(each)) for each in outages]
        self._losses = sorted((microseconds(each.at), each.zone) for each in outages if each.nodes_lost)
        self._scheduler = scheduler
        self._clock = clock
        self._streams = [_Streams(seed, group.name) for group in groups]
        self._numbers = [0] * len(groups)
        self._created = self._serial = 0
        self._next: list[tuple[int, int, _Step, SimulatedNode]] = []
        self.nodes: dict[str, SimulatedNode] = {}
        self.counts: list[tuple[NodeKind, list[int]]] = []
        self.version = 0
        self._counts: dict[tuple[str, str, str], list[int]] = {}
        self.due = self._due()

    def refusal(self, kind: NodeKind, now: int) -> str:
        """Return why the provider has no machine of a kind at an instant; empty if it has one."""
        zone = kind.template.zone
        is_out = any(zone == out and begin <= now < end for out, begin, end in self._outages)
        return f"zone {zone} has no machines" if is_out else ""

    def order(self, kind: NodeKind, now: int) -> SimulatedNode:
        """Order a node, which the provider does not refuse."""
        node = self._add(kind)
        group, streams = self._groups[kind.group], self._streams[kind.group]
        booted = now + drawn(group.boot, streams.boot)
        fails = [
            # Drawn for each, so that the times of one do not change those of another.
            begin <= now < end and streams.failure.random() < each.share
            for each in group.boot_failures
            for begin, end in [_range(each)]
        ]
        limit = now + microseconds(group.boot_timeout)
        if any(fails) or booted > limit:
            self._after(limit, _Step.FAILED, node)
        else:
            self._after(booted, _Step.BOOTED, node)
        return node

    def start(self, kind: NodeKind) -> SimulatedNode:
        """Add a node that is ready at the start of the simulation."""
        node = self._add(kind)
        self._boot(node, 0)
        return node

    def cordon(self, node: SimulatedNode, *, cordoned: bool) -> None:
        """Let a node take no more pods, or take pods again."""
        node.cordoned = cordoned
        node.seen = replace(node.seen, unschedulable=cordoned)
        self._set(node, NodeState.DRAINING if cordoned else NodeState.READY)
        (self._scheduler.close if cordoned else self._scheduler.open)(node)

    def delete(self, node: SimulatedNode, now: int) -> None:
        """Delete a node without pods; it is there until its machine has shut down."""
        node.leaving = True
        delay = drawn(self._groups[node.kind.group].termination, self._streams[node.kind.group].termination)
        self._after(now + delay, _Step.GONE, node)
        self._scheduler.changed = True

    def advance(self, now: int, happening: Happening) -> None:
        """Let happen what is due."""
        queue = self._next
        while queue and queue[0][0] <= now:
            _, _, step, node = heappop(queue)
            # It may have gone with its zone.
            if node.name in self.nodes:
                self._take(node, step, now, happening)
        while self._losses and self._losses[0][0] <= now:
            self._lose(self._losses.pop(0)[1], happening)
        self.due = self._due()

    def _take(self, node: SimulatedNode, step: _Step, now: int, happening: Happening) -> None:
        if step is _Step.BOOTED:
            self._boot(node, now)
            happening.booted(node)
        elif step is _Step.FAILED:
            limit = format_duration(self._groups[node.kind.group].boot_timeout)
            # No pod is packed onto it any more.
            node.seen = replace(node.seen, unschedulable=True)
            self._set(node, NodeState.DRAINING)
            self.delete(node, now)
            happening.failed(node, f"it did not boot in {limit}")
        elif step is _Step.NOTICE:
            if not node.leaving:
                self._notice(node, now)
                happening.noticed(node)
        else:
            self._remove(node)
            if step is _Step.VANISHED:
                happening.vanished(node, "")

    def _lose(self, zone: str, happening: Happening) -> None:
        """Let the nodes of a zone vanish."""
        for node in [each for each in self.nodes.values() if each.kind.template.zone == zone]:
            is_booting = node.state is NodeState.BOOTING
            self._scheduler.close(node)
            self._remove(node)
            if is_booting:
                happening.failed(node, f"zone {zone} is out")
            else:
                happening.vanished(node, f"zone {zone} is out")

    def _due(self) -> int:
        first = self._next[0][0] if self._next else NEVER
        return min(first, self._losses[0][0]) if self._losses else first

    def _add(self, kind: NodeKind) -> SimulatedNode:
        group = kind.group
        self._numbers[group] += 1
        self._created += 1
        name = f"{self._groups[group].name}-{self._numbers[group]}"
        node = SimulatedNode(name, self._created, kind, kind.template.make(name))
        self.nodes[name] = node
        self._counts_of(kind)[node.state] += 1
        self._scheduler.changed = True
        return node

    def _boot(self, node: SimulatedNode, now: int) -> None:
        node.seen = replace(node.seen, in_flight=False, created=self._clock.at(now))
        self._set(node, NodeState.READY)
        self._scheduler.open(node)
        spot = self._groups[node.kind.group].spot
        if spot is not None:
            # Without memory: how long a node has run says nothing about its interruption.
            hours = exponential(self._streams[node.kind.group].interruption) / spot.interruptions_per_hour
            if hours * _HOUR < NEVER - now:
                self._after(now + int(hours * _HOUR), _Step.NOTICE, node)

    def _notice(self, node: SimulatedNode, now: int) -> None:
        spot = self._groups[node.kind.group].spot
        assert spot is not None  # noqa: S101 (a notice is only drawn for spot nodes)
        node.interrupted = True
        self.cordon(node, cordoned=True)
        self._after(now + microseconds(spot.notice), _Step.VANISHED, node)

    def _remove(self, node: SimulatedNode) -> None:
        del self.nodes[node.name]
        self._counts_of(node.kind)[node.state] -= 1
        self._scheduler.changed = True

    def _set(self, node: SimulatedNode, state: NodeState) -> None:
        counts = self._counts_of(node.kind)
        counts[node.state] -= 1
        counts[state] += 1
        node.state = state
        self._scheduler.changed = True

    def _counts_of(self, kind: NodeKind) -> list[int]:
        """Return the numbers of nodes of a kind, which are about to change."""
        self.version += 1
        key = kind.template.key
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = [0] * len(NodeState)
            self.counts.append((kind, counts))
        return counts

    def _after(self, at: int, step: _Step, node: SimulatedNode) -> None:
        # Of equal instants the earlier entry counts; without the number, nodes would be compared.
        self._serial += 1
        heappush(self._next, (at, self._serial, step, node))
        self.due = self._due()


def _range(each: BootFailures | ZoneOutage) -> tuple[int, int]:
    """Return begin and end, in microseconds."""
    begin = microseconds(each.at)
    return begin, NEVER if each.duration is None else begin + microseconds(each.duration)
