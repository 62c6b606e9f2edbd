"""The entries of the metrics APIs' answers, read as the controller's client would decode them.

It decodes an answer as a whole: one value that is no quantity, and there is no answer. Here the entries of one
autoscaler are decoded, so what is wrong with one does not touch the others.
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

    Args:
        entries: The entries.

    Returns:
        PodMetrics without unknown fields.

    Raises:
        ManifestError: If a field has a value of a wrong type; names all of an entry.
        QuantityError: If an amount is no quantity.
    """
    return [read_object(entry, _CLIENTS[_POD], f"{RESOURCE_METRICS}/v1beta1", _POD, strict=False) for entry in entries]


def decode_values(entries: Sequence[Any]) -> list[Manifest]:
    """Decode entries of custom.metrics.k8s.io, v1beta2 or v1beta1.

    Args:
        entries: The entries.

    Returns:
        MetricValues without unknown fields.

    Raises:
        ManifestError: If a field has a value of a wrong type, or there is no value.
        QuantityError: If the value is no quantity.
    """
    return [
        _with_value(read_object(_unversioned(entry), _CLIENTS[_VALUE], _ANY, _VALUE, strict=False)) for entry in entries
    ]


def decode_external_values(entries: Sequence[Any]) -> list[Manifest]:
    """Decode entries of external.metrics.k8s.io/v1beta1.

    Args:
        entries: The entries.

    Returns:
        ExternalMetricValues without unknown fields.

    Raises:
        ManifestError: If a field has a value of a wrong type, or there is no value.
        QuantityError: If the value is no quantity.
    """
    version = f"{EXTERNAL_METRICS}/v1beta1"
    return [_with_value(read_object(entry, _CLIENTS[_SERIES], version, _SERIES, strict=False)) for entry in entries]


def check_measurement(entry: Any, kind: str) -> None:
    """Refuse an entry that somebody wrote, and tell all that is wrong with it, as no client does.

    Args:
        entry: The entry.
        kind: What it is to be: PodMetrics, MetricValue or ExternalMetricValue; the version does not count.

    Raises:
        ManifestError: With every field that holds a value of a wrong type, or no quantity.

    Example:
        >>> check_measurement({"metricName": 5, "metricLabels": "all"}, "ExternalMetricValue")
        Traceback (most recent call last):
        ocf.errors.ManifestError: ExternalMetricValue: metricName: must be a text, not 5; metricLabels: must be a map,
        not 'all'
    """
    read_object(_unversioned(entry), _OURS[kind], _ANY, kind, strict=False)


def _with_value(entry: Manifest) -> Manifest:
    """Refuse an entry without a value: to the controller it is 0, and makes it scale down; to us it is not known."""
    if "value" not in entry:
        raise ManifestError("a measurement", [FieldProblem("value", "must be there")])
    return entry


def _unversioned(entry: Any) -> Any:
    return {**entry, "apiVersion": _ANY} if isinstance(entry, Mapping) else entry


def quantity(value: Any, path: str, _problems: list[FieldProblem]) -> Any:
    """Read a quantity; one that is none ends everything, with the sentence of the controller's client."""
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
# What is looked for in fact: the expression in the sentence would let two points pass.
_NUMBER_AND_SUFFIX: Final = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?[eEinumkKMGTP]*[-+]?[0-9]*")
_POD: Final = "PodMetrics"
_VALUE: Final = "MetricValue"
_SERIES: Final = "ExternalMetricValue"
_ANY: Final = CUSTOM_METRICS
_INT64: Final = integer("int64")


def _readers(amount: Reader) -> dict[str, Reader]:
    """Return how the entries of the three APIs are read, by kind; amounts as is said."""

    def amounts(value: Any, path: str, problems: list[FieldProblem]) -> Any:
        names: dict[str, Reader] = dict.fromkeys(value, amount) if isinstance(value, Mapping) else {}
        return struct(**names)(value, path, problems)

    told = {"apiVersion": text, "kind": text, "timestamp": instant}
    custom = {**told, "metricName": text, "windowSeconds": _INT64, "window": _INT64, "value": amount}
    container = struct(name=text, usage=amounts)
    described = struct(kind=text, namespace=text, name=text, apiVersion=text)
    return {
        _POD: struct(**told, metadata=METADATA, window=text, containers=items(container, dict)),
        _VALUE: struct(**custom, metric=struct(name=text), describedObject=described),
        _SERIES: struct(**custom, metricLabels=texts),
    }


_CLIENTS: Final = _readers(quantity)
_OURS: Final = _readers(decoders.quantity)
