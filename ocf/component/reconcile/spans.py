"""Spans of components and of their resources: names and attributes, without the value of any field."""

from __future__ import annotations

from typing import Any

from ocf.component.model.registration import Registration
from ocf.component.status.conditions import Condition
from ocf.component.status.results import ResourceOutcome
from ocf.concepts.tracing import SpanAttributes, SpanStart, object_attributes
from ocf.objects import Manifest, ObjectKey

__all__ = ["component_outcome", "component_span", "object_span", "resource_outcome", "resource_span"]


def component_span(name: str) -> SpanStart:
    """Return the span of one reconcile of a component.

    Args:
        name: Name of the component.
    """
    return SpanStart(name=f"component {name}", attributes={"ocf.component": name})


def component_outcome(result: tuple[Condition, list[ResourceOutcome]]) -> SpanAttributes:
    """Return what a reconcile of a component led to.

    Args:
        result: Its condition, and the outcomes of its resources.
    """
    condition, outcomes = result
    return {
        "ocf.condition.type": condition.type,
        "ocf.condition.status": str(condition.status),
        "ocf.condition.reason": str(condition.reason),
        "ocf.writes": sum(outcome.writes for outcome in outcomes),
    }


def resource_span(entry: Registration, *_: object) -> SpanStart:
    """Return the span of a resource: its guard, its apply or read, and its status.

    Args:
        entry: The resource.
    """
    return _span(entry.key)


def object_span(live: Manifest) -> SpanStart:
    """Return the span of an object that is deleted or orphaned.

    Args:
        live: The object.
    """
    return _span(ObjectKey.of(live))


def resource_outcome(outcome: ResourceOutcome) -> SpanAttributes:
    """Return what was done to an object.

    Args:
        outcome: The outcome of the resource.
    """
    report: Any = outcome.report
    return {
        "ocf.resource.action": str(outcome.action),
        "ocf.resource.why": None if outcome.why is None else str(outcome.why),
        "ocf.resource.status": None if report is None else str(report.status),
        "ocf.resource.detail": outcome.detail or None,
        "ocf.writes": outcome.writes,
    }


def _span(key: ObjectKey) -> SpanStart:
    return SpanStart(name=f"resource {key.kind}", attributes=object_attributes("ocf.resource", key))
