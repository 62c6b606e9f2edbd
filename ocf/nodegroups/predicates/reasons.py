"""Reasons why a pod does not fit a node, in the words of the scheduler.

Source: the filter plugins of Kubernetes 1.36, in the order of its default profile. The first plugin that rejects a
node gives the reasons.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

__all__ = [
    "AFFINITY",
    "ANTI_AFFINITY",
    "BIND_CONFLICT",
    "EXISTING_ANTI_AFFINITY",
    "IN_USE",
    "NODE_AFFINITY",
    "NODE_CONFLICT",
    "PORTS",
    "SPREAD",
    "SPREAD_LABEL",
    "TAINT",
    "TOO_MANY_PODS",
    "UNSCHEDULABLE",
    "VOLUME_COUNT",
    "ZONE",
    "Misfit",
    "Shortage",
]

UNSCHEDULABLE: Final = "node(s) were unschedulable"
TAINT: Final = "node(s) had untolerated taint(s)"
NODE_AFFINITY: Final = "node(s) didn't match Pod's node affinity/selector"
PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS: Final = "Too many pods"
IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
VOLUME_COUNT: Final = "node(s) exceed max volume count"
NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
ZONE: Final = "node(s) had no available volume zone"
SPREAD: Final = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL: Final = f"{SPREAD} (missing required label)"
AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"


class Shortage(NamedTuple):
    """A resource that a node does not have enough of.

    Args:
        wanted: What the pod requests: thousandths of CPU, whole units of other resources.
        size: What the node has in total.

    Example:
        >>> print(Shortage("cpu", 8000, 1500, 4000))
        cpu: 8000m requested, 1500m free of 4000m
    """

    resource: str
    wanted: int
    free: int
    size: int

    @property
    def reason(self) -> str:
        """The scheduler's text."""
        return TOO_MANY_PODS if self.resource == "pods" else f"Insufficient {self.resource}"

    def __str__(self) -> str:
        unit = "m" if self.resource == "cpu" else ""
        return f"{self.resource}: {self.wanted}{unit} requested, {self.free}{unit} free of {self.size}{unit}"


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a pod does not fit a node.

    Args:
        plugin: The filter plugin that rejects the node.
        reasons: The reasons; several if several resources are insufficient.
        details: The numbers or names behind the reasons, for people; may be empty.

    Example:
        >>> print(Misfit("NodeResourcesFit", ("Insufficient cpu", "Insufficient memory")))
        Insufficient cpu, Insufficient memory
    """

    plugin: str
    reasons: tuple[str, ...]
    details: tuple[Shortage | str, ...] = ()

    @property
    def depends_on_pods(self) -> bool:
        """Whether an empty node is rejected only because of pods on other nodes."""
        return self.plugin in ("PodTopologySpread", "InterPodAffinity", "VolumeRestrictions")

    def __str__(self) -> str:
        return ", ".join(self.reasons)
