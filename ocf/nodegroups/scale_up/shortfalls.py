"""Shortfalls: pods that would fit on a node as its type promises it, and do not fit on the nodes that have joined."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ocf.nodegroups.model import NodeGroup, TypeGap
from ocf.nodegroups.model.gaps import amounts
from ocf.nodegroups.packing import Demand, NodeTemplate, place_daemons
from ocf.nodegroups.predicates import ClusterState, Misfit, explain
from ocf.nodegroups.predicates.reasons import Shortage
from ocf.nodegroups.selection import Learned, promised_node
from ocf.nodegroups.snapshot import Node, PodShape

__all__ = ["Shortfall", "find_shortfalls"]

_GI: Final = 2**30
_BYTES: Final = ("memory", "ephemeral-storage")


class Shortfall(NamedTuple):
    """An instance type of which nodes lack what pods need, although the type promises it.

    Args:
        pods: The keys of the pods that would fit on a node as it is promised.
        text: What the nodes lack, with what is promised.
    """

    instance_type: str
    zone: str
    pods: tuple[str, ...]
    text: str


def find_shortfalls(
    state: ClusterState, group: NodeGroup, demands: Sequence[Demand], learned: Learned
) -> tuple[Shortfall, ...]:
    """Return the instance types of a group of which no node is added for pods, because nodes lack what is promised.

    Args:
        state: The state; it is as before afterwards.
        demands: The pods without a place on the nodes that there are.
        learned: What is known of the nodes of the group.
    """
    found, catalog = [], learned.catalog
    for (name, zone), gap in sorted(learned.gaps.items()):
        if name not in group.instance_types or name not in catalog.types:
            continue
        promised = promised_node(group, catalog.types[name], zone, catalog)
        expected = learned.expected(promised, group)
        pods: list[str] = []
        texts: dict[str, None] = {}
        for demand in demands:
            misfit = _misfit(state, demand.shape, expected)
            # A rule about other pods would be broken on the promised node, too.
            if misfit is None or misfit.depends_on_pods or _misfit(state, demand.shape, promised) is not None:
                continue
            pods += [pod.key for pod in demand.pods]
            texts |= dict.fromkeys(_lacking(gap, misfit, demand.shape, promised))
        if pods:
            text = f"nodes of type {name} are not as promised: {', '.join(texts)}"
            found.append(Shortfall(name, zone, tuple(pods), text))
    return tuple(found)


def _misfit(state: ClusterState, shape: PodShape, node: Node) -> Misfit | None:
    """Return why an empty node does not take a pod; None if it does."""
    mark = state.mark()
    index = state.add_node(NodeTemplate(group="", node=node).make("node as expected"))
    place_daemons(state, index)
    found = explain(shape, index, state)
    state.rollback(mark)
    return found


def _lacking(gap: TypeGap, misfit: Misfit, shape: PodShape, promised: Node) -> Iterator[str]:
    """Yield what a node lacks of what a pod needs."""
    sizes = amounts(promised.allocatable)
    for each in misfit.details:
        if not isinstance(each, Shortage):
            continue
        name = each.resource
        if name in gap.resources:
            yield f"a node has {_shown(name, gap.resources[name])}, the type promises {_shown(name, sizes[name])}"
        if name in gap.overhead:
            yield f"pods of DaemonSets and static pods use {_shown(name, gap.overhead[name])} more than templates say"
    if misfit.plugin == "TaintToleration":
        yield from (f"a node has the taint {each.key}:{each.effect}" for each in gap.taints)
    if misfit.plugin == "NodeAffinity":
        wanted = {key for key, _ in shape.node_selector}
        wanted |= {each.key for term in shape.node_affinity or () for each in term.expressions}
        lacking = sorted(wanted & gap.labels.keys())
        yield from (f"a node lacks the label {key}={gap.labels[key]}" for key in lacking)


def _shown(resource: str, amount: int) -> str:
    """Return an amount with its resource, as people write it."""
    if resource == "cpu":
        return f"{amount / 1000:g} CPU"
    if resource in _BYTES:
        return f"{amount / _GI:.4g}Gi {resource}"
    return f"{amount} {resource}"
