"""Spans of the syncs of autoscalers."""

from ocf.concepts.tracing import SpanAttributes, SpanStart, k8s_attributes, object_attributes
from ocf.controllers.hpa.plan import Plan
from ocf.objects import ObjectKey

__all__ = ["sync_attributes", "sync_span"]


def sync_span(key: ObjectKey) -> SpanStart:
    """Return the span of one sync.

    Args:
        key: The autoscaler, of whichever kind.
    """
    hpa = k8s_attributes("autoscaling", "horizontalpodautoscalers", key.namespace, key.name)
    return SpanStart(name=f"sync {key.kind}", attributes={**object_attributes("ocf.hpa", key), **hpa})


def sync_attributes(planned: Plan) -> SpanAttributes:
    """Return what a sync decided.

    Args:
        planned: The plan as it was carried out.
    """
    decision = planned.decision
    attributes: dict[str, str | int | None] = {"ocf.hpa.phase": str(planned.phase)}
    if decision is not None:
        attributes |= {
            "ocf.hpa.current_replicas": decision.trace.current,
            "ocf.hpa.desired_replicas": decision.desired,
            "ocf.hpa.action": decision.action,
            "ocf.hpa.error": None if decision.error is None else decision.error.kind,
        }
    return attributes
