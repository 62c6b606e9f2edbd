"""Readings of files that no metric of the autoscaler asks for; usually a name is misspelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Metric
from ocf.cli.explain.metric_files import metric_name
from ocf.cli.explain.snapshot_file import MetricSample
from ocf.objects import Manifest
from ocf.objects.suggestions import nearest

__all__ = ["unused_readings"]

_CUSTOM: Final = frozenset({"Pods", "Object"})


class _Reading(NamedTuple):
    """A reading: its name, the types of metrics that can ask for it, and its container."""

    name: str
    types: frozenset[str]
    container: str = ""

    def is_wanted(self, metric: Metric) -> bool:
        return (
            metric.name == self.name
            and (not self.types or metric.type in self.types)
            and self.container in {"", metric.container}
        )

    def __str__(self) -> str:
        container = f" of container {self.container}" if self.container else ""
        kinds = f" ({' or '.join(sorted(self.types))})" if self.types else ""
        return f'"{self.name}"{container}{kinds}'


def unused_readings(
    autoscaler: Autoscaler, samples: Iterable[MetricSample], entries: Callable[[str], Sequence[Manifest]]
) -> Iterator[str]:
    """Yield a note for each reading that no metric asks for, with the likely name.

    The usage of resources in PodMetrics is left out: they always contain all resources.
    """
    readings = [
        _Reading(each.name, frozenset(() if each.type is None else (each.type,)), each.container or "")
        for each in samples
    ]
    readings += [_Reading(metric_name(each), _CUSTOM) for each in entries("MetricValue")]
    readings += [
        _Reading(str(each.get("metricName")), frozenset({"External"})) for each in entries("ExternalMetricValue")
    ]
    for reading in dict.fromkeys(readings):
        if not any(reading.is_wanted(metric) for metric in autoscaler.metrics):
            name = f"{autoscaler.namespace}/{autoscaler.name}"
            yield f"no metric of {name} asks for {reading}{_nearest(reading, autoscaler)}"


def _nearest(reading: _Reading, autoscaler: Autoscaler) -> str:
    asked = {
        each.name: str(_Reading(each.name, frozenset({each.type}), each.container))
        for each in reversed(autoscaler.metrics)
    }
    if not asked:
        return ": it has no metrics"
    near = nearest(reading.name, asked)
    return f"; did you mean {asked[near]}?" if near else f"; its metrics are {', '.join(reversed(asked.values()))}"
