"""Tracing: spans of reconciles, resources and requests, recorded by the tracer of the current context.

Functions declare their spans with `traced`, or with `spanning` for a block. Without a tracer they cost the look-up of a
context variable: nothing is described or recorded. A tracer is used in a block of `tracing_with`, and in the tasks that
are started there. `ocf.runtime.tracing` has the tracer that records with OpenTelemetry.

Attributes follow the semantic conventions of OpenTelemetry (https://opentelemetry.io/docs/specs/semconv/); those
without a convention begin with `ocf.`. They never contain the value of a field.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import wraps
from typing import Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar

from ocf.objects import ObjectKey

__all__ = [
    "tracing_with",
]

P = ParamSpec("P")
T = TypeVar("T")

SpanAttributes: TypeAlias = Mapping[str, str | bool | int | float | None]
"""Attributes by name; those that are None are left out."""


class SpanKind(StrEnum):
    """Kinds of spans, as OpenTelemetry defines them."""

    INTERNAL = "internal"
    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanStart:
    """A span as it is started.

    Args:
        name: Name of the span, the same for all objects of a kind.
        kind: Whether it is a request, the response to one, or neither.
        attributes: Its first attributes.
        headers: Headers of the request that it responds to; the span that they name becomes its parent. None for the
            active span.
        expected: Errors that do not make it a failed span.
    """

    name: str
    kind: SpanKind = SpanKind.INTERNAL
    attributes: SpanAttributes = field(default_factory=dict)
    headers: Mapping[str, str] | None = None
    expected: tuple[type[BaseException], ...] = ()


class Tracer(Protocol):
    """Records spans. The active span belongs to the context: that of a task is not seen by other tasks."""

    def span(self, start: SpanStart) -> AbstractContextManager[object]:
        """Record a span for as long as the block runs; it is the active one there.

        An error that leaves the block is part of the span, with `ocf.errors.failure_text`.

        Args:
            start: The span.
        """
        ...

    def annotate(self, attributes: SpanAttributes) -> None:
        """Add attributes to the active span."""
        ...

    def leave(self) -> None:
        """Have no active span from here on, in the current context."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a request that hand over the active span; empty without one."""
        ...

    def log_fields(self) -> Mapping[str, str]:
        """Return `trace_id` and `span_id` of the active span, hexadecimal; empty without one."""
        ...


# Of `opentelemetry.semconv`, module `k8s_attributes`; other kinds have no convention.
_NAMED: Final = {
    ("", "namespaces"): "k8s.namespace.name",
    ("", "nodes"): "k8s.node.name",
    ("", "persistentvolumeclaims"): "k8s.persistentvolumeclaim.name",
    ("", "persistentvolumes"): "k8s.persistentvolume.name",
    ("", "pods"): "k8s.pod.name",
    ("", "replicationcontrollers"): "k8s.replicationcontroller.name",
    ("", "resourcequotas"): "k8s.resourcequota.name",
    ("", "services"): "k8s.service.name",
    ("apps", "daemonsets"): "k8s.daemonset.name",
    ("apps", "deployments"): "k8s.deployment.name",
    ("apps", "replicasets"): "k8s.replicaset.name",
    ("apps", "statefulsets"): "k8s.statefulset.name",
    ("autoscaling", "horizontalpodautoscalers"): "k8s.hpa.name",
    ("batch", "cronjobs"): "k8s.cronjob.name",
    ("batch", "jobs"): "k8s.job.name",
    ("storage.k8s.io", "storageclasses"): "k8s.storageclass.name",
}

_ACTIVE: Final[ContextVar[Tracer | None]] = ContextVar("ocf tracer", default=None)
_NO_SPAN: Final = nullcontext()
_NO_TEXTS: Final[Mapping[str, str]] = {}


