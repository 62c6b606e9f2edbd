"""Values of a metric from answers of the metrics APIs in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ocf.autoscaling.algorithm import Metric, Unavailable, read_external, read_object, read_pods, read_resource
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.errors import ManifestError, QuantityError
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = ["MEASUREMENTS", "metric_name", "read_metric"]

MEASUREMENTS: Final = ("PodMetrics", "MetricValue", "ExternalMetricValue")
"""Kinds of the entries of the metrics APIs."""

_FAILURE: Final = "MetricFailure"
_API: Final = {"Resource": "resource", "ContainerResource": "resource", "External": "external"}
_UNREADABLE: Final = (ManifestError, QuantityError, ValueError, OverflowError)


def read_metric(metric: Metric, entries: Callable[[str], Sequence[Manifest]], pods: set[str]) -> MetricValues:
    """Return the values of a metric."""
    if metric.selector_error:
        return Unavailable("it was not requested")
    failures = entries(_FAILURE)
    if failures:
        # Only a recording has them, and then its format is loaded.
        from ocf.simulation.recording.metric_totals import failure_of

        failure = failure_of(metric, failures)
        if failure is not None:
            return Unavailable(
                f"unable to fetch metrics from {_API.get(metric.type, 'custom')} metrics API: {failure.message}"
            )
    if metric.type in {"Resource", "ContainerResource"}:
        usage = [each for each in entries("PodMetrics") if (each.get("metadata") or {}).get("name") in pods]
        return _or_unavailable("resource", lambda: read_resource(usage, metric.name, metric.container))
    if metric.type == "External":
        series = [each for each in entries("ExternalMetricValue") if _is_series(each, metric)]
        return _or_unavailable("external", lambda: read_external(series))
    values = [each for each in entries("MetricValue") if metric_name(each) == metric.name]
    if metric.type == "Pods":
        of_pods = [each for each in values if _describes(each, "Pod", pods)]
        return _or_unavailable("custom", lambda: read_pods(of_pods))
    described = metric.described_object or {}
    of_object = [each for each in values if _describes(each, str(described.get("kind")), {described.get("name")})]
    return _or_unavailable("custom", lambda: read_object(of_object))


def _or_unavailable(api: str, read: Callable[[], MetricValues]) -> MetricValues:
    try:
        return read()
    except _UNREADABLE as error:
        return Unavailable(f"unable to fetch metrics from {api} metrics API: {error}")


def metric_name(value: Manifest) -> str:
    """Return the name of the metric of a MetricValue."""
    # In v1beta1 of this API the field is called `metricName`.
    return str((value.get("metric") or {}).get("name") or value.get("metricName") or "")


def _describes(value: Manifest, kind: str, names: set[Any]) -> bool:
    described = value.get("describedObject") or {}
    return described.get("kind") == kind and described.get("name") in names


def _is_series(value: Manifest, metric: Metric) -> bool:
    if value.get("metricName") != metric.name:
        return False
    return metric.selector is None or LabelSelector.of(metric.selector).matches(value.get("metricLabels") or {})
