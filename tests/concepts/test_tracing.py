"""The seam: nothing is described without a tracer, and nothing of OpenTelemetry is loaded before one is made."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Final

import pytest
from opentelemetry.semconv._incubating.attributes import k8s_attributes as conventions

from ocf.concepts import tracing
from ocf.concepts.tracing import (
    SpanStart,
    annotate_span,
    background_context,
    object_attributes,
    spanning,
    trace_fields,
    trace_headers,
    traced,
    tracing_with,
)
from ocf.objects import ObjectKey
from ocf.schema.rest_mapping import rest_mapping
from tests.traces import recording

UNUSED: Final = """
import asyncio, sys
from ocf import component
from ocf_server import CustomKind, EmbeddedCluster
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, environment_options, running
import ocf.cluster.client, ocf.controllers.hpa, ocf.controllers.nodegroup, ocf.runtime.admission, ocf.runtime.monitoring

async def main():
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])
    shops = Operator(name="shops", owner=OwnerType("example.com/v1", "Shop"), components=lambda shop: ())
    async with running(cluster, shops, options=ManagerOptions(listen=None)) as manager:
        await manager.started()

asyncio.run(main())
environment_options("shops", {})
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""
MISSING: Final = """
import sys
sys.modules["opentelemetry"] = None
from ocf.runtime.operator import environment_options
try:
    environment_options("shops", {"TRACING": "true"})
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def program(text: str) -> str:
    done = subprocess.run(  # noqa: S603 (ours)
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_an_operator_without_a_tracer_loads_nothing_of_it() -> None:
    assert program(UNUSED) == "[]"


def test_without_the_extra_the_message_names_it() -> None:
    expected = "ConfigError: TRACING=true: ocf.runtime.tracing needs opentelemetry-api: install ocf[otel]"
    assert program(MISSING) == expected


def fail(*_: object) -> dict[str, str]:
    raise AssertionError("described although nothing is recorded")


def fail_to_start(*_: object) -> SpanStart:
    raise AssertionError("described although nothing is recorded")


async def test_nothing_is_described_without_a_tracer() -> None:
    @traced(fail_to_start, fail)
    async def double(number: int) -> int:
        return 2 * number

    with tracing_with(None), spanning(fail_to_start):
        annotate_span(fail)
        assert await double(2) == 4
        assert (trace_headers(), trace_fields(), background_context()) == ({}, {}, None)


async def test_a_task_in_the_background_has_no_parent() -> None:
    async def work() -> None:
        with spanning(lambda: SpanStart(name="work")):
            pass

    with recording() as traces, tracing_with(traces.tracer), spanning(lambda: SpanStart(name="outer")):
        await asyncio.create_task(work(), context=background_context())
        await asyncio.create_task(work())
        assert [span.parent is None for span in traces.named("work")] == [True, False]
        assert trace_fields()["span_id"]


async def test_a_cancelled_call_is_a_failed_span() -> None:
    @traced(lambda: SpanStart(name="wait"))
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with recording() as traces, tracing_with(traces.tracer):
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert traces.one("wait").status.description == "cancelled"


def test_the_names_of_kinds_are_those_of_the_conventions() -> None:
    known = {getattr(conventions, name) for name in dir(conventions) if name.endswith("_NAME")}
    assert {*tracing._NAMED.values()} <= known


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        *(pytest.param("apps/v1", kind, id=kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
        *(pytest.param("batch/v1", kind, id=kind) for kind in ("CronJob", "Job")),
        *(
            pytest.param("v1", kind, id=kind)
            for kind in (
                "Namespace",
                "Node",
                "PersistentVolume",
                "PersistentVolumeClaim",
                "Pod",
                "ReplicationController",
                "ResourceQuota",
                "Service",
            )
        ),
        pytest.param("autoscaling/v2", "HorizontalPodAutoscaler", id="HorizontalPodAutoscaler"),
        pytest.param("storage.k8s.io/v1", "StorageClass", id="StorageClass"),
    ],
)
def test_an_object_has_the_attribute_of_its_resource(api_version: str, kind: str) -> None:
    found = rest_mapping(api_version, kind, ())
    attribute = tracing._NAMED[found.group, found.plural]
    assert object_attributes("ocf.resource", ObjectKey(api_version, kind, "web"))[attribute] == "web"
