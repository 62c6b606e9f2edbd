"""Editor of the spec of a ReplicaSet."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.lazy_types.kubernetes import V1ReplicaSetSpec

__all__ = ["ReplicaSetSpecEditor"]


class ReplicaSetSpecEditor(Editor[V1ReplicaSetSpec]):
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

    def set_replicas(self, replicas: int | None) -> None:
        """Set the number of pods.

        Args:
            replicas: Number of pods. None unsets the field, for an autoscaler to set; without an autoscaler the API
                server uses 1.
        """
        self._raw.replicas = replicas

    def set_min_ready_seconds(self, seconds: int | None) -> None:
        """Set how long a pod must be ready before it counts as available.

        Args:
            seconds: Time in seconds. None unsets the field; the API server then uses 0.
        """
        self._raw.min_ready_seconds = seconds
