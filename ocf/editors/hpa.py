"""Editor of the spec of a HorizontalPodAutoscaler."""

from __future__ import annotations

from typing import Final

from ocf.editors.editor import Editor
from ocf.editors.keyed_lists import KeyedList
from ocf.editors.metric_identity import ANY, AnyValue, check_metric, metric_filter, metric_identity
from ocf.editors.model_values import field_type, own, require, whole_or_none
from ocf.lazy_types.kubernetes import (
    V1LabelSelector,
    V2CrossVersionObjectReference,
    V2HorizontalPodAutoscalerBehavior,
    V2HorizontalPodAutoscalerSpec,
    V2HPAScalingRules,
    V2MetricSpec,
)
from ocf.schema.metric_sources import MetricType

__all__ = ["HPASpecEditor"]

_METRICS: Final[KeyedList[V2HorizontalPodAutoscalerSpec, V2MetricSpec]] = KeyedList(
    "metrics", key=metric_identity, is_atomic=True
)


class HPASpecEditor(Editor[V2HorizontalPodAutoscalerSpec]):
    """Edits the spec of a HorizontalPodAutoscaler.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        raw: The live spec.

    Example:
        >>> from kubernetes.client import (V2CrossVersionObjectReference, V2HorizontalPodAutoscalerSpec, V2MetricSpec,
        ...                                V2MetricTarget, V2ResourceMetricSource)
        >>> def cpu(percent: int) -> V2MetricSpec:
        ...     target = V2MetricTarget(type="Utilization", average_utilization=percent)
        ...     return V2MetricSpec(type="Resource", resource=V2ResourceMetricSource(name="cpu", target=target))
        >>> target = V2CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="backend")
        >>> spec = HPASpecEditor(V2HorizontalPodAutoscalerSpec(scale_target_ref=target, max_replicas=5))
        >>> spec.ensure_metric(cpu(80))
        >>> spec.ensure_metric(cpu(70))
        >>> [metric.resource.target.average_utilization for metric in spec.raw.metrics]
        [70]
        >>> spec.remove_metric("Resource", "cpu")
        >>> spec.raw.metrics is None
        True
    """

    __slots__ = ()

    parts = ("behavior",)

    def set_scale_target_ref(self, ref: V2CrossVersionObjectReference) -> None:
        """Set the scale target.

        Args:
            ref: Replaces the whole reference: apiVersion, kind and name.

        Raises:
            ConfigError: If the argument is not a reference; None is rejected because an HPA must have a target.
        """
        self._raw.scale_target_ref = own(self._raw, "scale_target_ref", ref)

    def set_min_replicas(self, replicas: int | None) -> None:
        """Set the lower limit.

        Args:
            replicas: Number of pods; 0 is a valid value and is not the same as None. None unsets the field; the API
                server then uses 1.
        """
        self._raw.min_replicas = replicas

    def set_max_replicas(self, replicas: int) -> None:
        """Set the upper limit.

        Args:
            replicas: Number of pods.
        """
        self._raw.max_replicas = replicas

    def set_behavior(self, behavior: V2HorizontalPodAutoscalerBehavior | None) -> None:
        """Set the scaling behavior.

        Args:
            behavior: Replaces the whole behavior, also what another writer has set. None unsets the field; the API
                server then uses its defaults.

        Raises:
            ConfigError: If the argument is not a behavior.
        """
        self._raw.behavior = whole_or_none(self._raw, "behavior", behavior)

    def set_scale_up(self, rules: V2HPAScalingRules | None) -> None:
        """Set the rules for scaling up; those for scaling down stay.

        Args:
            rules: Replaces the whole rules of this direction; `scaling.disabled()` of `ocf.autoscaling` switches it
                off. None unsets them; the API server then uses its defaults.

        Raises:
            ConfigError: If the argument is not scaling rules.
        """
        self._set_rules("scale_up", rules)

    def set_scale_down(self, rules: V2HPAScalingRules | None) -> None:
        """Set the rules for scaling down; those for scaling up stay.

        Args:
            rules: Replaces the whole rules of this direction; `scaling.disabled()` of `ocf.autoscaling` switches it
                off. None unsets them; the API server then uses its defaults.

        Raises:
            ConfigError: If the argument is not scaling rules.
        """
        self._set_rules("scale_down", rules)

    def _set_rules(self, direction: str, rules: V2HPAScalingRules | None) -> None:
        behavior = self._raw.behavior
        if behavior is None:
            behavior = field_type(type(self._raw), "behavior")()
            if "behavior" in self._raw.model_fields_set:
                # It was set to None, and so were the rules of the other direction.
                behavior.model_fields_set.update({"scale_up", "scale_down"})
        setattr(behavior, direction, whole_or_none(behavior, direction, rules))
        self._raw.behavior = behavior

    def ensure_metric(self, metric: V2MetricSpec) -> None:
        """Add a metric or replace the first entry that is the same metric.

        An entry is replaced as a whole, at its position. Two entries are the same metric if they have the same `type`
        and the same identity: the name for Resource, name and container for ContainerResource, metric name and selector
        for Pods and External, metric name, selector and described object for Object. The target is not part of the
        identity. Selectors are compared by meaning, in any order; a missing selector differs from an empty one.

        Args:
            metric: The metric; a copy is stored.

        Raises:
            ConfigError: If its type is unknown, or it does not have exactly the one source that its type requires.
        """
        check_metric(require("metrics", metric, field_type(type(self._raw), "metrics")))
        _METRICS.ensure(self._raw, metric)

    def remove_metric(
        self,
        type: MetricType,  # noqa: A002 (the name of the field)
        name: str,
        *,
        selector: V1LabelSelector | AnyValue | None = ANY,
        container: str | AnyValue = ANY,
        described_object: V2CrossVersionObjectReference | AnyValue = ANY,
    ) -> None:
        """Remove all metrics with a type and a name that also match the filters.

        Args:
            type: `Resource`, `ContainerResource`, `Pods`, `Object` or `External`.
            name: Name of the resource or of the metric. An empty name also matches entries of the type without a
                source.
            selector: Matches metrics with this selector; None matches metrics without a selector.
            container: Matches metrics of this container.
            described_object: Matches metrics of this object.

        Raises:
            ConfigError: If the type is unknown, the name is not a string, or a filter does not apply to the type.
        """
        condition = metric_filter(type, name, selector=selector, container=container, described_object=described_object)
        _METRICS.remove_where(self._raw, condition)
