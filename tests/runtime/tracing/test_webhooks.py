"""Spans of webhooks: children of the request that led to them, over whichever API server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import pytest
from opentelemetry.trace import SpanKind, get_current_span

from ocf.cluster.client import ApiServerCluster, RestConfig
from ocf.concepts.tracing import tracing_with
from ocf.objects import Manifest
from ocf.runtime.admission import Webhook
from ocf.testing import serve_webhooks
from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from tests.traces import Traces, attributes, span_id, trace_id

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.testing.envtest.fixtures import Envtest

MINE: Final = "traced"
ACTIVE: Final[list[tuple[int, int]]] = []


def default(found: Manifest) -> None:
    """Mark an object, and keep the span and the thread in which it was seen."""
    if found["metadata"].get("labels", {}).get("by") == MINE:
        found["metadata"].setdefault("annotations", {})["seen"] = "true"
        ACTIVE.append((get_current_span().get_span_context().span_id, threading.get_ident()))


# A kind that no other test uses: a real API server may call the webhooks for a moment after they have ended.
WEBHOOK: Final[Webhook[Manifest]] = Webhook("", "v1", "LimitRange", "limitranges", defaulters=[default])


@pytest.fixture(params=["in the process", "over HTTP", "envtest"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Cluster, str]]:
    if request.param == "in the process":
        yield EmbeddedCluster(), "default"
    elif request.param == "over HTTP":
        async with serving(EmbeddedCluster()) as server, ApiServerCluster(RestConfig(host=server.url)) as cluster:
            yield cluster, "default"
    else:
        envtest: Envtest = request.getfixturevalue("envtest")
        async with await envtest.plane.cluster() as cluster:
            yield cluster, envtest.namespace


async def create(cluster: Cluster, namespace: str, number: int) -> Manifest:
    metadata = {"name": f"range-{number}", "namespace": namespace, "labels": {"by": MINE}}
    return await cluster.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata}, field_manager="me")


async def test_a_webhook_is_a_child_of_the_request_that_led_to_it(place: tuple[Cluster, str], traces: Traces) -> None:
    cluster, namespace = place
    with tracing_with(traces.tracer):
        async with serve_webhooks(cluster, "tracing", [WEBHOOK]):
            for number in range(30_000):  # a real API server learns of the webhook a moment later
                traces.clear()
                ACTIVE.clear()
                with traces.provider.get_tracer("mine").start_as_current_span("mine"):
                    created = await create(cluster, namespace, number)
                if "seen" in created["metadata"].get("annotations", {}):
                    break
                await asyncio.sleep(0.02)

    span = traces.one("POST /default")
    asked = traces.named("POST /api/v1")
    mine = traces.one("mine")
    assert span.parent is not None
    assert (span.parent.span_id, span.parent.is_remote) == (span_id(asked[0] if asked else mine), True)
    assert trace_id(span) == trace_id(mine)
    assert span.kind is SpanKind.SERVER
    found = attributes(span)
    assert (found["ocf.webhook.allowed"], found["http.response.status_code"]) == (True, 200)
    # The function runs in a thread of its own, and sees the span.
    ((active, thread),) = ACTIVE
    assert active == span_id(span)
    assert thread != threading.get_ident()


async def test_without_a_parent_a_webhook_begins_a_trace(traces: Traces) -> None:
    cluster = EmbeddedCluster()
    with tracing_with(traces.tracer):
        async with serve_webhooks(cluster, "tracing", [WEBHOOK]):
            traces.clear()
            await create(cluster, "default", 1)

    assert [(span.name, span.parent) for span in traces.spans] == [
        ("POST /default/core/limitranges", None),
        ("POST /validate/core/limitranges", None),
    ]
