"""Resource loop: what is written, in which order, and what the condition reports."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import ApplyCache, ListOptions, PatchOptions, PatchType, Verb
from ocf.component import Component, Reason, ReconcileContext, reconciling
from ocf.component.status.results import Action
from ocf.concepts import AliveStatus, ApplyOperation, Data, GuardStatus, StatusReport
from ocf.errors import HandlerError, MutationError, ReconcileError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.primitives import hpa
    from tests.component.conftest import Env, StaticKind


def named(base: Manifest, name: str, **spec: Any) -> Manifest:
    copied: Manifest = copy_json(base)
    copied["metadata"]["name"] = name
    copied["spec"] |= spec
    return copied


def only(*resources: deployment.Resource, name: str = "web") -> Component:
    builder = component.Builder(name, condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource)
    return builder.build()


def broken_mutation(_mutator: deployment.Mutator) -> None:
    raise ValueError("boom")


class TestApply:
    async def test_forces_the_apply_with_the_manager_of_the_owner_and_owns_the_object(
        self, env: Env, web: deployment.Resource
    ) -> None:
        await env.reconcile(only(web))
        uid = (await env.owner_manifest())["metadata"]["uid"]
        (request,) = env.cluster.requests.of(Verb.APPLY)
        assert request.field_manager == f"ocf/Shop/web/{uid}"
        (reference,) = (await env.cluster.get(env.web))["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (uid, True)

    async def test_takes_a_field_of_another_manager(self, env: Env, fixed_web: deployment.Resource) -> None:
        await env.reconcile(only(fixed_web))
        await env.scale(9)
        result = await env.reconcile(only(fixed_web))
        assert await env.replicas() == 4
        assert result.outcomes[0].reason_texts == ("spec.replicas: not owned",)

    async def test_repeated_reconciles_leave_one_entry_of_the_manager(self, env: Env, web: deployment.Resource) -> None:
        for _ in range(3):
            await env.reconcile(only(web))
        managers = [entry["manager"] for entry in (await env.cluster.get(env.web))["metadata"]["managedFields"]]
        assert len(managers) == 1

    async def test_a_baseline_may_have_server_set_fields(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(only(deployment.Builder(web_base).build()))
        live = await env.cluster.get(env.web)
        from_cluster = only(deployment.Builder(live).build())
        await env.reconcile(from_cluster)
        env.cluster.requests.clear()
        assert (await env.reconcile(from_cluster)).writes == 0

    async def test_an_object_of_another_controller_blocks_and_is_not_changed(
        self, env: Env, web: deployment.Resource
    ) -> None:
        """The API server accepts one controller, so an apply with our owner reference would be rejected."""
        await env.reconcile(only(web))
        shop = {**await env.owner_manifest(), "metadata": {"name": "other", "namespace": "shop"}}
        other = await env.cluster.create(shop, field_manager="user")
        before = await env.cluster.get(env.web)
        env.cluster.requests.clear()
        async with reconciling(other, env.cluster) as context:
            result = await only(web).reconcile(context)
        assert (result.writes, result.outcomes[0].action) == (0, Action.BLOCKED)
        assert (result.condition.reason, result.condition.message) == (
            Reason.BLOCKED,
            "Deployment web: controlled by Shop demo",
        )
        assert {request.verb for request in env.cluster.requests if request.kind == "Deployment"} == {Verb.GET}
        assert await env.cluster.get(env.web) == before


class TestOperations:
    async def test_created_then_nothing_then_updated(self, env: Env, web_base: Manifest) -> None:
        first = only(deployment.Builder(web_base).build())
        second = only(deployment.Builder(named(web_base, "web", minReadySeconds=5)).build())
        actions = [(await env.reconcile(one)).outcomes[0].action for one in (first, first, second, second)]
        assert actions == [Action.CREATED, Action.UNCHANGED, Action.UPDATED, Action.UNCHANGED]

    async def test_a_status_update_is_not_a_change(self, env: Env, web: deployment.Resource) -> None:
        await env.reconcile(only(web))
        await env.run(1)
        assert (await env.reconcile(only(web))).outcomes[0].action is Action.UNCHANGED

    @pytest.mark.promise("server-answer")
    async def test_status_handlers_see_the_servers_answer(self, env: Env, web_base: Manifest) -> None:
        seen: list[tuple[ApplyOperation, int | None]] = []

        def look(operation: ApplyOperation, live: Any) -> StatusReport[AliveStatus]:
            seen.append((operation, live.metadata.generation))
            return StatusReport(AliveStatus.HEALTHY)

        resource = deployment.Builder(web_base).with_custom_converge_status(look).build()
        await env.reconcile(only(resource))
        await env.reconcile(only(resource))
        assert seen == [(ApplyOperation.CREATED, 1), (ApplyOperation.NONE, 1)]


class TestInSync:
    async def test_without_changes_nothing_is_written(self, env: Env, scaled: Callable[..., Component]) -> None:
        """Neither for objects with normalised quantities and defaults, nor for the owner."""
        await env.reconcile(scaled())
        await env.run(1)
        await env.reconcile(scaled())
        env.cluster.requests.clear()
        for _ in range(10):
            assert (await env.reconcile(scaled())).writes == 0
        assert env.cluster.requests.writes == 0

    async def test_a_manual_edit_is_repaired_once(self, env: Env, scaled: Callable[..., Component]) -> None:
        await env.reconcile(scaled())
        patch = {"spec": {"maxReplicas": 3}}
        await env.cluster.patch(env.hpa, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl"))
        repaired = await env.reconcile(scaled())
        assert repaired.outcomes[1].reason_texts == ("spec.maxReplicas: not owned",)
        assert (await env.cluster.get(env.hpa))["spec"]["maxReplicas"] == 10
        assert (await env.reconcile(scaled())).writes == 0

    async def test_a_foreign_field_is_kept(self, env: Env, scaled: Callable[..., Component]) -> None:
        await env.reconcile(scaled())
        patch = {"metadata": {"labels": {"team": "a"}}}
        await env.cluster.patch(env.web, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl"))
        assert (await env.reconcile(scaled())).writes == 0
        assert (await env.cluster.get(env.web))["metadata"]["labels"] == {"team": "a"}

    async def test_a_deleted_object_is_created_again(self, env: Env, scaled: Callable[..., Component]) -> None:
        await env.reconcile(scaled())
        await env.cluster.delete(env.web)
        result = await env.reconcile(scaled())
        assert [outcome.action for outcome in result.outcomes] == [Action.CREATED, Action.UNCHANGED]

    async def test_a_dropped_field_is_removed(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(only(deployment.Builder(named(web_base, "web", minReadySeconds=5)).build()))
        await env.reconcile(only(deployment.Builder(web_base).build()))
        assert "minReadySeconds" not in (await env.cluster.get(env.web))["spec"]


class TestOrder:
    @pytest.mark.promise("order")
    async def test_resources_are_applied_in_order_of_registration(self, env: Env, web_base: Manifest) -> None:
        names = ["c", "a", "b"]
        await env.reconcile(only(*(deployment.Builder(named(web_base, name)).build() for name in names)))
        assert [request.name for request in env.cluster.requests.of(Verb.APPLY)] == names

    async def test_read_only_and_managed_resources_keep_their_order(
        self, env: Env, web_base: Manifest, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.create(ObjectKey("v1", "ConfigMap", "b", "shop"))
        builder = component.Builder("web", condition_type="WebReady")
        builder.with_resource(config_map("a").build()).with_resource(config_map("b").build(), read_only=True)
        await env.reconcile(builder.with_resource(deployment.Builder(web_base).build()).build())
        seen = env.cluster.requests.of(Verb.GET, Verb.APPLY)
        assert [(str(request.verb), request.name) for request in seen if request.kind != "Shop"] == [
            ("get", "a"),
            ("apply", "a"),
            ("get", "b"),
            ("get", "web"),
            ("apply", "web"),
        ]

    @pytest.mark.promise("condition-error")
    async def test_an_error_stops_the_reconcile_and_is_in_the_condition(self, env: Env, web_base: Manifest) -> None:
        broken = deployment.Mutation("breaks", broken_mutation)
        resources = [deployment.Builder(named(web_base, name)) for name in ("a", "b", "c")]
        resources[1].with_mutation(broken)
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(only(*(builder.build() for builder in resources)))
        problem = (
            "failed to mutate resource apps/v1/Deployment/shop/b: "
            "failed to apply mutation intent for breaks: ValueError: boom"
        )
        assert caught.value.problem == problem
        assert caught.value.resource == "apps/v1/Deployment/shop/b"
        assert isinstance(caught.value.__cause__, MutationError)
        condition = await env.condition()
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Error", problem)
        assert [request.name for request in env.cluster.requests.of(Verb.APPLY)] == ["a"]

    async def test_a_rejected_object_is_named(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(only(deployment.Builder(web_base).build()))
        changed = copy_json(web_base)
        changed["spec"]["selector"] = {"matchLabels": {"app": "other"}}
        changed["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
        with pytest.raises(ReconcileError, match=r"failed to apply resource apps/v1/Deployment/shop/web: .*immutable"):
            await env.reconcile(only(deployment.Builder(changed).build()))

    async def test_a_handler_that_raises_is_named_once(self, env: Env, web_base: Manifest) -> None:
        def crash(_operation: ApplyOperation, _live: Any) -> StatusReport[AliveStatus]:
            raise RuntimeError("no idea")

        resource = deployment.Builder(web_base).with_custom_converge_status(crash).build()
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(only(resource))
        assert caught.value.problem == (
            "failed to determine converging status of resource apps/v1/Deployment/shop/web: "
            "status handler failed: RuntimeError: no idea"
        )
        assert isinstance(caught.value.__cause__, HandlerError)

    @pytest.mark.promise("secrets")
    async def test_an_unexpected_error_is_named_by_its_type_alone(self, env: Env, web: deployment.Resource) -> None:
        class Broken:
            apply_cache = ApplyCache()

            def __getattr__(self, name: str) -> Any:
                raise LookupError("secret")

        broken: Any = Broken()
        context = ReconcileContext(await env.owner_manifest(), broken, env.clock)
        with pytest.raises(LookupError):
            await only(web).reconcile(context)
        assert context.condition("WebReady").message == "unexpected LookupError"


class TestGuardsAndData:
    async def test_a_blocked_resource_stops_the_loop(self, env: Env, web_base: Manifest) -> None:
        blocked = StatusReport(GuardStatus.BLOCKED, "waiting for the license")
        healthy = StatusReport(AliveStatus.HEALTHY)
        first = deployment.Builder(named(web_base, "first")).with_custom_converge_status(lambda *_: healthy).build()
        second = deployment.Builder(named(web_base, "second")).with_guard(lambda _base: blocked).build()
        third = deployment.Builder(named(web_base, "third")).build()
        result = await env.reconcile(only(first, second, third))
        assert (result.condition.status, result.condition.reason) == (False, Reason.BLOCKED)
        assert result.condition.message == "Deployment second: waiting for the license"
        assert [outcome.action for outcome in result.outcomes] == [Action.CREATED, Action.BLOCKED]
        assert [request.name for request in env.cluster.requests.of(Verb.GET, Verb.APPLY)].count("second") == 0

    @pytest.mark.promise("order")
    async def test_data_flows_to_later_resources_of_the_same_reconcile_only(self, env: Env, web_base: Manifest) -> None:
        pulled = Data[str]("uid")

        def follow(m: deployment.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("follows", pulled.require()))

        def uid(live: Any) -> str:
            return str(live.metadata.uid)

        producer = deployment.Builder(named(web_base, "producer")).extract_into(pulled, uid).build()
        consumer = (
            deployment.Builder(named(web_base, "consumer"))
            .with_mutation(deployment.Mutation("follow", follow))
            .with_data_guard(pulled)
            .build()
        )
        await env.reconcile(only(producer, consumer))
        live = await env.cluster.list("apps/v1", "Deployment", ListOptions(namespace="shop"))
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in live.items}
        follows = {item["metadata"]["name"]: item["metadata"].get("annotations") for item in live.items}
        assert follows["consumer"] == {"follows": uids["producer"]}
        assert not pulled.is_set


class TestResult:
    async def test_a_blocked_component_is_requeued_after_the_poll_interval(self, env: Env, web_base: Manifest) -> None:
        """A block may end without an event of any object; progress and health come with one."""
        answers = [GuardStatus.BLOCKED, GuardStatus.BLOCKED, GuardStatus.UNBLOCKED, GuardStatus.UNBLOCKED]
        guarded = deployment.Builder(web_base).with_guard(lambda _base: StatusReport(answers.pop(0))).build()
        builder = component.Builder("web", condition_type="WebReady").with_resource(guarded)
        patient = builder.with_poll_interval(timedelta(minutes=1)).build()
        assert (await env.reconcile(only(guarded))).requeue_after == timedelta(seconds=10)
        assert (await env.reconcile(patient)).requeue_after == timedelta(minutes=1)
        assert (await env.reconcile(patient)).requeue_after is None
        await env.run(1)
        assert (await env.reconcile(patient)).requeue_after is None

    async def test_follows_the_reports_of_the_controllers(self, env: Env, scaled: Callable[..., Component]) -> None:
        first = await env.reconcile(scaled())
        assert first.condition.reason is Reason.CREATING
        await env.run(1)
        active = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound", "message": "found rps"}
        await env.report(env.hpa, {"desiredReplicas": 2, "conditions": [active]})
        healthy = await env.reconcile(scaled())
        assert (healthy.condition.status, healthy.condition.message) == (True, "Component is healthy.")
        inactive = active | {"status": "False", "message": "no metrics"}
        await env.report(env.hpa, {"desiredReplicas": 2, "conditions": [inactive]})
        failing = await env.reconcile(scaled())
        assert (failing.condition.reason, failing.condition.message) == (
            Reason.OPERATION_FAILING,
            "HorizontalPodAutoscaler web: no metrics",
        )

    async def test_a_component_without_resources_is_healthy(self, env: Env) -> None:
        result = await env.reconcile(only())
        assert (result.condition.status, result.condition.reason) == (True, Reason.HEALTHY)

    async def test_a_component_of_static_resources_is_healthy(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """They have no status, and are ready once they exist."""
        builder = component.Builder("web", condition_type="WebReady").with_resource(config_map().build())
        result = await env.reconcile(builder.build())
        assert (result.condition.status, result.condition.message) == (True, "Component is healthy.")
        assert result.outcomes[0].report is None


class TestIndependence:
    async def test_two_components_of_one_owner_keep_their_own_conditions(
        self, env: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        other = component.Builder("scaling", condition_type="ScalingReady").with_resource(web_hpa).build()
        await env.reconcile(only(web), other)
        assert (await env.condition())["reason"] == "Creating"
        assert (await env.condition("ScalingReady"))["reason"] == "OperationPending"

    @pytest.mark.promise("reusable")
    async def test_a_component_may_be_kept_and_used_again(self, env: Env, scaled: Callable[..., Component]) -> None:
        kept = scaled()
        await env.reconcile(kept)
        await env.reconcile(kept)
        env.cluster.requests.clear()
        await env.reconcile(kept)
        assert env.cluster.requests.writes == 0
