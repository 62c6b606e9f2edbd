"""Usage of the pods of a namespace: decoded once per response, selected and added up for each autoscaler.

Most entries have a plain form, which `_plain` decodes without the general decoders: a tenth of their time, and the same
result. Every other entry, also an invalid one, takes the general way, whose errors are those of the built-in
controller's client. An entry is decoded when an autoscaler selects it, so an invalid one does not affect the others.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeGuard

from ocf.autoscaling.algorithm import Sample, Unavailable, read_resource
from ocf.controllers.metrics_client.decoding import decode_pod_metrics
from ocf.objects.durations import parse_duration
from ocf.objects.timestamps import parse_rfc3339

__all__ = ["PodUsage", "has_text_labels", "usage_samples"]


class _Plain(NamedTuple):
    """A decoded entry: its pod, the end and length of the measurement, and thousandths by container and resource."""

    name: str
    at: datetime
    window: timedelta
    containers: tuple[tuple[str, Mapping[str, int]], ...]


class PodUsage:
    """One PodMetrics of metrics.k8s.io/v1beta1.

    Args:
        entry: The entry as the API returned it.

    Example:
        >>> usage = [{"name": "app", "usage": {"cpu": "250m"}}, {"name": "proxy", "usage": {"cpu": "1500u"}}]
        >>> pod = {"metadata": {"name": "web-0"}, "timestamp": "2026-01-31T12:00:00Z", "window": "30s"}
        >>> name, sample = PodUsage({**pod, "containers": usage}).sample("cpu")
        >>> name, sample.value
        ('web-0', 252)
    """

    __slots__ = ("_decoded", "entry")

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self._decoded: _Plain | bool = False

    def sample(self, resource: str, container: str = "") -> tuple[str, Sample | None]:
        """Return the usage of a resource by the pod.

        Args:
            resource: The name of the resource.
            container: The name of the only container to count; empty for the sum of all.

        Returns:
            The name of the pod, and its sample; None if it has none, as in `read_resource`.

        Raises:
            ManifestError: If a field has a value of a wrong type.
            QuantityError: If an amount is not a quantity.
        """
        if self._decoded is False:
            self._decoded = _plain(self.entry) or True
        plain = self._decoded
        if isinstance(plain, bool):
            found = read_resource(decode_pod_metrics([self.entry]), resource, container)
            return next(iter(found.items()), ("", None)) if isinstance(found, Mapping) else ("", None)
        amounts = [usage.get(resource) for name, usage in plain.containers if container in {"", name}]
        if container:
            amounts = amounts[:1]
        total = 0
        for amount in amounts:
            if amount is None:
                return plain.name, None
            total += amount
        return plain.name, Sample(total, plain.at, plain.window) if amounts else None


def usage_samples(entries: Iterable[PodUsage], resource: str, container: str = "") -> dict[str, Sample] | Unavailable:
    """Return the samples of pods; as `read_resource`.

    Args:
        container: The name of the only container to count; empty for the sum of all.
    """
    found = [entry.sample(resource, container) for entry in entries]
    if not found:
        return Unavailable("no metrics returned from resource metrics API")
    return {name: sample for name, sample in found if sample is not None}


_FIELDS: Final = frozenset({"metadata", "timestamp", "window", "containers"})
_METADATA: Final = frozenset({"name", "namespace", "creationTimestamp", "labels"})
_CONTAINER: Final = {"name", "usage"}
# Such as metrics-server writes, and neither negative nor fractional; the general decoders take all other forms.
_AMOUNT: Final = re.compile(r"([0-9]{1,12})(n|u|m||k|Ki|Mi)")
_TEXT: Final = {str}
_MICRO: Final = 10**6  # billionths of a thousandth
_NANO_OF: Final = {
    "n": 1,
    "u": 10**3,
    "m": _MICRO,
    "": 10**9,
    "k": 10**12,
    "Ki": 2**10 * 10**9,
    "Mi": 2**20 * 10**9,
}


def _plain(entry: Any) -> _Plain | None:
    """Decode an entry of the plain form; None for every other entry."""
    if entry.__class__ is not dict or not entry.keys() <= _FIELDS:
        return None
    metadata, containers = entry.get("metadata"), entry.get("containers")
    if metadata.__class__ is not dict or not metadata.keys() <= _METADATA or containers.__class__ is not list:
        return None
    name, made = metadata.get("name"), metadata.get("creationTimestamp")
    if not isinstance(name, str) or not isinstance(metadata.get("namespace", ""), str):
        return None
    at, window = _instant(entry.get("timestamp")), _length(entry.get("window"))
    if at is None or window is None or (made is not None and _instant(made) is None):
        return None
    read = [found for found in map(_container, containers) if found is not None]
    if len(read) < len(containers) or not has_text_labels(metadata.get("labels", {})):
        return None
    return _Plain(name, at, window, tuple(read))


def has_text_labels(labels: Any) -> TypeGuard[dict[str, str]]:
    """Return whether a value is a map from texts to texts, as labels are."""
    # One class each; a loop in Python takes several times as long.
    return labels.__class__ is dict and {*map(type, labels), *map(type, labels.values())} <= _TEXT


def _container(container: Any) -> tuple[str, Mapping[str, int]] | None:
    if container.__class__ is not dict or container.keys() != _CONTAINER:
        return None
    name, usage = container["name"], container["usage"]
    if name.__class__ is not str or usage.__class__ is not dict:
        return None
    amounts = {}
    for resource, amount in usage.items():
        found = _AMOUNT.fullmatch(amount) if amount.__class__ is str and resource.__class__ is str else None
        if found is None:
            return None
        digits, suffix = found.groups()
        amounts[resource] = -(-int(digits) * _NANO_OF[suffix] // _MICRO)  # rounded up, as `Quantity.milli`
    return name, amounts


def _instant(text: Any) -> datetime | None:
    # Cached, because the entries of one response mostly have the same few times.
    return _parsed_instant(text) if text.__class__ is str else None


def _length(text: Any) -> timedelta | None:
    return _parsed_length(text) if text.__class__ is str else None


@lru_cache(maxsize=4096)
def _parsed_instant(text: str) -> datetime | None:
    try:
        return parse_rfc3339(text).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=256)
def _parsed_length(text: str) -> timedelta | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None
