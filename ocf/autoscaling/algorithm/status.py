"""Status of an HPA.

Values are kept as numbers and formatted only when a manifest is needed, because most syncs change nothing.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm.entries import entries
from ocf.autoscaling.algorithm.hpa_spec import Metric
from ocf.objects import Manifest, Quantity
from ocf.objects.timestamps import format_time, parse_time
from ocf.schema.metric_sources import RESOURCE_METRICS

__all__ = ["HpaCondition", "MetricStatus", "Status"]

_KIND: Final = "HorizontalPodAutoscaler"
_FAILED: Final = {"type": ""}
_QUANTITIES: Final = ("value", "averageValue")


class HpaCondition(NamedTuple):
    """A condition of an HPA.

    Args:
        type: `AbleToScale`, `ScalingActive`, `ScalingLimited` or `ScaledToZero`.
        status: `True`, `False` or `Unknown`.
        reason: The reason, one word.
        message: The message, a sentence.
        since: `lastTransitionTime`; None if it is not known.
    """

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None = None

    def to_manifest(self) -> Manifest:
        """Return the condition as a manifest."""
        written: Manifest = {"type": self.type, "status": self.status}
        texts = {"reason": self.reason, "message": self.message}
        since = None if self.since is None else format_time(self.since)
        return {**written, **{field: text for field, text in texts.items() if text}, "lastTransitionTime": since}


class MetricStatus(NamedTuple):
    """The current values of one metric; amounts are thousandths.

    Args:
        metric: The metric; None for one that failed.
        utilization: Percent of the requests.
        average: Value per pod.
        value: Value for the whole workload.
        binary_memory: Whether amounts of memory are rendered with binary suffixes.
    """

    metric: Metric | None = None
    utilization: int | None = None
    average: int | None = None
    value: int | None = None
    binary_memory: bool = True

    def to_manifest(self) -> Manifest:
        """Return the entry of `currentMetrics`; the one of a failed metric is empty."""
        metric = self.metric
        if metric is None:
            # The controller leaves the slot of a failed metric empty, and the API server stores `type` without
            # omitempty.
            return dict(_FAILED)
        binary = self.binary_memory and metric.name == "memory" and metric.type in RESOURCE_METRICS
        current: dict[str, Any] = {}
        if self.utilization is not None:
            current["averageUtilization"] = self.utilization
        if self.average is not None:
            current["averageValue"] = _written(self.average, binary)
        if self.value is not None:
            current["value"] = _written(self.value, binary)
        return {"type": metric.type, metric.source_field: {**_identity(metric), "current": current}}


def _identity(metric: Metric) -> Manifest:
    if metric.type == "Resource":
        return {"name": metric.name}
    if metric.type == "ContainerResource":
        return {"name": metric.name, "container": metric.container}
    selector = {} if metric.selector is None else {"selector": metric.selector}
    identity: Manifest = {"metric": {"name": metric.name, **selector}}
    if metric.type == "Object":
        identity["describedObject"] = metric.described_object or {}
    return identity


class Status(NamedTuple):
    """The status of an HPA.

    Args:
        current_replicas: The replicas at the last sync, before a rescale.
        desired_replicas: The desired replicas of the last sync.
        last_scale_time: Time of the last rescale; None if there was none.
        current_metrics: The current values, one entry per metric of the spec: values, or entries of a manifest.
        conditions: The conditions, in the order in which they first appeared.
        observed_generation: The generation of the spec that was synced; None before Kubernetes 1.37.

    Example:
        >>> Status.of({"currentReplicas": 3, "desiredReplicas": 5}).to_manifest()
        {'currentReplicas': 3, 'desiredReplicas': 5}
    """

    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: datetime | None = None
    current_metrics: tuple[MetricStatus | Manifest, ...] = ()
    conditions: tuple[HpaCondition, ...] = ()
    observed_generation: int | None = None

    @classmethod
    def of(cls, status: Mapping[str, Any] | None) -> "Status":
        """Parse the `status` of an HPA.

        Args:
            status: The field of the manifest, as the API server returns it; None without a status.

        Returns:
            The status.

        Raises:
            ManifestError: If a list has an entry that is not a map.
            ValueError: If a timestamp is invalid.
        """
        status = status or {}
        return cls(
            current_replicas=status.get("currentReplicas") or 0,
            desired_replicas=status.get("desiredReplicas") or 0,
            last_scale_time=_read(status.get("lastScaleTime")),
            current_metrics=tuple(entries(status.get("currentMetrics"), "status.currentMetrics", _KIND)),
            conditions=tuple(map(_condition, entries(status.get("conditions"), "status.conditions", _KIND))),
            observed_generation=status.get("observedGeneration"),
        )

    def to_manifest(self) -> Manifest:
        """Return the status as a manifest."""
        # The API server omits this number if it is 0, and only this one.
        written: Manifest = {"currentReplicas": self.current_replicas} if self.current_replicas else {}
        written["desiredReplicas"] = self.desired_replicas
        if self.observed_generation is not None:
            written["observedGeneration"] = self.observed_generation
        if self.last_scale_time is not None:
            written["lastScaleTime"] = format_time(self.last_scale_time)
        if self.current_metrics:
            written["currentMetrics"] = [
                each.to_manifest() if isinstance(each, MetricStatus) else each for each in self.current_metrics
            ]
        if self.conditions:
            written["conditions"] = [condition.to_manifest() for condition in self.conditions]
        return written

    def equals(self, other: "Status") -> bool:
        """Return whether two statuses are equal; quantities are compared as numbers.

        Args:
            other: Another status.
        """
        if (
            self.current_replicas == other.current_replicas
            and self.desired_replicas == other.desired_replicas
            and self.last_scale_time == other.last_scale_time
            and self.observed_generation == other.observed_generation
            and self.conditions == other.conditions
            and len(self.current_metrics) == len(other.current_metrics)
            and all(map(_are_surely_equal, self.current_metrics, other.current_metrics))
        ):
            return True
        # The controller compares with equality.Semantic, to which "1" and "1000m" are equal: a status that only another
        # client wrote differently is not written again.
        return bool(_comparable(self.to_manifest()) == _comparable(other.to_manifest()))


def _are_surely_equal(ours: MetricStatus | Manifest, read: MetricStatus | Manifest) -> bool:
    """Return whether two entries of `currentMetrics` are equal as they are written.

    Nearly every sync finds the entry that the sync before has written, to the letter. Amounts that are written in
    another way are left to the comparison of numbers, which takes longer than the decision.
    """
    if isinstance(ours, MetricStatus) and not isinstance(read, MetricStatus):
        return ours.to_manifest() == read
    return ours == read


@lru_cache(maxsize=1024)
def _written(milli: int, binary: bool) -> str:  # noqa: FBT001 (a key of the cache)
    return str(Quantity.from_milli(milli, binary=binary))


def _condition(condition: Mapping[str, Any]) -> HpaCondition:
    kind, status, reason, message = (condition.get(field) or "" for field in ("type", "status", "reason", "message"))
    return HpaCondition(kind, status, reason, message, _read(condition.get("lastTransitionTime")))


def _comparable(value: Any, field: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _comparable(item, name) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_comparable(item) for item in value]
    return Quantity.parse(value) if field in _QUANTITIES else value


def _read(text: str | None) -> datetime | None:
    return None if text is None else parse_time(text)
