"""What is learned about the nodes of an instance type from those that have joined.

The newest node of a type is the model of the next one, as the node infos of cluster-autoscaler are: what it can take,
its labels and taints, and the pods that run on every node. What it lacks of what the catalog promises is a `TypeGap`,
which outlasts the node.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from ocf.nodegroups.model import Catalog, GroupStatus, NodeGroup, TypeGap
from ocf.nodegroups.model.gaps import amounts
from ocf.nodegroups.snapshot import ClusterSnapshot, DaemonSet, Node, PodShape, Taint

__all__ = ["Learned", "gap_between", "is_startup_taint", "learn"]

# Nodes of one type report some KiB more or less, which no pod notices.
_TOLERANCE: Final = 1_000
_HOSTNAME: Final = "kubernetes.io/hostname"
_DEPRECATED: Final = "beta.kubernetes.io/"
# Set and removed by the control plane, cloud controllers and autoscalers as the state of one node changes.
_PASSING_TAINTS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
# The prefixes by which authors of CNIs and drivers mark such taints for cluster-autoscaler.
_STARTUP_PREFIXES: Final = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What is known of the nodes of a group, beyond the catalog.

    Args:
        catalog: The types of the provider.
        models: A node of each instance type and zone, without what is its own.
        gaps: What is lacking of what each instance type promises.
    """

    catalog: Catalog
    models: Mapping[tuple[str, str], Node] = field(default_factory=dict)
    gaps: Mapping[tuple[str, str], TypeGap] = field(default_factory=dict)

    def expected(self, promised: Node, group: NodeGroup) -> Node:
        """Return what a promised node of a group will be.

        Args:
            promised: The node by the catalog and by the settings of its group.
        """
        model, gap = self.models.get(promised.kind), self.gaps.get(promised.kind)
        if model is None:
            return promised if gap is None else gap.apply(promised)
        taints = dict.fromkeys((*promised.taints, *model.taints))
        return replace(
            promised,
            labels={**model.labels, **group.labels, **group.member_labels},
            taints=tuple(taints),
            allocatable=model.allocatable,
            attach_limits=model.attach_limits,
            companions=model.companions,
        )


def learn(
    group: NodeGroup, names: Iterable[str], snapshot: ClusterSnapshot, status: GroupStatus, now: datetime
) -> dict[tuple[str, str], Node]:
    """Return a model of each instance type and zone of which a group has a ready node: the newest one.

    Nodes that are cordoned or drained, or with an object that cannot be read, are no models.

    Args:
        names: The names of the nodes of the group.
        now: The time of the reconcile.
    """
    found: dict[tuple[str, str], list[Node]] = {}
    passed_over = status.draining | snapshot.unknown_nodes
    for name in names:
        node = snapshot.nodes[name]
        if node.ready and not (node.in_flight or node.unschedulable or name in passed_over):
            found.setdefault(node.kind, []).append(node)
    return {kind: _model(group, nodes, snapshot, now) for kind, nodes in found.items()}


def gap_between(promised: Node, model: Node, group: NodeGroup, daemon_sets: Sequence[DaemonSet]) -> TypeGap:
    """Return what a model lacks of what its type promises.

    Args:
        promised: The node by the catalog and by the settings of its group.
        daemon_sets: The DaemonSets of the cluster.
    """
    sizes, have = amounts(promised.allocatable), amounts(model.allocatable)
    short = {name: have.get(name, 0) for name, size in sizes.items() if have.get(name, 0) < size - size // _TOLERANCE}
    lacking = {
        key: value
        for key, value in promised.labels.items()
        # Labels of the group are set by the controller; those of the prefix are deprecated, and on few nodes.
        if not (key in group.labels or key in group.member_labels or key.startswith(_DEPRECATED))
        and model.labels.get(key) != value
    }
    taints = tuple(each for each in model.taints if each not in promised.taints)
    instance_type, zone = promised.kind
    return TypeGap(
        instance_type=instance_type,
        zone=zone,
        resources=short,
        labels=lacking,
        taints=taints,
        overhead=_overhead(model.companions, daemon_sets),
    )


def is_startup_taint(taint: Taint, group: NodeGroup) -> bool:
    """Return whether a taint is removed from a node once it is set up."""
    return taint.key in group.startup_taints or taint.key.startswith(_STARTUP_PREFIXES)


def _model(group: NodeGroup, nodes: Sequence[Node], snapshot: ClusterSnapshot, now: datetime) -> Node:
    newest = max(nodes, key=_age(now))
    young = newest.created is not None and now - newest.created < group.startup_limit
    taints = tuple(each for each in newest.taints if not each.key.startswith(_PASSING_TAINTS))
    allocatable = newest.allocatable
    if not young:
        # A user may have set a taint on one node, and a device of one node may have failed: neither says anything
        # about the next node, unless all are alike.
        shared = [frozenset(node.taints) for node in nodes]
        taints = tuple(each for each in taints if len(nodes) > 1 and all(each in one for one in shared))
        scalars: dict[str, int] = {}
        for node in nodes:
            for name, amount in node.allocatable.scalars:
                scalars[name] = max(scalars.get(name, 0), amount)
        allocatable = allocatable._replace(scalars=tuple(sorted(scalars.items())))
    # A driver registers itself after its node has joined, so that of the newest node may be missing yet.
    limits: dict[str, int] = {}
    for node in sorted(nodes, key=_age(now)):
        limits.update(node.attach_limits)
    own_names = {newest.name, newest.labels.get(_HOSTNAME, newest.name)}
    pods = snapshot.pods_on(newest.name)
    companions = (pod.shape for pod in pods if (pod.of_daemon_set or pod.mirror) and not pod.deleting)
    return replace(
        newest,
        labels={key: value for key, value in newest.labels.items() if value not in own_names},
        taints=taints,
        allocatable=allocatable,
        attach_limits=tuple(sorted(limits.items())),
        # The controller of a DaemonSet names the node of each of its pods in its affinity.
        companions=tuple(dict.fromkeys(replace(shape, node_affinity=None) for shape in companions)),
    )


def _age(now: datetime) -> Callable[[Node], tuple[bool, datetime, str]]:
    """Return the key that sorts nodes by their creation, the newest one last."""
    return lambda node: (node.created is not None, node.created or now, node.name)


def _overhead(companions: Iterable[PodShape], daemon_sets: Sequence[DaemonSet]) -> dict[str, int]:
    """Return what pods of each node use beyond the templates of the DaemonSets."""
    used: dict[str, int] = {}
    for shape in companions:
        labels = set(shape.labels)
        templates = (each.shape for each in daemon_sets if each.namespace == shape.namespace and each.shape.labels)
        template = next((each for each in templates if set(each.labels) <= labels), None)
        known = {} if template is None else amounts(template.requests)
        for name, amount in amounts(shape.requests).items():
            more = amount - known.get(name, 0)
            if more > 0:
                used[name] = used.get(name, 0) + more
    return used
