"""Which pods make way for one of a higher priority, and on which node: as the scheduler of Kubernetes selects them.

Each row follows from one rule of `SelectVictimsOnNode`, `filterPodsWithPDBViolation` or `pickOneNodeForPreemption`; in
`test_preemption_by_the_scheduler` the scheduler decides them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import pytest

from ocf.simulation.engine.nodes.preemption import preemption

ROOM = 4
NEW = 0
"""The position of the workload that needs room; its pods take the room of `size` others."""


@dataclass
class Workload:
    priority: int
    allowed: int | None = None
    size: int = 1

    def disruptions_allowed(self) -> int | None:
        return self.allowed


@dataclass
class Node:
    """A node of which each pod takes a part."""

    name: str
    sizes: list[int]
    held: list[Any] = field(default_factory=list)

    @property
    def pods(self) -> dict[str, Any]:
        return {pod.name: pod for pod in self.held}

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(sum(pod.workload == position for pod in self.held) for position in range(len(self.sizes)))

    @property
    def kind(self) -> Any:
        def score(workload: int, counts: tuple[int, ...]) -> int | None:
            used = sum(size * number for size, number in zip(self.sizes, counts, strict=True)) + self.sizes[workload]
            return 0 if used <= ROOM else None

        return SimpleNamespace(score=score)


def pod(name: str, workload: int, started: int = 0, *, deleted: bool = False) -> Any:
    return SimpleNamespace(name=name, workload=workload, started=started, deleted=deleted, uid=0.0)


def chosen(workloads: list[Workload], **nodes: list[Any]) -> tuple[str, list[str], int] | None:
    sizes = [each.size for each in workloads]
    made: Any = [Node(name, sizes, held) for name, held in nodes.items()]
    given: Any = workloads
    found = preemption(made, given, NEW)
    if found is None:
        return None
    named: Any = found.node
    return named.name, [each.name for each in found.victims], found.violations


ROWS: Final = [
    pytest.param(
        [Workload(9), Workload(9)],
        {"a": [pod(f"p{n}", 1) for n in range(4)]},
        None,
        id="a pod of the same priority makes no way",
    ),
    pytest.param(
        [Workload(9, size=2), Workload(1), Workload(9)],
        {"a": [pod("low", 1), *(pod(f"p{n}", 2) for n in range(3))]},
        None,
        id="what makes way is not enough",
    ),
    pytest.param(
        [Workload(9, size=2), Workload(1), Workload(2)],
        {"a": [pod("old", 1, 1), pod("young", 1, 2), pod("high", 2), pod("higher", 2)]},
        ("a", ["old", "young"], 0),
        id="the most important are kept",
    ),
    pytest.param(
        [Workload(9), Workload(1)],
        {"a": [pod(f"p{n}", 1, n) for n in range(4)]},
        ("a", ["p3"], 0),
        id="of equal ones the oldest are kept",
    ),
    pytest.param(
        [Workload(9), Workload(1, allowed=0), Workload(2)],
        {"a": [pod("held", 1), pod("held too", 1), pod("free", 2), pod("older", 2, -1)]},
        ("a", ["free"], 0),
        id="what a budget holds is kept before what is more important",
    ),
    pytest.param(
        [Workload(9, size=2), Workload(1, allowed=1)],
        {"a": [pod(f"p{n}", 1, n) for n in range(4)]},
        ("a", ["p0", "p3"], 1),
        id="the most important pods use up a budget first",
    ),
    pytest.param(
        [Workload(9), Workload(1, allowed=0)],
        {"a": [pod(f"p{n}", 1, n, deleted=n == 3) for n in range(4)]},
        ("a", ["p3"], 0),
        id="a pod that is leaving violates no budget",
    ),
    pytest.param(
        [Workload(9), Workload(1, allowed=0), Workload(8)],
        {"a": [pod(f"p{n}", 1) for n in range(4)], "b": [pod(f"q{n}", 2) for n in range(4)]},
        ("b", ["q3"], 0),
        id="a node without a violation comes first",
    ),
    pytest.param(
        [Workload(9, size=2), Workload(5), Workload(4), Workload(9)],
        {
            "a": [pod("one", 1), pod("x0", 3), pod("x1", 3)],
            "b": [pod("q0", 2), pod("q1", 2), pod("y0", 3), pod("y1", 3)],
        },
        ("b", ["q0", "q1"], 0),
        id="then the lowest priority of the most important victim",
    ),
    pytest.param(
        [Workload(9, size=2), Workload(5), Workload(-5), Workload(9)],
        {
            "a": [pod("p", 1), pod("below", 2), pod("x0", 3), pod("x1", 3)],
            "b": [pod("q", 1), pod("y0", 3), pod("y1", 3)],
        },
        ("b", ["q"], 0),
        id="a negative priority does not offset another pod",
    ),
    pytest.param(
        [Workload(9), Workload(1)],
        {"a": [pod(f"p{n}", 1, 5) for n in range(4)], "b": [pod(f"q{n}", 1, 6) for n in range(4)]},
        ("b", ["q3"], 0),
        id="then the one whose victims have run the shortest time",
    ),
    pytest.param(
        [Workload(9), Workload(1)],
        {"a": [pod(f"p{n}", 1) for n in range(4)], "b": [pod(f"q{n}", 1) for n in range(4)]},
        ("a", ["p3"], 0),
        id="then the oldest node",
    ),
]


@pytest.mark.parametrize(("workloads", "nodes", "expected"), ROWS)
def test_the_pods_that_make_way(
    workloads: list[Workload], nodes: dict[str, list[Any]], expected: tuple[str, list[str], int] | None
) -> None:
    assert chosen(workloads, **nodes) == expected
