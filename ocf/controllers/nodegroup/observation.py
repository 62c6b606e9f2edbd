"""Observation of a cluster: all objects that a reconcile reads, and the snapshot that the algorithm decides about.

The objects of kind VPSieNode decide what belongs to a group and what is on its way: a Node of which a VPSieNode knows
the name counts for the group of that object even before its labels are set, and takes no pods once it is leaving.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.controllers.metrics_client.client import NodeMetricsClient
from ocf.controllers.nodegroup.cluster_reader import CoreObjects, ObjectReader, Objects, parse_objects
from ocf.controllers.nodegroup.groups import to_group
from ocf.controllers.nodegroup.lifecycle import NodeState
from ocf.controllers.nodegroup.node_index import JoinedNode, NodeIndex
from ocf.controllers.nodegroup.objects import (
    MEMBER_LABEL,
    GroupObject,
    NodeObject,
    member_value,
    reject_foreign_claims,
    reject_second_claims,
)
from ocf.errors import ApiError, FieldProblem
from ocf.nodegroups import Catalog, ClusterSnapshot, Node, NodeGroup
from ocf.nodegroups.selection import Learned, Selection, templates
from ocf.nodegroups.snapshot import RejectedObject, Resources
from ocf.nodegroups.snapshot.fields import Fields
from ocf.nodegroups.snapshot.resources import to_resources
from ocf.objects import Manifest

__all__ = ["ClusterReader", "ClusterView", "read_cluster", "read_usage", "view_of"]

# How long the scheduler may take until it has bound pods to a node that is ready.
_BINDING: Final = timedelta(minutes=1)
_log: Final = logging.getLogger(__name__)
_MEASURED: Final = ("cpu", "memory")


def _wants_usage(groups: Iterable[GroupObject]) -> bool:
    """Return whether a group removes nodes by their measured use."""
    return any(each.spec is not None and each.spec.scale_down_policy.utilization == "Usage" for each in groups)


def read_usage(entries: Iterable[Any]) -> dict[str, Resources]:
    """Return the measured use by the name of the node; entries that cannot be read are left out.

    Args:
        entries: NodeMetrics of metrics.k8s.io/v1beta1.

    Example:
        >>> measured = {"metadata": {"name": "n1"}, "usage": {"cpu": "250m", "memory": "1Gi"}}
        >>> read_usage([measured, {"metadata": {"name": "n2"}, "usage": {"cpu": "1"}}])
        {'n1': Resources(cpu=250, memory=1073741824, storage=0, pods=0, scalars=())}
    """
    found = {}
    for entry in entries:
        problems: list[FieldProblem] = []
        fields = Fields(entry if isinstance(entry, dict) else {}, "", problems)
        name, usage = fields.child("metadata").text("name"), fields.amounts("usage")
        if name and not problems and all(usage.get(each, -1) >= 0 for each in _MEASURED):
            found[name] = to_resources({each: usage[each] for each in _MEASURED})
    return found


# Metrics may be missing for as long as an outage lasts, and a node that was not measured never counts as idle.
async def _measure_nodes(metrics: NodeMetricsClient | None, groups: Iterable[GroupObject]) -> dict[str, Resources]:
    """Return the measured use of all nodes, if a group wants it.

    Args:
        metrics: The client; None where there are no metrics.

    Returns:
        The use by the name of the node; empty if the metrics cannot be read.
    """
    if metrics is None or not _wants_usage(groups):
        return {}
    try:
        return read_usage(await metrics.node_metrics())
    except ApiError as error:
        _log.warning("the use of nodes cannot be read, and none is removed because of it: %s", error)
        return {}


@dataclass(slots=True, kw_only=True)
class ClusterView:
    """What a reconcile reads.

    Args:
        groups: The node groups, by their name in decisions.
        nodes: The objects of kind VPSieNode, by namespace and name.
        core: The objects of all other kinds.
        usage: The measured use of each node by its name, where a group wants it.
    """

    groups: dict[str, GroupObject]
    nodes: dict[str, NodeObject]
    core: CoreObjects
    usage: Mapping[str, Resources] = field(default_factory=dict)
    index: NodeIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = NodeIndex(self.core.nodes)

    def nodes_of(self, group: str) -> list[NodeObject]:
        """Return the nodes of a group.

        Args:
            group: Its name in decisions.
        """
        return [node for node in self.nodes.values() if node.group == group]

    @property
    def node_names(self) -> dict[str, NodeObject]:
        """The objects of kind VPSieNode by the name of their Node; by their own as long as that is not known."""
        return {node.node_name: node for node in self.nodes.values() if not node.claimed}

    def desired_groups(self) -> tuple[NodeGroup, ...]:
        """Return the groups to decide about: those that are valid, and not being deleted.

        A machine that is given up counts for the maximum until it is gone, as long as no Node shows it.
        """
        found = []
        for each in self.groups.values():
            if each.spec is None or each.ending:
                continue
            group = to_group(each, each.spec)
            most = max(0, group.max_nodes - sum(map(self._is_given_up, self.nodes_of(each.name))))
            found.append(replace(group, max_nodes=most, min_nodes=min(group.min_nodes, most)))
        return tuple(found)

    def _is_given_up(self, node: NodeObject) -> bool:
        requested = node.leaving and node.status.requested_at is not None
        return requested and self.index.state(node.node_name) is NodeState.ABSENT

    def draining(self, group: str) -> frozenset[str]:
        """Return the names of the Nodes of a group that are on their way out.

        Args:
            group: Its name in decisions.
        """
        return frozenset(node.node_name for node in self.nodes_of(group) if node.leaving)

    def drained_at(self, group: str) -> datetime | None:
        """Return when the last drain of a group began, but those of nodes that are being deleted; None without any.

        Args:
            group: Its name in decisions.
        """
        drains = [node.status.drain for node in self.nodes_of(group) if not node.ending]
        return max((drain.started_at for drain in drains if drain is not None), default=None)

    def nominations(self, now: datetime) -> dict[str, str]:
        """Return the node that was found for each pod by the decisions whose nodes start, by the key of the pod.

        They hold for a moment longer than the start, in which the scheduler binds the pods.

        Args:
            now: The time of the reconcile.
        """
        found: dict[str, str] = {}
        starting = [(node, node.spec) for node in self.nodes.values() if node.spec is not None and _holds(node, now)]
        for _, spec in starting:
            # First the places on nodes that there were: where a pod is in both, the new node is the later decision.
            found |= {each.pod: each.node for each in spec.placed_pods or ()}
        for node, spec in starting:
            found |= dict.fromkeys(spec.pods or (), node.node_name)
        return found

    def snapshot(self, catalog: Catalog) -> ClusterSnapshot:
        """Return the snapshot of the algorithm.

        Args:
            catalog: The instance types, for the nodes in flight.
        """
        known = self.node_names
        nodes = [_marked(each, known.get(each.name)) for each in self.core.nodes]
        in_flight = [self._in_flight(node, catalog) for node in known.values() if self._is_in_flight(node)]
        return self.core.snapshot(nodes, in_flight, self.usage)

    def _is_in_flight(self, node: NodeObject) -> bool:
        if node.spec is None or node.leaving:
            return False
        # A Node that was ready and is missing counts as on its way as well: otherwise its absence orders a second
        # machine at once.
        return node.booting or self.index.state(node.status.node_name) is NodeState.ABSENT

    def _in_flight(self, node: NodeObject, catalog: Catalog) -> Node:
        assert node.spec is not None  # noqa: S101 (checked by the caller)
        spec, name = node.spec, node.node_name
        found, known = self.groups.get(node.group), catalog.types.get(spec.instance_type)
        offerings = catalog.offerings(spec.instance_type, spec.datacenter_id)
        # A type may be gone from the catalog while its machine boots.
        if found is None or found.spec is None or known is None or not offerings:
            # It counts for its group, but what it could take is not known.
            label = member_value(node.key.namespace, spec.node_group_name)
            return Node(name=name, labels={MEMBER_LABEL: label}, in_flight=True)
        (template,) = templates(
            to_group(found, found.spec), Selection(((known, offerings[0]),)), Learned(catalog=catalog)
        )
        return template.make(name)


class ClusterReader:
    """Reads views of a cluster; what has not changed between two of them is parsed once.

    Args:
        metrics: The client of the metrics of nodes, for groups that want them; None where there are none.
    """

    def __init__(self, metrics: NodeMetricsClient | None = None) -> None:
        self._reader = ObjectReader()
        self._metrics = metrics

    async def read(self, cluster: Cluster) -> ClusterView:
        """Read everything that a reconcile needs."""
        view = _view(await self._reader.read(cluster))
        view.usage = await _measure_nodes(self._metrics, view.groups.values())
        return view


async def read_cluster(cluster: Cluster, metrics: NodeMetricsClient | None = None) -> ClusterView:
    """Read everything that a reconcile needs, once.

    Args:
        metrics: The client of the metrics of nodes, for groups that want them; None where there are none.

    Raises:
        ApiError: If a kind cannot be read.
    """
    return await ClusterReader(metrics).read(cluster)


def view_of(manifests: Iterable[Manifest]) -> ClusterView:
    """Return what a reconcile would read from a cluster with the given objects; those of other kinds are ignored.

    Args:
        manifests: The objects; those of kind NodeMetrics are the measured use of nodes.
    """
    found = list(manifests)
    view = _view(parse_objects(found))
    view.usage = read_usage(each for each in found if each.get("kind") == "NodeMetrics")
    return view


def _view(read: Objects) -> ClusterView:
    # A reconcile changes its objects of kind VPSieNode: those of the reader stay as they were read.
    joined = {each.name: each.manifest for each in read.core.nodes}
    nodes = map(replace, reject_second_claims(reject_foreign_claims(read.nodes, joined)))
    return ClusterView(
        groups={each.name: each for each in sorted(read.groups, key=lambda each: each.name)},
        nodes={f"{each.key.namespace}/{each.name}": each for each in sorted(nodes, key=_order)},
        core=read.core,
    )


def _holds(node: NodeObject, now: datetime) -> bool:
    ready_at = node.status.ready_at
    return not node.leaving and (ready_at is None or now - ready_at < _BINDING)


def _order(node: NodeObject) -> tuple[str, str]:
    return node.key.namespace, node.name


def _marked(joined: JoinedNode, node: NodeObject | None) -> Node | RejectedObject:
    """Return a node with the label of its group, and unschedulable if it is leaving."""
    found = joined.parsed
    if node is None or isinstance(found, RejectedObject):
        return found
    changes: dict[str, Any] = {}
    if node.spec is not None:
        # The labels of type and zone are those of the cloud, if it sets any, and may have other names.
        changes["offering"] = (node.spec.instance_type, node.spec.datacenter_id)
        label = member_value(node.key.namespace, node.spec.node_group_name)
        if found.labels.get(MEMBER_LABEL) != label:
            changes["labels"] = {**found.labels, MEMBER_LABEL: label}
    if node.leaving and not found.unschedulable:
        changes["unschedulable"] = True
    return replace(found, **changes) if changes else found
