"""The file kind `Snapshot`: replicas, pods, metrics and history of an autoscaler in a few lines, written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from ocf.autoscaling.algorithm import History, Metric, Recommendation, Sample, Unavailable
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.cli.manifest_files import Document
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.field_types import Amount, Count, FileModel, Milli, Period
from ocf.objects.timestamps import format_time

__all__ = ["KIND", "SnapshotFile", "read_snapshot", "ready_since"]

KIND: Final = "Snapshot"
_IN_TOTAL: Final = frozenset({"Object", "External"})


class PodGroup(FileModel):
    """A group of equal pods."""

    count: Count = 1
    requests: Annotated[dict[str, Amount], Field(default_factory=dict)]
    container: str = "app"
    phase: str = "Running"
    ready: bool = True
    age: Period = timedelta(hours=1)
    deleted: bool = False
    owner: str | None = None


class MetricSample(FileModel):
    """The values of one metric."""

    name: str
    type: str | None = None
    container: str | None = None
    per_pod: Milli | list[Milli | None] | None = None
    total: Milli | list[Milli] | None = None
    error: str | None = None
    age: Period = timedelta()
    window: Period = timedelta(minutes=1)

    def is_about(self, metric: Metric) -> bool:
        """Return whether these are values of a metric."""
        return (
            self.name == metric.name and self.type in {None, metric.type} and self.container in {None, metric.container}
        )

    def check(self, metric: Metric) -> None:
        """Reject values whose form does not fit the type of the metric."""
        field, other = ("total", self.per_pod) if metric.type in _IN_TOTAL else ("perPod", self.total)
        missing = field == "total" and self.total is None
        if self.error is None and (missing or other is not None):
            raise ConfigError(
                f"metrics: {self.name}: write `{field}` for a metric of type {metric.type}, or an `error`"
            )

    def values(self, pods: list[str], now: datetime) -> MetricValues:
        """Return the values for the algorithm."""
        if self.error is not None:
            return Unavailable(self.error)
        if self.total is not None:
            return tuple(self.total) if isinstance(self.total, list) else (self.total,)
        several = isinstance(self.per_pod, list)
        values = self.per_pod if isinstance(self.per_pod, list) else [self.per_pod] * len(pods)
        if several and len(values) != len(pods):
            raise ConfigError(
                f"metrics: {self.name}: perPod has {len(values)} values for {len(pods)} pods;"
                " write one per pod, null for a pod without a measurement, or a single value for all"
            )
        at = now - self.age
        pairs = zip(pods, values, strict=True)
        return {name: Sample(value, at, self.window) for name, value in pairs if value is not None}


class PastRecommendation(FileModel):
    """A past recommendation."""

    replicas: Count
    ago: Period


class PastChange(FileModel):
    """A past change."""

    change: Count
    ago: Period


class HistoryFile(FileModel):
    """The history of the controller."""

    recommendations: list[PastRecommendation] | None = None
    scale_ups: Annotated[list[PastChange], Field(default_factory=list)]
    scale_downs: Annotated[list[PastChange], Field(default_factory=list)]

    def to_history(self, now: datetime) -> History:
        """Return the history for the algorithm."""
        known = self.recommendations
        events = (
            tuple(ScaleEvent(each.change, now - each.ago) for each in found)
            for found in (self.scale_ups, self.scale_downs)
        )
        recommendations = (
            None if known is None else tuple(Recommendation(each.replicas, now - each.ago) for each in known)
        )
        return History(recommendations, *events)


class SnapshotFile(FileModel):
    """Everything that a sync uses and that no other manifest holds."""

    api_version: str
    kind: str
    metadata: Annotated[dict[str, Any], Field(default_factory=dict)]
    now: datetime | None = None
    replicas: Count | None = None
    observed_replicas: Count | None = None
    selector: str | None = None
    pods: list[PodGroup] | None = None
    metrics: Annotated[list[MetricSample], Field(default_factory=list)]
    history: HistoryFile | None = None

    def values(self, metric: Metric, pods: list[str], now: datetime) -> MetricValues | None:
        """Return the values of a metric; None if the file has none."""
        found = [each for each in self.metrics if each.is_about(metric)]
        if not found:
            return None
        found[0].check(metric)
        return found[0].values(pods, now)

    def manifests(self, name: str, namespace: str, labels: Mapping[str, str], now: datetime) -> Iterator[Manifest]:
        """Yield the pods as manifests."""
        number = 0
        for group in self.pods or ():
            for _ in range(group.count):
                yield _pod(group, {"name": f"{name}-{number}", "namespace": namespace, "labels": dict(labels)}, now)
                number += 1


def ready_since(now: datetime, age: timedelta = timedelta(hours=1)) -> Manifest:
    """Return the status of a pod that has been running and ready for a while."""
    started = format_time(now - age)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
    return {"phase": "Running", "startTime": started, "conditions": [ready]}


def _pod(group: PodGroup, metadata: Manifest, now: datetime) -> Manifest:
    started = format_time(now - group.age)
    if group.owner:
        kind, _, name = group.owner.partition("/")
        metadata = {**metadata, "ownerReferences": [{"kind": kind, "name": name, "controller": True}]}
    if group.deleted:
        metadata = {**metadata, "deletionTimestamp": format_time(now)}
    requests = {name: str(value) for name, value in group.requests.items()}
    ready = {"type": "Ready", "status": str(group.ready), "lastTransitionTime": started}
    running = group.phase != "Pending"
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": group.container, "resources": {"requests": requests}}]},
        "status": {"phase": group.phase, **({"startTime": started, "conditions": [ready]} if running else {})},
    }


def _problems(error: ValidationError) -> dict[str, str]:
    """Return the problems by path; for a field with alternatives, only the first."""
    found: dict[str, str] = {}
    for each in error.errors():
        # The names that pydantic gives to the alternatives of a field are not part of the path.
        path = ".".join(str(part) for part in each["loc"] if "[" not in str(part))
        found.setdefault(path, each["msg"].removeprefix("Value error, "))
    return found


def read_snapshot(document: Document) -> SnapshotFile:
    """Read a Snapshot."""
    try:
        found = SnapshotFile.model_validate(document.manifest, by_alias=True, by_name=False)
    except ValidationError as error:
        problems = "; ".join(f"{path}: {problem}" for path, problem in _problems(error).items())
        raise ConfigError(f"{document.file}: document {document.number}: {KIND}: {problems}") from error
    if found.now is not None and found.now.tzinfo is None:
        return found.model_copy(update={"now": found.now.replace(tzinfo=UTC)})
    return found
