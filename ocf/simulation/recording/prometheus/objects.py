"""The objects of a target and its metrics at the instants of a range, from their series."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ocf.autoscaling.algorithm import Autoscaler, Metric
from ocf.objects import Manifest
from ocf.objects.durations import format_duration
from ocf.objects.manifest import PREFIX
from ocf.objects.timestamps import format_time
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.recording.prometheus.matrix import Matrix, Series
from ocf.simulation.recording.prometheus.queries import REQUEST_UNITS, SeriesSelection
from ocf.simulation.recording.prometheus.specs import RangeSpec
from ocf.simulation.recording.prometheus.steps import Steps

__all__ = ["RangeObjects", "RecordedTarget"]

_LABEL: Final = f"{PREFIX}/target"
_NOTHING: Final = Matrix()
_NANO: Final = 10**9
_POD: Final = ("pod", "pod_name")
_CONTAINER: Final = ("container", "container_name")
_TIMES: Final = {
    "creationTimestamp": "created",
    "deletionTimestamp": "deleted",
    "startTime": "started",
    "ready": "ready_time",
}
_METADATA: Final = ("creationTimestamp", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class RecordedTarget:
    """The target of an HPA.

    Args:
        any_owner: Whether all pods of the selection count; otherwise those that the target has created, itself or by a
            ReplicaSet.
    """

    kind: str
    name: str
    any_owner: bool = False

    @property
    def pods(self) -> str:
        """The regular expression of the names of its pods, which begin with its name."""
        # A name that is generated keeps 58 characters, of which the hash of a ReplicaSet takes up to 11; a dot matches
        # more than itself.
        return f"{self.name[:47].replace('.', '[.]')}.*"

    def created(self, pod: Series) -> bool:
        """Return whether it has created a pod.

        Args:
            pod: A series of `kube_pod_info`.
        """
        kind, name = pod.label("created_by_kind"), pod.label("created_by_name")
        if self.any_owner:
            return True
        if kind == "ReplicaSet" and self.kind != "ReplicaSet":
            return re.fullmatch(rf"{re.escape(self.name)}-[0-9a-z]+", name) is not None
        return (kind, name) == (self.kind, self.name)


@dataclass(slots=True)
class RangeObjects:
    """The objects at the instants of a range, which comes in parts, one after the other.

    Args:
        spec: The HPA.
        selection: The selection of the series.
    """

    spec: RangeSpec
    target: RecordedTarget
    selection: SeriesSelection
    _readiness: dict[str, tuple[bool, datetime]] = field(default_factory=dict)
    """Whether each pod was ready, and since when."""

    def part(self, steps: Steps, first: int, series: Mapping[str, Matrix]) -> Iterator[tuple[datetime, list[Manifest]]]:
        """Yield instants and their objects; an instant without the HPA is left out, because it was not scraped.

        Args:
            steps: The instants of the part.
            first: The number of the first one in the whole range, as the HPA counts.
            series: The series by key of the source.
        """
        for number in range(steps.count):
            hpa = self.spec.at(first + number)
            if hpa is not None:
                instant = _Instant(self, hpa, first + number, steps.at(number), number, series)
                yield steps.at(number), instant.objects()

    def ready_since(self, pod: str, *, ready: bool, at: datetime, earliest: datetime | None) -> datetime:
        """Return since when a pod has been ready, or not ready, as far as the instants of the range show it.

        Args:
            pod: Name of the pod.
            ready: Whether it is ready.
            at: The instant.
            earliest: The start of the pod, if that is known.
        """
        known = self._readiness.get(pod)
        if known is None or known[0] is not ready:
            since = earliest if known is None and earliest is not None and not ready else at
            self._readiness[pod] = ready, since
        return self._readiness[pod][1]


@dataclass(frozen=True, slots=True)
class _Instant:
    """The series at one instant."""

    range: RangeObjects
    hpa: Manifest
    number: int
    at: datetime
    index: int
    series: Mapping[str, Matrix]

    def objects(self) -> list[Manifest]:
        """Return all objects."""
        pods = {each.label(*_POD): each for each, _ in self._found("pod") if self.range.target.created(each)}
        usage = self._usage(pods)
        found = [self.hpa, self._scale(), *self._pods(pods, usage)]
        found += [self._pod_metrics(name, containers) for name, containers in usage.items()]
        for metric in Autoscaler.of(self.hpa).metrics:
            if metric.type not in RESOURCE_METRICS:
                found += self._values(metric, pods)
        return found

    def _found(self, key: str) -> Iterator[tuple[Series, float]]:
        return self.series.get(key, _NOTHING).at(self.index)

    def _scale(self) -> Manifest:
        replicas = self.series.get("replicas", _NOTHING).one(self.index)
        observed = self.series.get("observed", _NOTHING).one(self.index)
        current = self.range.spec.replicas(self.number)
        wanted = current if replicas is None else int(replicas)
        return {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": self.range.target.name, "namespace": self.range.selection.namespace},
            "spec": {"replicas": wanted},
            "status": {
                "replicas": wanted if observed is None else int(observed),
                "selector": f"{_LABEL}={self.range.target.name}",
            },
        }

    def _by_pod(self, key: str) -> dict[str, float]:
        return {each.label(*_POD): value for each, value in self._found(key)}

    def _pods(self, pods: Mapping[str, Series], usage: Mapping[str, Mapping[str, Manifest]]) -> Iterator[Manifest]:
        times = {
            field: {pod: datetime.fromtimestamp(value, UTC) for pod, value in self._by_pod(key).items() if value > 0}
            for field, key in _TIMES.items()
        }
        phases = {each.label(*_POD): each.label("phase") for each, _ in self._found("phase")}
        ready, requests = self._by_pod("ready"), self._requests(pods)
        for name, info in pods.items():
            known = {field: found[name] for field, found in times.items() if name in found}
            metadata = {**self._metadata(name), "labels": self._labels()}
            metadata.update({field: format_time(known[field]) for field in _METADATA if field in known})
            status: Manifest = {"phase": phases.get(name, "Running")}
            if "startTime" in known:
                status["startTime"] = format_time(known["startTime"])
            if name in ready:
                status["conditions"] = [self._condition(name, known, ready=ready[name] == 1)]
            asked = requests.get(name, {})
            names = sorted({*asked, *usage.get(name, {})})
            containers = [{"name": each, "resources": {"requests": asked.get(each, {})}} for each in names]
            node = info.label("node")
            spec = {**({"nodeName": node} if node else {}), "containers": containers}
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    def _condition(self, name: str, known: Mapping[str, datetime], *, ready: bool) -> Manifest:
        since = known.get("ready") if ready else None
        if since is None:
            since = self.range.ready_since(name, ready=ready, at=self.at, earliest=known.get("startTime"))
        return {"type": "Ready", "status": str(ready), "lastTransitionTime": format_time(since)}

    def _metadata(self, name: str) -> dict[str, Any]:
        return {"name": name, "namespace": self.range.selection.namespace}

    def _labels(self) -> dict[str, str]:
        return {_LABEL: self.range.target.name}

    def _requests(self, pods: Mapping[str, Series]) -> dict[str, dict[str, Manifest]]:
        """Return the requests by pod and container."""
        found: defaultdict[str, dict[str, Manifest]] = defaultdict(dict)
        for each, value in self._found("requests"):
            old = each.labels.get("__name__", "").rpartition("requests")[2]
            name, pod = REQUEST_UNITS.get(old) or each.label("resource"), each.label(*_POD)
            if pod in pods and name in _QUANTITIES:
                found[pod].setdefault(each.label(*_CONTAINER), {})[name] = _QUANTITIES[name](value)
        return found

    def _usage(self, pods: Mapping[str, Series]) -> dict[str, dict[str, Manifest]]:
        """Return the use of resources by pod and container."""
        found: defaultdict[str, dict[str, Manifest]] = defaultdict(dict)
        for name, quantity in (("cpu", _nano), ("memory", _bytes)):
            for each, value in self._found(f"{name}_usage"):
                pod = each.label(*_POD)
                if pod in pods:
                    found[pod].setdefault(each.label(*_CONTAINER), {})[name] = quantity(value)
        return found

    def _pod_metrics(self, name: str, containers: Mapping[str, Manifest]) -> Manifest:
        return {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": "PodMetrics",
            "metadata": {**self._metadata(name), "labels": self._labels()},
            "timestamp": format_time(self.at),
            "window": format_duration(self.range.selection.window),
            "containers": [{"name": each, "usage": usage} for each, usage in sorted(containers.items())],
        }

    def _values(self, metric: Metric, pods: Mapping[str, Series]) -> Iterator[Manifest]:
        """Yield the values of a metric that is not about a resource, as the status of the HPA has them."""
        spec, number = self.range.spec, self.number
        value, average = (spec.value(number, metric.name, kind) for kind in ("value", "average"))
        if metric.type == "Pods":
            # The status has only the mean, so each pod gets that.
            if average is not None:
                for pod in pods:
                    described = {"apiVersion": "v1", "kind": "Pod", **self._metadata(pod)}
                    yield self._metric_value(metric, described, average)
            return
        # For a target per pod, the status has the average in place of the total.
        total = average * spec.replicas(number) if value is None and average is not None else value
        if total is None:
            return
        if metric.type == "Object":
            described = {**(metric.described_object or {}), "namespace": self.range.selection.namespace}
            yield self._metric_value(metric, described, total)
            return
        yield {
            "apiVersion": "external.metrics.k8s.io/v1beta1",
            "kind": "ExternalMetricValue",
            "metricName": metric.name,
            # Those that the selector of the metric asks for.
            "metricLabels": dict((metric.selector or {}).get("matchLabels") or {}),
            "timestamp": format_time(self.at),
            "value": _milli(total),
        }

    def _metric_value(self, metric: Metric, described: Mapping[str, Any], value: float) -> Manifest:
        return {
            "apiVersion": "custom.metrics.k8s.io/v1beta2",
            "kind": "MetricValue",
            "describedObject": dict(described),
            "metric": {"name": metric.name},
            "timestamp": format_time(self.at),
            "windowSeconds": int(self.range.selection.window.total_seconds()),
            "value": _milli(value),
        }


def _milli(value: float) -> str:
    return f"{round(value * 1000)}m"


def _nano(value: float) -> str:
    return f"{round(value * _NANO)}n"


def _bytes(value: float) -> str:
    return f"{round(value)}"


_QUANTITIES: Final = {"cpu": _milli, "memory": _bytes}
