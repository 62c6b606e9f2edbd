"""Gate and prerequisites of a component, which are checked before anything else."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Component, Reason, ReconcileContext, depends_on, finalize, reconcile_all, reconciling
from ocf.component.reconcile.prerequisites import PrerequisiteStatus
from ocf.component.status.results import Action
from ocf.concepts import Data, StatusReport
from ocf.errors import FeatureGateError, HandlerError, ReconcileError
from ocf.feature import BooleanGate, VersionGate
from ocf.objects import ObjectKey
from ocf.primitives import deployment, hpa

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import Env, StaticKind

ON, OFF = BooleanGate(True), BooleanGate(False)
BROKEN = VersionGate("latest", ">= 2")
MET, NOT_MET = PrerequisiteStatus.MET, PrerequisiteStatus.NOT_MET
SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")


class Asked:
    """A prerequisite that counts its checks."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.times = 0

    async def check(self, context: ReconcileContext) -> StatusReport[PrerequisiteStatus]:
        assert context.owned_by.key.kind == "Shop"
        self.times += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        report: StatusReport[PrerequisiteStatus] = answer
        return report


def unmet(reason: str = "not yet") -> Asked:
    return Asked(StatusReport(NOT_MET, reason))


def met() -> Asked:
    return Asked(StatusReport(MET))


def gated(gate: Any, *resources: Any, suspended: bool = False) -> component.Builder:
    builder = component.Builder("web", condition_type="WebReady").with_feature_gate(gate).suspend(suspended)
    for resource in resources:
        builder.with_resource(resource)
    return builder


def waiting(*prerequisites: Any, resources: tuple[Any, ...] = (), suspended: bool = False) -> Component:
    return gated(None, *resources, suspended=suspended).with_prerequisite(*prerequisites).build()


async def touched(env: Env, subject: Component) -> list[str]:
    """Reconcile, which may fail; return the kinds of all requested objects."""
    env.cluster.requests.clear()
    with contextlib.suppress(ReconcileError):
        await env.reconcile(subject)
    return [request.kind for request in env.cluster.requests if request.kind != "Shop"]


