"""Status of the owner: written once, only if it changed, without losing concurrent writes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Subresource, Verb
from ocf.component import Component, ReconcileContext, reconcile_all, reconciling
from ocf.component.status.reasons import Reason
from ocf.errors import ApiError, ConfigError, ConflictError, ManifestError, ReconcileError
from ocf.objects.timestamps import format_time
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from tests.component.conftest import Env


def of(resource: deployment.Resource) -> Component:
    return component.Builder("web", condition_type="WebReady").with_resource(resource).build()


def status_writes(env: Env) -> int:
    return len([one for one in env.cluster.requests.of(Verb.UPDATE) if one.subresource is Subresource.STATUS])


async def patch_status(env: Env, status: Manifest) -> None:
    await env.cluster.patch(
        env.owner,
        {"status": status},
        PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl-edit", subresource=Subresource.STATUS),
    )


def foreign(status: str = "True") -> Manifest:
    return {
        "type": "Backup",
        "status": status,
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


async def pass_that_ends_in(env: Env, web: deployment.Resource, error: BaseException) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster) as context:
        await of(web).reconcile(context)
        raise error


class TestSetCondition:
    async def backup_condition(self, env: Env, status: str, message: str) -> Manifest:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            context.set_condition("Backup", status=status, reason="Asked", message=message)
        return await env.condition("Backup")

    async def test_the_transition_time_changes_only_with_the_status(self, env: Env) -> None:
        first = await self.backup_condition(env, "False", "not yet")
        env.clock.advance(timedelta(minutes=1))
        second = await self.backup_condition(env, "False", "almost")
        third = await self.backup_condition(env, "Unknown", "who knows")

        assert {name: first[name] for name in ("status", "reason", "message")} == {
            "status": "False",
            "reason": "Asked",
            "message": "not yet",
        }
        assert first["observedGeneration"] == (await env.owner_manifest())["metadata"]["generation"]
        assert (second["lastTransitionTime"], second["message"]) == (first["lastTransitionTime"], "almost")
        assert third["lastTransitionTime"] > second["lastTransitionTime"]

    async def test_a_condition_without_a_transition_time_gets_one(self, env: Env) -> None:
        await patch_status(env, {"conditions": [{**foreign(), "lastTransitionTime": None}]})

        assert (await self.backup_condition(env, "True", "done"))["lastTransitionTime"]

    async def test_an_unknown_status_is_rejected(self, env: Env) -> None:
        with pytest.raises(
            ConfigError, match="condition \"Backup\": the status must be True, False or Unknown, got 'Yes'"
        ):
            await self.backup_condition(env, "Yes", "done")

    @pytest.mark.promise("condition-limits")
    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            pytest.param({"name": "web ready"}, 'condition "web ready": a condition type must match', id="type"),
            pytest.param({"name": "x" * 317}, "a condition type has at most 316 characters, got 317", id="long type"),
            pytest.param({"reason": "not a reason"}, 'condition "Backup": a reason must', id="reason"),
            pytest.param({"reason": ""}, 'condition "Backup": a reason must', id="no reason"),
            pytest.param({"reason": "x" * 1025}, "a reason has at most 1024 characters, got 1025", id="long reason"),
            pytest.param({"reason": 5}, 'condition "Backup": the reason must be a text, got .* int', id="a number"),
            pytest.param({"message": KeyError("a")}, "the message must be a text, got .* KeyError", id="an error"),
            pytest.param({"reason": "", "status": "Yes"}, "the status must be True.*; a reason must", id="both"),
        ],
    )
    async def test_what_the_api_rejects_is_rejected_where_it_is_written(
        self, env: Env, given: dict[str, Any], problem: str
    ) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            with pytest.raises(ConfigError, match=problem):
                context.set_condition(
                    **({"name": "Backup", "status": "True", "reason": "Asked", "message": ""} | given)
                )

    @pytest.mark.promise("condition-limits")
    async def test_a_message_that_is_too_long_is_cut(self, env: Env) -> None:
        assert (await self.backup_condition(env, "False", "x" * 40_000))["message"].endswith("(7255 characters cut)")

    async def test_it_is_read_as_it_was_written_in_the_same_reconcile_and_in_the_next_one(self, env: Env) -> None:
        read: list[tuple[bool, str, str]] = []
        for _ in range(2):
            async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
                if not read:
                    context.set_condition("Moved", status="True", reason="Arrived", message="all wagons are there")
                found = context.condition("Moved")
                read.append((found.status, found.reason, found.message))
        assert read == [(True, "Arrived", "all wagons are there")] * 2

    async def test_it_survives_a_concurrent_write(self, env: Env) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            context.set_condition("Ours", status="True", reason="Said", message="")
            await patch_status(env, {"conditions": [foreign()]})

        assert (await env.condition("Ours"))["status"] == (await env.condition("Backup"))["status"] == "True"


class TestWriting:
    @pytest.mark.promise("status-once")
    async def test_once_for_all_components_and_not_again(self, env: Env, web: deployment.Resource) -> None:
        other = component.Builder("other", condition_type="OtherReady").build()
        await env.reconcile(of(web), other)
        assert status_writes(env) == 1
        await env.reconcile(of(web), other)
        assert status_writes(env) == 1

    async def test_only_when_the_block_is_left(self, env: Env, web: deployment.Resource) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            await of(web).reconcile(context)
            assert status_writes(env) == 0
        assert status_writes(env) == 1

    @pytest.mark.promise("status-once")
    async def test_not_at_all_if_nothing_changed(self, env: Env) -> None:
        await patch_status(env, {"conditions": [foreign()]})
        async with reconciling(await env.owner_manifest(), env.cluster) as context:
            await patch_status(env, {"conditions": [foreign("False")]})
        assert context.owner["metadata"]["name"] == "demo"
        assert status_writes(env) == 0
        assert (await env.condition("Backup"))["status"] == "False"

    async def test_fields_of_the_user_are_part_of_the_same_write(self, env: Env, web: deployment.Resource) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            await of(web).reconcile(context)
            context.status["url"] = "https://shop"
            context.status["conditions"].append(foreign())
        assert status_writes(env) == 1
        status = (await env.owner_manifest())["status"]
        assert status["url"] == "https://shop"
        assert [condition["type"] for condition in status["conditions"]] == ["WebReady", "Backup"]

    async def test_fields_and_conditions_of_other_writers_survive(self, env: Env, web: deployment.Resource) -> None:
        await patch_status(env, {"custom": {"deep": [1]}, "conditions": [foreign()]})
        await env.reconcile(of(web))
        status = (await env.owner_manifest())["status"]
        assert status["custom"] == {"deep": [1]}
        assert [condition["type"] for condition in status["conditions"]] == ["Backup", "WebReady"]

    async def test_the_given_owner_is_not_changed(self, env: Env, web: deployment.Resource) -> None:
        owner = await env.owner_manifest()
        async with reconciling(owner, env.cluster, clock=env.clock) as context:
            await of(web).reconcile(context)
        assert "status" not in owner

    async def test_the_condition_has_the_owners_generation_and_the_clocks_time(
        self, env: Env, web: deployment.Resource
    ) -> None:
        await env.reconcile(of(web))
        condition = await env.condition()
        assert (condition["observedGeneration"], condition["lastTransitionTime"]) == (1, "2026-01-31T12:00:00Z")
        env.clock.advance(timedelta(minutes=5))
        patch = {"spec": {"size": 4}}
        await env.cluster.patch(env.owner, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await env.reconcile(of(web))
        condition = await env.condition()
        assert (condition["observedGeneration"], condition["lastTransitionTime"]) == (2, "2026-01-31T12:00:00Z")


class TestErrors:
    @pytest.mark.promise("condition-error")
    async def test_an_error_is_written_and_raised(self, env: Env, web: deployment.Resource) -> None:
        with pytest.raises(RuntimeError, match="of the user's own"):
            await pass_that_ends_in(env, web, RuntimeError("of the user's own"))
        assert (await env.condition())["reason"] == "Creating"

    @pytest.mark.promise("cancelled")
    async def test_nothing_is_written_after_a_cancellation(self, env: Env, web: deployment.Resource) -> None:
        with pytest.raises(asyncio.CancelledError):
            await pass_that_ends_in(env, web, asyncio.CancelledError())
        assert status_writes(env) == 0

    async def test_an_owner_that_was_not_read_from_a_cluster_is_rejected(self, env: Env) -> None:
        owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "x", "namespace": "shop"}}
        with pytest.raises(ManifestError, match=r"metadata\.uid"):
            async with reconciling(owner, env.cluster):
                pass

    @pytest.mark.parametrize(
        ("owner", "seen"),
        [
            pytest.param(None, "None", id="None"),
            pytest.param("shop/demo", "an object of type str", id="a name"),
            pytest.param([], "an object of type list", id="a list"),
        ],
    )
    async def test_a_wrong_owner_and_a_wrong_cluster_are_named_together(self, owner: Any, seen: str) -> None:
        nothing: Any = None
        with pytest.raises(ConfigError) as caught:
            async with reconciling(owner, nothing):
                pytest.fail("the context must not be created without an owner")
        assert str(caught.value) == (
            f"reconciling: owner must be the manifest or a model of an object read from the cluster, got {seen}; "
            "cluster must be a Cluster, got None"
        )

    async def test_an_error_of_the_status_write_is_a_note_of_the_first_error(
        self, env: Env, web_base: Manifest
    ) -> None:
        class Refusing:
            def __getattr__(self, name: str) -> Any:
                return getattr(env.cluster, name)

            async def update(self, *_: Any, **__: Any) -> Manifest:
                raise ApiError("out of order")

        def crash(_mutator: deployment.Mutator) -> None:
            raise ValueError("boom")

        broken = deployment.Builder(web_base).with_mutation(deployment.Mutation("m", crash)).build()
        refusing: Any = Refusing()
        with pytest.raises(ReconcileError) as caught:
            async with reconciling(await env.owner_manifest(), refusing) as context:
                await of(broken).reconcile(context)
        assert caught.value.__notes__ == [
            "the status of example.com/v1/Shop/shop/demo could not be written either: out of order"
        ]


USES = [
    pytest.param(lambda context: context.status.update(url="x"), id="status"),
    pytest.param(lambda context: context.cluster, id="cluster"),
    pytest.param(lambda context: context.condition("WebReady"), id="condition"),
    pytest.param(lambda context: context.condition_context("WebReady"), id="condition_context"),
    pytest.param(
        lambda context: context.set_condition("Backup", status="True", reason="Done", message=""), id="set_condition"
    ),
    pytest.param(lambda context: context.aggregate("Ready"), id="aggregate"),
    pytest.param(lambda context: context.arrange(["Ready"]), id="arrange"),
    pytest.param(lambda context: context.values, id="values"),
    pytest.param(lambda context: context.requeue_after(timedelta(0)), id="requeue_after"),
    pytest.param(lambda context: context.timed_out("Ready", timedelta(0)), id="timed_out"),
    pytest.param(lambda context: context.event("Moved", "the shop has moved"), id="event"),
    pytest.param(lambda context: context.remove_condition("Ready"), id="remove_condition"),
]


class TestEnd:
    @pytest.mark.parametrize("use", USES)
    async def test_a_context_that_is_used_after_its_block_ended_is_an_error(
        self, env: Env, use: Callable[[ReconcileContext], object]
    ) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster) as context:
            pass
        with pytest.raises(ConfigError, match=r"context of example\.com/v1/Shop/shop/demo was used after its block"):
            use(context)

    @pytest.mark.parametrize("error", [RuntimeError("of the user's own"), asyncio.CancelledError()])
    async def test_a_block_that_ended_with_an_error_has_ended(self, env: Env, error: BaseException) -> None:
        contexts: list[ReconcileContext] = []

        async def reconcile() -> None:
            async with reconciling(await env.owner_manifest(), env.cluster) as context:
                contexts.append(context)
                raise error

        with pytest.raises(type(error)):
            await reconcile()
        with pytest.raises(ConfigError, match="used after its block"):
            contexts[0].status["url"] = "https://shop"

    async def test_a_component_that_is_reconciled_after_the_block_touches_nothing(
        self, env: Env, web: deployment.Resource
    ) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster) as context:
            pass
        env.cluster.requests.clear()
        with pytest.raises(ConfigError, match="used after its block"):
            await of(web).reconcile(context)
        with pytest.raises(ConfigError, match="used after its block"):
            await reconcile_all(context, of(web))
        assert len(env.cluster.requests) == 0

    async def test_what_was_read_stays_readable(self, env: Env) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            pass
        assert (context.owned_by.key, context.now, context.is_ending) == (env.owner, env.clock.now(), False)


class TestTransitionTime:
    @pytest.mark.parametrize("time", ["soon", "2026-01-31", "2026-13-31T12:00:00Z", "1769860800"])
    @pytest.mark.parametrize("grace", [timedelta(0), timedelta(minutes=5)])
    async def test_one_that_is_not_a_time_is_replaced(
        self, env: Env, web: deployment.Resource, time: str, grace: timedelta
    ) -> None:
        spoilt = {"type": "WebReady", "status": "False", "reason": "Creating", "message": "", "observedGeneration": 1}
        await patch_status(env, {"conditions": [{**spoilt, "lastTransitionTime": time}]})
        subject = (
            component.Builder("web", condition_type="WebReady").with_resource(web).with_grace_period(grace).build()
        )

        result = await env.reconcile(subject)

        assert result.condition.reason is Reason.CREATING
        assert (await env.condition())["lastTransitionTime"] == format_time(env.clock.now())


class TestConflicts:
    async def test_concurrent_writes_are_kept(self, env: Env, web: deployment.Resource) -> None:
        """Theirs as stored now, ours as of this reconcile."""
        await patch_status(env, {"theirs": 1, "gone": 1, "conditions": [foreign("False")]})
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            await of(web).reconcile(context)
            context.status["ours"] = 1
            await patch_status(env, {"theirs": 2, "gone": None, "conditions": [foreign("True")]})
        status = (await env.owner_manifest())["status"]
        assert (status["theirs"], status["ours"], "gone" in status) == (2, 1, False)
        assert {found["type"]: found["status"] for found in status["conditions"]} == {
            "Backup": "True",
            "WebReady": "False",
        }

    @pytest.mark.promise("status-conflict", runs="eight reconciles of one owner at once")
    async def test_reconciles_of_one_owner_at_once_lose_no_status(self, env: Env) -> None:
        """By mistake: an operator that runs twice, or reconciles of single components in handlers of their own."""
        owner = await env.owner_manifest()
        everyone_has_read = asyncio.Barrier(8)

        async def reconcile(number: int) -> None:
            async with reconciling(owner, env.cluster, clock=env.clock) as context:
                await component.Builder("web", condition_type=f"Web{number}Ready").build().reconcile(context)
                context.status[f"field{number}"] = number
                await everyone_has_read.wait()

        await asyncio.gather(*map(reconcile, range(8)))
        status = (await env.owner_manifest())["status"]
        assert {one["type"] for one in status["conditions"]} == {f"Web{number}Ready" for number in range(8)}
        assert {name: value for name, value in status.items() if name != "conditions"} == {
            f"field{number}": number for number in range(8)
        }

    async def test_endless_conflicts_are_raised(self, env: Env, web: deployment.Resource) -> None:
        class Racing:
            def __getattr__(self, name: str) -> Any:
                return getattr(env.cluster, name)

            async def update(self, *args: Any, **options: Any) -> Manifest:
                await patch_status(env, {"races": len(env.cluster.requests)})
                return await env.cluster.update(*args, **options)

        racing: Any = Racing()
        with pytest.raises(ConflictError):
            async with reconciling(await env.owner_manifest(), racing) as context:
                await of(web).reconcile(context)
        assert status_writes(env) == 32

    async def test_nothing_is_written_for_a_deleted_owner(self, env: Env, web: deployment.Resource) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster) as context:
            await of(web).reconcile(context)
            await env.cluster.delete(env.owner)
        assert not await env.exists(env.owner)

    async def test_nothing_is_written_to_a_new_owner_of_the_same_name(self, env: Env, web: deployment.Resource) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster) as context:
            await of(web).reconcile(context)
            owner = await env.owner_manifest()
            await env.cluster.delete(env.owner)
            fresh = {key: owner[key] for key in ("apiVersion", "kind", "spec")}
            await env.cluster.create(fresh | {"metadata": {"name": "demo", "namespace": "shop"}}, field_manager="user")
        assert "status" not in await env.owner_manifest()
