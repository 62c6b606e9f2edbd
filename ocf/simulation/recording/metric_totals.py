"""Totals of a metric in the states of a recording."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Metric,
    Sample,
    Unavailable,
    read_external,
    read_object,
    read_pods,
    read_resource,
)
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.errors import ApiError, ConfigError
from ocf.objects import Manifest
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.recording.format import State, read_states

__all__ = ["FAILURE", "autoscaler_of", "failure_of", "metric_failure", "metric_total", "metric_values", "total_rows"]

FAILURE: Final = "MetricFailure"
"""The kind of a metric that could not be read."""
_HPA: Final = "HorizontalPodAutoscaler"
_UNREADABLE = (ConfigError, ValueError, OverflowError)


def autoscaler_of(state: State) -> Autoscaler | None:
    """Return the HPA of a state; None if there is none."""
    found = state.of(_HPA)
    return Autoscaler.of(found[0]) if found else None


def metric_failure(metric: Metric, error: ApiError) -> Manifest:
    """Return the object that stands for a metric in a recording while it cannot be read.

    Its code and reason are recorded. Its message is not: an adapter may quote the address of its source, with
    credentials, and recordings are given to others.
    """
    answered = f"the metrics API answered with HTTP {error.code} {error.reason}".rstrip()
    message = answered if error.code else "the metrics API did not answer"
    return {"apiVersion": "ocf.dev/v1", "kind": FAILURE, "metadata": {"name": _failing(metric)}, "message": message}


def failure_of(metric: Metric, failures: Iterable[Manifest]) -> Unavailable | None:
    """Return why a metric could not be read, by the failures of an instant; None if it could."""
    name = _failing(metric)
    found = next((one for one in failures if get_field(one, ("metadata", "name")) == name), None)
    return None if found is None else Unavailable(str(found.get("message")))


def _failing(metric: Metric) -> str:
    # One request reads the usage of all resources.
    return "Resource" if metric.type in RESOURCE_METRICS else f"{metric.type}/{metric.name}"


def metric_values(state: State, metric: Metric) -> MetricValues:
    """Return the values of a metric in a state."""
    failure = failure_of(metric, state.of(FAILURE))
    if failure is not None:
        return failure
    try:
        if metric.type in RESOURCE_METRICS:
            return read_resource(state.of("PodMetrics"), metric.name, metric.container)
        if metric.type == "External":
            selector = None if metric.selector is None else LabelSelector.of(metric.selector)
            series = [each for each in state.of("ExternalMetricValue") if each.get("metricName") == metric.name]
            return read_external(
                [each for each in series if selector is None or selector.matches(each.get("metricLabels") or {})]
            )
        values = [each for each in state.of("MetricValue") if _metric_name(each) == metric.name]
        pods = [each for each in values if (each.get("describedObject") or {}).get("kind") == "Pod"]
        return read_pods(pods) if metric.type == "Pods" else read_object([each for each in values if each not in pods])
    except _UNREADABLE as error:
        return Unavailable(str(error))


def _metric_name(value: Manifest) -> str:
    # In v1beta1 of this API the field is called `metricName`.
    return str((value.get("metric") or {}).get("name") or value.get("metricName") or "")


def metric_total(state: State, metric: Metric) -> float | None:
    """Return the sum of the values of a metric: over all pods, or over all series; None if it could not be read."""
    values = metric_values(state, metric)
    if isinstance(values, Unavailable):
        return None
    if isinstance(values, Mapping):
        samples: list[Sample] = list(values.values())
        return sum(sample.value for sample in samples) / 1000
    return sum(values) / 1000


def total_rows(file: Path, position: int) -> Iterator[tuple[int, float, float]]:
    """Yield line, seconds since 1970 and total of a metric for each state that has it.

    Args:
        position: Position of the metric in the first `spec.metrics` of the recording.
    """
    metric: Metric | None = None
    for state in read_states(file):
        if metric is None:
            metric = _metric(state, file, position)
        total = metric_total(state, metric)
        if total is not None:
            yield state.line, state.at.timestamp(), total


def _metric(state: State, file: Path, position: int) -> Metric:
    autoscaler = autoscaler_of(state)
    if autoscaler is None:
        raise InputError([InputProblem(str(file), f"the first change must hold the {_HPA}", state.line, "changed")])
    if position >= len(autoscaler.metrics):
        detail = f"metric {position} does not exist: the HPA has {len(autoscaler.metrics)}"
        raise InputError([InputProblem(str(file), detail, state.line, "spec.metrics")])
    return autoscaler.metrics[position]
