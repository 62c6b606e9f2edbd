"""Editor of the spec of a DaemonSet."""

from __future__ import annotations

from ocf.editors.model_values import own_or_none
from ocf.editors.pod_sets import PodSetEditor, RevisionsEditor
from ocf.lazy_types.kubernetes import V1DaemonSetSpec, V1DaemonSetUpdateStrategy

__all__ = ["DaemonSetSpecEditor"]


class DaemonSetSpecEditor(PodSetEditor[V1DaemonSetSpec], RevisionsEditor[V1DaemonSetSpec]):
    """Edits the spec of a DaemonSet; its pod template has separate editors.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/daemon-set-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1DaemonSetSpec, V1LabelSelector, V1PodTemplateSpec
        >>> spec = V1DaemonSetSpec(selector=V1LabelSelector(), template=V1PodTemplateSpec())
        >>> DaemonSetSpecEditor(spec).set_min_ready_seconds(5)
        >>> spec.min_ready_seconds
        5
    """

    __slots__ = ()

    def set_update_strategy(self, strategy: V1DaemonSetUpdateStrategy | None) -> None:
        """Set how pods are replaced when the template changes.

        Args:
            strategy: Replaces the whole strategy; a copy is stored. None unsets the field; the API server then uses
                `RollingUpdate`.

        Raises:
            ConfigError: If the argument is not an update strategy of a DaemonSet.
        """
        self._raw.update_strategy = own_or_none(self._raw, "update_strategy", strategy)
