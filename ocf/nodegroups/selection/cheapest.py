"""Choice of the cheapest mix of instance types that takes all pods.

Several packings are computed and the cheapest is taken: for each instance type one that opens only nodes of it where it
can, and one that opens the node with the lowest price for what it takes. In each of them, every new node is then
replaced by the cheapest type that takes its pods.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ocf.nodegroups.packing import Demand, NewNode, NodeTemplate, Packing, add_nodes, place_daemons
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.predicates.static import StaticFilter
from ocf.nodegroups.snapshot import PodShape, Resources, total

__all__ = ["cheapest_packing"]

Order = Callable[[Demand], Sequence[NodeTemplate]]


def cheapest_packing(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    *,
    limits: dict[str, int] | None = None,
    most: int | None = None,
) -> Packing:
    """Return the cheapest of several packings onto new nodes.

    Packings are compared by the number of pods without a place, then by price, then by the number of nodes.

    Args:
        state: The state; it is as before afterwards.
        demands: The pods, largest first.
        templates: The nodes that could be added.
        limits: How many nodes each group may add.
        most: How many nodes may be added in total.
    """
    best: tuple[tuple[int, float, int], Packing] | None = None
    for order in _orders(state, demands, templates):
        mark = state.mark()
        packing = add_nodes(state, demands, order, limits=limits, most=most)
        packing = _with_cheaper_types(state, packing, templates)
        state.rollback(mark)
        unplaced = sum(len(each.pods) for each in packing.unplaced)
        key = (unplaced, round(packing.price, 9), len(packing.new_nodes))
        if best is None or key < best[0]:
            best = (key, packing)
    return best[1] if best else add_nodes(state, demands, (), limits=limits, most=most)


def _orders(
    state: ClusterState, demands: Sequence[Demand], templates: Sequence[NodeTemplate]
) -> Iterator[Sequence[NodeTemplate] | Order]:
    """Yield orders in which templates are tried, each of which gives one packing."""
    by_price = sorted(templates, key=lambda template: (template.price, template.key))
    names = dict.fromkeys(template.instance_type for template in _not_dominated(by_price))
    for name in names:
        yield sorted(by_price, key=lambda template: template.instance_type != name)
    demand = total(_scaled(each.shape.requests, len(each.pods)) for each in demands)
    overhead = _Overhead(state)
    yield sorted(by_price, key=lambda template: (_price_of_use(template, demand, overhead), template.key))


class _Overhead:
    """What DaemonSets take on a new node of each template."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def of(self, template: NodeTemplate) -> Resources:
        """Return the requests of the DaemonSet pods on a node of a template."""
        mark = self._state.mark()
        index = self._state.add_node(template.make("overhead"))
        place_daemons(self._state, index)
        found = total(_scaled(shape.requests, count) for shape, count in self._state.placed[index].items())
        self._state.rollback(mark)
        return found


def _price_of_use(template: NodeTemplate, demand: Resources, overhead: _Overhead) -> float:
    """Return the price of a template divided by the largest share of the demand that it can take."""
    free, taken = template.node.allocatable, overhead.of(template)
    shares = [
        max(size - used, 0) / wanted
        for size, used, wanted in (
            (free.cpu, taken.cpu, demand.cpu),
            (free.memory, taken.memory, demand.memory),
            (free.pods, taken.pods, demand.pods),
        )
        if wanted
    ]
    return template.price / max(min(shares, default=1.0), 1e-9)


def _not_dominated(templates: Iterable[NodeTemplate]) -> list[NodeTemplate]:
    """Leave out templates for which a cheaper one of the same zone and with the same labels has all resources, too."""
    kept: list[NodeTemplate] = []
    for template in templates:
        if not any(_covers(other, template) for other in kept):
            kept.append(template)
    return kept


def _covers(other: NodeTemplate, template: NodeTemplate) -> bool:
    one, two = other.node.allocatable, template.node.allocatable
    return (
        (other.group, other.zone) == (template.group, template.zone)
        and _plain_labels(other) == _plain_labels(template)
        and all(mine >= theirs for mine, theirs in zip(one[:4], two[:4], strict=True))
        and all(dict(one.scalars).get(name, 0) >= amount for name, amount in two.scalars)
    )


def _plain_labels(template: NodeTemplate) -> dict[str, str]:
    return {key: value for key, value in template.node.labels.items() if value != template.instance_type}


def _with_cheaper_types(state: ClusterState, packing: Packing, templates: Sequence[NodeTemplate]) -> Packing:
    """Replace each new node by the cheapest one that takes its pods; they are still on the nodes of the state."""
    by_price = sorted(templates, key=lambda template: (template.price, template.key))
    new_nodes = []
    for new in packing.new_nodes:
        placed = state.placed[state.index[new.name]]
        cheaper = (each for each in by_price if each.price < new.template.price and each.group == new.template.group)
        found = next((each for each in cheaper if _takes(state, each, new, placed)), new.template)
        new_nodes.append(NewNode(new.name, found))
    return packing._replace(new_nodes=tuple(new_nodes))


def _takes(state: ClusterState, template: NodeTemplate, new: NewNode, placed: dict[PodShape, int]) -> bool:
    allocatable = template.node.allocatable
    used = total(_scaled(shape.requests, count) for shape, count in placed.items())
    if any(amount > size for amount, size in zip(used[:4], allocatable[:4], strict=True)):
        return False
    scalars = dict(allocatable.scalars)
    if any(amount > scalars.get(name, 0) for name, amount in used.scalars):
        return False
    node = template.make(new.name)
    before = state.nodes[state.index[new.name]]
    keys = {key for shape in placed for key in _topology_keys(shape)}
    if any(node.labels.get(key) != before.labels.get(key) for key in keys):
        return False
    if template.zone != new.template.zone and _is_counted(state, placed):
        return False
    return all(StaticFilter(shape, state.snapshot).check(node) is None for shape in placed)


def _topology_keys(shape: PodShape) -> Iterator[str]:
    yield from (term.topology_key for term in (*shape.affinity, *shape.anti_affinity))
    yield from (constraint.topology_key for constraint in shape.spread)


def _is_counted(state: ClusterState, placed: dict[PodShape, int]) -> bool:
    """Return whether anti-affinity of pods anywhere limits the zones of these pods."""
    terms = state.counters.existing_terms(0)
    return any(state.counters.selects_existing(term, shape) for shape in placed for term in terms)


def _scaled(requests: Resources, count: int) -> Resources:
    scalars = tuple((name, amount * count) for name, amount in requests.scalars)
    return Resources(
        requests.cpu * count, requests.memory * count, requests.storage * count, requests.pods * count, scalars
    )
