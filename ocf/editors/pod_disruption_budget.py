"""Editor of the spec of a PodDisruptionBudget."""

from __future__ import annotations

from ocf.editors.editor import Editor
from ocf.editors.model_values import own_or_none
from ocf.lazy_types.kubernetes import V1LabelSelector, V1PodDisruptionBudgetSpec

__all__ = ["PodDisruptionBudgetSpecEditor"]


class PodDisruptionBudgetSpecEditor(Editor[V1PodDisruptionBudgetSpec]):
    """Edits the spec of a PodDisruptionBudget.

    The API server accepts only one of the two limits: when you set one, unset the other if the baseline has it.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import V1PodDisruptionBudgetSpec
        >>> spec = PodDisruptionBudgetSpecEditor(V1PodDisruptionBudgetSpec(min_available=1))
        >>> spec.set_min_available(None)
        >>> spec.set_max_unavailable("25%")
        >>> spec.raw.min_available, spec.raw.max_unavailable
        (None, '25%')
    """

    __slots__ = ()

    def set_min_available(self, pods: int | str | None) -> None:
        """Set how many pods must stay available.

        Args:
            pods: Number of pods, or a percentage, `50%`. None unsets the field.
        """
        self._raw.min_available = pods

    def set_max_unavailable(self, pods: int | str | None) -> None:
        """Set how many pods may be unavailable.

        Args:
            pods: Number of pods, or a percentage, `25%`. None unsets the field.
        """
        self._raw.max_unavailable = pods

    def set_selector(self, selector: V1LabelSelector | None) -> None:
        """Set the selector of the pods that are protected.

        Args:
            selector: Replaces the whole selector; a copy is stored. An empty selector selects all pods of the
                namespace. None unsets the field, which selects no pods.

        Raises:
            ConfigError: If the argument is not a label selector.
        """
        self._raw.selector = own_or_none(self._raw, "selector", selector)

    def set_unhealthy_pod_eviction_policy(self, policy: str | None) -> None:
        """Set when pods that are not ready may be evicted.

        Args:
            policy: `IfHealthyBudget` or `AlwaysAllow`. None unsets the field, which means `IfHealthyBudget`.
        """
        self._raw.unhealthy_pod_eviction_policy = policy
