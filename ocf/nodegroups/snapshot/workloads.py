"""Disruption budgets and DaemonSets of a snapshot."""

from dataclasses import dataclass, replace

from ocf.nodegroups.snapshot.fields import ObjectFields, read_object
from ocf.nodegroups.snapshot.node_selectors import Toleration
from ocf.nodegroups.snapshot.pods import SnapshotPod
from ocf.nodegroups.snapshot.shapes import PodShape
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = ["DaemonSet", "PodDisruptionBudget"]

# The DaemonSet controller adds these to every pod.
_DAEMON_TOLERATIONS = (
    *(Toleration(f"node.kubernetes.io/{key}", "Exists", "", "NoExecute") for key in ("not-ready", "unreachable")),
    *(
        Toleration(f"node.kubernetes.io/{key}", "Exists", "", "NoSchedule")
        for key in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)
_HOST_NETWORK_TOLERATION = Toleration("node.kubernetes.io/network-unavailable", "Exists", "", "NoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget:
    """A PodDisruptionBudget of policy/v1.

    Args:
        selector: The selector of its pods; an empty one selects all pods of the namespace, a missing one none.
        disruptions_allowed: `status.disruptionsAllowed`; 0 as long as the status is that of an earlier spec.
        counts_unready: Whether the eviction of a pod that is not ready needs an allowed disruption, too. It needs none
            with the policy `AlwaysAllow` for unhealthy pods, or if enough pods are healthy.
    """

    namespace: str = "default"
    name: str
    selector: LabelSelector
    disruptions_allowed: int = 0
    counts_unready: bool = True

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, budget: Manifest) -> "PodDisruptionBudget":
        """Parse a PodDisruptionBudget.

        Raises:
            ManifestError: If fields are invalid.
        """
        return read_object("PodDisruptionBudget", budget, cls._read)

    @classmethod
    def _read(cls, budget: ObjectFields) -> "PodDisruptionBudget":
        status = budget.status
        # Both as the API server does, pkg/registry/core/pod/storage/eviction.go.
        stale = status.integer("observedGeneration") < budget.metadata.integer("generation")
        healthy = status.integer("currentHealthy") >= status.integer("desiredHealthy") > 0
        always = budget.spec.text("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        allowed = status.integer("disruptionsAllowed")
        return cls(
            namespace=budget.namespace,
            name=budget.name,
            selector=budget.spec.selector("selector"),
            disruptions_allowed=0 if stale else allowed,
            counts_unready=not (always or healthy),
        )

    def selects(self, pod: SnapshotPod) -> bool:
        """Return whether the budget covers a pod."""
        return pod.namespace == self.namespace and self.selector.matches(pod.shape.label_map)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSet:
    """A DaemonSet: what one of its pods takes on each node that it runs on.

    Args:
        shape: The shape of its pods.
    """

    namespace: str = "default"
    name: str
    shape: PodShape

    @classmethod
    def of(cls, daemon_set: Manifest) -> "DaemonSet":
        """Parse a DaemonSet of apps/v1.

        Raises:
            ManifestError: If fields are invalid.
        """
        return read_object("DaemonSet", daemon_set, cls._read)

    @classmethod
    def _read(cls, daemon_set: ObjectFields) -> "DaemonSet":
        namespace, template = daemon_set.namespace, daemon_set.spec.child("template")
        spec = template.child("spec")
        shape = PodShape.read(spec, namespace=namespace, labels=template.child("metadata").labels("labels"))
        added = (*_DAEMON_TOLERATIONS, *([_HOST_NETWORK_TOLERATION] if spec.flag("hostNetwork") else ()))
        shape = replace(shape, tolerations=(*shape.tolerations, *added))
        return cls(namespace=namespace, name=daemon_set.name, shape=shape)
