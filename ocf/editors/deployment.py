"""Editor of the spec of a Deployment."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.lazy_types.kubernetes import V1DeploymentSpec

__all__ = ["DeploymentSpecEditor"]


class DeploymentSpecEditor(Editor[V1DeploymentSpec]):
    """Edits the spec of a Deployment; use `raw` for strategy and selector. The pod template has separate editors.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/deployment-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1DeploymentSpec, V1LabelSelector, V1PodTemplateSpec
        >>> spec = V1DeploymentSpec(selector=V1LabelSelector(), template=V1PodTemplateSpec())
        >>> DeploymentSpecEditor(spec).set_replicas(3)
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

    def set_paused(self, paused: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Pause or resume rollouts.

        Args:
            paused: Whether rollouts are paused. None unsets the field; the API server then uses false.
        """
        self._raw.paused = paused

    def set_min_ready_seconds(self, seconds: int | None) -> None:
        """Set how long a pod must be ready before it counts as available.

        Args:
            seconds: Time in seconds. None unsets the field; the API server then uses 0.
        """
        self._raw.min_ready_seconds = seconds

    def set_revision_history_limit(self, limit: int | None) -> None:
        """Set how many old ReplicaSets are kept for a rollback.

        Args:
            limit: Number of ReplicaSets. None unsets the field; the API server then uses 10.
        """
        self._raw.revision_history_limit = limit

    def set_progress_deadline_seconds(self, seconds: int | None) -> None:
        """Set how long a rollout may make no progress before it counts as failed.

        Args:
            seconds: Time in seconds. None unsets the field; the API server then uses 600.
        """
        self._raw.progress_deadline_seconds = seconds
