"""Topologies that node groups offer: pods with a hard spread use them before any node is there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ocf.nodegroups.packing import Demand, NodeTemplate
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.predicates.static import matches_node_affinity
from ocf.nodegroups.snapshot import Node, PodShape

__all__ = ["over_offered"]

_HOSTNAME: Final = "kubernetes.io/hostname"


def over_offered(state: ClusterState, demands: Iterable[Demand], offers: Sequence[NodeTemplate]) -> list[Demand]:
    """Return demands whose pods also spread over the zones of nodes that could be added.

    The scheduler only knows topologies that have a node, so that all pods would go to the zone whose node comes first.

    Args:
        offers: The nodes that could be added, of all groups.
    """
    return [demand._replace(shape=_over_offered(state, demand.shape, offers)) for demand in demands]


def _over_offered(state: ClusterState, shape: PodShape, offers: Sequence[NodeTemplate]) -> PodShape:
    keys = {each.topology_key for each in shape.spread}
    # Each new node is a topology of its own.
    if not keys - {_HOSTNAME}:
        return shape
    nodes = list(_usable(state, shape, offers, keys - {_HOSTNAME}))
    spread = tuple(
        each
        if each.topology_key == _HOSTNAME
        # As if the author of the pod had asked for as many: until each has a node, the fewest pods are 0.
        else replace(each, min_domains=max(each.min_domains, len({node.labels[each.topology_key] for node in nodes})))
        for each in shape.spread
    )
    return replace(shape, spread=spread)


def _usable(state: ClusterState, shape: PodShape, offers: Sequence[NodeTemplate], keys: set[str]) -> Iterator[Node]:
    """Yield the nodes that count for the spread of a shape, and those that would once they are added."""
    static = state.view(shape).static
    nodes = (node for node in state.nodes if matches_node_affinity(shape, node))
    new = (offer.node for offer in offers if static.check(offer.node) is None)
    yield from (node for source in (nodes, new) for node in source if keys <= node.labels.keys())
