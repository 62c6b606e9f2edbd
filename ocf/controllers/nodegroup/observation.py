"""Observation of a cluster: all objects that a reconcile reads, and the snapshot that the algorithm decides about.

The objects of kind VPSieNode decide what belongs to a group and what is on its way: a Node of which a VPSieNode knows
the name counts for the group of that object even before its labels are set, and takes no pods once it is leaving.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.cluster import Cluster, ListOptions
from ocf.controllers.nodegroup.groups import to_group
from ocf.controllers.nodegroup.lifecycle import NodeState
from ocf.controllers.nodegroup.objects import (
    API_VERSION,
    MEMBER_LABEL,
    GroupObject,
    NodeObject,
    member_value,
    read_group,
    read_node,
)
from ocf.nodegroups import Catalog, Machine, Node, NodeGroup, Snapshot
from ocf.nodegroups.selection import Selection, templates
from ocf.nodegroups.snapshot.nodes import STARTUP_TAINTS
from ocf.objects import Manifest
from ocf.objects.conditions import is_condition_true

__all__ = ["GROUPS", "KINDS", "NODES", "ClusterView", "NodeIndex", "read_cluster", "view_of"]

GROUPS: Final = (API_VERSION, "NodeGroup")
"""apiVersion and kind of node groups."""

NODES: Final = (API_VERSION, "VPSieNode")
"""apiVersion and kind of the nodes of groups."""

_CORE: Final = {
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "budgets": ("policy/v1", "PodDisruptionBudget"),
    "claims": ("v1", "PersistentVolumeClaim"),
    "volumes": ("v1", "PersistentVolume"),
    "storage_classes": ("storage.k8s.io/v1", "StorageClass"),
    "daemon_sets": ("apps/v1", "DaemonSet"),
    "namespaces": ("v1", "Namespace"),
}

KINDS: Final = (GROUPS, NODES, *_CORE.values())
"""All kinds that a reconcile reads."""


class NodeIndex:
    """The Nodes of a cluster, to find that of a machine.

    Args:
        nodes: The Nodes.
    """

    def __init__(self, nodes: Iterable[Manifest]) -> None:
        self.by_name: Final = {str(each["metadata"]["name"]): each for each in nodes}
        self._by_provider_id = {
            str(each["spec"]["providerID"]): name
            for name, each in self.by_name.items()
            if (each.get("spec") or {}).get("providerID")
        }
        self._by_address: dict[str, str] = {}
        for name, each in self.by_name.items():
            for address in (each.get("status") or {}).get("addresses") or ():
                if address.get("type") in ("InternalIP", "ExternalIP"):
                    self._by_address.setdefault(str(address.get("address")), name)

    def find(self, node: NodeObject, machine: Machine | None, *, keeps_names: bool) -> str:
        """Return the name of the Node of a machine; empty if it has not joined.

        Args:
            node: The object of the machine.
            machine: The machine; None if the provider does not list it.
            keeps_names: Whether the Node may be found by the name of the object.
        """
        names = [node.status.node_name]
        if machine is not None:
            names += [self._by_provider_id.get(machine.provider_id, ""), machine.node_name]
            names += [self._by_address.get(address, "") for address in machine.addresses]
        if keeps_names:
            names.append(node.name)
        return next((name for name in names if name in self.by_name), "")

    def state(self, name: str) -> NodeState:
        """Return the state of a Node.

        Args:
            name: Its name; empty for one that has not joined.
        """
        found = self.by_name.get(name)
        if found is None:
            return NodeState.ABSENT
        ready = is_condition_true((found.get("status") or {}).get("conditions"), "Ready")
        starting = any(taint.get("key") in STARTUP_TAINTS for taint in (found.get("spec") or {}).get("taints") or ())
        return NodeState.READY if ready and not starting else NodeState.NOT_READY


@dataclass(slots=True, kw_only=True)
class ClusterView:
    """What a reconcile reads.

    Args:
        groups: The node groups, by their name in decisions.
        nodes: The objects of kind VPSieNode, by namespace and name.
        objects: The manifests of all other kinds, by the parameter of `Snapshot.of`.
    """

    groups: dict[str, GroupObject]
    nodes: dict[str, NodeObject]
    objects: Mapping[str, tuple[Manifest, ...]]
    index: NodeIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = NodeIndex(self.objects["nodes"])

    def nodes_of(self, group: str) -> list[NodeObject]:
        """Return the nodes of a group.

        Args:
            group: Its name in decisions.
        """
        return [node for node in self.nodes.values() if node.group == group]

    @property
    def node_names(self) -> dict[str, NodeObject]:
        """The objects of kind VPSieNode by the name of their Node; by their own as long as that is not known."""
        return {node.status.node_name or node.name: node for node in self.nodes.values()}

    def desired_groups(self) -> tuple[NodeGroup, ...]:
        """Return the groups to decide about: those that are valid, and not being deleted."""
        return tuple(
            to_group(each, each.spec) for each in self.groups.values() if each.spec is not None and not each.ending
        )

    def draining(self, group: str) -> frozenset[str]:
        """Return the names of the Nodes of a group that are on their way out.

        Args:
            group: Its name in decisions.
        """
        return frozenset(node.status.node_name or node.name for node in self.nodes_of(group) if node.leaving)

    def snapshot(self, catalog: Catalog) -> Snapshot:
        """Return the snapshot of the algorithm.

        Args:
            catalog: The instance types, for the nodes in flight.
        """
        known = self.node_names
        nodes = tuple(
            _marked(each, known[name]) if (name := str(each["metadata"]["name"])) in known else each
            for each in self.objects["nodes"]
        )
        in_flight = [self._in_flight(node, catalog) for node in self.nodes.values() if self._is_in_flight(node)]
        parts: dict[str, Any] = {**self.objects, "nodes": nodes}
        return Snapshot.of(**parts, in_flight=in_flight)

    def _is_in_flight(self, node: NodeObject) -> bool:
        if node.spec is None or node.leaving:
            return False
        return node.booting or self.index.state(node.status.node_name) is NodeState.ABSENT

    def _in_flight(self, node: NodeObject, catalog: Catalog) -> Node:
        assert node.spec is not None  # noqa: S101 (checked by the caller)
        spec, name = node.spec, node.status.node_name or node.name
        found, known = self.groups.get(node.group), catalog.types.get(spec.instance_type)
        offerings = catalog.offerings(spec.instance_type, spec.datacenter_id)
        if found is None or found.spec is None or known is None or not offerings:
            # It counts for its group, but what it could take is not known.
            label = member_value(node.key.namespace, spec.node_group_name)
            return Node(name=name, labels={MEMBER_LABEL: label}, in_flight=True)
        (template,) = templates(to_group(found, found.spec), Selection(((known, offerings[0]),)), catalog)
        return template.make(name)


async def read_cluster(cluster: Cluster) -> ClusterView:
    """Read everything that a reconcile needs.

    Args:
        cluster: The cluster, usually a cached one.

    Raises:
        ApiError: If a kind cannot be read.
    """
    lists = await asyncio.gather(*(cluster.list(*kind, ListOptions()) for kind in KINDS))
    return _view([found.items for found in lists])


def view_of(manifests: Iterable[Manifest]) -> ClusterView:
    """Return what a reconcile would read from a cluster with the given objects; those of other kinds are ignored.

    Args:
        manifests: The objects.
    """
    by_kind: dict[tuple[str, str], list[Manifest]] = {kind: [] for kind in KINDS}
    for each in manifests:
        kind = (str(each.get("apiVersion")), str(each.get("kind")))
        if kind in by_kind and "name" in (each.get("metadata") or {}):
            by_kind[kind].append(each)
    return _view(list(by_kind.values()))


def _view(lists: Sequence[Sequence[Manifest]]) -> ClusterView:
    groups, nodes, *others = lists
    read_groups = [read_group(each) for each in groups]
    read_nodes = [read_node(each) for each in nodes]
    return ClusterView(
        groups={each.name: each for each in sorted(read_groups, key=lambda each: each.name)},
        nodes={f"{each.key.namespace}/{each.name}": each for each in sorted(read_nodes, key=_order)},
        objects={name: tuple(found) for name, found in zip(_CORE, others, strict=True)},
    )


def _order(node: NodeObject) -> tuple[str, str]:
    return node.key.namespace, node.name


def _marked(manifest: Manifest, node: NodeObject) -> Manifest:
    """Return a Node with the label of its group, and unschedulable if it is leaving."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    if node.spec is not None:
        label = {MEMBER_LABEL: member_value(node.key.namespace, node.spec.node_group_name)}
        metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), **label}}
    if node.leaving:
        spec = {**spec, "unschedulable": True}
    return {**manifest, "metadata": metadata, "spec": spec}
