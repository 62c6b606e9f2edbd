"""Metric source types of autoscaling/v2: `type`, the field that holds the source, and the metrics API that serves it.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

__all__ = [
    "METRIC_SOURCES",
    "PODLESS_METRICS",
    "RESOURCE_METRICS",
    "TARGET_FIELDS",
    "MetricSourceKind",
    "MetricType",
    "source_field",
]

MetricType: TypeAlias = Literal["ContainerResource", "External", "Object", "Pods", "Resource"]
"""The values of the `type` of a metric."""


class MetricSourceKind(NamedTuple):
    """A metric source type.

    Args:
        type: The value of `type`: `ContainerResource`.
        field: The field with the source, the same in `spec.metrics` and `status.currentMetrics`: `containerResource`.
        attribute: The attribute of the Python client's models for that field: `container_resource`.
        api: The metrics API that serves it, without `metrics.k8s.io`; `resource` stands for `metrics.k8s.io` itself.
        per_pod: Whether it is measured pod by pod; otherwise one value is for the whole workload.
    """

    type: MetricType
    field: str
    attribute: str
    api: Literal["resource", "custom", "external"]
    per_pod: bool


METRIC_SOURCES: Final[Mapping[str, MetricSourceKind]] = MappingProxyType(
    {
        kind.type: kind
        for kind in (
            MetricSourceKind(
                type="ContainerResource",
                field="containerResource",
                attribute="container_resource",
                api="resource",
                per_pod=True,
            ),
            MetricSourceKind(type="External", field="external", attribute="external", api="external", per_pod=False),
            MetricSourceKind(type="Object", field="object", attribute="object", api="custom", per_pod=False),
            MetricSourceKind(type="Pods", field="pods", attribute="pods", api="custom", per_pod=True),
            MetricSourceKind(type="Resource", field="resource", attribute="resource", api="resource", per_pod=True),
        )
    }
)
"""The metric sources by `type`, sorted: the API server lists the supported values in this order."""

RESOURCE_METRICS: Final = frozenset(kind.type for kind in METRIC_SOURCES.values() if kind.api == "resource")
"""The types whose amounts are cpu or memory; only these have a utilization."""

PODLESS_METRICS: Final = frozenset(kind.type for kind in METRIC_SOURCES.values() if not kind.per_pod)
"""The types that are measured even if there are no pods: scaling from zero needs one of them."""

TARGET_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {"Utilization": "averageUtilization", "Value": "value", "AverageValue": "averageValue"}
)
"""The field with the amount, by target type: in `target` of a spec, and in `current` of a status."""

_FIELDS: Final[Mapping[str, str]] = {kind.type: kind.field for kind in METRIC_SOURCES.values()}


def source_field(type_: str) -> str:
    """Return the field that holds the source of a metric.

    Args:
        type_: The `type` of the metric.

    Returns:
        The field; empty for an unknown type.

    Example:
        >>> source_field("ContainerResource"), source_field("Pod")
        ('containerResource', '')
    """
    return _FIELDS.get(type_, "")
