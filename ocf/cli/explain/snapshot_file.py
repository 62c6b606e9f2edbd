"""A situation to be explained, written by hand: replicas, pods and metrics in few lines, and perhaps a history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from ocf.autoscaling.algorithm import History, Metric, MetricValues, Recommendation, Sample, ScaleEvent, Unavailable
from ocf.cli.manifest_files import Document
from ocf.errors import ConfigError
from ocf.objects import Manifest, Quantity
from ocf.objects.durations import parse_duration
from ocf.objects.timestamps import format_time

__all__ = ["KIND", "SnapshotFile", "read_snapshot", "ready_since"]

KIND: Final = "Situation"
_IN_TOTAL: Final = frozenset({"Object", "External"})


def _period(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _milli(value: object) -> object:
    return (
        Quantity.parse(value).milli if isinstance(value, str | int | float) and not isinstance(value, bool) else value
    )


def _amount(value: str | float) -> str:
    return str(Quantity.parse(value))


Amount = Annotated[str | int | float, AfterValidator(_amount)]
Period = Annotated[timedelta, BeforeValidator(_period)]
Milli = Annotated[int, BeforeValidator(_milli)]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


class Pods(_Part):
    """Some pods that are alike."""

    count: Count = 1
    requests: Annotated[dict[str, Amount], Field(default_factory=dict)]
    container: str = "app"
    phase: str = "Running"
    ready: bool = True
    age: Period = timedelta(hours=1)
    deleted: bool = False


class Measured(_Part):
    """What was measured of one metric."""

    name: str
    type: str | None = None
    container: str | None = None
    per_pod: Milli | list[Milli | None] | None = None
    total: Milli | list[Milli] | None = None
    error: str | None = None
    age: Period = timedelta()
    window: Period = timedelta(minutes=1)

    def is_about(self, metric: Metric) -> bool:
        """Tell whether this is about a metric of the autoscaler."""
        return (
            self.name == metric.name and self.type in {None, metric.type} and self.container in {None, metric.container}
        )

    def check(self, metric: Metric) -> None:
        """Refuse what is not said in the form that the type of the metric has."""
        told, other = ("total", self.per_pod) if metric.type in _IN_TOTAL else ("perPod", self.total)
        missing = told == "total" and self.total is None
        if self.error is None and (missing or other is not None):
            raise ConfigError(f"metrics: {self.name}: write `{told}` for a metric of type {metric.type}, or an `error`")

    def reading(self, pods: list[str], now: datetime) -> MetricValues:
        """Return what the algorithm takes."""
        if self.error is not None:
            return Unavailable(self.error)
        if self.total is not None:
            return tuple(self.total) if isinstance(self.total, list) else (self.total,)
        several = isinstance(self.per_pod, list)
        values = self.per_pod if isinstance(self.per_pod, list) else [self.per_pod] * len(pods)
        if several and len(values) != len(pods):
            raise ConfigError(
                f"metrics: {self.name}: perPod has {len(values)} values for {len(pods)} pods;"
                " write one for each, null for a pod that is not measured, or a single value for all"
            )
        at = now - self.age
        pairs = zip(pods, values, strict=True)
        return {name: Sample(value, at, self.window) for name, value in pairs if value is not None}


class Recommended(_Part):
    """A recommendation of the past."""

    replicas: Count
    ago: Period


class Changed(_Part):
    """A change of the past."""

    change: Count
    ago: Period


class Remembered(_Part):
    """What the controller remembers."""

    recommendations: list[Recommended] | None = None
    scale_ups: Annotated[list[Changed], Field(default_factory=list)]
    scale_downs: Annotated[list[Changed], Field(default_factory=list)]

    def history(self, now: datetime) -> History:
        """Return what the algorithm takes."""
        known = self.recommendations
        events = (
            tuple(ScaleEvent(each.change, now - each.ago) for each in found)
            for found in (self.scale_ups, self.scale_downs)
        )
        told = None if known is None else tuple(Recommendation(each.replicas, now - each.ago) for each in known)
        return History(told, *events)


class SnapshotFile(_Part):
    """Everything that a round sees and remembers, as far as no other manifest says it."""

    api_version: str
    kind: str
    metadata: Annotated[dict[str, Any], Field(default_factory=dict)]
    now: datetime | None = None
    replicas: Count | None = None
    observed_replicas: Count | None = None
    selector: str | None = None
    pods: list[Pods] | None = None
    metrics: Annotated[list[Measured], Field(default_factory=list)]
    history: Remembered | None = None

    def reading(self, metric: Metric, pods: list[str], now: datetime) -> MetricValues | None:
        """Return what was measured of a metric; None if nothing is said of it."""
        found = [each for each in self.metrics if each.is_about(metric)]
        if not found:
            return None
        found[0].check(metric)
        return found[0].reading(pods, now)

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


def _pod(group: Pods, metadata: Manifest, now: datetime) -> Manifest:
    started = format_time(now - group.age)
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
    """Return what is wrong by its path; of a field that may be one thing or another, the first."""
    found: dict[str, str] = {}
    for each in error.errors():
        # What pydantic calls the alternatives of a field is no part of the path.
        path = ".".join(str(part) for part in each["loc"] if "[" not in str(part))
        found.setdefault(path, each["msg"].removeprefix("Value error, "))
    return found


def read_snapshot(document: Document) -> SnapshotFile:
    """Read a situation.

    Args:
        document: Where it stands.

    Raises:
        ConfigError: If a field is unknown, or has a value of a wrong kind; names all of them.
    """
    try:
        found = SnapshotFile.model_validate(document.manifest)
    except ValidationError as error:
        problems = "; ".join(f"{path}: {told}" for path, told in _problems(error).items())
        raise ConfigError(f"{document.file}: document {document.number}: {KIND}: {problems}") from error
    if found.now is not None and found.now.tzinfo is None:
        return found.model_copy(update={"now": found.now.replace(tzinfo=UTC)})
    return found
