"""When two metrics of an HPA are the same metric.

An HPA holds its metrics in a plain list, so "set the target of this metric" needs an answer to "which entry is it". The
target never counts. The field `type` decides what does, whichever sources happen to be filled in:

| type | compared |
| --- | --- |
| Resource | name of the resource |
| ContainerResource | name of the resource, container |
| Pods, External | name of the metric, selector |
| Object | described object, name of the metric, selector |

A metric without a selector and one with the empty selector are two metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.editors.model_values import require
from ocf.errors import ConfigError
from ocf.objects import copy_model, write_model
from ocf.objects.selectors import selector_identity
from ocf.schema.metric_sources import METRIC_SOURCES

if TYPE_CHECKING:
    from kubernetes.client import V1LabelSelector, V2CrossVersionObjectReference, V2MetricSpec

__all__ = ["ANY", "AnyValue", "MetricIdentity", "check_metric", "metric_filter", "metric_identity"]


class AnyValue(Enum):
    """The type of `ANY`."""

    ANY = "any"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = AnyValue.ANY
"""Says that a filter is not given; None cannot say it, because a selector of None means "without a selector"."""

_FILTERED_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "selector": ("External", "Object", "Pods"),
    "container": ("ContainerResource",),
    "described_object": ("Object",),
}
"""The types that have what a filter compares."""


class Selector:
    """A selector, or its absence, that compares by meaning.

    It is read when it is compared, and comes last in an identity: most metrics differ before it.

    Args:
        model: The selector; None for none. One that cannot be read equals no other.
    """

    def __init__(self, model: V1LabelSelector | None) -> None:
        self._model = model

    def __eq__(self, other: object) -> bool:
        return self._meaning == other._meaning if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._meaning)

    @cached_property
    def _meaning(self) -> Hashable:
        try:
            return selector_identity(None if self._model is None else write_model(self._model))
        except ConfigError:
            return object()


class MetricIdentity(NamedTuple):
    """What makes a metric this metric; None stands for what metrics of its type do not have."""

    type: str
    name: str
    container: str | None = None
    described_object: tuple[str, str, str] | None = None
    selector: Selector | None = None


def metric_identity(metric: V2MetricSpec) -> MetricIdentity | None:
    """Return the identity of a metric.

    Args:
        metric: An entry of `spec.metrics`.

    Returns:
        Its identity; None for an unknown type, or where the source that the type calls for is missing.
    """
    kind = metric.type
    source: Any = getattr(metric, METRIC_SOURCES[kind].attribute) if kind in METRIC_SOURCES else None
    if source is None:
        return None
    if kind == "Resource":
        return MetricIdentity(kind, source.name)
    if kind == "ContainerResource":
        return MetricIdentity(kind, source.name, source.container)
    described = _reference(source.described_object) if kind == "Object" else None
    return MetricIdentity(kind, source.metric.name, None, described, Selector(source.metric.selector))


def check_metric(metric: V2MetricSpec) -> None:
    """Refuse a metric that could not be found again.

    Args:
        metric: A metric about to be stored.

    Raises:
        ConfigError: If its type is unknown, or does not agree with the sources it has.
    """
    expected = METRIC_SOURCES.get(metric.type)
    if expected is None:
        raise ConfigError(f'metrics: type "{metric.type}" is unknown, must be one of {", ".join(METRIC_SOURCES)}')
    present = [each for each in METRIC_SOURCES.values() if getattr(metric, each.attribute) is not None]
    if present != [expected]:
        seen = " and ".join(f'"{each.field}"' for each in present) or "none"
        rule = f'must have the source "{expected.field}" and no other'
        raise ConfigError(f'metrics: a metric of type "{metric.type}" {rule}, has {seen}')


def metric_filter(
    kind: str,
    name: str,
    *,
    selector: V1LabelSelector | AnyValue | None,
    container: str | AnyValue,
    described_object: V2CrossVersionObjectReference | AnyValue,
) -> Callable[[V2MetricSpec], bool]:
    """Return the condition that `remove_metric` drops by.

    Args:
        kind: The `type` of the metric.
        name: Name of the resource or metric; empty also finds entries without their source.
        selector: The selector, None for "without one".
        container: The container.
        described_object: The described object.

    Returns:
        A condition on entries of `spec.metrics`.

    Raises:
        ConfigError: If type or name is no text, or a filter is given that metrics of the type do not have.
    """
    require("type", kind, str)
    require("name", name, str)
    filters = {"selector": selector, "container": container, "described_object": described_object}
    wanted = [(facet, _comparable(kind, facet, value)) for facet, value in filters.items() if value is not ANY]

    def matches(metric: V2MetricSpec) -> bool:
        if metric.type != kind:
            return False
        identity = metric_identity(metric)
        if identity is None:
            return not name and not wanted
        return identity.name == name and all(getattr(identity, facet) == value for facet, value in wanted)

    return matches


def _reference(reference: V2CrossVersionObjectReference) -> tuple[str, str, str]:
    """Return the three parts of a reference; a group that is not given is the empty one."""
    return reference.api_version or "", reference.kind, reference.name


def _comparable(kind: str, facet: str, value: object) -> Hashable:
    """Return a filter as an identity holds it."""
    # Not at the top: importing the client takes longer than importing all the rest of this package.
    from kubernetes import client

    if kind not in _FILTERED_TYPES[facet]:
        known = " or ".join(_FILTERED_TYPES[facet])
        raise ConfigError(f'{facet}: a metric of type "{kind}" has none; metrics of type {known} have one')
    if facet == "container":
        return require(facet, value, str)
    if facet == "described_object":
        return _reference(require(facet, value, client.V2CrossVersionObjectReference))
    return Selector(None if value is None else copy_model(require(facet, value, client.V1LabelSelector)))
