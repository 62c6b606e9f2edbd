"""Aggregation of the conditions of several components."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import Component, Reason, ReconcileContext, reconciling
from ocf.component.status.conditions import Condition, ConditionContext, aggregate, stored_condition
from ocf.concepts import AliveStatus, StatusReport
from ocf.objects import Manifest, copy_json
from ocf.primitives import deployment

if TYPE_CHECKING:
    from tests.component.conftest import Env

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
FRESH = stored_condition([], "Ready", 1)


def saying(reason: str, message: str = "", *, status: bool = False) -> Condition:
    return Condition(
        type="AnyReady",
        status=status,
        reason=Reason(reason),
        message=message,
        observed_generation=1,
        last_transition_time="2026-01-31T11:00:00Z",
    )


HEALTHY = saying("Healthy", "Component is healthy.", status=True)
SUSPENDED = saying("Suspended", "All resources are suspended.", status=True)
DISABLED = saying("Disabled", "Component is disabled.", status=True)
FAILING = saying("Failing", "Pods are crash looping.")
UNKNOWN = stored_condition([], "AnyReady", 1)


def together(*pairs: tuple[str, Condition]) -> tuple[bool, str, str]:
    condition = aggregate(pairs, ConditionContext(FRESH, 1, NOW))
    return condition.status, str(condition.reason), condition.message


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param(
            [("broker", HEALTHY), ("gateway", HEALTHY)],
            (True, "Healthy", "broker: Component is healthy."),
            id="all healthy",
        ),
        pytest.param(
            [("broker", HEALTHY), ("gateway", FAILING)],
            (False, "Failing", "gateway: Pods are crash looping."),
            id="what is not true decides",
        ),
        pytest.param(
            [("broker", SUSPENDED), ("gateway", FAILING)],
            (False, "Failing", "gateway: Pods are crash looping."),
            id="even with a lower priority",
        ),
        pytest.param(
            [("broker", SUSPENDED), ("gateway", HEALTHY)],
            (True, "Suspended", "broker: All resources are suspended."),
            id="among the true the highest priority",
        ),
        pytest.param(
            [("broker", HEALTHY), ("gateway", SUSPENDED)],
            (True, "Suspended", "gateway: All resources are suspended."),
            id="in whatever order",
        ),
        pytest.param(
            [("broker", HEALTHY), ("gateway", DISABLED)],
            (True, "Disabled", "gateway: Component is disabled."),
            id="disabled",
        ),
        pytest.param(
            [("broker", HEALTHY), ("gateway", UNKNOWN)],
            (False, "Unknown", "gateway: Component has not been reconciled yet."),
            id="never reconciled",
        ),
        pytest.param(
            [("broker", HEALTHY), ("gateway", saying("Error", "boom"))],
            (False, "Error", "gateway: boom"),
            id="an error",
        ),
        pytest.param(
            [("broker", saying("Creating", "a")), ("gateway", saying("Failing", "b"))],
            (False, "Failing", "gateway: b"),
            id="among the others the highest priority",
        ),
        pytest.param(
            [("broker", saying("Failing", "a")), ("gateway", saying("Failing", "b"))],
            (False, "Failing", "broker: a"),
            id="of equals the first",
        ),
        pytest.param(
            [("a", SUSPENDED), ("b", SUSPENDED), ("c", HEALTHY)],
            (True, "Suspended", "a: All resources are suspended."),
            id="of equals the first, all true",
        ),
        pytest.param([("broker", saying("Failing"))], (False, "Failing", "broker"), id="no message, the name alone"),
        pytest.param([], (False, "Unknown", "No components were aggregated."), id="no components"),
    ],
)
def test_true_if_all_are_with_the_message_of_the_highest_priority(
    pairs: list[tuple[str, Condition]], expected: tuple[bool, str, str]
) -> None:
    assert together(*pairs) == expected


def reporting(base: Manifest, name: str, status: AliveStatus, reason: str) -> Component:
    base = copy_json(base)
    base["metadata"]["name"] = name
    resource = deployment.Builder(base).with_custom_converge_status(lambda *_: StatusReport(status, reason)).build()
    return component.Builder(name, condition_type=f"{name}Ready").with_resource(resource).build()


async def whole(context: ReconcileContext, *components: Component) -> Condition:
    for one in components:
        await one.reconcile(context)
    return context.aggregate("Ready", *components)


class TestInAReconcile:
    async def test_is_written_with_the_rest(self, env: Env, web_base: Manifest) -> None:
        good = reporting(web_base, "good", AliveStatus.HEALTHY, "")
        bad = reporting(web_base, "bad", AliveStatus.FAILING, "CrashLoop")
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            returned = await whole(context, good, bad)
        condition = await env.condition("Ready")
        assert condition == returned.to_manifest()
        assert (condition["status"], condition["message"]) == ("False", "bad: Deployment bad: CrashLoop")
        assert condition["observedGeneration"] == 1

    async def test_moves_its_time_only_with_its_status(self, env: Env, web_base: Manifest) -> None:
        good = reporting(web_base, "good", AliveStatus.HEALTHY, "")
        bad = reporting(web_base, "bad", AliveStatus.FAILING, "CrashLoop")
        times = []
        for components in ([good], [good], [good, bad], [bad]):
            async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
                await whole(context, *components)
            times.append((await env.condition("Ready"))["lastTransitionTime"])
            env.clock.advance(timedelta(minutes=1))
        assert times == [f"2026-01-31T12:0{minute}:00Z" for minute in (0, 0, 2, 2)]

    async def test_a_component_that_was_not_reconciled_counts_with_its_stored_condition(
        self, env: Env, web_base: Manifest
    ) -> None:
        good = reporting(web_base, "good", AliveStatus.HEALTHY, "")
        await env.reconcile(good)
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            assert context.aggregate("Ready", good).status is True

    async def test_an_unpublished_component_counts_with_its_condition_of_this_reconcile(self, env: Env) -> None:
        """So that an owner may show one condition alone."""
        hidden = component.Builder("hidden", condition_type="HiddenReady").unpublished().build()
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            before: Any = context.aggregate("Ready", hidden)
            after = await whole(context, hidden)
        assert (before.reason, after.status) == (Reason.UNKNOWN, True)
        assert [found["type"] for found in (await env.owner_manifest())["status"]["conditions"]] == ["Ready"]
