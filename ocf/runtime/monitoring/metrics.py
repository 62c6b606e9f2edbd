"""Prometheus metrics of reconciles.

The labels of the counters are names from the operator's code, never owners, so the number of series does not grow with
the number of owners. Only the conditions have one series per owner and condition, which is removed with the owner.

All values belong to one collector that a registry reads when it is scraped. There is no global state, so a test can run
two operators.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from ocf.concepts import Attempt, Event
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import parse_time

__all__ = ["Exposition", "PrometheusRecorder", "condition_metric", "render_metrics"]

_APPLIES: Final = "ocf_resource_apply_total"
_FAILURES: Final = "ocf_resource_apply_errors_total"
_RESOURCE_LABELS: Final = ("controller", "owner_kind", "component", "resource", "kind")
_APPLY_LABELS: Final = (*_RESOURCE_LABELS, "operation", "why")
_OWNER_LABELS: Final = ("controller", "kind", "name", "namespace")
_CONDITION_LABELS: Final = (*_OWNER_LABELS, "condition", "status", "reason", "id")
# Value of the labels component and resource once a counter has reached its limit of series.
_OTHER: Final = "other"
_NAMESPACE: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# As long as the longest name of an object; the API allows 1024 characters for the reason of a condition.
_LONGEST_VALUE: Final = 253

_Labels: TypeAlias = tuple[str, ...]
_Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily


@dataclass(eq=False, slots=True)
class _Series:
    """The collector of one registry, with its series."""

    condition: str
    limit: int
    applies: Counter[_Labels] = field(default_factory=Counter)
    failures: Counter[_Labels] = field(default_factory=Counter)
    conditions: dict[_Labels, dict[_Labels, float]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def count(self, counter: Counter[_Labels], labels: _Labels) -> None:
        """Increment a counter; beyond the limit a new series is counted as `other` of the same kinds."""
        with self.lock:
            # Nearly all are counted already; those labels are bounded.
            if labels not in counter:
                labels = tuple(map(_bounded, labels))
            if labels not in counter and len(counter) >= self.limit:
                controller, owner_kind, _, _, *rest = labels
                labels = (controller, owner_kind, _OTHER, _OTHER, *rest)
            counter[labels] += 1

    def replace(self, owner: _Labels, series: dict[_Labels, float]) -> int:
        """Replace all conditions of an owner; return the previous number."""
        with self.lock:
            before = self.conditions.pop(owner, {})
            if series:
                self.conditions[owner] = series
            return len(before)

    def describe(self) -> Iterator[_Family]:
        """Yield the families without samples, so that a registry rejects duplicates."""
        yield CounterMetricFamily(
            _APPLIES, "Managed resources brought to their desired state, by what it took.", labels=_APPLY_LABELS
        )
        yield CounterMetricFamily(
            _FAILURES, "Managed resources that could not be brought to their desired state.", labels=_RESOURCE_LABELS
        )
        yield GaugeMetricFamily(
            self.condition,
            "Conditions of custom resources, one series for each; the value is when its status changed last.",
            labels=_CONDITION_LABELS,
        )

    def collect(self) -> Iterator[_Family]:
        """Yield the families with their present values."""
        with self.lock:
            conditions = {labels: value for series in self.conditions.values() for labels, value in series.items()}
            found: tuple[dict[_Labels, float], ...] = ({**self.applies}, {**self.failures}, conditions)
        for family, values in zip(self.describe(), found, strict=True):
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family


class PrometheusRecorder:
    """A recorder that counts attempts and keeps conditions, for Prometheus to scrape.

    Args:
        namespace: Prefix of the name of the condition metric; one word for the operator, `[a-zA-Z0-9_]`. The counters
            have the same names in every operator.
        controller: Value of the label `controller`.
        registry: Registry of the metrics; by default a new one. Controllers of one process that share a registry need
            recorders from `for_controller` of the first one.
        limit: Maximum number of series of each counter; further ones are counted as component and resource `other`.

    Raises:
        ConfigError: If the namespace cannot start the name of a metric, or the registry has these metrics already.

    Attributes:
        registry: Registry of the metrics.
        controller: Value of the label `controller`.

    Example:
        >>> from ocf.concepts import ApplyOperation
        >>> from ocf.concepts.recorder import Why
        >>> recorder = PrometheusRecorder("shops", controller="shop")
        >>> recorder.attempted(Attempt(
        ...     owner=ObjectKey("example.com/v1", "Shop", "corner", "town"), component="web",
        ...     resource=ObjectKey("apps/v1", "Deployment", "backend", "town"), label="backend",
        ...     operation=ApplyOperation.NONE, why=Why.EQUAL))
        >>> print([line for line in recorder.render().body.decode().splitlines() if "#" not in line][0])
        ocf_resource_apply_total{component="web",controller="shop",kind="Deployment",operation="none",owner_kind="Shop",resource="backend",why="equal"} 1.0
    """  # noqa: E501 (a line of the exposition cannot be broken)

    def __init__(
        self, namespace: str = "ocf", *, controller: str, registry: CollectorRegistry | None = None, limit: int = 5_000
    ) -> None:
        self.registry: Final = CollectorRegistry() if registry is None else registry
        self.controller = controller
        self._series = _Series(condition_metric(namespace), limit)
        try:
            self.registry.register(self._series)
        except ValueError as error:
            raise ConfigError(
                f'metrics of controller "{controller}": the registry has them already; create recorders of further'
                " controllers with for_controller(...) of the first one"
            ) from error

    def for_controller(self, controller: str) -> PrometheusRecorder:
        """Return a recorder for another controller of this process, with the same metrics.

        Args:
            controller: Value of the label `controller`.
        """
        other = copy(self)
        other.controller = controller
        return other

    def attempted(self, attempt: Attempt) -> None:
        """Count an attempt: one apply or one failure."""
        labels = (
            self.controller,
            attempt.owner.kind,
            attempt.component,
            attempt.label.strip() or attempt.resource.kind.lower(),
            attempt.resource.kind,
        )
        if attempt.operation is None:
            self._series.count(self._series.failures, labels)
        else:
            self._series.count(self._series.applies, (*labels, attempt.operation.lower(), str(attempt.why)))

    def happened(self, event: Event) -> None:
        """Ignore an event: its attempt is counted already."""

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Replace the conditions of an owner.

        A condition without `lastTransitionTime` is skipped, because that is the value of the metric.

        Args:
            conditions: All conditions, those of other controllers included.
        """
        found = {}
        for condition in conditions:
            since = _since(condition)
            if since is not None:
                words = (_bounded(str(condition.get(name) or "")) for name in ("type", "status", "reason"))
                labels = (
                    self.controller,
                    owner.kind,
                    owner.name,
                    owner.namespace,
                    *words,
                    f"{owner.namespace}/{owner.name}",
                )
                found[labels] = since
        self._series.replace(self._of(owner), found)

    def remove_conditions_for(self, owner: ObjectKey) -> int:
        """Remove the conditions of a deleted owner.

        Returns:
            The number of removed series.
        """
        return self._series.replace(self._of(owner), {})

    def render(self, accept: str = "") -> Exposition:
        """Render the metrics of the registry as text.

        Args:
            accept: The `Accept` header of the request.
        """
        return render_metrics(self.registry, accept)

    def _of(self, owner: ObjectKey) -> _Labels:
        return (self.controller, owner.api_version.partition("/")[0], owner.kind, owner.namespace, owner.name)


