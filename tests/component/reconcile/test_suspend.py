"""Suspension and resume of a component: order, deletion, and the restored replicas."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Verb
from ocf.component import BEFORE_SUSPENSION, Component, Reason
from ocf.component.status.results import Action
from ocf.concepts import Data, GuardStatus, StatusReport, SuspensionStatus
from ocf.errors import ReconcileError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import configmap, deployment, hpa, secret

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
        assert result.condition.message == (
            "Deployment web: Waiting for replicas to scale down, 1 replicas still running."
        )
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
        assert (first.condition.message, await env.exists(env.hpa)) == ("HorizontalPodAutoscaler web: draining", True)
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


CREDS: Final = ObjectKey("v1", "Secret", "creds", "shop")
LINK: Final = ObjectKey("v1", "ConfigMap", "link", "shop")


class Needing:
    """A Deployment that needs the data of other resources; each instance is one operator."""

    def __init__(self, web_base: Manifest) -> None:
        self.web_base = web_base
        self.password = Data[str]("password")
        self.link = Data[str]("link")
        self.answers: list[StatusReport[GuardStatus]] = []

    def creds(self) -> secret.Builder:
        metadata = {"name": CREDS.name, "namespace": CREDS.namespace}
        base = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": "aHVudGVyMg=="}}
        return secret.Builder(base).extract_into(self.password, lambda live: str((live.data or {})["password"]))

    def guarded_creds(self) -> secret.Builder:
        return self.creds().with_guard(lambda _: self.answers.pop(0))

    def linking(self) -> configmap.Builder:
        """A ConfigMap that needs the password, and whose data the Deployment needs."""
        metadata = {"name": LINK.name, "namespace": LINK.namespace}
        base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"link": "db"}}

        def edit(m: configmap.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_label("length", str(len(self.password.require()))))

        builder = configmap.Builder(base).with_mutation(configmap.Mutation("length", edit))
        return builder.with_data_guard(self.password).extract_into(
            self.link, lambda live: str((live.data or {})["link"])
        )

    def web(self, cell: Data[str] | None = None, *, optional: bool = False) -> deployment.Resource:
        needed = cell or self.password

        def edit(m: deployment.Mutator) -> None:
            m.edit_object_metadata(
                lambda meta: meta.ensure_annotation(
                    "length", str(len(needed.get() or "" if optional else needed.require()))
                )
            )

        builder = deployment.Builder(self.web_base).with_mutation(deployment.Mutation("length", edit))
        return (builder.with_optional_data(needed) if optional else builder.with_data_guard(needed)).build()


@pytest.fixture
def needing(web_base: Manifest) -> Needing:
    return Needing(web_base)


class TestNeededData:
    """What is wrong before a suspension must not prevent it.

    https://github.com/pingcap/tidb-operator/pull/4679, https://github.com/cloudnative-pg/cloudnative-pg/issues/10024
    """

    @pytest.mark.promise("suspend-heals", runs="a Secret whose data a Deployment needs, or reads if it is there")
    @pytest.mark.promise("deleted-by-hand", runs="a Secret, right before a suspension and during it")
    @pytest.mark.parametrize("optional", [False, True])
    async def test_an_object_that_a_user_has_deleted_is_back(
        self, env: Env, needing: Needing, *, optional: bool
    ) -> None:
        resources = needing.creds().build(), needing.web(optional=optional)
        await env.reconcile(of(*resources, suspended=False))
        await env.run(1)
        await env.cluster.delete(CREDS)
        result = await env.reconcile(of(*resources))
        assert result.condition.reason is Reason.SUSPENDING
        assert (await env.exists(CREDS), await env.replicas()) == (True, 0)
        await env.run(0)
        for _ in range(2):
            assert (await env.reconcile(of(*resources))).condition.reason is Reason.SUSPENDED
            assert await env.exists(CREDS)
            await env.cluster.delete(CREDS)

    @pytest.mark.promise("suspend-heals", runs="a Secret and a ConfigMap that depends on it, both deleted")
    async def test_so_is_what_that_object_needs(self, env: Env, needing: Needing) -> None:
        resources = needing.creds().build(), needing.linking().build(), needing.web(needing.link)
        await env.reconcile(of(*resources, suspended=False))
        for key in (CREDS, LINK):
            await env.cluster.delete(key)
        assert (await env.reconcile(of(*resources))).condition.reason is Reason.SUSPENDED
        assert (await env.exists(CREDS), await env.exists(LINK), await env.replicas()) == (True, True, 0)

    @pytest.mark.promise("suspend-heals", runs="a Secret without the key that is needed")
    async def test_what_a_user_has_edited_is_put_back(self, env: Env, needing: Needing) -> None:
        resources = needing.creds().build(), needing.web()
        await env.reconcile(of(*resources, suspended=False))
        await env.change(CREDS, data={"password": None})
        assert (await env.reconcile(of(*resources))).condition.reason is Reason.SUSPENDED
        assert await env.replicas() == 0

    async def test_nothing_is_written_while_it_is_there(self, env: Env, needing: Needing) -> None:
        resources = needing.creds().build(), needing.web()
        await env.reconcile(of(*resources, suspended=False))
        await env.change(CREDS, metadata={"labels": {"rotated": "yes"}}, data={"password": "c2VjcmV0"})
        await env.reconcile(of(*resources))
        env.cluster.requests.clear()
        result = await env.reconcile(of(*resources))
        assert env.cluster.requests.writes == 0
        assert [(outcome.resource, outcome.action) for outcome in result.outcomes] == [(str(env.web), Action.UNCHANGED)]
        assert (await env.cluster.get(CREDS))["data"] == {"password": "c2VjcmV0"}

    async def test_what_nothing_needs_is_not_looked_at(
        self, env: Env, needing: Needing, web: deployment.Resource
    ) -> None:
        resources = needing.creds().build(), web
        await env.reconcile(of(*resources, suspended=False))
        await env.cluster.delete(CREDS)
        env.cluster.requests.clear()
        assert (await env.reconcile(of(*resources))).condition.reason is Reason.SUSPENDED
        assert all(request.kind != "Secret" for request in env.cluster.requests)
        await env.reconcile(of(*resources, suspended=False))
        assert await env.exists(CREDS)

    async def test_a_guard_holds_back_what_would_be_created(self, env: Env, needing: Needing) -> None:
        unblocked, blocked = StatusReport(GuardStatus.UNBLOCKED), StatusReport(GuardStatus.BLOCKED, "no license")
        needing.answers = [unblocked, blocked, unblocked]
        resources = needing.guarded_creds().build(), needing.web()
        await env.reconcile(of(*resources, suspended=False))
        await env.run(1)
        before = await env.replicas()
        await env.cluster.delete(CREDS)
        result = await env.reconcile(of(*resources))
        assert (result.condition.status, result.condition.reason) == (False, Reason.PENDING_SUSPENSION)
        assert result.condition.message == f"{env.web}: waiting for {CREDS} (no license)"
        assert result.requeue_after == timedelta(seconds=10)
        assert (await env.exists(CREDS), await env.replicas()) == (False, before)
        await env.reconcile(of(*resources))
        assert (await env.exists(CREDS), await env.replicas()) == (True, 0)

    @pytest.mark.promise("suspend-heals", runs="a Secret of a user, with each option for its absence")
    @pytest.mark.parametrize("options", [{}, {"block_on_absence": True}, {"ignore_if_absent": True}], ids=str)
    async def test_what_only_a_user_can_make_is_waited_for(
        self, env: Env, needing: Needing, options: dict[str, bool]
    ) -> None:
        def build(*, suspended: bool = True) -> Component:
            builder = component.Builder("web", condition_type="WebReady")
            builder.with_resource(needing.creds().build(), read_only=True, **options)  # type: ignore[arg-type]  # a row
            return builder.with_resource(needing.web()).suspend(suspended).build()

        await env.create(CREDS, data={"password": "aHVudGVyMg=="})
        await env.reconcile(build(suspended=False))
        await env.run(1)
        before = await env.replicas()
        await env.cluster.delete(CREDS)
        result = await env.reconcile(build())
        assert (result.condition.status, result.condition.reason) == (False, Reason.PENDING_SUSPENSION)
        assert result.condition.message == f"{env.web}: waiting for {CREDS}"
        assert result.requeue_after == timedelta(seconds=10)
        assert await env.replicas() == before
        await env.create(CREDS, data={"password": "aHVudGVyMg=="})
        assert (await env.reconcile(build())).condition.reason is Reason.SUSPENDING
        await env.cluster.delete(CREDS)
        assert (await env.reconcile(build())).condition.reason is Reason.SUSPENDING
        await env.run(0)
        for _ in range(2):
            assert (await env.reconcile(build())).condition.reason is Reason.SUSPENDED
        await env.scale(2)
        await env.run(2)
        assert (await env.reconcile(build())).condition.reason is Reason.SUSPENDING

    async def test_an_absent_object_without_its_data_counts_as_suspended(self, env: Env, needing: Needing) -> None:
        builder = component.Builder("web", condition_type="WebReady").suspend()
        builder.with_resource(needing.creds().build(), read_only=True).with_resource(needing.web())
        result = await env.reconcile(builder.build())
        assert (result.condition.reason, result.outcomes[0].action) == (Reason.SUSPENDED, Action.ABSENT)
        assert not await env.exists(env.web)

    async def test_data_of_an_object_that_the_suspension_deletes_is_needed_once(
        self, env: Env, needing: Needing, hpa_base: Manifest
    ) -> None:
        base = copy_json(hpa_base)
        base["metadata"]["name"] = base["spec"]["scaleTargetRef"]["name"] = "other"
        filling = hpa.Builder(base).extract_into(needing.password, lambda live: str(live.kind)).build()
        resources = filling, needing.web()
        await env.reconcile(of(*resources, suspended=False))
        await env.run(1)
        assert (await env.reconcile(of(*resources))).condition.reason is Reason.SUSPENDING
        await env.run(0)
        for _ in range(2):
            assert (await env.reconcile(of(*resources))).condition.reason is Reason.SUSPENDED
        assert await env.replicas() == 0

    async def test_an_error_of_what_is_needed_names_it_alone(self, env: Env, needing: Needing) -> None:
        resources = needing.creds().build(), needing.web()
        await env.create(CREDS, immutable=True)
        with pytest.raises(ReconcileError) as caught:
            await env.reconcile(of(*resources))
        assert caught.value.resource == str(CREDS)
        assert not await env.exists(env.web)

    async def test_what_another_owner_controls_is_not_changed(self, env: Env, needing: Needing) -> None:
        """Although it lacks the data that is needed: an apply of ours would be rejected."""
        live = await env.create(CREDS, metadata={"ownerReferences": [await env.other_owner()]})
        result = await env.reconcile(of(needing.creds().build(), needing.web()))
        assert result.condition.reason is Reason.SUSPENDED
        assert await env.cluster.get(CREDS) == live


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
