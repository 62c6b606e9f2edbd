"""Snapshot of a cluster: everything that a decision about node groups reads.

A snapshot is immutable. Changed copies share what did not change, so that a simulation may take thousands of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ocf.nodegroups.snapshot.fields import Fields
from ocf.nodegroups.snapshot.nodes import Node
from ocf.nodegroups.snapshot.overlay import Overlay
from ocf.nodegroups.snapshot.pods import PodTable, SnapshotPod
from ocf.nodegroups.snapshot.rejected import RejectedObject, read_all
from ocf.nodegroups.snapshot.resources import Resources
from ocf.nodegroups.snapshot.shapes import Shapes
from ocf.nodegroups.snapshot.storage import AttachLimits, Claim, StorageClass, Volume
from ocf.nodegroups.snapshot.workloads import DaemonSet, PodDisruptionBudget
from ocf.objects import Manifest

__all__ = ["ClusterSnapshot", "join_nodes", "read_namespace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """The nodes and pods of a cluster, and what limits where pods may be.

    Use `of` for manifests, and `from_values` for parsed objects.

    Args:
        nodes: The nodes by name, including those in flight.
        pods: The pods by key, `shop/web-0`, without finished ones.
        on_node: The pods of each node by its name.
        budgets: The disruption budgets.
        claims: The persistent volume claims by key.
        volumes: The persistent volumes by name.
        storage_classes: The storage classes by name.
        daemon_sets: The DaemonSets.
        namespaces: The labels of each namespace by its name.
        usage: The measured use of each node by its name, for utilization by use; `pods` is ignored.
        rejected: The objects that could not be parsed.

    Example:
        >>> node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}}
        >>> snapshot = ClusterSnapshot.of(nodes=[node], pods=[{"metadata": {"name": "web-0"}}])
        >>> placed = snapshot.place(snapshot.pods["default/web-0"], "n1")
        >>> [len(each.on_node.get("n1", ())) for each in (snapshot, placed)]
        [0, 1]
    """

    nodes: Overlay[Node] = field(default_factory=Overlay[Node])
    pods: Overlay[SnapshotPod] = field(default_factory=Overlay[SnapshotPod])
    on_node: Overlay[tuple[SnapshotPod, ...]] = field(default_factory=Overlay[tuple[SnapshotPod, ...]])
    budgets: tuple[PodDisruptionBudget, ...] = ()
    claims: Mapping[str, Claim] = field(default_factory=dict)
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    daemon_sets: tuple[DaemonSet, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    usage: Mapping[str, Resources] = field(default_factory=dict)
    rejected: tuple[RejectedObject, ...] = ()

    @classmethod
    def from_values(  # noqa: PLR0913 (one argument per kind of object)
        cls,
        *,
        nodes: Iterable[Node] = (),
        pods: Iterable[SnapshotPod] | PodTable = (),
        budgets: Iterable[PodDisruptionBudget] = (),
        claims: Iterable[Claim] = (),
        volumes: Iterable[Volume] = (),
        storage_classes: Iterable[StorageClass] = (),
        attach_limits: Iterable[AttachLimits] = (),
        daemon_sets: Iterable[DaemonSet] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        usage: Mapping[str, Resources] | None = None,
        rejected: Iterable[RejectedObject] = (),
    ) -> "ClusterSnapshot":
        """Return a snapshot of parsed objects; finished pods are left out, and the order of the objects is ignored.

        Args:
            attach_limits: The limits of attached volumes of nodes; those of nodes in flight follow from their type.
        """
        limits = {each.name: each.counts for each in attach_limits if each.counts}
        if limits:
            nodes = (
                replace(each, attach_limits=limits[each.name]) if each.name in limits and not each.in_flight else each
                for each in nodes
            )
        table = pods if isinstance(pods, PodTable) else PodTable.of(pods)
        return cls(
            nodes=Overlay({node.name: node for node in sorted(nodes, key=lambda node: node.name)}),
            pods=Overlay(table.by_key),
            on_node=Overlay(table.on_node),
            budgets=tuple(sorted(budgets, key=lambda budget: budget.key)),
            claims={f"{each.namespace}/{each.name}": each for each in claims},
            volumes={each.name: each for each in sorted(volumes, key=lambda volume: volume.name)},
            storage_classes={each.name: each for each in storage_classes},
            daemon_sets=tuple(sorted(daemon_sets, key=lambda each: (each.namespace, each.name))),
            namespaces=namespaces or {},
            usage=usage or {},
            rejected=tuple(sorted(rejected, key=lambda each: (each.subject, each.node_name))),
        )

    @classmethod
    def of(  # noqa: PLR0913 (one argument per kind of object)
        cls,
        *,
        nodes: Iterable[Manifest] = (),
        pods: Iterable[Manifest] = (),
        budgets: Iterable[Manifest] = (),
        claims: Iterable[Manifest] = (),
        volumes: Iterable[Manifest] = (),
        storage_classes: Iterable[Manifest] = (),
        csi_nodes: Iterable[Manifest] = (),
        daemon_sets: Iterable[Manifest] = (),
        namespaces: Iterable[Manifest] = (),
        in_flight: Iterable[Node] = (),
        usage: Mapping[str, Resources] | None = None,
    ) -> "ClusterSnapshot":
        """Parse a snapshot from manifests.

        An object that cannot be parsed does not keep the others from being used: it is in `rejected`, with the path of
        each invalid field. A node with such a pod counts as unknown: see `unknown_nodes`.

        Args:
            nodes: Nodes.
            pods: Pods.
            budgets: PodDisruptionBudgets.
            claims: PersistentVolumeClaims.
            volumes: PersistentVolumes.
            storage_classes: StorageClasses.
            csi_nodes: CSINodes.
            daemon_sets: DaemonSets.
            namespaces: Namespaces, for selectors of namespaces.
            in_flight: Nodes that were ordered. One that has joined under its name replaces the Node of that name only
                while that is not ready.
            usage: The measured use of each node by its name.
        """
        rejected: list[RejectedObject] = []
        read = partial(read_all, rejected)
        return cls.from_values(
            nodes=join_nodes(read(Node.of, nodes), in_flight),
            pods=read(partial(SnapshotPod.of, shapes=Shapes()), pods),
            budgets=read(PodDisruptionBudget.of, budgets),
            claims=read(Claim.of, claims),
            volumes=read(Volume.of, volumes),
            storage_classes=read(StorageClass.of, storage_classes),
            attach_limits=read(AttachLimits.of, csi_nodes),
            daemon_sets=read(DaemonSet.of, daemon_sets),
            namespaces=dict(map(read_namespace, namespaces)),
            usage=usage,
            rejected=rejected,
        )

    @property
    def unknown_nodes(self) -> frozenset[str]:
        """The nodes with a pod that could not be parsed, and those that could not be parsed themselves.

        What is on them is not known: they take no pods, and are never removed.
        """
        return frozenset(each.node_name for each in self.rejected if each.node_name)

    def pods_on(self, node_name: str) -> tuple[SnapshotPod, ...]:
        """Return the pods of a node, sorted by key."""
        return self.on_node.get(node_name, ())

    def place(self, pod: SnapshotPod, node_name: str) -> "ClusterSnapshot":
        """Return a copy in which a pod is on a node; it leaves the node that it was on.

        Args:
            pod: The pod; it does not have to be in the snapshot.
            node_name: The node.
        """
        left = self.without_pod(pod.key)
        placed = replace(pod, node_name=node_name)
        together = sorted((*left.pods_on(node_name), placed), key=lambda each: each.key)
        return replace(left, pods=left.pods.set(pod.key, placed), on_node=left.on_node.set(node_name, tuple(together)))

    def without_pod(self, key: str) -> "ClusterSnapshot":
        """Return a copy without a pod; the same snapshot if it is not there."""
        pod = self.pods.get(key)
        if pod is None:
            return self
        on_node = self.on_node
        if pod.node_name:
            rest = tuple(each for each in self.pods_on(pod.node_name) if each.key != key)
            on_node = on_node.set(pod.node_name, rest) if rest else on_node.remove(pod.node_name)
        return replace(self, pods=self.pods.remove(key), on_node=on_node)

    def with_node(self, node: Node) -> "ClusterSnapshot":
        """Return a copy with a node added or replaced."""
        return replace(self, nodes=self.nodes.set(node.name, node))

    def without_node(self, name: str) -> "ClusterSnapshot":
        """Return a copy without a node; its pods stay, as they do in a cluster until they are deleted."""
        return replace(self, nodes=self.nodes.remove(name))


def join_nodes(nodes: Iterable[Node], in_flight: Iterable[Node]) -> Iterable[Node]:
    """Return the nodes of a cluster with those that were ordered.

    Args:
        in_flight: The nodes that were ordered. One that has joined under its name replaces the node of that name only
            while that is not ready.
    """
    joined = {node.name: node for node in nodes}
    for ordered in in_flight:
        known = joined.get(ordered.name)
        # A node that has joined but is not ready takes no pods; for planning it is still on its way.
        if known is None or not known.ready:
            joined[ordered.name] = replace(ordered, in_flight=True)
    return joined.values()


def read_namespace(manifest: Manifest) -> tuple[str, Mapping[str, str]]:
    """Return name and labels of a Namespace; labels that cannot be read select nothing."""
    metadata = Fields(manifest, "", []).child("metadata")
    return metadata.text("name"), metadata.labels("labels")
