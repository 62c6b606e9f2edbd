"""Series of a scaled Deployment as kube-state-metrics and cAdvisor have them, in OpenMetrics, and the expected objects.

Ten minutes of two pods that become four, in three namespaces: with the names of today, with those before version 2 of
kube-state-metrics and Kubernetes 1.16, and with labels that are `exported_…` because the target of the scrape has them,
too. Other series of similar names are there as well.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

__all__ = [
    "CREATED",
    "END",
    "NEW",
    "OLD",
    "POD_NAMES",
    "RENAMED",
    "SCRAPE",
    "START",
    "STYLES",
    "edited_maximum",
    "openmetrics",
    "pods_at",
    "ready_at",
    "use_of",
]

START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
END: Final = START + timedelta(minutes=10)
SCRAPE: Final = timedelta(seconds=30)
NEW, OLD, RENAMED = STYLES = ("new", "old", "renamed")
POD_NAMES: Final = ("web-5d4f8c-aaaaa", "web-5d4f8c-bbbbb", "web-5d4f8c-ccccc", "web-5d4f8c-ddddd")
CREATED: Final = (timedelta(hours=-1), timedelta(hours=-1), timedelta(seconds=190), timedelta(seconds=190))
_STARTS: Final = timedelta(seconds=2)
_READY: Final = timedelta(seconds=25)
_EDITED: Final = timedelta(seconds=300)
_WARM_UP: Final = timedelta(minutes=4)  # series that begin before the range, so that a rate has samples


class Sample(NamedTuple):
    """A sample of a series."""

    name: str
    labels: Mapping[str, str]
    value: float


def pods_at(since: timedelta) -> list[int]:
    """Return the numbers of the pods that exist."""
    return [number for number, created in enumerate(CREATED) if created <= since]


def ready_at(number: int, since: timedelta) -> bool:
    """Return whether a pod is ready."""
    return CREATED[number] + _READY <= since


def edited_maximum(since: timedelta) -> int:
    """Return maxReplicas, which a user changes."""
    return 9 if since < _EDITED else 12


def use_of(since: timedelta) -> float:
    """Return the cores that a pod uses."""
    return 0.2 if since < timedelta(seconds=120) else 0.4 if since < timedelta(seconds=240) else 0.25


def openmetrics(styles: tuple[str, ...] = STYLES) -> str:
    """Return all samples, for `promtool tsdb create-blocks-from openmetrics`."""
    lines: list[str] = []
    used: dict[tuple[str, int], float] = {}
    at = -_WARM_UP
    while at <= END - START:
        timestamp = (START + at).timestamp()
        for style in styles:
            for sample in _samples(style, at, used):
                labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
                lines.append(f"{sample.name}{{{labels}}} {float(sample.value)!r} {timestamp:.0f}")
        at += SCRAPE
    # The parser wants the samples of one series in order of time, which a stable sort keeps.
    lines.sort(key=lambda line: line.partition("} ")[0])
    return "".join(f"{line}\n" for line in (*lines, "# EOF"))


def _samples(style: str, since: timedelta, used: dict[tuple[str, int], float]) -> Iterator[Sample]:
    for name, labels, value in (*_of_hpa(style, since), *_of_pods(style, since)):
        home = {"namespace": style, **labels}
        if style == RENAMED:
            home = {"namespace": "monitoring", "pod": "kube-state-metrics-0", "container": "kube-state-metrics"}
            home |= {
                f"exported_{each}" if each in {"pod", "container"} else each: text for each, text in labels.items()
            }
            home["exported_namespace"] = style
        yield Sample(name, {**home, "job": "kube-state-metrics"}, value)
    pod, container = ("pod_name", "container_name") if style == OLD else ("pod", "container")
    for number in pods_at(since):
        used[style, number] = used.get((style, number), 0.0) + use_of(since) * SCRAPE.total_seconds()
        for part, share in (("app", 1.0), ("POD", 0.01), ("", 1.01)):
            labels = {"namespace": style, pod: POD_NAMES[number], **({container: part} if part else {})}
            yield Sample("container_cpu_usage_seconds_total", {**labels, "cpu": "total"}, used[style, number] * share)
            yield Sample("container_memory_working_set_bytes", labels, 600 * 2**20 * share)


def _of_hpa(style: str, since: timedelta) -> Iterator[Sample]:
    prefix, label = ("kube_hpa", "hpa") if style == OLD else ("kube_horizontalpodautoscaler", "horizontalpodautoscaler")
    replicas = len(pods_at(since))
    for name, most in (("web", edited_maximum(since)), ("web-api", 99)):
        named = {label: name}
        yield Sample(f"{prefix}_spec_max_replicas", named, most)
        yield Sample(f"{prefix}_spec_min_replicas", named, 2)
        target = {"metric_name": "cpu", "metric_target_type": "utilization"}
        yield Sample(f"{prefix}_spec_target_metric", {**named, **target}, 60)
        yield Sample(f"{prefix}_status_current_replicas", named, replicas)
        yield Sample(f"{prefix}_status_desired_replicas", named, replicas)
        for status in ("true", "false", "unknown"):
            condition = {"condition": "AbleToScale", "status": status}
            if style == OLD:
                condition = {"condition": status, "status": "AbleToScale"}
            yield Sample(f"{prefix}_status_condition", {**named, **condition}, status == "true")
        if style != OLD:
            reference = {"api_version": "apps/v1", "kind": "Deployment", "name": name}
            info = {f"scaletargetref_{each}": text for each, text in reference.items()}
            yield Sample(f"{prefix}_info", {**named, **info}, 1)
        yield Sample("kube_deployment_spec_replicas", {"deployment": name}, replicas)
        yield Sample("kube_deployment_status_replicas", {"deployment": name}, replicas)


def _of_pods(style: str, since: timedelta) -> Iterator[Sample]:
    for number in pods_at(since):
        yield from _of_pod(style, since, POD_NAMES[number], CREATED[number], "web-5d4f8c")
    yield from _of_pod(style, since, "web-api-7c9d-zzzzz", CREATED[0], "web-api-7c9d")


def _of_pod(style: str, since: timedelta, name: str, created: timedelta, owner: str) -> Iterator[Sample]:
    pod, started, ready = {"pod": name}, created + _STARTS, created + _READY
    yield Sample("kube_pod_info", {**pod, "node": "n-1", "created_by_kind": "ReplicaSet", "created_by_name": owner}, 1)
    yield Sample("kube_pod_created", pod, (START + created).timestamp())
    if started <= since:
        yield Sample("kube_pod_start_time", pod, (START + started).timestamp())
    phase = "Running" if started <= since else "Pending"
    for each in ("Pending", "Running", "Failed"):
        yield Sample("kube_pod_status_phase", {**pod, "phase": each}, each == phase)
    for each in ("true", "false", "unknown"):
        yield Sample(
            "kube_pod_status_ready", {**pod, "condition": each}, each == ("true" if ready <= since else "false")
        )
    if style == NEW and ready <= since:
        yield Sample("kube_pod_status_ready_time", pod, (START + ready).timestamp())
    container = {**pod, "container": "app"}
    if style == OLD:
        yield Sample("kube_pod_container_resource_requests_cpu_cores", container, 0.5)
        yield Sample("kube_pod_container_resource_requests_memory_bytes", container, 2**30)
        return
    requests = "kube_pod_container_resource_requests"
    yield Sample(requests, {**container, "resource": "cpu", "unit": "core"}, 0.5)
    yield Sample(requests, {**container, "resource": "memory", "unit": "byte"}, 2**30)
