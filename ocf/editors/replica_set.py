"""Editor of the spec of a ReplicaSet."""

from __future__ import annotations

from ocf.editors.pod_sets import ReplicasEditor
from ocf.lazy_types.kubernetes import V1ReplicaSetSpec

__all__ = ["ReplicaSetSpecEditor"]


class ReplicaSetSpecEditor(ReplicasEditor[V1ReplicaSetSpec]):
    """Edits the spec of a ReplicaSet; its pod template has separate editors, and its selector cannot be changed.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/replica-set-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1LabelSelector, V1ReplicaSetSpec
        >>> spec = V1ReplicaSetSpec(selector=V1LabelSelector())
        >>> ReplicaSetSpecEditor(spec).set_replicas(3)
        >>> spec.replicas
        3
    """

    __slots__ = ()
