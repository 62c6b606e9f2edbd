"""First fit: placing equal pods on the nodes of a state."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from ocf.nodegroups.predicates import ClusterState, ShapeView
from ocf.nodegroups.predicates.reasons import SPREAD

__all__ = ["fill"]


def fill(
    state: ClusterState,
    view: ShapeView,
    count: int,
    *,
    first: int = 0,
    stop: int | None = None,
    hinted: bool = False,
) -> list[tuple[int, int]]:
    """Place up to `count` pods of a shape on the nodes of a state, on each the first that takes one.

    Equal pods have equal chances: when no node takes one of them, none takes the others either, so each node is
    visited once, or once per round if the pods have to spread.

    Args:
        state: The state; the pods that have a place are on it afterwards.
        view: What the state knows about the shape of the pods.
        count: Their number.
        first: The index of the first node to use.
        stop: The index behind the last node to use; None for all nodes.
        hinted: Whether to start with the node that took the last pod of this shape, instead of the first one. This is
            much faster for many calls for a few pods each, but leaves small gaps on the nodes before.

    Returns:
        Pairs of the index of a node and the number of pods placed on it.
    """
    if view.static.rejected is not None or count < 1:
        return []
    constrained = view.rules.refresh()
    if view.shape.spread:
        return _spread(state, view, count, first=first, stop=stop, hinted=hinted)
    candidates = _candidates(view, first, stop, view.hint if hinted else 0)
    if constrained or view.shape.ports or view.exclusive or view.volumes:
        found = _one_by_one(state, view, candidates, count)
    else:
        found = _by_resources(state, view, candidates, count)
    if found:
        view.hint = found[-1][0]
    return found


def _candidates(view: ShapeView, first: int, stop: int | None, hint: int) -> Iterable[int]:
    candidates = view.candidates
    if stop is not None:
        return candidates[bisect_left(candidates, first) : bisect_left(candidates, stop)]
    # Behind the hint first, then from the start: nothing is left out, so that a pod without a place really has none.
    if hint > first:
        return _rotated(candidates, bisect_left(candidates, hint), bisect_left(candidates, first))
    return candidates[bisect_left(candidates, first) :] if first else candidates


def _rotated(candidates: Sequence[int], start: int, first: int) -> Iterator[int]:
    for position in range(start, len(candidates)):
        yield candidates[position]
    for position in range(first, min(start, len(candidates))):
        yield candidates[position]


def _by_resources(state: ClusterState, view: ShapeView, candidates: Iterable[int], count: int) -> list[tuple[int, int]]:
    """Place pods that only need resources: as many as fit on each node at once."""
    cpu, memory, storage = view.needs
    free_cpu, free_memory, free_pods = state.free_cpu, state.free_memory, state.free_pods
    found = []
    for index in candidates:
        # Nearly every node of a full cluster ends here, before any division.
        if free_pods[index] < 1 or free_cpu[index] < cpu or free_memory[index] < memory:
            continue
        number = min(count, free_pods[index])
        if cpu > 0:
            number = min(number, free_cpu[index] // cpu)
        if memory > 0:
            number = min(number, free_memory[index] // memory)
        if storage > 0:
            number = min(number, state.free_storage[index] // storage)
        # Without a limit by a resource that is not requested: its need is minus infinity, and a node may be
        # overcommitted.
        for name, amount in view.scalars:
            number = min(number, state.free_scalars[index].get(name, 0) // amount)
        if number > 0:
            state.place(view.shape, index, number)
            found.append((index, number))
            count -= number
            if not count:
                break
    return found


def _one_by_one(state: ClusterState, view: ShapeView, candidates: Iterable[int], count: int) -> list[tuple[int, int]]:
    """Place pods that other pods limit: each node takes pods until it rejects one.

    A node that rejects a pod also rejects the next one: placing more equal pods never helps.
    """
    found = []
    for index in candidates:
        number = 0
        while number < count and state.accepts(view, index):
            state.place(view.shape, index)
            number += 1
        if number:
            found.append((index, number))
            count -= number
            if not count:
                break
    return found


class _Topology:
    """The nodes of one combination of topologies, and how many of them are known to take no more pods."""

    __slots__ = ("end", "members", "number", "position")

    def __init__(self, number: int, members: Sequence[int], position: int, end: int) -> None:
        self.number = number
        self.members = members
        self.position = position
        self.end = end


def _spread(
    state: ClusterState, view: ShapeView, count: int, *, first: int, stop: int | None, hinted: bool
) -> list[tuple[int, int]]:
    """Place pods one by one, in rounds over the topologies that they have to spread over.

    All nodes of a topology pass or fail the spread together. A node that is rejected for another reason is left out for
    the rest of the call; a topology that only fails the spread may take a pod in a later round.
    """
    groups = list(_topologies(state, view, first, stop, hinted=hinted))
    placed: dict[int, int] = {}
    while groups and count:
        progress, rest = False, []
        for group in groups:
            taken = _place_in(state, view, group)
            if taken is None:
                continue
            rest.append(group)
            if taken >= 0:
                placed[taken] = placed.get(taken, 0) + 1
                progress = True
                view.turn = group.number + 1
                count -= 1
                if not count:
                    break
        if not progress:
            break
        groups = rest
    return sorted(placed.items())


def _place_in(state: ClusterState, view: ShapeView, group: _Topology) -> int | None:
    """Place a pod in a topology, and return the node; -1 if the spread rejects it, None if no node is left."""
    members, closed = group.members, state.closed
    for position in range(group.position, group.end):
        index = members[position]
        if index in closed:
            continue
        reason = view.rules.check(index)
        # All nodes of the topology share the verdict, so the rest of them need not be asked now.
        if reason == SPREAD:
            group.position = position
            return -1
        if reason is None and state.accepts(view, index):
            state.place(view.shape, index)
            group.position = position
            return index
    return None


def _topologies(
    state: ClusterState, view: ShapeView, first: int, stop: int | None, *, hinted: bool
) -> Iterator[_Topology]:
    """Yield the topologies with the nodes that pass the static filters.

    Topologies that share a wider one are dealt out in turns, so that a round visits all zones soon.
    """
    groups = view.topologies(state.nodes)
    # The topology that took the last pod has the most of them: begin behind it.
    start = view.turn if hinted and view.turn < len(groups) else 0
    for position in (*range(start, len(groups)), *range(start)):
        members = groups[position]
        if members[-1] >= first:
            end = len(members) if stop is None else bisect_left(members, stop)
            yield _Topology(position, members, bisect_left(members, first) if first else 0, end)
