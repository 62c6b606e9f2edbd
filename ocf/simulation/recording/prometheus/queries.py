"""The series of Prometheus that a recording is made of, and their queries.

Names are those of kube-state-metrics, from 1.x on
(https://github.com/kubernetes/kube-state-metrics/tree/main/docs/metrics), and of cAdvisor in the kubelet. Labels of
objects may be called `exported_namespace`, `exported_pod` and so on, if the scrape configuration does not honour labels
of targets (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config).
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from ocf.objects.durations import format_duration

__all__ = ["HPA_SOURCES", "POD_SOURCES", "REQUEST_UNITS", "Need", "SeriesSelection", "SeriesSource", "target_sources"]

_HPA_REMEDY: Final = "scrape kube-state-metrics with its collector horizontalpodautoscalers"
_POD_REMEDY: Final = "scrape kube-state-metrics with its collector pods"
_USAGE_REMEDY: Final = "scrape /metrics/cadvisor of the kubelets"
_SCALE_REMEDY: Final = "scrape kube-state-metrics with its collector {collector}"


@dataclass(frozen=True, slots=True)
class SeriesSelection:
    """The objects whose series are read.

    Args:
        hpa: Name of the HPA.
        pods: Regular expression of the names of the pods, as RE2 has it and anchored at both ends.
        target: Name of the target.
        window: The time over which the use of cpu is averaged.
    """

    namespace: str
    hpa: str
    pods: str = ""
    target: str = ""
    window: timedelta = timedelta(minutes=2)


class Need(Enum):
    """What a recording is without a kind of series."""

    REQUIRED = "impossible"
    EXPECTED = "less exact"
    OPTIONAL = "equal"
    """The series are new, or exist only now and then."""


@dataclass(frozen=True, slots=True)
class SeriesSource:
    """A kind of series.

    Args:
        key: What it is in a recording.
        names: Its names, the newest one first.
        remedy: What to do if there is no such series.
        need: What a recording is without it.
        matchers: Labels and the values that they must have.
        of: What the series are about: `hpa`, `target` or `pods`.
        suffix: What follows the selector, such as a comparison.
    """

    key: str
    names: tuple[str, ...]
    remedy: str
    need: Need = Need.EXPECTED
    matchers: tuple[tuple[str, str], ...] = ()
    of: str = "pods"
    suffix: str = ""

    def expression(self, selection: SeriesSelection) -> str:
        """Return the query.

        Args:
            selection: The objects.

        Example:
            >>> source = SeriesSource("max", ("kube_hpa_spec_max_replicas",), "", of="hpa")
            >>> for part in source.expression(SeriesSelection("shop", "web")).split(" or "):
            ...     print(part)
            {__name__=~"kube_hpa_spec_max_replicas",namespace="shop",exported_namespace="",hpa="web"}
            {__name__=~"kube_hpa_spec_max_replicas",exported_namespace="shop",hpa="web"}
        """
        labels: dict[tuple[str, str, str], list[str]] = {}
        for name in self.names:
            labels.setdefault(self._object(name, selection), []).append(name)
        # Operands of `or` must not differ in nothing but the name: the second one is then left out.
        return " or ".join(
            f'{{__name__=~"{"|".join(names)}",{matchers}}}{self.suffix}'
            for chosen, names in labels.items()
            for matchers in self._matchers(chosen, selection)
        )

    def _matchers(self, chosen: tuple[str, str, str], selection: SeriesSelection) -> Iterator[str]:
        own = ("namespace", "=", selection.namespace), ("exported_namespace", "=", "")
        exported = (("exported_namespace", "=", selection.namespace),)
        choices = [(*own, chosen), (*exported, chosen)]
        if chosen[0] == "pod":
            # With the label of the namespace, that of the pod is usually taken, too, but not always.
            choices[1] += (("exported_pod", "=", ""),)
            choices.append((*exported, (f"exported_{chosen[0]}", *chosen[1:])))
        for each in choices:
            matchers = (*each, *((label, "=", value) for label, value in self.matchers))
            yield ",".join(f"{label}{operator}{_quoted(value)}" for label, operator, value in matchers)

    def _object(self, name: str, selection: SeriesSelection) -> tuple[str, str, str]:
        """Return label, operator and value that select the objects."""
        if self.of == "hpa":
            # Before version 2, the prefix of these series and the label were `hpa`.
            return ("hpa" if name.startswith("kube_hpa_") else "horizontalpodautoscaler"), "=", selection.hpa
        if self.of == "pods":
            return "pod", "=~", selection.pods
        return self.of, "=", selection.target


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _of_hpa(key: str, name: str, need: Need = Need.EXPECTED, *, since_2: bool = False) -> SeriesSource:
    names = (f"kube_horizontalpodautoscaler_{name}", *(() if since_2 else (f"kube_hpa_{name}",)))
    return SeriesSource(key, names, _HPA_REMEDY, need, of="hpa")


_REQUESTS: Final = "kube_pod_container_resource_requests"
REQUEST_UNITS: Final = {"_cpu_cores": "cpu", "_memory_bytes": "memory"}
"""Resources by the end of the name of their requests before version 2 of kube-state-metrics."""

HPA_SOURCES: Final = (
    _of_hpa("max", "spec_max_replicas", Need.REQUIRED),
    _of_hpa("min", "spec_min_replicas"),
    _of_hpa("target", "spec_target_metric"),
    _of_hpa("current", "status_current_replicas"),
    _of_hpa("desired", "status_desired_replicas"),
    _of_hpa("condition", "status_condition"),
    _of_hpa("info", "info", Need.OPTIONAL, since_2=True),
    _of_hpa("value", "status_target_metric", Need.OPTIONAL, since_2=True),
)
"""The series of an HPA; before version 2 of kube-state-metrics, their names began with `kube_hpa_`."""

POD_SOURCES: Final = (
    SeriesSource("pod", ("kube_pod_info",), _POD_REMEDY, Need.REQUIRED),
    SeriesSource("created", ("kube_pod_created",), _POD_REMEDY),
    SeriesSource("started", ("kube_pod_start_time",), _POD_REMEDY),
    SeriesSource("phase", ("kube_pod_status_phase",), _POD_REMEDY, suffix=" == 1"),
    SeriesSource("ready", ("kube_pod_status_ready",), _POD_REMEDY, matchers=(("condition", "true"),)),
    SeriesSource("ready_time", ("kube_pod_status_ready_time",), _POD_REMEDY, Need.OPTIONAL),
    SeriesSource("deleted", ("kube_pod_deletion_timestamp",), _POD_REMEDY, Need.OPTIONAL),
    SeriesSource("requests", tuple(f"{_REQUESTS}{unit}" for unit in ("", *REQUEST_UNITS)), _POD_REMEDY),
)
"""The series of pods. Before version 2, requests had one series for each resource."""

_SCALES: Final[Mapping[str, tuple[str, str, str]]] = {
    "Deployment": ("deployment", "kube_deployment_spec_replicas", "kube_deployment_status_replicas"),
    "StatefulSet": ("statefulset", "kube_statefulset_replicas", "kube_statefulset_status_replicas"),
    "ReplicaSet": ("replicaset", "kube_replicaset_spec_replicas", "kube_replicaset_status_replicas"),
    "ReplicationController": (
        "replicationcontroller",
        "kube_replicationcontroller_spec_replicas",
        "kube_replicationcontroller_status_replicas",
    ),
}


def _scale_sources(kind: str) -> tuple[SeriesSource, ...]:
    if kind not in _SCALES:
        return ()
    label, spec, status = _SCALES[kind]
    remedy = _SCALE_REMEDY.format(collector=f"{label}s")
    return SeriesSource("replicas", (spec,), remedy, Need.REQUIRED, of=label), SeriesSource(
        "observed", (status,), remedy, of=label
    )


@dataclass(frozen=True, slots=True)
class _Usage(SeriesSource):
    """The use of a resource by containers; before Kubernetes 1.16, labels were `pod_name` and `container_name`."""

    resource: str = "cpu"

    def expression(self, selection: SeriesSelection) -> str:
        """Return the query: one series for each container, however many of its sandbox and of its cpus there are."""
        parts = []
        for pod, container in (("pod", "container"), ("pod_name", "container_name")):
            labels = f'namespace={_quoted(selection.namespace)},{pod}=~{_quoted(selection.pods)},{container}!~"POD|"'
            series = f"{self.names[0]}{{{labels}}}"
            if self.resource == "cpu":
                series = f"sum without (cpu) (rate({series}[{format_duration(selection.window)}]))"
            parts.append(f"max by ({pod}, {container}) ({series})")
        return " or ".join(parts)


def target_sources(kind: str, resources: Collection[str]) -> tuple[SeriesSource, ...]:
    """Return the series of a target, of its pods and of what they use.

    Args:
        kind: The kind of the target; kube-state-metrics has no replicas of kinds that it does not know.
        resources: Names of the resources that the HPA has metrics of; only cpu and memory are measured.
    """
    return (*_scale_sources(kind), *POD_SOURCES, *_usage_sources(resources))


def _usage_sources(required: Collection[str]) -> Iterator[SeriesSource]:
    names = {"cpu": "container_cpu_usage_seconds_total", "memory": "container_memory_working_set_bytes"}
    for resource, name in names.items():
        need = Need.REQUIRED if resource in required else Need.OPTIONAL
        yield _Usage(f"{resource}_usage", (name,), _USAGE_REMEDY, need, resource=resource)
