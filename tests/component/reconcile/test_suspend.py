"""Suspension and resume of a component: order, deletion, and the restored replicas."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Verb
from ocf.component import BEFORE_SUSPENSION, Action, Component, Reason
from ocf.concepts import StatusReport, SuspensionStatus
from ocf.errors import ReconcileError
from ocf.objects import Manifest, copy_json
from ocf.primitives import deployment, hpa

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import Env


def of(*resources: Any, suspended: bool = True) -> Component:
    builder = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource)
    return builder.suspend(suspended).build()


def written(env: Env) -> list[tuple[str, str]]:
    requests = env.cluster.requests.of(Verb.APPLY, Verb.DELETE)
    return [(str(request.verb), request.kind) for request in requests]


class TestFlow:
    @pytest.mark.promise("suspend-order")
    async def test_the_autoscaler_is_deleted_before_the_target_is_scaled_to_zero(
        self, env: Env, scaled: Callable[..., Component]
    ) -> None:
        await env.reconcile(scaled())
        await env.run(1)
        env.cluster.requests.clear()
        result = await env.reconcile(scaled(suspended=True))
        assert written(env) == [("delete", "HorizontalPodAutoscaler"), ("apply", "Deployment")]
        assert (result.condition.status, result.condition.reason) == (False, Reason.SUSPENDING)
        assert result.condition.message == "Waiting for replicas to scale down, 1 replicas still running."
        assert result.requeue_after == timedelta(seconds=10)
        await env.run(0)
        result = await env.reconcile(scaled(suspended=True))
        assert (result.condition.status, result.condition.reason) == (True, Reason.SUSPENDED)
        assert result.condition.message == "All resources are suspended."
        assert result.requeue_after is None

    async def test_nothing_is_written_while_suspended(self, env: Env, scaled: Callable[..., Component]) -> None:
        await env.reconcile(scaled())
        await env.reconcile(scaled(suspended=True))
        env.cluster.requests.clear()
        for _ in range(5):
            assert (await env.reconcile(scaled(suspended=True))).writes == 0
        assert env.cluster.requests.writes == 0
        assert not await env.exists(env.hpa)

    @pytest.mark.promise("suspend-order")
    async def test_resuming_restores_the_autoscaler_before_its_target(
        self, env: Env, scaled: Callable[..., Component]
    ) -> None:
        await env.reconcile(scaled())
        await env.scale(5)
        await env.reconcile(scaled(suspended=True))
        assert await env.replicas() == 0
        env.cluster.requests.clear()
        result = await env.reconcile(scaled())
        kinds = [kind for _, kind in written(env)]
        assert kinds.index("HorizontalPodAutoscaler") < kinds.index("Deployment")
        assert await env.replicas() == 5
        assert result.condition.status is False
        env.cluster.requests.clear()
        assert (await env.reconcile(scaled())).writes == 0
        assert BEFORE_SUSPENSION not in ((await env.cluster.get(env.web))["metadata"].get("annotations") or {})

    async def test_fixed_replicas_come_back_from_the_baseline(self, env: Env, fixed_web: deployment.Resource) -> None:
        await env.reconcile(of(fixed_web, suspended=False))
        await env.reconcile(of(fixed_web))
        assert await env.replicas() == 0
        await env.reconcile(of(fixed_web, suspended=False))
        assert await env.replicas() == 4

    async def test_a_missing_target_is_created_suspended(self, env: Env, scaled: Callable[..., Component]) -> None:
        result = await env.reconcile(scaled(suspended=True))
        assert [outcome.action for outcome in result.outcomes] == [Action.ABSENT, Action.CREATED]
        assert result.outcomes[0].report == StatusReport(
            SuspensionStatus.SUSPENDED, f"Resource {env.hpa} already deleted."
        )
        assert await env.replicas() == 0
        await env.reconcile(scaled())
        assert await env.replicas() == 1

    async def test_a_target_that_was_scaled_up_manually_is_suspended_again(
        self, env: Env, scaled: Callable[..., Component]
    ) -> None:
        await env.reconcile(scaled())
        await env.scale(5)
        await env.reconcile(scaled(suspended=True))
        await env.scale(2)
        await env.reconcile(scaled(suspended=True))
        assert await env.replicas() == 0
        await env.reconcile(scaled())
        assert await env.replicas() == 2

    async def test_a_component_with_nothing_to_suspend_is_suspended(self, env: Env) -> None:
        result = await env.reconcile(of())
        assert (result.condition.status, result.condition.reason) == (True, Reason.SUSPENDED)

    async def test_guards_are_not_evaluated(self, env: Env, web_base: Manifest) -> None:
        def crash(_base: Any) -> Any:
            raise AssertionError("asked")

        await env.reconcile(of(deployment.Builder(web_base).with_guard(crash).build()))
        assert await env.replicas() == 0


class TestDeletion:
    async def test_a_kept_autoscaler_stays(self, env: Env, web: deployment.Resource, hpa_base: Manifest) -> None:
        kept = hpa.Builder(hpa_base).with_custom_suspend_deletion_decision(lambda _base: False).build()
        await env.reconcile(of(web, kept, suspended=False))
        await env.reconcile(of(web, kept))
        assert await env.exists(env.hpa)
        assert await env.replicas() == 0

    async def test_deletes_only_once_the_resource_reports_suspended(
        self, env: Env, web: deployment.Resource, hpa_base: Manifest
    ) -> None:
        reports = [
            StatusReport(SuspensionStatus.SUSPENDING, "draining"),
            StatusReport(SuspensionStatus.SUSPENDED, "drained"),
        ]
        slow = hpa.Builder(hpa_base).with_custom_suspend_status(lambda _live: reports.pop(0)).build()
        await env.reconcile(of(web, slow, suspended=False))
        first = await env.reconcile(of(web, slow))
        assert (first.condition.message, await env.exists(env.hpa)) == ("draining", True)
        await env.reconcile(of(web, slow))
        assert not await env.exists(env.hpa)

    async def test_an_object_held_by_a_finalizer_is_not_suspended_yet(
        self, env: Env, scaled: Callable[..., Component]
    ) -> None:
        await env.reconcile(scaled())
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        await env.cluster.patch(env.hpa, hold, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        for _ in range(2):
            result = await env.reconcile(scaled(suspended=True))
            assert result.condition.reason is Reason.SUSPENDING
            assert result.condition.message == f"Waiting for resource {env.hpa} to be deleted."
        assert len(env.cluster.requests.of(Verb.DELETE)) == 1
        release: Manifest = {"metadata": {"finalizers": None}}
        await env.cluster.patch(env.hpa, release, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        assert (await env.reconcile(scaled(suspended=True))).condition.reason is Reason.SUSPENDED

    async def test_an_object_of_another_controller_is_not_deleted(self, env: Env, web_hpa: hpa.Resource) -> None:
        """It is not changed either, because it is not ours to suspend."""
        reference = await env.other_owner()
        live = await env.create(env.hpa, metadata={"ownerReferences": [reference]}, spec=web_hpa.render()["spec"])
        builder = component.Builder("web", condition_type="WebReady").suspend()
        result = await env.reconcile(builder.with_resource(web_hpa, unowned=True).build())
        assert (result.condition.reason, result.outcomes[0].action) == (Reason.SUSPENDED, Action.KEPT)
        assert await env.cluster.get(env.hpa) == live


class TestErrors:
    async def test_the_others_are_suspended_and_the_errors_collected(self, env: Env, web_base: Manifest) -> None:
        def broken(_mutator: deployment.Mutator) -> None:
            raise ValueError("boom")

        def build(name: str) -> deployment.Builder:
            base = copy_json(web_base)
            base["metadata"]["name"] = name
            return deployment.Builder(base)

        first, second = (build(name).with_custom_suspend_mutation(broken).build() for name in ("a", "b"))
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(of(first, second, build("web").build()))
        assert await env.replicas() == 0
        assert caught.value.problem.count("failed to apply suspension mutations: ValueError: boom") == 2
        assert (await env.condition())["reason"] == "Error"