def condition_metric(namespace: str) -> str:
    """Return the name of the metric of the conditions.

    Example:
        >>> condition_metric("shops")
        'shops_controller_condition'
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise ConfigError(f"namespace of the metrics must match {_NAMESPACE.pattern}, got {namespace!r}")
    return f"{namespace}_controller_condition"


@dataclass(frozen=True, slots=True)
class Exposition:
    """The response to a scrape.

    Args:
        body: The metrics.
        content_type: Value of the header `Content-Type`.
    """

    body: bytes
    content_type: str


def render_metrics(registry: CollectorRegistry, accept: str = "") -> Exposition:
    """Render the metrics of a registry as text, in the requested format.

    Args:
        accept: The `Accept` header of the request; empty requests the plain text format.

    Returns:
        Body and content type.

    Example:
        >>> render_metrics(CollectorRegistry())
        Exposition(body=b'', content_type='text/plain; version=0.0.4; charset=utf-8')
    """
    encode, content_type = choose_encoder(accept)
    return Exposition(encode(registry), content_type)


def _bounded(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[: _LONGEST_VALUE - 1]}…"


def _since(condition: Manifest) -> float | None:
    try:
        return parse_time(str(condition["lastTransitionTime"])).timestamp()
    except (KeyError, ValueError):
        return None
