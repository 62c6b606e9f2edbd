"""Tracer that records the spans of `ocf` with OpenTelemetry.

Only the API of OpenTelemetry is used (`ocf[otel]`). The program that runs the operator decides which SDK and which
exporter record the spans, as for every instrumented library; without an SDK nothing is recorded.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

try:
    from opentelemetry import context as otel_context
    from opentelemetry import propagate, trace
    from opentelemetry.trace import Span, TracerProvider
except ImportError as error:
    raise ImportError("ocf.runtime.tracing needs opentelemetry-api: install ocf[otel]", name="opentelemetry") from error

import ocf
from ocf.concepts.tracing import SpanAttributes, SpanKind, SpanStart, tracing_with
from ocf.errors import ApiError, failure_text

__all__ = ["OpenTelemetryTracer", "tracing_with"]

_TRACEPARENT: Final = "traceparent"
_KINDS: Final = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
    SpanKind.SERVER: trace.SpanKind.SERVER,
}


class OpenTelemetryTracer:
    """Records spans with a tracer provider of OpenTelemetry.

    Headers are written and read by OpenTelemetry's global propagator: W3C Trace Context and Baggage, unless
    `OTEL_PROPAGATORS` names others.

    Args:
        provider: The tracer provider; None for the global one, which `opentelemetry-instrument` sets by the environment
            variables `OTEL_*`.

    Example:
        >>> from ocf.runtime.operator import ManagerOptions
        >>> options = ManagerOptions(tracer=OpenTelemetryTracer())
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("ocf", ocf.__version__, provider)

    @contextmanager
    def span(self, start: SpanStart) -> Iterator[None]:
        """Record a span for as long as the block runs.

        The text of an error is that of conditions and events, `ocf.errors.failure_text`. A traceback is not recorded,
        because it contains the texts of all causes.

        Args:
            start: The span.
        """
        parent = None if start.headers is None else propagate.extract(start.headers)
        with self._tracer.start_as_current_span(
            start.name,
            parent,
            _KINDS[start.kind],
            _set(start.attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except GeneratorExit:
                raise
            except BaseException as error:
                if not isinstance(error, start.expected):
                    _record(span, error)
                raise

    def annotate(self, attributes: SpanAttributes) -> None:
        """Add attributes to the active span.

        Args:
            attributes: The attributes.
        """
        trace.get_current_span().set_attributes(_set(attributes))

    def leave(self) -> None:
        """Have no active span from here on, in the current context."""
        otel_context.attach(otel_context.Context())

    def headers(self) -> Mapping[str, str]:
        """Return the headers that hand over the active span, and the baggage of the context."""
        headers: dict[str, str] = {}
        propagate.inject(headers)
        if _TRACEPARENT in headers:
            headers[_TRACEPARENT] = _sampled_flag_only(headers[_TRACEPARENT])
        return headers

    def log_fields(self) -> Mapping[str, str]:
        """Return `trace_id` and `span_id` of the active span, hexadecimal; empty without one."""
        active = trace.get_current_span().get_span_context()
        if not active.is_valid:
            return {}
        return {"trace_id": trace.format_trace_id(active.trace_id), "span_id": trace.format_span_id(active.span_id)}


def _sampled_flag_only(traceparent: str) -> str:
    """Return a trace context without the flag of random trace ids, which came with the second version of the standard.

    API servers up to 1.36 ignore a trace context that has another flag than `sampled`, as opentelemetry-go did before
    1.44 (`propagation/trace_context.go`).

    Example:
        >>> _sampled_flag_only("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03")
        '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    """
    head, _, flags = traceparent.rpartition("-")
    return f"{head}-{int(flags, 16) & trace.TraceFlags.SAMPLED:02x}"


def _set(attributes: SpanAttributes) -> dict[str, str | bool | int | float]:
    return {name: value for name, value in attributes.items() if value is not None}


def _record(span: Span, error: BaseException) -> None:
    """Make a span a failed one. The names are those of the conventions for errors and exceptions."""
    if not span.is_recording():
        return
    name = type(error).__qualname__
    text = "cancelled" if isinstance(error, CancelledError) else failure_text(error)
    span.set_status(trace.Status(trace.StatusCode.ERROR, text))
    span.set_attribute("error.type", str(error.code) if isinstance(error, ApiError) and error.code else name)
    span.add_event("exception", {"exception.type": f"{type(error).__module__}.{name}", "exception.message": text})
