"""Choice of the cheapest mix of instance types that takes all pods.

Several packings are computed and the cheapest is taken: for each instance type one that opens only nodes of it where it
can, one that opens the type with the lowest price for its share of the demand, and one that chooses each node by the
value of all pods that it takes. In each of them, every new node is then replaced by the cheapest type that takes its
pods.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ocf.nodegroups.packing import Demand, NodeTemplate, Packing, add_nodes, place_daemons
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.selection.downsize import with_cheaper_types
from ocf.nodegroups.selection.look_ahead import look_ahead
from ocf.nodegroups.selection.prices import unit_prices
from ocf.nodegroups.snapshot import NO_RESOURCES, Resources, total

__all__ = [
    "cheap_packings",
    "cheapest_packing",
    "count_topologies",
    "quick_packing",
    "quick_packings",
    "total_requests",
]

# Trials of pods on a node: a limit of time that does not depend on the machine, so that a decision is repeatable.
_BUDGET: Final = 40_000


def cheapest_packing(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    *,
    limits: Mapping[str, int] | None = None,
) -> Packing:
    """Return the cheapest of several packings onto new nodes.

    Packings are compared by the number of pods without a place, then by price, then by the number of nodes.

    Args:
        state: The state; it is as before afterwards.
        demands: The pods, largest first.
        templates: The nodes that could be added.
        limits: How many nodes each group may add.
    """
    if not any(demand.shape.spread for demand in demands):
        return _cheapest(state, demands, templates, limits)
    mark = state.mark()
    count_topologies(state, templates)
    found = _cheapest(state, demands, templates, limits)
    state.rollback(mark)
    # The stand-ins may make a skew impossible that the real nodes alone allow.
    if found.unplaced:
        found = min(found, _cheapest(state, demands, templates, limits), key=_key)
    return found


def count_topologies(state: ClusterState, templates: Iterable[NodeTemplate]) -> None:
    """Let a node without pods and without room stand for the zones and hosts that new nodes can be in.

    Pods that spread over zones then use all zones, and pods that spread over hosts still obey their skew when another
    node joins.
    """
    for number, template in enumerate({(each.group, each.zone): each for each in templates}.values()):
        state.close(state.add_node(template.make(f"any-{number}")))


def _cheapest(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    limits: Mapping[str, int] | None,
) -> Packing:
    return min(_packings(state, demands, templates, limits), key=_key)


def _packings(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    limits: Mapping[str, int] | None,
) -> list[Packing]:
    """Return several packings, at least one."""
    by_price = _by_price(templates)
    useful = _not_dominated(by_price)
    found = [_packed(state, demands, order, by_price, limits) for order in _orders(state, demands, by_price, useful)]
    if not found:
        return [add_nodes(state, demands, (), limits=limits)]
    best = min(found, key=_key)
    placed = _without(demands, best)
    prices = unit_prices(by_price, total_requests(placed))
    mark = state.mark()
    ahead = look_ahead(state, placed, useful, prices, limits=limits or {}, budget=_BUDGET)
    if ahead is not None:
        found.append(with_cheaper_types(state, ahead, by_price)._replace(unplaced=best.unplaced))
    state.rollback(mark)
    return found


def cheap_packings(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    *,
    limits: Mapping[str, int] | None = None,
) -> list[Packing]:
    """Return packings onto new nodes that place all pods, the cheapest first, each mix of nodes once.

    Among them is the cheapest single node of each zone that takes all pods.

    Args:
        state: The state; it is as before afterwards.
        demands: The pods, largest first.
        templates: The nodes that could be added.
        limits: How many nodes each group may add.
    """
    found = [*_packings(state, demands, templates, limits), *_single_nodes(state, demands, templates, limits or {})]
    if any(demand.shape.spread for demand in demands):
        mark = state.mark()
        count_topologies(state, templates)
        found += _packings(state, demands, templates, limits)
        state.rollback(mark)
    return _mixes(found)


def quick_packings(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    *,
    limits: Mapping[str, int] | None = None,
) -> list[Packing]:
    """Return those packings of `cheap_packings` that take little time to find.

    Args:
        state: The state; it is as before afterwards.
        demands: The pods, largest first.
        templates: The nodes that could be added.
        limits: How many nodes each group may add.
    """
    quick = quick_packing(state, demands, templates, limits=limits)
    return _mixes([quick, *_single_nodes(state, demands, templates, limits or {})])


def _mixes(packings: Iterable[Packing]) -> list[Packing]:
    """Return the packings that place all pods, the cheapest first, each mix of nodes once."""
    found: dict[tuple[tuple[str, str, str], ...], Packing] = {}
    for packing in sorted(packings, key=_key):
        if not packing.unplaced:
            found.setdefault(tuple(sorted(new.template.key for new in packing.new_nodes)), packing)
    return list(found.values())


def _single_nodes(
    state: ClusterState, demands: Sequence[Demand], templates: Sequence[NodeTemplate], limits: Mapping[str, int]
) -> Iterator[Packing]:
    """Yield the cheapest node of each group and zone that takes all pods alone."""
    wanted, taken = total_requests(demands), set()
    for template in _by_price(templates):
        where = template.group, template.zone
        # The sum of requests first: most types are too small for all pods.
        if where in taken or limits.get(template.group, 1) < 1 or not _covers(template.node.allocatable, wanted):
            continue
        mark = state.mark()
        packing = add_nodes(state, demands, (template,), most=1)
        state.rollback(mark)
        if not packing.unplaced:
            taken.add(where)
            yield packing


def quick_packing(
    state: ClusterState,
    demands: Sequence[Demand],
    templates: Sequence[NodeTemplate],
    *,
    limits: Mapping[str, int] | None = None,
) -> Packing:
    """Return one cheap packing onto new nodes: an estimate of what `cheapest_packing` finds.

    Args:
        state: The state; it is as before afterwards.
        demands: The pods, largest first.
        templates: The nodes that could be added.
        limits: How many nodes each group may add.
    """
    by_price = _by_price(templates)
    return _packed(state, demands, _by_use(state, demands, by_price), by_price, limits)


def total_requests(demands: Iterable[Demand]) -> Resources:
    """Return the requests of all pods of demands."""
    return total(_scaled(each.shape.requests, len(each.pods)) for each in demands)


def _packed(
    state: ClusterState,
    demands: Sequence[Demand],
    order: Sequence[NodeTemplate],
    by_price: Sequence[NodeTemplate],
    limits: Mapping[str, int] | None,
) -> Packing:
    mark = state.mark()
    packing = with_cheaper_types(state, add_nodes(state, demands, order, limits=limits), by_price)
    state.rollback(mark)
    return packing


def _key(packing: Packing) -> tuple[int, float, int]:
    return sum(len(each.pods) for each in packing.unplaced), round(packing.price, 9), len(packing.new_nodes)


def _without(demands: Iterable[Demand], packing: Packing) -> list[Demand]:
    """Return demands without the pods that a packing leaves without a place."""
    left = [
        Demand(demand.shape, tuple(pod for pod in demand.pods if pod.key in packing.placements)) for demand in demands
    ]
    return [demand for demand in left if demand.pods]


def _by_price(templates: Iterable[NodeTemplate]) -> list[NodeTemplate]:
    return sorted(templates, key=lambda template: (template.price, template.key))


def _orders(
    state: ClusterState, demands: Sequence[Demand], by_price: Sequence[NodeTemplate], useful: Sequence[NodeTemplate]
) -> Iterator[Sequence[NodeTemplate]]:
    """Yield orders in which templates are tried, each of which gives one packing.

    Args:
        useful: Those of them that no cheaper one dominates.
    """
    for name in dict.fromkeys(template.instance_type for template in useful):
        yield sorted(by_price, key=lambda template: template.instance_type != name)
    if by_price:
        yield _by_use(state, demands, by_price)


def _by_use(state: ClusterState, demands: Sequence[Demand], by_price: Sequence[NodeTemplate]) -> Sequence[NodeTemplate]:
    """Return templates by their price for the share of the demand that they can take."""
    demand, overhead = total_requests(demands), _Overhead(state)
    return sorted(by_price, key=lambda template: (_price_of_use(template, demand, overhead), template.key))


class _Overhead:
    """What DaemonSets take on a new node of each template."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def of(self, template: NodeTemplate) -> Resources:
        """Return the requests of the DaemonSet pods on a node of a template."""
        if not self._state.snapshot.daemon_sets:
            return NO_RESOURCES
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
    # The scarcest resource decides how many of these nodes the demand needs.
    return template.price / max(min(shares, default=1.0), 1e-9)


