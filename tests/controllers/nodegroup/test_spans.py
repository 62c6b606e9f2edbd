"""Spans of syncs: one for all groups, with what they add up to."""

from __future__ import annotations

from ocf.concepts.tracing import tracing_with
from tests.controllers.nodegroup.conftest import Env, run
from tests.traces import attributes, recording


def test_a_sync_has_the_sizes_of_all_groups(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_group("spare", minNodes=1)
        await env.add_pod(cpu="1900m")
        with recording() as traces, tracing_with(traces.tracer):
            await env.controller.reconcile()
            span = traces.one("sync NodeGroups")
        assert attributes(span) == {
            "ocf.nodegroups.groups": 2,
            "ocf.nodegroups.current": 0,
            "ocf.nodegroups.desired": 1,
            "ocf.result": "requeue_after",
            "ocf.requeue_after": 60.0,
        }

    run(scenario())
