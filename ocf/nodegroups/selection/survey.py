"""Survey of the nodes of all groups, before anything is decided: which are still on their way, and what they teach."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from ocf.nodegroups.model import Catalog, GroupStatus, Membership, NodeGroup
from ocf.nodegroups.model.gaps import next_gaps
from ocf.nodegroups.selection.instance_type import promised_node
from ocf.nodegroups.selection.learned import Learned, gap_between, is_startup_taint, learn
from ocf.nodegroups.snapshot import ClusterSnapshot, Node

__all__ = ["Survey", "survey"]

_HOSTNAME: Final = "kubernetes.io/hostname"


class Survey(NamedTuple):
    """What is known of the nodes of all groups.

    Args:
        snapshot: The snapshot, in which nodes that are still being set up are in flight, and nodes in flight are what
            they are expected to become.
        learned: What each group has learned of its nodes, by the name of the group.
        statuses: The status of each group, with the gaps of its instance types.
        starting: The names of the nodes that have joined and are still being set up.
    """

    snapshot: ClusterSnapshot
    learned: Mapping[str, Learned]
    statuses: Mapping[str, GroupStatus]
    starting: frozenset[str]


def survey(
    snapshot: ClusterSnapshot,
    groups: Iterable[NodeGroup],
    *,
    membership: Membership,
    statuses: Mapping[str, GroupStatus],
    catalog: Catalog,
    now: datetime,
) -> Survey:
    """Return what is known of the nodes of all groups.

    Args:
        membership: Which nodes belong to which group.
        statuses: The status of each group by its name.
        catalog: The types of the provider.
        now: The time of the reconcile.
    """
    learned: dict[str, Learned] = {}
    after: dict[str, GroupStatus] = {}
    starting: set[str] = set()
    for group in groups:
        names, status = membership.nodes.get(group.name, ()), statuses[group.name]
        for name in names:
            found = _starting(snapshot.nodes[name], group, catalog, now)
            if found is not None:
                starting.add(name)
                snapshot = snapshot.with_node(found)
        models = learn(group, names, snapshot, status, now)
        seen = {}
        for kind, model in models.items():
            if kind[0] in catalog.types and not catalog.types[kind[0]].problem:
                promised = promised_node(group, catalog.types[kind[0]], kind[1], catalog)
                gap = gap_between(promised, model, group, snapshot.daemon_sets)
                # An older node that lacks nothing does not show what those lack that are bought now.
                if not gap.empty or not _is_older(model, status.last_scale_up):
                    seen[kind] = gap
        gaps = next_gaps(status.gaps, seen, now)
        after[group.name] = replace(status, gaps=gaps)
        holding = {each.kind: each for each in gaps if each.holds(now)}
        models = {kind: model for kind, model in models.items() if kind in seen or kind not in holding}
        known = Learned(catalog=catalog, models=models, gaps=holding)
        learned[group.name] = known
        for name in names:
            node = snapshot.nodes[name]
            if node.in_flight and name not in starting and node.kind[0] in catalog.types:
                snapshot = snapshot.with_node(_expected(node, group, catalog, known))
    return Survey(snapshot, learned, after, frozenset(starting))


def _is_older(node: Node, bought: datetime | None) -> bool:
    return node.created is not None and bought is not None and node.created < bought


def _starting(node: Node, group: NodeGroup, catalog: Catalog, now: datetime) -> Node | None:
    """Return a node that is ready and still being set up as the node that it will be; None for any other node."""
    if node.in_flight or not node.ready or node.created is None or now - node.created >= group.startup_limit:
        return None
    taints = tuple(taint for taint in node.taints if not is_startup_taint(taint, group))
    allocatable = node.allocatable
    if group.startup_resources and node.kind[0] in catalog.types:
        there = dict(allocatable.scalars)
        promised = dict(catalog.allocatable(node.kind[0]).scalars)
        late = {name: promised[name] for name in group.startup_resources if promised.get(name) and not there.get(name)}
        if late:
            allocatable = allocatable._replace(scalars=tuple(sorted({**there, **late}.items())))
    if taints == node.taints and allocatable == node.allocatable:
        return None
    return replace(node, taints=taints, allocatable=allocatable, in_flight=True)


def _expected(node: Node, group: NodeGroup, catalog: Catalog, known: Learned) -> Node:
    """Return a node in flight as it is expected to join."""
    instance_type, zone = node.kind
    if (instance_type, zone) not in known.models and (instance_type, zone) not in known.gaps:
        return node
    expected = known.expected(promised_node(group, catalog.types[instance_type], zone, catalog), group)
    labels = {**expected.labels, _HOSTNAME: node.labels.get(_HOSTNAME, node.name)}
    return replace(expected, name=node.name, labels=labels, created=node.created, in_flight=True)
