"""Metric values from the responses of the three metrics APIs.

Missing data matters as much as data: a pod has no sample unless all its containers were measured, and a response
without entries is a failure, not a zero.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from ocf.autoscaling.algorithm.arithmetic import saturate64
from ocf.autoscaling.algorithm.entries import entries
from ocf.autoscaling.algorithm.history import ZERO_TIME
from ocf.autoscaling.algorithm.snapshot import Sample, Unavailable
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, Quantity
from ocf.objects.durations import parse_duration
from ocf.objects.timestamps import parse_time

__all__ = ["read_external", "read_object", "read_pods", "read_resource"]

_CUSTOM: Final = "MetricValueList"


def read_resource(items: Sequence[Manifest], resource: str, container: str = "") -> dict[str, Sample] | Unavailable:
    """Parse the usage of a resource by pod.

    Args:
        items: The entries of a PodMetricsList, metrics.k8s.io/v1beta1.
        resource: Name of the resource.
        container: Name of the only container to count; empty for the sum of all.

    Returns:
        The samples by pod name. A pod is left out if a container does not report the resource, if the pod has no
        containers, or if it does not have the named container.

    Raises:
        QuantityError: If a usage is not a quantity.
        ManifestError: If a window is not a duration, or a list has an entry that is not a map.
        ValueError: If a timestamp is invalid.

    Example:
        >>> usage = [{"name": "app", "usage": {"cpu": "250m"}}]
        >>> item = {"metadata": {"name": "web-0"}, "timestamp": "2026-01-31T12:00:00Z", "window": "30s"}
        >>> read_resource([{**item, "containers": usage}], "cpu")["web-0"].value
        250
    """
    if not items:
        return Unavailable("no metrics returned from resource metrics API")
    samples: dict[str, Sample] = {}
    for item in entries(items, "items", "PodMetricsList"):
        containers = entries(item.get("containers"), "containers", "PodMetrics", _name(item, "metadata"))
        # Without the named container a pod has no sample; older controllers failed the whole metric.
        chosen = [each for each in containers if container in {"", each.get("name")}]
        value = _total_usage(chosen[:1] if container else chosen, resource)
        if value is not None:
            samples[_name(item, "metadata")] = Sample(value, _instant(item), _duration(item.get("window") or "0s"))
    return samples


def read_pods(items: Sequence[Manifest]) -> dict[str, Sample] | Unavailable:
    """Parse a custom metric by pod.

    Args:
        items: The entries of a MetricValueList about pods, custom.metrics.k8s.io/v1beta2.

    Returns:
        The samples by pod name; the default window is one minute.

    Raises:
        ManifestError: If an entry is not a map.
        QuantityError: If a value is not a quantity.
        ValueError: If a timestamp is invalid.
    """
    if not items:
        return Unavailable("no metrics returned from custom metrics API")
    return {
        _name(item, "describedObject"): Sample(_value(item), _instant(item), _window(item))
        for item in entries(items, "items", _CUSTOM)
    }


def read_object(items: Sequence[Manifest]) -> tuple[int] | Unavailable:
    """Parse a custom metric of one object.

    Args:
        items: The entries of a MetricValueList, custom.metrics.k8s.io/v1beta2; the first is used.

    Returns:
        The value in thousandths.

    Raises:
        ManifestError: If an entry is not a map.
        QuantityError: If the value is not a quantity.
    """
    return (
        (_value(entries(items, "items", _CUSTOM)[0]),)
        if items
        else Unavailable("no metrics returned from custom metrics API")
    )


def read_external(items: Iterable[Manifest]) -> tuple[int, ...] | Unavailable:
    """Parse an external metric.

    Args:
        items: The entries of an ExternalMetricValueList, external.metrics.k8s.io/v1beta1.

    Returns:
        The value of each series in thousandths.

    Raises:
        ManifestError: If an entry is not a map.
        QuantityError: If a value is not a quantity.
    """
    values = tuple(map(_value, entries([*items], "items", "ExternalMetricValueList")))
    return values or Unavailable("no metrics returned from external metrics API")


def _total_usage(containers: Sequence[Manifest], resource: str) -> int | None:
    total = 0
    for each in containers:
        usage = (each.get("usage") or {}).get(resource)
        # A sum without one container would look like a pod that needs less than it does (getPodMetrics gives up as
        # well).
        if usage is None:
            return None
        milli = Quantity.parse(usage).milli
        if milli < 0:
            return milli  # another container would hide it; the pod counts as not measured
        total += milli
    return saturate64(total) if containers else None


def _name(item: Manifest, field: str) -> str:
    return str((item.get(field) or {}).get("name") or "")


def _value(item: Manifest) -> int:
    return Quantity.parse(item.get("value", "0")).milli


def _instant(item: Manifest) -> datetime:
    written = item.get("timestamp")
    # Never recent enough: a cpu sample without a time does not count while its pod is initialized.
    return ZERO_TIME if written is None else parse_time(written)


def _window(item: Manifest) -> timedelta:
    # In v1beta1 of this API the field is called `window`.
    seconds = item.get("windowSeconds", item.get("window"))
    return timedelta(minutes=1) if seconds is None else timedelta(seconds=seconds)


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ManifestError("PodMetrics", [FieldProblem("window", str(error))]) from error
