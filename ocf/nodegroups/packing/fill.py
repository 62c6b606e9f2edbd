"""First fit: placing equal pods on the nodes of a state."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from ocf.nodegroups.predicates import ClusterState, ShapeView
from ocf.nodegroups.predicates.reasons import SPREAD
from ocf.nodegroups.snapshot import PodShape

__all__ = ["fill"]


def fill(
    state: ClusterState, shape: PodShape, count: int, *, first: int = 0, usable: Callable[[int], bool] | None = None
) -> list[tuple[int, int]]:
    """Place up to `count` pods of a shape on the nodes of a state, on each the first that takes one.

    Equal pods have equal chances: when no node takes one of them, none takes the others either, so each node is
    visited once, or once per round if the pods have to spread.

    Args:
        state: The state; the pods that have a place are on it afterwards.
        shape: The shape of the pods.
        count: Their number.
        first: The index of the first node to use.
        usable: Whether a node may be used; by default all nodes that pass the filters.

    Returns:
        Pairs of the index of a node and the number of pods placed on it.
    """
    view = state.view(shape)
    if view.static.rejected is not None or count < 1:
        return []
    candidates: Sequence[int] = view.candidates
    if first:
        candidates = candidates[bisect_left(candidates, first) :]
    if usable is not None:
        candidates = [index for index in candidates if usable(index)]
    if view.rules.refresh() or shape.ports or view.exclusive:
        return _by_rules(state, view, candidates, count)
    return _by_resources(state, view, candidates, count)


def _by_resources(state: ClusterState, view: ShapeView, candidates: Iterable[int], count: int) -> list[tuple[int, int]]:
    """Place pods that only need resources: as many as fit on each node at once."""
    cpu, memory, storage = view.needs
    free_cpu, free_memory, free_pods = state.free_cpu, state.free_memory, state.free_pods
    found = []
    # The list changes only if nodes are added, which does not happen here.
    for index in candidates:
        if free_pods[index] < 1 or free_cpu[index] < cpu or free_memory[index] < memory:
            continue
        number = min(count, free_pods[index])
        if cpu > 0:
            number = min(number, free_cpu[index] // cpu)
        if memory > 0:
            number = min(number, free_memory[index] // memory)
        if storage > 0:
            number = min(number, state.free_storage[index] // storage)
        for name, amount in view.scalars:
            number = min(number, state.free_scalars[index].get(name, 0) // amount)
        if number > 0:
            state.place(view.shape, index, number)
            found.append((index, number))
            count -= number
            if not count:
                break
    return found


def _by_rules(state: ClusterState, view: ShapeView, candidates: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Place pods one by one, in rounds over the topologies that they have to spread over.

    A node without room, or that another rule rejects, is left out for good: placing more equal pods never helps. One
    that is only rejected by the spread may take a pod later.
    """
    shape, rules = view.shape, view.rules
    placed: dict[int, int] = {}
    groups = _topologies(state, shape, candidates)
    while groups and count:
        progress, rest = False, []
        for group in groups:
            while group:
                index = group[-1]
                reason = rules.check(index) if _is_open(state, view, index) else ""
                if reason is None:
                    state.place(shape, index)
                    rules.refresh()
                    placed[index] = placed.get(index, 0) + 1
                    count -= 1
                    progress = True
                    # Without a spread, first fit stays with the node.
                    if shape.spread or not count:
                        break
                elif reason == SPREAD:
                    break
                else:
                    group.pop()
            if group:
                rest.append(group)
            if not count:
                break
        if not progress:
            break
        groups = rest
    return sorted(placed.items())


def _is_open(state: ClusterState, view: ShapeView, index: int) -> bool:
    return state.has_room(view, index) and not (view.exclusive and state.in_use(view))


def _topologies(state: ClusterState, shape: PodShape, candidates: Sequence[int]) -> list[list[int]]:
    """Group nodes by the topologies to spread over, each group with its first node last.

    Groups that share a wider topology are dealt out in turns, so that a round visits all zones soon.
    """
    keys = [constraint.topology_key for constraint in shape.spread]
    if not keys:
        return [list(reversed(candidates))] if candidates else []
    nodes = state.nodes
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for index in candidates:
        labels = nodes[index].labels
        groups.setdefault(tuple(labels.get(key) for key in keys), []).append(index)
    widest = min(range(len(keys)), key=lambda place: len({values[place] for values in groups}))
    turns: dict[str | None, int] = {}
    ordered: list[tuple[int, int, list[int]]] = []
    for values, group in groups.items():
        turn = turns[values[widest]] = turns.get(values[widest], 0) + 1
        ordered.append((turn, len(ordered), group[::-1]))
    return [group for _, _, group in sorted(ordered)]