class Counted:
    """A gate that counts its evaluations, and answers differently each time."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[bool] = []
        self.cell = Data[str]("tier")

    def enabled(self) -> bool:
        self.seen.append(self.cell.is_set)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class TestGate:
    @pytest.mark.parametrize("answer", [True, False, ValueError("boom")], ids=["on", "off", "it fails"])
    async def test_is_evaluated_once_per_reconcile_and_sees_no_data_of_another_scope(
        self, env: Env, web: deployment.Resource, answer: bool | Exception
    ) -> None:
        gate = Counted(answer)
        subject = gated(gate, web).build()
        with gate.cell.seeded("gold"), contextlib.suppress(ExceptionGroup):
            async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
                await finalize(context, subject)
                await reconcile_all(context, subject)
        assert (gate.answers, gate.seen) == ([], [False])
        reasons = {True: "Creating", False: "Disabled"}
        expected = "FeatureGateError" if isinstance(answer, Exception) else reasons[answer]
        assert (await env.condition())["reason"] == expected
        assert await env.exists(env.web) is (answer is True)

    async def test_off_deletes_managed_and_deleted_resources(
        self, env: Env, web: deployment.Resource, config_map: Callable[..., StaticKind]
    ) -> None:
        settings, doomed = config_map().build(), config_map("doomed").build()
        await env.reconcile(gated(ON, web, settings, doomed).build())
        subject = gated(OFF, web, settings).with_resource(doomed, delete_when=True).build()
        result = await env.reconcile(subject)
        assert (result.condition.status, result.condition.reason) == (True, Reason.DISABLED)
        assert result.condition.message == "Component is disabled."
        assert [outcome.action for outcome in result.outcomes] == [Action.DELETED] * 3
        assert not await env.exists(env.web)
        assert not await env.exists(SETTINGS)

    async def test_off_orphans_orphaned_resources(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        settings = config_map().build()
        await env.reconcile(gated(ON, settings).build())
        await env.reconcile(gated(OFF).with_resource(settings, orphan_when=True).build())
        assert await env.owners(SETTINGS) == []

    async def test_off_without_objects_is_disabled_and_writes_nothing(self, env: Env, web: deployment.Resource) -> None:
        subject = gated(OFF, web).build()
        result = await env.reconcile(subject)
        assert (result.condition.reason, result.writes, result.requeue_after) == (Reason.DISABLED, 0, None)
        env.cluster.requests.clear()
        await env.reconcile(subject)
        assert env.cluster.requests.writes == 0

    async def test_off_wins_over_prerequisites_and_suspension(self, env: Env, web: deployment.Resource) -> None:
        never = unmet()
        subject = gated(OFF, web, suspended=True).with_prerequisite(never).build()
        assert (await env.reconcile(subject)).condition.reason is Reason.DISABLED
        assert never.times == 0

    async def test_off_deletes_the_autoscaler_before_its_target(
        self, env: Env, scaled: Callable[..., Component], web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await env.reconcile(scaled())
        await env.reconcile(gated(OFF, web, web_hpa).build())
        assert [request.kind for request in env.cluster.requests.of(Verb.DELETE)] == [
            "HorizontalPodAutoscaler",
            "Deployment",
        ]

    async def test_off_deletes_a_resource_that_cannot_be_rendered(
        self, env: Env, web_hpa: hpa.Resource, hpa_base: dict[str, Any]
    ) -> None:
        """A component must be deletable while it is broken, even if the target of a scaler is unknown."""
        await env.reconcile(gated(ON, web_hpa).build())

        def crash(_mutator: Any) -> None:
            raise ValueError("boom")

        broken = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("m", crash)).build()
        await env.reconcile(gated(OFF, broken).build())
        assert not await env.exists(env.hpa)

    @pytest.mark.parametrize("suspended", [False, True])
    async def test_a_failing_gate_is_an_error_and_nothing_is_changed(
        self, env: Env, web: deployment.Resource, *, suspended: bool
    ) -> None:
        subject = gated(BROKEN, web, suspended=suspended).build()
        with pytest.raises(ReconcileError, match="latest") as caught:
            await env.reconcile(subject)
        assert isinstance(caught.value.__cause__, FeatureGateError)
        condition = await env.condition()
        assert (condition["status"], condition["reason"]) == ("False", "FeatureGateError")
        assert condition["message"] == str(caught.value.__cause__)
        assert await touched(env, subject) == []

    async def test_a_custom_gate_that_raises_is_an_error_too(self, env: Env) -> None:
        class Crashing:
            def enabled(self) -> bool:
                raise LookupError("lost")

        with pytest.raises(ReconcileError, match="feature gate failed: LookupError: lost"):
            await env.reconcile(gated(Crashing()).build())
        assert (await env.condition())["reason"] == "FeatureGateError"

    async def test_a_gate_that_returns_none_does_not_delete(self, env: Env, web: deployment.Resource) -> None:
        class Silent:
            def enabled(self) -> Any:
                return None

        await env.reconcile(gated(ON, web).build())
        with pytest.raises(ReconcileError, match="must return True or False, got NoneType"):
            await env.reconcile(gated(Silent(), web).build())
        assert await env.exists(env.web)

    async def test_on_again_everything_is_created_and_the_grace_period_starts(
        self, env: Env, web: deployment.Resource
    ) -> None:
        await env.reconcile(gated(ON, web).build())
        await env.reconcile(gated(OFF, web).build())
        env.clock.advance(timedelta(hours=1))
        again = gated(ON, web).with_grace_period(timedelta(minutes=5)).build()
        result = await env.reconcile(again)
        assert (result.condition.status, result.condition.reason) == (False, Reason.CREATING)
        assert result.condition.last_transition_time == "2026-01-31T13:00:00Z"
        assert result.requeue_after == timedelta(minutes=5, seconds=1)


class TestPrerequisites:
    @pytest.mark.parametrize("suspended", [False, True])
    async def test_unmet_no_object_is_read_suspended_or_not(
        self, env: Env, web: deployment.Resource, *, suspended: bool
    ) -> None:
        subject = waiting(unmet("dependency not ready"), resources=(web,), suspended=suspended)
        result = await env.reconcile(subject)
        assert (result.condition.status, result.condition.reason) == (False, Reason.PREREQUISITE_NOT_MET)
        assert (result.condition.message, result.outcomes) == ("dependency not ready", ())
        assert result.requeue_after == timedelta(seconds=10)
        assert await touched(env, subject) == []

    async def test_are_checked_in_order_up_to_the_first_that_is_unmet(self, env: Env) -> None:
        first, second, third = met(), unmet("second"), unmet("third")
        result = await env.reconcile(waiting(first, second, third))
        assert result.condition.message == "second"
        assert (first.times, second.times, third.times) == (1, 1, 0)

    async def test_all_met_the_component_is_reconciled(self, env: Env, web: deployment.Resource) -> None:
        assert (await env.reconcile(waiting(met(), met(), resources=(web,)))).condition.reason is Reason.CREATING

    async def test_one_that_fails_is_an_error_with_its_own_reason(self, env: Env, web: deployment.Resource) -> None:
        subject = waiting(Asked(LookupError("no idea")), resources=(web,))
        with pytest.raises(ReconcileError, match="prerequisite failed: LookupError: no idea") as caught:
            await env.reconcile(subject)
        assert isinstance(caught.value.__cause__, HandlerError)
        condition = await env.condition()
        assert (condition["status"], condition["reason"]) == ("False", "PrerequisiteNotMet")
        assert condition["message"] == "prerequisite failed: LookupError: no idea"
        assert await touched(env, subject) == []

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            pytest.param(StatusReport("Maybe"), 'prerequisite returned unrecognized status "Maybe"', id="unknown"),  # type: ignore[type-var] # what a user might return
            pytest.param(True, "prerequisite must return a StatusReport, got bool", id="no report"),
        ],
    )
    async def test_an_unknown_status_is_an_error(self, env: Env, answer: Any, problem: str) -> None:
        with pytest.raises(ReconcileError, match=problem):
            await env.reconcile(waiting(Asked(answer)))
        assert (await env.condition())["reason"] == "PrerequisiteNotMet"

    async def test_once_met_they_are_not_checked_again(self, env: Env, web: deployment.Resource) -> None:
        once = Asked(StatusReport(MET), StatusReport(NOT_MET, "gone"))
        subject = waiting(once, resources=(web,))
        for _ in range(3):
            await env.reconcile(subject)
        assert once.times == 1
        assert (await env.condition())["reason"] == "Creating"

    async def test_they_are_not_checked_again_while_suspended(self, env: Env, web: deployment.Resource) -> None:
        once = Asked(StatusReport(MET), StatusReport(NOT_MET, "gone"))
        await env.reconcile(waiting(once, resources=(web,)))
        await env.reconcile(waiting(once, resources=(web,), suspended=True))
        await env.reconcile(waiting(once, resources=(web,)))
        assert once.times == 1

    async def test_after_disabled_they_are_checked_again(self, env: Env, web: deployment.Resource) -> None:
        twice = Asked(StatusReport(MET), StatusReport(NOT_MET, "gone"))
        await env.reconcile(waiting(twice, resources=(web,)))
        await env.reconcile(gated(OFF, web).with_prerequisite(twice).build())
        result = await env.reconcile(waiting(twice, resources=(web,)))
        assert (twice.times, result.condition.message) == (2, "gone")

    async def test_after_a_gate_error_they_are_checked_again(self, env: Env, web: deployment.Resource) -> None:
        twice = Asked(StatusReport(MET), StatusReport(NOT_MET, "gone"))
        await env.reconcile(waiting(twice, resources=(web,)))
        await touched(env, gated(BROKEN, web).build())
        result = await env.reconcile(waiting(twice, resources=(web,)))
        assert (twice.times, result.condition.message) == (2, "gone")

    async def test_after_an_error_they_are_checked_again(self, env: Env, web_base: dict[str, Any]) -> None:
        """An error in the first reconcile does not skip the prerequisites from then on."""

        def crash(_mutator: deployment.Mutator) -> None:
            raise ValueError("boom")

        broken = deployment.Builder(web_base).with_mutation(deployment.Mutation("m", crash)).build()
        twice = Asked(StatusReport(MET), StatusReport(NOT_MET, "gone"))
        await touched(env, waiting(twice, resources=(broken,)))
        result = await env.reconcile(waiting(twice, resources=(broken,)))
        assert (twice.times, result.condition.reason) == (2, Reason.PREREQUISITE_NOT_MET)

    async def test_waiting_does_not_count_as_converging(self, env: Env, web: deployment.Resource) -> None:
        slow = Asked(StatusReport(NOT_MET, "wait"), StatusReport(MET))
        subject = gated(None, web).with_prerequisite(slow).with_grace_period(timedelta(minutes=5)).build()
        await env.reconcile(subject)
        env.clock.advance(timedelta(hours=1))
        result = await env.reconcile(subject)
        assert result.condition.last_transition_time == "2026-01-31T13:00:00Z"
        assert result.requeue_after == timedelta(minutes=5, seconds=1)


class TestDependsOn:
    async def test_waits_for_a_missing_condition(self, env: Env) -> None:
        result = await env.reconcile(waiting(depends_on("InfraReady")))
        assert result.condition.message == 'Condition "InfraReady" not found on Shop/demo'

    async def test_sees_the_condition_of_a_component_reconciled_earlier_in_the_same_reconcile(
        self, env: Env, web: deployment.Resource
    ) -> None:
        infra = component.Builder("infra", condition_type="InfraReady").with_resource(web).build()
        result = await env.reconcile(infra, waiting(depends_on("InfraReady")))
        seen = "False: Deployment web: Waiting for deployment controller to observe latest spec"
        assert result.condition.message == (
            f'Prerequisite not met: waiting for condition "InfraReady" to become True (currently {seen})'
        )
        await env.run(1)
        assert (await env.reconcile(infra, waiting(depends_on("InfraReady")))).condition.status is True


class TestUnpublished:
    async def test_the_condition_is_returned_and_not_written(self, env: Env, web: deployment.Resource) -> None:
        result = await env.reconcile(gated(None, web).unpublished().build())
        assert result.condition.reason is Reason.CREATING
        assert "status" not in await env.owner_manifest()

    async def test_an_error_is_not_written_either(self, env: Env) -> None:
        with pytest.raises(ReconcileError):
            await env.reconcile(gated(BROKEN).unpublished().build())
        assert "status" not in await env.owner_manifest()
