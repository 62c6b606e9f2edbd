"""Reader of the objects that a reconcile decides about: each is parsed once per version.

In a large cluster hardly any object changes between two reconciles. What was parsed before is used again, so that a
reconcile costs what has changed, and the decision.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from ocf.cluster import Cluster
from ocf.cluster.cache.projection import Projection
from ocf.controllers.nodegroup.node_index import JoinedNode
from ocf.controllers.nodegroup.objects import API_VERSION, GroupObject, NodeObject, read_group, read_node
from ocf.nodegroups.snapshot import (
    AttachLimits,
    Claim,
    ClusterSnapshot,
    DaemonSet,
    Node,
    PodDisruptionBudget,
    PodTable,
    RejectedObject,
    Resources,
    Shapes,
    SnapshotPod,
    StorageClass,
    Volume,
)
from ocf.nodegroups.snapshot.rejected import read_or_reject, without_rejected
from ocf.nodegroups.snapshot.snapshot import join_nodes, read_namespace
from ocf.objects import Manifest

__all__ = ["KINDS", "CoreObjects", "ObjectReader", "Objects", "parse_objects"]

Parsed = TypeVar("Parsed")

_NODE_GROUPS: Final = (API_VERSION, "NodeGroup")
_MACHINES: Final = (API_VERSION, "VPSieNode")
_NODES: Final = ("v1", "Node")
_PODS: Final = ("v1", "Pod")
_BUDGETS: Final = ("policy/v1", "PodDisruptionBudget")
_CLAIMS: Final = ("v1", "PersistentVolumeClaim")
_VOLUMES: Final = ("v1", "PersistentVolume")
_CLASSES: Final = ("storage.k8s.io/v1", "StorageClass")
_CSI_NODES: Final = ("storage.k8s.io/v1", "CSINode")
_DAEMON_SETS: Final = ("apps/v1", "DaemonSet")
_NAMESPACES: Final = ("v1", "Namespace")

KINDS: Final = (
    _NODE_GROUPS,
    _MACHINES,
    _NODES,
    _PODS,
    _BUDGETS,
    _CLAIMS,
    _VOLUMES,
    _CLASSES,
    _CSI_NODES,
    _DAEMON_SETS,
    _NAMESPACES,
)
"""apiVersion and kind of all objects that a reconcile reads."""

# The table of shapes may hold as many again that no pod has any more, and a few in a small cluster.
_FEW_SHAPES: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreObjects:
    """Objects of the kinds of Kubernetes, parsed; or why they cannot be parsed.

    Args:
        pods: Pods, finished ones included.
        pod_table: The pods that could be parsed, without finished ones.
    """

    nodes: tuple[JoinedNode, ...] = ()
    pods: tuple[SnapshotPod | RejectedObject, ...] = ()
    pod_table: PodTable = field(default_factory=lambda: PodTable.of(()))
    budgets: tuple[PodDisruptionBudget | RejectedObject, ...] = ()
    claims: tuple[Claim | RejectedObject, ...] = ()
    volumes: tuple[Volume | RejectedObject, ...] = ()
    storage_classes: tuple[StorageClass | RejectedObject, ...] = ()
    attach_limits: tuple[AttachLimits | RejectedObject, ...] = ()
    daemon_sets: tuple[DaemonSet | RejectedObject, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def snapshot(
        self,
        nodes: Iterable[Node | RejectedObject],
        in_flight: Iterable[Node] = (),
        usage: Mapping[str, Resources] | None = None,
    ) -> ClusterSnapshot:
        """Return the snapshot of the algorithm.

        Args:
            in_flight: The nodes that were ordered.
        """
        rejected = [each for each in self.pods if isinstance(each, RejectedObject)]
        return ClusterSnapshot.from_values(
            nodes=join_nodes(without_rejected(nodes, rejected), in_flight),
            pods=self.pod_table,
            budgets=without_rejected(self.budgets, rejected),
            claims=without_rejected(self.claims, rejected),
            volumes=without_rejected(self.volumes, rejected),
            storage_classes=without_rejected(self.storage_classes, rejected),
            attach_limits=without_rejected(self.attach_limits, rejected),
            daemon_sets=without_rejected(self.daemon_sets, rejected),
            namespaces=self.namespaces,
            usage=usage,
            rejected=rejected,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """All objects that a reconcile reads.

    Args:
        nodes: Objects of kind VPSieNode; they belong to the reader and must not be changed.
    """

    groups: tuple[GroupObject, ...]
    nodes: tuple[NodeObject, ...]
    core: CoreObjects


class ObjectReader:
    """Reads all objects that a reconcile decides about."""

    def __init__(self) -> None:
        self._shapes = Shapes()
        self._kept_shapes = 0
        self._groups = Projection(*_NODE_GROUPS, read_group)
        self._machines = Projection(*_MACHINES, read_node)
        self._nodes = Projection(*_NODES, JoinedNode.of)
        self._pods = Projection(*_PODS, _reading(partial(SnapshotPod.of, shapes=self._shapes)))
        self._budgets = Projection(*_BUDGETS, _reading(PodDisruptionBudget.of))
        self._claims = Projection(*_CLAIMS, _reading(Claim.of))
        self._volumes = Projection(*_VOLUMES, _reading(Volume.of))
        self._classes = Projection(*_CLASSES, _reading(StorageClass.of))
        self._csi_nodes = Projection(*_CSI_NODES, _reading(AttachLimits.of))
        self._daemon_sets = Projection(*_DAEMON_SETS, _reading(DaemonSet.of))
        self._namespaces = Projection(*_NAMESPACES, read_namespace)
        self._tabulated: tuple[SnapshotPod | RejectedObject, ...] = ()
        self._table = PodTable.of(())

    async def read(self, cluster: Cluster) -> Objects:
        """Read all objects; those that have not changed since the last read are not parsed again."""
        groups, machines, nodes, pods, budgets = await asyncio.gather(
            self._groups.read(cluster),
            self._machines.read(cluster),
            self._nodes.read(cluster),
            self._pods.read(cluster),
            self._budgets.read(cluster),
        )
        claims, volumes, classes, csi_nodes, daemon_sets, namespaces = await asyncio.gather(
            self._claims.read(cluster),
            self._volumes.read(cluster),
            self._classes.read(cluster),
            self._csi_nodes.read(cluster),
            self._daemon_sets.read(cluster),
            self._namespaces.read(cluster),
        )
        core = CoreObjects(
            nodes=nodes,
            pods=pods,
            pod_table=self._tabulate(pods),
            budgets=budgets,
            claims=claims,
            volumes=volumes,
            storage_classes=classes,
            attach_limits=csi_nodes,
            daemon_sets=daemon_sets,
            namespaces=dict(namespaces),
        )
        return Objects(groups=groups, nodes=machines, core=core)

    def _tabulate(self, pods: tuple[SnapshotPod | RejectedObject, ...]) -> PodTable:
        """Return the table of pods; the one of the last read if they are the same."""
        if pods is not self._tabulated:
            self._tabulated, self._table = pods, PodTable.of(without_rejected(pods, []))
            # Dropping shapes costs a look at all pods, so it waits until half of the table may be unused.
            if len(self._shapes) > 2 * self._kept_shapes + _FEW_SHAPES:
                self._shapes.keep(pod.shape for pod in without_rejected(pods, []))
                self._kept_shapes = len(self._shapes)
        return self._table


def parse_objects(manifests: Iterable[Manifest]) -> Objects:
    """Return what would be read from a cluster with the given objects; those of other kinds are ignored."""
    by_kind: dict[tuple[str, str], list[Manifest]] = {kind: [] for kind in KINDS}
    for each in manifests:
        kind = (str(each.get("apiVersion")), str(each.get("kind")))
        if kind in by_kind and "name" in (each.get("metadata") or {}):
            by_kind[kind].append(each)

    def parsed(kind: tuple[str, str], parse: Callable[[Manifest], Parsed]) -> tuple[Parsed | RejectedObject, ...]:
        return tuple(map(_reading(parse), by_kind[kind]))

    pods = parsed(_PODS, partial(SnapshotPod.of, shapes=Shapes()))
    core = CoreObjects(
        nodes=tuple(map(JoinedNode.of, by_kind[_NODES])),
        pods=pods,
        pod_table=PodTable.of(without_rejected(pods, [])),
        budgets=parsed(_BUDGETS, PodDisruptionBudget.of),
        claims=parsed(_CLAIMS, Claim.of),
        volumes=parsed(_VOLUMES, Volume.of),
        storage_classes=parsed(_CLASSES, StorageClass.of),
        attach_limits=parsed(_CSI_NODES, AttachLimits.of),
        daemon_sets=parsed(_DAEMON_SETS, DaemonSet.of),
        namespaces=dict(map(read_namespace, by_kind[_NAMESPACES])),
    )
    groups, nodes = map(read_group, by_kind[_NODE_GROUPS]), map(read_node, by_kind[_MACHINES])
    return Objects(groups=tuple(groups), nodes=tuple(nodes), core=core)


def _reading(parse: Callable[[Manifest], Parsed]) -> Callable[[Manifest], Parsed | RejectedObject]:
    return partial(read_or_reject, parse)