@contextmanager
def tracing_with(tracer: Tracer | None) -> Iterator[None]:
    """Record the spans of the block, and of the tasks that are started in it.

    Args:
        tracer: Records the spans; None records none.

    Example:
        >>> from ocf.runtime.tracing import OpenTelemetryTracer
        >>> with tracing_with(OpenTelemetryTracer()):
        ...     with spanning(lambda: SpanStart(name="backup")):
        ...         annotate_span(lambda: {"backup.size": 3})
    """
    token = _ACTIVE.set(tracer)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def traced(
    describe: Callable[..., SpanStart], outcome: Callable[[Any], SpanAttributes] | None = None
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Return a decorator that records each call of an asynchronous function as a span.

    Args:
        describe: Returns the span; called with the arguments of the function, and only while spans are recorded.
        outcome: Returns attributes for the result of the function; None adds none.

    Example:
        >>> import asyncio
        >>> @traced(lambda name: SpanStart(name=f"greet {name}"), lambda letters: {"letters": letters})
        ... async def greet(name: str) -> int:
        ...     return len(name)
        >>> asyncio.run(greet("corner"))
        6
    """

    def decorate(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            tracer = _ACTIVE.get()
            if tracer is None:
                return function(*args, **kwargs)
            return _recorded(tracer, describe(*args, **kwargs), function(*args, **kwargs), outcome)

        return call

    return decorate


async def _recorded(
    tracer: Tracer, start: SpanStart, work: Coroutine[Any, Any, T], outcome: Callable[[Any], SpanAttributes] | None
) -> T:
    with tracer.span(start):
        result = await work
        if outcome is not None:
            tracer.annotate(outcome(result))
        return result


def spanning(describe: Callable[P, SpanStart], *args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[object]:
    """Record a block as a span.

    Args:
        describe: Returns the span; called only while spans are recorded.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    tracer = _ACTIVE.get()
    return _NO_SPAN if tracer is None else tracer.span(describe(*args, **kwargs))


def annotate_span(describe: Callable[P, SpanAttributes], *args: P.args, **kwargs: P.kwargs) -> None:
    """Add attributes to the active span.

    Args:
        describe: Returns the attributes; called only while spans are recorded.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    tracer = _ACTIVE.get()
    if tracer is not None:
        tracer.annotate(describe(*args, **kwargs))


def background_context() -> Context | None:
    """Return the context of a task that outlives the active span, for `asyncio.create_task`.

    Spans of the task begin new traces, instead of belonging to a span that has ended long before.

    Returns:
        A copy of the current context; None while no spans are recorded, which `create_task` understands likewise.
    """
    tracer = _ACTIVE.get()
    if tracer is None:
        return None
    context = copy_context()
    context.run(tracer.leave)
    return context


def trace_headers() -> Mapping[str, str]:
    """Return the headers of a request that hand over the active span, `traceparent`; empty without one."""
    tracer = _ACTIVE.get()
    return _NO_TEXTS if tracer is None else tracer.headers()


def trace_fields() -> Mapping[str, str]:
    """Return `trace_id` and `span_id` of the active span for a log line, hexadecimal; empty without one."""
    tracer = _ACTIVE.get()
    return _NO_TEXTS if tracer is None else tracer.log_fields()


def k8s_attributes(group: str, plural: str, namespace: str, name: str) -> SpanAttributes:
    """Return the attributes of an object by the conventions: its namespace, and for some kinds its name.

    Args:
        group: The API group.
        plural: The resource of its kind.
        namespace: Its namespace; empty without one.
        name: Its name; empty for all objects of the kind.

    Example:
        >>> k8s_attributes("apps", "deployments", "shop", "web")
        {'k8s.namespace.name': 'shop', 'k8s.deployment.name': 'web'}
    """
    attributes = {"k8s.namespace.name": namespace, _NAMED.get((group, plural), ""): name}
    return {key: value for key, value in attributes.items() if key and value}


def object_attributes(prefix: str, key: ObjectKey) -> SpanAttributes:
    """Return the attributes of an object that a span is about.

    Args:
        prefix: The role of the object, `ocf.owner`.
        key: The object.

    Example:
        >>> from ocf.objects import ObjectKey
        >>> sorted(object_attributes("ocf.resource", ObjectKey("batch/v1", "Job", "seed", "shop")))
        ['k8s.job.name', 'k8s.namespace.name', 'ocf.resource.api_version', 'ocf.resource.kind', 'ocf.resource.name']
    """
    kind = key.kind.lower()
    return {
        f"{prefix}.api_version": key.api_version,
        f"{prefix}.kind": key.kind,
        f"{prefix}.name": key.name,
        # The kinds with a convention all have regular plurals.
        **k8s_attributes(key.group_kind[0], f"{kind}es" if kind.endswith("s") else f"{kind}s", key.namespace, key.name),
    }


def requeue_attributes(delay: timedelta | None) -> SpanAttributes:
    """Return the result of a reconcile that has not failed, by the names that the metrics of the queue have.

    Args:
        delay: The time until the next reconcile; None if it waits for an event.

    Example:
        >>> requeue_attributes(timedelta(seconds=10))
        {'ocf.result': 'requeue_after', 'ocf.requeue_after': 10.0}
    """
    if delay is None:
        return {"ocf.result": "success"}
    return {"ocf.result": "requeue_after", "ocf.requeue_after": delay.total_seconds()}