def _not_dominated(templates: Iterable[NodeTemplate]) -> list[NodeTemplate]:
    """Leave out templates for which a cheaper one of the same zone and with the same labels has all resources, too."""
    kept: list[NodeTemplate] = []
    sizes: dict[object, list[Resources]] = {}
    for template in templates:
        size = template.node.allocatable
        node = template.node
        alike = (template.group, template.zone, _plain_labels(template), node.taints, node.companions)
        comparable = sizes.setdefault(alike, [])
        if not any(_covers(other, size) for other in comparable):
            comparable.append(size)
            # Sorted by price, so every earlier one is cheaper or equal.
            kept.append(template)
    return kept


def _covers(one: Resources, two: Resources) -> bool:
    return all(mine >= theirs for mine, theirs in zip(one[:4], two[:4], strict=True)) and all(
        dict(one.scalars).get(name, 0) >= amount for name, amount in two.scalars
    )


def _plain_labels(template: NodeTemplate) -> frozenset[tuple[str, str]]:
    # The label of the type itself always differs, and pods seldom select by it.
    return frozenset(label for label in template.node.labels.items() if label[1] != template.instance_type)


def _scaled(requests: Resources, count: int) -> Resources:
    scalars = tuple((name, amount * count) for name, amount in requests.scalars)
    return Resources(
        requests.cpu * count, requests.memory * count, requests.storage * count, requests.pods * count, scalars
    )
