"""No target has two controllers: our own kind beside the built-in one, in its place, and in a dry run."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import History, Settings
from ocf.cluster import Verb
from ocf.controllers.hpa import BUILT_IN, Mode
from ocf.objects import ObjectKey
from tests.controllers.hpa.conftest import NAMESPACE, Env, Process, RunScenario, periods

REFUSED = ("False", "TargetClaimed")
DEPLOYMENT = ObjectKey("apps/v1", "Deployment", "web", NAMESPACE)


class TestOwnKind:
    @pytest.mark.promise("one-controller")
    def test_a_target_of_a_built_in_autoscaler_is_rejected_until_that_one_is_deleted(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            ours = await env.autoscale("ours", target={"name": "web"})
            theirs = await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with env.running() as process:
                await periods(3)
                assert await env.conditions(ours) == {"AbleToScale": REFUSED, "ScalingActive": REFUSED}
                assert await env.message(ours, "AbleToScale") == (
                    "Deployment shop/web is scaled by HorizontalPodAutoscaler shop/theirs;"
                    " delete that one, or name another target here"
                )
                assert (await env.replicas(), process.states()) == (3, {"refused": 1})
                assert [reason for _, reason, _ in await env.events()] == ["TargetClaimed"]
                assert await env.conditions(theirs) == {}
                await env.cluster.delete(theirs)
                await periods(1)
                assert (await env.replicas(), process.states()) == (5, {"running": 1})
                assert (await env.conditions(ours))["ScalingActive"] == ("True", "ValidMetricFound")

        run_scenario(scenario)

    def test_an_autoscaler_stops_when_a_built_in_one_is_created(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            ours = await env.autoscale("ours", target={"name": "web"})
            async with env.running() as process:
                await periods(1)
                assert await env.replicas() == 5
                await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
                env.queue(80)
                await periods(4)
                assert await env.replicas() == 5
                assert (await env.conditions(ours))["ScalingActive"] == REFUSED
                assert_state_dropped(process)

        run_scenario(scenario)

    def test_an_immediate_first_reconcile_knows_the_targets_of_others(self, run_scenario: RunScenario) -> None:
        """With the gates of 1.37 the first reconcile runs at once; the targets of others are known by then."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            await env.autoscale("ours", target={"name": "web"})
            await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with env.running(settings=Settings(features=FeatureGates.for_release("1.37"))) as process:
                await asyncio.sleep(1)
                assert (await env.replicas(), process.states()) == (3, {"refused": 1})

        run_scenario(scenario)

    def test_a_rejection_is_written_once(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale("ours", target={"name": "web"})
            await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with env.running():
                await periods(3)  # the second event makes a series, the third is only counted
                env.cluster.requests.clear()
                await periods(5)
                assert env.writes == []

        run_scenario(scenario)

    def test_the_older_of_two_runs_and_the_other_one_after_its_deletion(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            first = await env.autoscale("zz-first", target={"name": "web"})
            await asyncio.sleep(2)
            second = await env.autoscale("aa-second", target={"name": "web"}, minReplicas=9)
            async with env.running():
                await periods(2)
                assert await env.replicas() == 5
                assert (await env.conditions(second))["AbleToScale"] == REFUSED
                assert (await env.conditions(first))["ScalingActive"] == ("True", "ValidMetricFound")
                await env.cluster.delete(first)
                await periods(1)
                assert await env.replicas() == 9

        run_scenario(scenario)

    def test_two_targets_with_the_same_pods_are_ambiguous_as_for_the_built_in_controller(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.cluster.create(
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": {"name": "twin", "namespace": NAMESPACE},
                    "spec": {
                        "replicas": 3,
                        "selector": {"matchLabels": {"app": "web"}},
                        "template": {
                            "metadata": {"labels": {"app": "web"}},
                            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                        },
                    },
                },
                field_manager="user",
            )
            env.queue(50)
            one = await env.autoscale("one", target={"name": "web"})
            other = await env.autoscale("other", target={"kind": "ReplicaSet", "name": "twin"})
            async with env.running():
                await periods(3)
                ambiguous = ("False", "AmbiguousSelector")
                assert [(await env.conditions(key))["ScalingActive"] for key in (one, other)] == [ambiguous] * 2
                message = await env.message(one, "ScalingActive")
                assert message == "pods by selector app=web are controlled by multiple HPAs: [shop/one shop/other]"
                await env.cluster.delete(other)
                await periods(2)
                assert (await env.conditions(one))["ScalingActive"] == ("True", "ValidMetricFound")

        run_scenario(scenario)


async def writes_status(env: Env, key: ObjectKey, desired: int = 3) -> None:
    """Write the status as the built-in controller does at the end of a reconcile."""
    able = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "recommended size"}
    conditions = [{**able, "lastTransitionTime": "2026-01-01T12:00:00Z"}]
    status = {"status": {"currentReplicas": 3, "desiredReplicas": desired, "conditions": conditions}}
    await env.change(key, status, by="kube-controller-manager", status=True)


class TestReplace:
    @pytest.mark.promise("one-controller")
    def test_what_another_controller_ran_is_left_alone(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            for name in ("web", "free"):
                await env.deploy(name, replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await env.autoscale("free", of=BUILT_IN)
            await writes_status(env, key)
            env.cluster.requests.clear()
            async with env.running(Mode.REPLACE) as process:
                await periods(3)
                assert (await env.replicas(), await env.replicas("free")) == (3, 5)
                assert process.states() == {"left_alone": 1, "running": 1}
                assert not [one for one in env.writes if one.name == "web"]

        run_scenario(scenario)

    def test_an_autoscaler_is_taken_over_with_the_flag(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await writes_status(env, key)
            async with env.running(Mode.REPLACE, take_over=True):
                await periods(2)
            assert await env.replicas() == 5
            async with env.running(Mode.REPLACE):  # its status is ours now, so the flag is not needed
                env.queue(70)
                await periods(2)
            assert await env.replicas() == 7

        run_scenario(scenario)

    def test_an_autoscaler_is_left_to_a_controller_that_still_writes_its_status(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await writes_status(env, key)
            async with env.running(Mode.REPLACE, take_over=True) as process:
                await periods(1)
                assert await env.replicas() == 5
                await asyncio.sleep(2)
                await writes_status(env, key, desired=4)
                env.queue(90)
                await periods(3)
                assert (await env.replicas(), process.states()) == (5, {"left_alone": 1})
                assert_state_dropped(process)

        run_scenario(scenario)

    def test_the_reason_is_logged_once(self, run_scenario: RunScenario, caplog: pytest.LogCaptureFixture) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale(of=BUILT_IN)
            await writes_status(env, key)
            async with env.running(Mode.REPLACE):
                for number in range(3):
                    await periods(1)
                    await writes_status(env, key, desired=4 + number)
                await periods(1)

        run_scenario(scenario)
        messages = [each.getMessage() for each in caplog.records if "is left alone" in each.getMessage()]
        assert len(messages) == 1
        assert messages[0] == (
            "shop/web is left alone (status of 2026-01-01T12:00:00Z): kube-controller-manager wrote its status last;"
            " if that controller is switched off, run it with --take-over"
        )


def assert_state_dropped(process: Process) -> None:
    """Assert that no history and no selector is kept of an autoscaler that is not run."""
    assert process.controller is not None
    reconciler = process.controller.reconciler
    assert reconciler is not None
    assert ([one.history for one in reconciler.states], len(reconciler.selectors)) == ([History()], 0)


class TestDryRun:
    @pytest.mark.promise("dry-run", runs="120 reconciles of 6 autoscalers")
    def test_it_writes_nothing_at_all(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            for number in range(5):
                await env.deploy(f"web-{number}", replicas=3)
                await env.autoscale(f"web-{number}", of=BUILT_IN)
            await env.autoscale("lost", of=BUILT_IN)
            env.queue(50)
            env.cluster.requests.clear()
            async with env.running(Mode.DRY_RUN) as process:
                await periods(20)
                assert process.value("num_horizontal_pod_autoscalers") == 6
            assert env.cluster.requests.writes == 0
            assert env.cluster.requests.reads > 0
            assert {one.verb for one in env.cluster.requests} <= {Verb.GET, Verb.LIST, Verb.WATCH}

        run_scenario(scenario)

    def test_it_reports_each_change_next_to_what_happened_once(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale(of=BUILT_IN)
            env.queue(50)
            await writes_status(env, key)
            async with env.running(Mode.DRY_RUN) as process:
                await periods(3)
                await env.change(DEPLOYMENT, {"spec": {"replicas": 5}})
                status = {"desiredReplicas": 5, "lastScaleTime": "2026-01-01T12:00:46Z"}
                await env.change(key, {"status": status}, by="kube-controller-manager", status=True)
                await env.sync_pods()
                await periods(3)
            first, second = map(str, process.reports)
            assert first == (
                "2026-01-01T12:00:15Z shop/web: would scale from 3 to 5 (total divided by target);"
                " its controller wanted 3, differs"
            )
            assert second == (
                "2026-01-01T12:01:00Z shop/web: would keep 5 (within tolerance); its controller wanted 5, agrees"
            )
            assert process.reports[0].as_json()["agrees"] is False

        run_scenario(scenario)

    def test_its_log_does_not_claim_a_write(self, run_scenario: RunScenario, caplog: pytest.LogCaptureFixture) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale(of=BUILT_IN)
            env.queue(50)
            async with env.running(Mode.DRY_RUN) as process:
                await periods(2)
            [result] = process.reports
            assert str(result) == (
                "2026-01-01T12:00:15Z shop/web: would scale from 3 to 5 (total divided by target);"
                " no controller has reconciled it yet"
            )

        caplog.set_level(logging.INFO)
        run_scenario(scenario)
        assert not [each for each in caplog.records if "scaled" in each.getMessage()]

    def test_changes_of_the_other_controller_count_for_the_policies_of_a_behavior(
        self, run_scenario: RunScenario
    ) -> None:
        """Two pods per ten minutes are allowed, and the other controller has added them."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            up = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
            key = await env.autoscale(of=BUILT_IN, behavior={"scaleUp": up})
            env.queue(200)
            async with env.running(Mode.DRY_RUN, settings=Settings()) as process:
                await periods(2)
                await env.change(DEPLOYMENT, {"spec": {"replicas": 5}})
                status = {"desiredReplicas": 5, "lastScaleTime": "2026-01-01T12:00:31Z"}
                await env.change(key, {"status": status}, by="kube-controller-manager", status=True)
                await periods(4)
            assert [(one.current, one.wanted) for one in process.reports] == [(3, 5), (5, 5)]

        run_scenario(scenario)
