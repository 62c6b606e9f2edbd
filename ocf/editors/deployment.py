"""Editor of the spec of a Deployment."""

from __future__ import annotations

from ocf.editors.pod_sets import ReplicasEditor, RevisionsEditor
from ocf.lazy_types.kubernetes import V1DeploymentSpec

__all__ = ["DeploymentSpecEditor"]


class DeploymentSpecEditor(ReplicasEditor[V1DeploymentSpec], RevisionsEditor[V1DeploymentSpec]):
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

    def set_paused(self, paused: bool | None) -> None:  # noqa: FBT001 (the value is the subject)
        """Pause or resume rollouts.

        Args:
            paused: Whether rollouts are paused. None unsets the field; the API server then uses false.
        """
        self._raw.paused = paused

    def set_progress_deadline_seconds(self, seconds: int | None) -> None:
        """Set how long a rollout may make no progress before it counts as failed.

        Args:
            seconds: Time in seconds. None unsets the field; the API server then uses 600.
        """
        self._raw.progress_deadline_seconds = seconds
