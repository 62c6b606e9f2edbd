"""Identity of a metric of an HPA.

An HPA stores its metrics in a plain list, so changing the target of a metric requires finding its entry. The target is
not part of the identity. The field `type` determines the parts, regardless of which sources are set:

| type | identity |
| --- | --- |
| Resource | name of the resource |
| ContainerResource | name of the resource, container |
| Pods, External | name of the metric, selector |
| Object | described object, name of the metric, selector |

A metric without a selector and one with an empty selector are different metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple

from ocf.editors.model_values import require
from ocf.errors import ConfigError
from ocf.lazy_types.kubernetes import V1LabelSelector, V2CrossVersionObjectReference, V2MetricSpec
from ocf.objects import write_model
from ocf.objects.models import copy_model
from ocf.objects.selectors import selector_identity
from ocf.objects.suggestions import nearest
from ocf.schema.metric_sources import METRIC_SOURCES

__all__ = ["ANY", "AnyValue", "MetricIdentity", "check_metric", "metric_filter", "metric_identity"]


class AnyValue(Enum):
    """The type of `ANY`."""

    ANY = "any"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = AnyValue.ANY
"""Default of a filter that is not given; None cannot be the default, because it means "without a selector"."""

_FILTERED_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "selector": ("External", "Object", "Pods"),
    "container": ("ContainerResource",),
    "described_object": ("Object",),
}
"""The types that each filter applies to."""


class Selector:
    """A selector that is compared by meaning.

    It is parsed on the first comparison, and comes last in an identity, because most metrics differ in an earlier part.

    Args:
        model: The selector; None for a missing selector. An invalid selector is different from all others.
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
    """Identity of a metric; fields that do not apply to its type are None."""

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
        The identity; None for an unknown type or if the source that the type requires is missing.
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
    """Check that a metric has an identity.

    Args:
        metric: A metric that is going to be stored.

    Raises:
        ConfigError: If its type is unknown or does not match its sources.
    """
    _check_type(metric.type)
    expected = METRIC_SOURCES[metric.type]
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
    """Return the condition for the metrics that `remove_metric` removes.

    Args:
        kind: The `type` of the metric.
        name: Name of the resource or metric; an empty name also matches entries without a source.
        selector: The selector; None for metrics without a selector.

    Returns:
        A condition on entries of `spec.metrics`.

    Raises:
        ConfigError: If the type is unknown, the name is not a string, or a filter does not apply to the type.
    """
    _check_type(require("type", kind, str))
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


def _check_type(kind: str) -> None:
    if kind in METRIC_SOURCES:
        return
    found = nearest(kind, METRIC_SOURCES)
    hint = f'; did you mean "{found}"?' if found else ""
    raise ConfigError(f'metrics: type "{kind}" is unknown, must be one of {", ".join(METRIC_SOURCES)}{hint}')


def _reference(reference: V2CrossVersionObjectReference) -> tuple[str, str, str]:
    """Return the parts of a reference; a missing `apiVersion` is empty."""
    return reference.api_version or "", reference.kind, reference.name


def _comparable(kind: str, facet: str, value: object) -> Hashable:
    """Return a filter in the form that an identity has."""
    # Not at the top of the module: importing the client takes longer than importing the rest of this package.
    from kubernetes import client

    if kind not in _FILTERED_TYPES[facet]:
        known = " or ".join(_FILTERED_TYPES[facet])
        raise ConfigError(f'{facet}: a metric of type "{kind}" has none; metrics of type {known} have one')
    if facet == "container":
        return require(facet, value, str)
    if facet == "described_object":
        return _reference(require(facet, value, client.V2CrossVersionObjectReference))
    return Selector(None if value is None else copy_model(require(facet, value, client.V1LabelSelector)))
