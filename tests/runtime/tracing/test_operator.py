"""Spans of an operator: each reconcile is a trace, whatever runs beside it and whatever it starts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from ocf import component
from ocf.cluster import Request
from ocf.component import Component
from ocf.concepts.tracing import SpanStart, spanning, trace_fields, tracing_with
from ocf.objects import Manifest
from ocf.primitives import configmap
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, environment_options, running
from ocf.runtime.operator.manager import Manager
from ocf.runtime.operator.supervised_tasks import supervised_tasks
from ocf.testing import InterceptingCluster, LoopClock, run_in_virtual_time
from ocf_server import CustomKind, EmbeddedCluster
from tests.traces import Traces, attributes, parent_id, span_id, trace_id

WORKERS: Final = 4


class Gateway(InterceptingCluster):
    """A way to the cluster with spans for requests, as the client has; each takes a second."""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        with spanning(lambda: SpanStart(name=f"{request.verb} {request.kind}")):
            await asyncio.sleep(1)
            return await send()


def shop(name: str) -> Manifest:
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": name, "namespace": "town"}}


def components(owner: Manifest) -> Component:
    """Return a component of a kind that is watched from its first read on."""
    metadata = {"name": owner["metadata"]["name"], "namespace": "town"}
    if metadata["name"] == "broken":
        raise ValueError("hunter2")
    settings = configmap.Builder({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).build()
    return component.Builder("web", condition_type="WebReady").with_resource(settings).build()


@asynccontextmanager
async def operating(traces: Traces | None, *names: str) -> AsyncIterator[tuple[Manager, EmbeddedCluster]]:
    clock = LoopClock()
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"], now=clock.now)
    for name in names:
        await cluster.create(shop(name), field_manager="user")
    operator: Operator[Manifest] = Operator(
        name="shops", owner=OwnerType("example.com/v1", "Shop"), components=components, workers=WORKERS, resync=None
    )
    tracer = None if traces is None else traces.tracer
    options = ManagerOptions(listen=None, clock=clock, tracer=tracer)
    async with running(Gateway(cluster), operator, options=options) as manager:
        yield manager, cluster


def test_concurrent_reconciles_are_separate_traces(traces: Traces) -> None:
    names = [f"shop-{number}" for number in range(2 * WORKERS)]

    async def main() -> None:
        with traces.provider.get_tracer("mine").start_as_current_span("mine"):
            async with operating(traces, *names):
                await asyncio.sleep(60)

    run_in_virtual_time(main())
    reconciles = traces.named("reconcile Shop")
    assert {attributes(span)["ocf.owner.name"] for span in reconciles} == {*names}
    assert [span.parent for span in reconciles] == [None] * len(reconciles)
    assert len({*map(trace_id, reconciles)}) == len(reconciles)
    for span in traces.named("apply ConfigMap"):
        assert parent_id(span) in {*map(span_id, traces.named("resource ConfigMap"))}


def test_what_a_reconcile_starts_for_later_is_no_part_of_it(traces: Traces) -> None:
    async def main() -> None:
        async with operating(traces, "corner"):
            await asyncio.sleep(60)

    run_in_virtual_time(main())
    began = [span.name for span in traces.children(None)]
    names = [span.name for span in traces.spans]
    # The first reconcile reads the kind first, but its cache lives as long as the operator.
    assert {"list ConfigMap", "watch ConfigMap", "list Shop", "watch Shop", "create Event"} <= {*began}
    assert names.index("reconcile Shop") < names.index("list ConfigMap")


async def test_a_supervised_task_outlives_the_span_in_which_it_is_started(traces: Traces) -> None:
    seen: list[str | None] = []
    noted = asyncio.Event()

    async def work() -> None:
        seen.append(trace_fields().get("span_id"))
        noted.set()
        await asyncio.get_running_loop().create_future()

    with tracing_with(traces.tracer), spanning(lambda: SpanStart(name="reconcile")):
        async with supervised_tasks() as start:
            start(work(), "work")
            await noted.wait()
    assert seen == [None]


def test_the_span_of_a_reconcile_has_its_result(traces: Traces) -> None:
    async def main() -> None:
        async with operating(traces, "corner"):
            await asyncio.sleep(60)

    run_in_virtual_time(main())
    found = attributes(traces.named("reconcile")[0])
    assert (found["ocf.controller"], found["ocf.result"]) == ("shops", "success")


def test_a_failed_reconcile_has_the_text_of_its_condition(traces: Traces) -> None:
    async def main() -> None:
        async with operating(traces, "broken"):
            await asyncio.sleep(10)

    run_in_virtual_time(main())
    span = traces.named("reconcile")[0]
    (event,) = span.events
    assert "ocf.result" not in attributes(span)
    assert dict(event.attributes or {})["exception.message"] == "unexpected ValueError"
    assert "hunter2" not in "".join(one.to_json() for one in traces.spans)


def test_without_a_tracer_there_are_no_spans(traces: Traces) -> None:
    async def main() -> None:
        async with operating(None, "corner"):
            await asyncio.sleep(60)

    run_in_virtual_time(main())
    assert traces.spans == []


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_environment_turns_spans_on(value: str) -> None:
    assert (environment_options("shops", {"TRACING": value}).tracer is not None) is (value == "true")
