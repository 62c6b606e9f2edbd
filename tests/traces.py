"""A tracer whose spans are kept in memory, and what tests read of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ocf.runtime.tracing import OpenTelemetryTracer

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

__all__ = ["Traces", "attributes", "parent_id", "recording", "span_id", "trace_id"]

# Attributes that a tree shows, in this order.
SHOWN: Final = ("ocf.condition.reason", "ocf.resource.name", "ocf.resource.action", "ocf.resource.why", "ocf.result")


@dataclass
class Traces:
    """The spans that were recorded.

    Args:
        tracer: Records them.
        provider: The provider of the SDK, for spans of a test's own.
        exporter: Keeps them.
    """

    tracer: OpenTelemetryTracer
    provider: TracerProvider
    exporter: InMemorySpanExporter = field(repr=False)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The ended spans, in the order of their starts."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, start: str) -> list[ReadableSpan]:
        """Return the spans whose names begin with a text."""
        return [span for span in self.spans if span.name.startswith(start)]

    def one(self, start: str) -> ReadableSpan:
        """Return the only span whose name begins with a text."""
        (span,) = self.named(start)
        return span

    def children(self, parent: ReadableSpan | None) -> list[ReadableSpan]:
        """Return the children of a span; those without a parent for None."""
        wanted = None if parent is None else span_id(parent)
        return [span for span in self.spans if parent_id(span) == wanted]

    def tree(self, parent: ReadableSpan | None = None, depth: int = 0) -> list[str]:
        """Return the spans below a span as indented lines, with some of their attributes."""
        lines = []
        for span in self.children(parent):
            found = attributes(span)
            shown = [str(found[name]) for name in SHOWN if name in found]
            failed = ["failed"] if span.status.status_code.name == "ERROR" else []
            lines += [f"{'  ' * depth}{span.name}: {', '.join([*shown, *failed])}".rstrip(": ")]
            lines += self.tree(span, depth + 1)
        return lines

    def clear(self) -> None:
        """Forget the spans."""
        self.exporter.clear()


def parent_id(span: ReadableSpan) -> int | None:
    """Return the id of a span's parent."""
    return None if span.parent is None else span.parent.span_id


def context(span: ReadableSpan) -> SpanContext:
    """Return the context of a span that was recorded."""
    found = span.get_span_context()
    assert found is not None
    return found


def span_id(span: ReadableSpan) -> int:
    """Return the id of a span."""
    return context(span).span_id


def trace_id(span: ReadableSpan) -> int:
    """Return the id of the trace of a span."""
    return context(span).trace_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


@contextmanager
def recording() -> Iterator[Traces]:
    """Record spans in memory while the block runs, with a tracer that is not active yet."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    try:
        yield Traces(OpenTelemetryTracer(provider), provider, exporter)
    finally:
        provider.shutdown()
