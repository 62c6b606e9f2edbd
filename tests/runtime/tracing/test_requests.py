"""Spans of requests: the conventions for HTTP clients, and the headers that an API server reads."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from io import StringIO
from json import loads
from typing import Final

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from ocf.cluster import ListOptions, WatchOptions
from ocf.cluster.client import ApiServerCluster, RestConfig
from ocf.concepts.tracing import tracing_with
from ocf.errors import AlreadyExistsError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.monitoring import JsonFormatter
from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from tests.traces import Traces, attributes

SETTINGS: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "town"},
    "data": {"motto": "open"},
}
KEY: Final = ObjectKey.of(SETTINGS)
PATH: Final = "/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
async def cluster() -> AsyncIterator[ApiServerCluster]:
    """A cluster over HTTP, which knows the kind of the tests."""
    async with (
        serving(EmbeddedCluster(namespaces=["town"])) as server,
        ApiServerCluster(RestConfig(host=server.url)) as cluster,
    ):
        await cluster.list("v1", "ConfigMap")
        yield cluster


async def test_a_request_has_the_attributes_of_the_conventions(cluster: ApiServerCluster, traces: Traces) -> None:
    with tracing_with(traces.tracer):
        await cluster.apply(SETTINGS, field_manager="me")

    span = traces.one("PATCH")
    found = attributes(span)
    port = found["server.port"]
    assert (span.name, span.kind) == (f"PATCH {PATH}/{{name}}", SpanKind.CLIENT)
    assert found == {
        "http.request.method": "PATCH",
        "http.response.status_code": 201,
        "server.address": "127.0.0.1",
        "server.port": port,
        "url.full": f"http://127.0.0.1:{port}/api/v1/namespaces/town/configmaps/settings?fieldManager=me",
        "url.template": f"{PATH}/{{name}}",
        "k8s.namespace.name": "town",
    }


async def test_a_rejected_request_is_a_failed_span(cluster: ApiServerCluster, traces: Traces) -> None:
    with tracing_with(traces.tracer):
        await cluster.create(SETTINGS, field_manager="me")
        with pytest.raises(AlreadyExistsError):
            await cluster.create(SETTINGS, field_manager="me")

    created, rejected = traces.named("POST")
    assert created.status.status_code is StatusCode.UNSET
    assert rejected.status.status_code is StatusCode.ERROR
    assert attributes(rejected)["http.response.status_code"] == 409
    assert attributes(rejected)["error.type"] == "409"


async def test_reading_what_does_not_exist_is_no_failure(cluster: ApiServerCluster, traces: Traces) -> None:
    with tracing_with(traces.tracer), pytest.raises(NotFoundError):
        await cluster.get(KEY)

    span = traces.one("GET")
    assert span.status.status_code is StatusCode.UNSET
    assert attributes(span)["http.response.status_code"] == 404
    assert not span.events


async def test_a_request_without_an_answer_names_the_error(traces: Traces) -> None:
    async with serving(EmbeddedCluster()) as server:
        config = RestConfig(host=server.url)
    async with ApiServerCluster(config) as cluster:
        with tracing_with(traces.tracer), pytest.raises(ServerError):
            await cluster.list("v1", "ConfigMap")

    span = traces.one("GET /api/v1")
    assert attributes(span)["error.type"] == "ServerError"
    assert "http.response.status_code" not in attributes(span)


async def test_a_watch_is_a_span_until_it_is_open(cluster: ApiServerCluster, traces: Traces) -> None:
    with tracing_with(traces.tracer):
        page = await cluster.list("v1", "ConfigMap", ListOptions(namespace="town"))
        traces.clear()
        options = WatchOptions(namespace="town", resource_version=page.resource_version)
        async with aclosing(cluster.watch("v1", "ConfigMap", options)) as events:
            await cluster.create(SETTINGS, field_manager="me")
            await anext(events)
            assert attributes(traces.one("GET"))["http.response.status_code"] == 200


def test_log_lines_name_the_active_span(traces: Traces) -> None:
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    log = logging.getLogger("ocf.tests.tracing")
    log.addHandler(handler)
    try:
        with tracing_with(traces.tracer):
            with traces.provider.get_tracer("mine").start_as_current_span("mine") as active:
                log.warning("inside")
            log.warning("outside")
    finally:
        log.removeHandler(handler)

    inside, outside = map(loads, written.getvalue().splitlines())
    ids = active.get_span_context()
    assert (inside["trace_id"], inside["span_id"]) == (f"{ids.trace_id:032x}", f"{ids.span_id:016x}")
    assert "trace_id" not in outside
