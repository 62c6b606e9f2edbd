"""Replacement of planned nodes by the cheapest types that take their pods."""

from collections.abc import Iterator, Sequence

from ocf.nodegroups.packing import NewNode, NodeTemplate, Packing
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.snapshot import PodShape

__all__ = ["with_cheaper_types"]


def with_cheaper_types(state: ClusterState, packing: Packing, by_price: Sequence[NodeTemplate]) -> Packing:
    """Return a packing with each new node replaced by the cheapest one that takes its pods."""
    new_nodes = tuple(NewNode(new.name, _cheapest(state, new, by_price)) for new in packing.new_nodes)
    return packing._replace(new_nodes=new_nodes)


def _cheapest(state: ClusterState, new: NewNode, by_price: Sequence[NodeTemplate]) -> NodeTemplate:
    index = state.index[new.name]
    shapes = state.placed[index]
    rules: tuple[set[str], bool] | None = None
    for template in by_price:
        # By price, so no later one is cheaper either.
        if template.price >= new.template.price:
            break
        if template.group != new.template.group or not _has_room(state, index, template):
            continue
        if rules is None:
            rules = {key for shape in shapes for key in _topology_keys(shape)}, _is_counted(state, shapes)
        fixed, zone_counts = rules
        # Moving a node to another zone could break the rules of pods that are not on it.
        if template.zone != new.template.zone and zone_counts:
            continue
        node = template.make(new.name)
        before = state.nodes[index].labels
        if all(node.labels.get(key) == before.get(key) for key in fixed) and all(
            state.view(shape).static.check(node) is None for shape in shapes
        ):
            return template
    return new.template


def _has_room(state: ClusterState, index: int, template: NodeTemplate) -> bool:
    """Return whether the resources of another type are enough for what is on a node."""
    size, before = template.node.allocatable, state.nodes[index].allocatable
    if (
        state.free_cpu[index] < before.cpu - size.cpu
        or state.free_memory[index] < before.memory - size.memory
        or state.free_storage[index] < before.storage - size.storage
        or state.free_pods[index] < before.pods - size.pods
    ):
        return False
    attached = [driver for driver, _ in state.attached[index]]
    if any(attached.count(driver) > most for driver, most in template.node.attach_limits):
        return False
    has, had, free = dict(size.scalars), dict(before.scalars), state.free_scalars[index]
    return all(free.get(name, 0) >= amount - has.get(name, 0) for name, amount in had.items())


def _topology_keys(shape: PodShape) -> Iterator[str]:
    yield from (term.topology_key for term in (*shape.affinity, *shape.anti_affinity))
    yield from (constraint.topology_key for constraint in shape.spread)


def _is_counted(state: ClusterState, shapes: dict[PodShape, int]) -> bool:
    """Return whether anti-affinity of pods anywhere limits the zones of these pods."""
    terms = state.counters.existing_terms(0)
    return any(state.counters.selects_existing(term, shape) for shape in shapes for term in terms)
