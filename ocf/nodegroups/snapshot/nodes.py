"""Nodes of a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ocf.nodegroups.snapshot.fields import ObjectFields, read_object
from ocf.nodegroups.snapshot.node_selectors import Taint
from ocf.nodegroups.snapshot.pods import read_time
from ocf.nodegroups.snapshot.resources import NO_RESOURCES, Resources, to_resources
from ocf.nodegroups.snapshot.shapes import PodShape
from ocf.objects import Manifest

__all__ = ["STARTUP_TAINTS", "Node"]

STARTUP_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
    }
)
"""Taints that the control plane removes a moment after the kubelet reports that the node is ready.

Until then the scheduler places no pods there, so such a node counts as one that is still starting.
Source: https://kubernetes.io/docs/reference/labels-annotations-taints/.
"""

_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
_ZONE_LABEL: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, or a node that was ordered and has not joined the cluster yet.

    Args:
        name: Its name; for a node in flight the name that it will have.
        labels: Its labels.
        annotations: Its annotations.
        taints: Its taints.
        unschedulable: Whether it is cordoned.
        allocatable: The resources that pods can request.
        ready: Whether its condition `Ready` is true, and it has none of `STARTUP_TAINTS`.
        created: `metadata.creationTimestamp`.
        in_flight: Whether it was ordered and is not ready for pods yet. Packing fills it as if it were there.
        offering: Instance type and zone that it was ordered as; None if only its labels say so.
        attach_limits: The most volumes that each CSI driver can attach; without one a driver has no limit.
        companions: The shapes of the DaemonSet pods and static pods that run on the node that it is modelled on.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Resources = NO_RESOURCES
    ready: bool = True
    created: datetime | None = None
    in_flight: bool = False
    offering: tuple[str, str] | None = None
    attach_limits: tuple[tuple[str, int], ...] = ()
    companions: tuple[PodShape, ...] = ()

    @property
    def kind(self) -> tuple[str, str]:
        """Its instance type and zone; empty where they are not known."""
        labels = self.labels
        return self.offering or (labels.get(_TYPE_LABEL, ""), labels.get(_ZONE_LABEL, ""))

    @classmethod
    def of(cls, node: Manifest) -> "Node":
        """Parse a Node.

        Args:
            node: The manifest, as the API server returns it.

        Raises:
            ManifestError: If fields are invalid; it contains all of them with their paths.

        Example:
            >>> node = Node.of({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}})
            >>> node.allocatable.cpu, node.allocatable.pods, node.ready
            (4000, 110, False)
        """
        return read_object("Node", node, cls._read, namespaced=False)

    @classmethod
    def _read(cls, node: ObjectFields) -> "Node":
        spec, status = node.spec, node.status
        taints = tuple(map(Taint.read, spec.items("taints")))
        return cls(
            name=node.name,
            labels=node.metadata.labels("labels"),
            annotations=node.metadata.labels("annotations"),
            taints=taints,
            unschedulable=spec.flag("unschedulable"),
            allocatable=to_resources(status.amounts("allocatable")),
            ready=any(
                each.text("type") == "Ready" and each.text("status") == "True" for each in status.items("conditions")
            )
            # Otherwise pods would count as unplaced for the seconds until the taints go, and order another node.
            and not any(taint.key in STARTUP_TAINTS for taint in taints),
            created=read_time(node.metadata, "creationTimestamp"),
        )
