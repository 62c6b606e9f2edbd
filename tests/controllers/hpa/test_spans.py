"""Spans of syncs: one trace per sync, with the decision."""

from __future__ import annotations

from ocf.concepts.tracing import tracing_with
from tests.controllers.hpa.conftest import Env, RunScenario, periods
from tests.traces import attributes, recording


def test_each_sync_is_a_trace_of_its_own(run_scenario: RunScenario) -> None:
    async def scenario(env: Env) -> None:
        await env.deploy(replicas=3)
        env.queue(60)
        with recording() as traces:
            mine = traces.provider.get_tracer("mine")
            with tracing_with(traces.tracer), mine.start_as_current_span("mine"):
                async with env.running():
                    await env.autoscale()
                    await periods(2)
            first, second = traces.named("sync HorizontalAutoscaler")[:2]
            assert (first.parent, second.parent) == (None, None)
            assert attributes(first) == {
                "ocf.hpa.api_version": "autoscaling.ocf.dev/v1alpha1",
                "ocf.hpa.kind": "HorizontalAutoscaler",
                "ocf.hpa.name": "web",
                "k8s.namespace.name": "shop",
                "k8s.hpa.name": "web",
                "ocf.hpa.phase": "running",
                "ocf.hpa.current_replicas": 3,
                "ocf.hpa.desired_replicas": 6,
                "ocf.hpa.action": "scale_up",
                "ocf.result": "requeue_after",
                "ocf.requeue_after": 15.0,
            }
            assert attributes(second)["ocf.hpa.action"] == "none"

    run_scenario(scenario)
