"""Decoding of entries of the metrics APIs, as the built-in controller's client decodes them.

That client decodes a response as a whole: one invalid quantity makes the whole response an error. Here only the entries
of one autoscaler are decoded, so an invalid entry does not affect other autoscalers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ocf.autoscaling.api import decoders
from ocf.autoscaling.api.decoders import METADATA, Reader, instant, integer, items, read_object, struct, text, texts
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS
from ocf.errors import FieldProblem, ManifestError, QuantityError
from ocf.objects import Manifest

__all__ = ["check_measurement", "decode_external_values", "decode_pod_metrics", "decode_values"]


def decode_pod_metrics(entries: Sequence[Any]) -> list[Manifest]:
    """Decode entries of metrics.k8s.io/v1beta1.

    Returns:
        PodMetrics without unknown fields.
    """
    return [read_object(entry, _CLIENTS[_POD], f"{RESOURCE_METRICS}/v1beta1", _POD, strict=False) for entry in entries]


def decode_values(entries: Sequence[Any]) -> list[Manifest]:
    """Decode entries of custom.metrics.k8s.io, v1beta2 or v1beta1.

    Returns:
        MetricValues without unknown fields.
    """
    return [
        _with_value(read_object(_unversioned(entry), _CLIENTS[_VALUE], _ANY, _VALUE, strict=False)) for entry in entries
    ]


def decode_external_values(entries: Sequence[Any]) -> list[Manifest]:
    """Decode entries of external.metrics.k8s.io/v1beta1.

    Returns:
        ExternalMetricValues without unknown fields.
    """
    version = f"{EXTERNAL_METRICS}/v1beta1"
    return [_with_value(read_object(entry, _CLIENTS[_SERIES], version, _SERIES, strict=False)) for entry in entries]


def check_measurement(entry: Any, kind: str) -> None:
    """Check an entry that a user wrote, and report all of its errors.

    Args:
        kind: Its expected kind: PodMetrics, MetricValue or ExternalMetricValue; the version does not count.

    Example:
        >>> check_measurement({"metricName": 5, "metricLabels": "all"}, "ExternalMetricValue")
        Traceback (most recent call last):
        ocf.errors.ManifestError: ExternalMetricValue: metricName: must be a text, not 5; metricLabels: must be a map,
        not 'all'
    """
    read_object(_unversioned(entry), _OURS[kind], _ANY, kind, strict=False)


def _with_value(entry: Manifest) -> Manifest:
    """Reject an entry without a value; the built-in controller takes it for 0, and scales down."""
    # A Go struct has 0 for what is missing; an adapter that forgets the field would shrink the workload to its minimum.
    if "value" not in entry:
        raise ManifestError("a metric value", [FieldProblem("value", "is required")])
    return entry


def _unversioned(entry: Any) -> Any:
    return {**entry, "apiVersion": _ANY} if isinstance(entry, Mapping) else entry


def quantity(value: Any, path: str, _problems: list[FieldProblem]) -> Any:
    """Decode a quantity; raise the error of the built-in controller's client if it is invalid."""
    ours: list[FieldProblem] = []
    found = decoders.quantity(value, path, ours)
    if ours:
        raise QuantityError(_sentence(value))
    return found


def _sentence(value: Any) -> str:
    written = value.strip() if isinstance(value, str) else ""
    if written and _NUMBER_AND_SUFFIX.fullmatch(written):
        return "unable to parse quantity's suffix"
    return f"quantities must match the regular expression '^{_FORM}$'"


_FORM: Final = "([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)"
# The form that is really parsed: the expression in the message would allow two points.
_NUMBER_AND_SUFFIX: Final = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")
_POD: Final = "PodMetrics"
_VALUE: Final = "MetricValue"
_SERIES: Final = "ExternalMetricValue"
_ANY: Final = CUSTOM_METRICS
_INT64: Final = integer("int64")


def _readers(amount: Reader) -> dict[str, Reader]:
    """Return the decoders of the entries of the three APIs by kind, with the given decoder of amounts."""

    def amounts(value: Any, path: str, problems: list[FieldProblem]) -> Any:
        names: dict[str, Reader] = dict.fromkeys(value, amount) if isinstance(value, Mapping) else {}
        return struct(**names)(value, path, problems)

    common = {"apiVersion": text, "kind": text, "timestamp": instant}
    custom = {**common, "metricName": text, "windowSeconds": _INT64, "window": _INT64, "value": amount}
    container = struct(name=text, usage=amounts)
    described = struct(kind=text, namespace=text, name=text, apiVersion=text)
    return {
        _POD: struct(**common, metadata=METADATA, window=text, containers=items(container, dict)),
        _VALUE: struct(**custom, metric=struct(name=text), describedObject=described),
        _SERIES: struct(**custom, metricLabels=texts),
    }


_CLIENTS: Final = _readers(quantity)
_OURS: Final = _readers(decoders.quantity)
