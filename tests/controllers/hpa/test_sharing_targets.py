"""No target ever has two controllers: our own kind beside the built-in one, in its place, and only watching it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import History, Settings
from ocf.cluster import Verb
from ocf.controllers.hpa import BUILT_IN, Mode
from ocf.objects import ObjectKey
from tests.controllers.hpa.conftest import NAMESPACE, Play, Process, World, periods

REFUSED = ("False", "TargetClaimed")
DEPLOYMENT = ObjectKey("apps/v1", "Deployment", "web", NAMESPACE)


class TestOwnKind:
    @pytest.mark.promise("one-controller")
    def test_a_target_of_a_built_in_autoscaler_is_refused_until_that_one_goes(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            world.queue(50)
            ours = await world.autoscale("ours", target={"name": "web"})
            theirs = await world.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with world.running() as process:
                await periods(3)
                assert await world.conditions(ours) == {"AbleToScale": REFUSED, "ScalingActive": REFUSED}
                assert await world.message(ours, "AbleToScale") == (
                    "Deployment shop/web is scaled by HorizontalPodAutoscaler shop/theirs;"
                    " delete that one, or name another target here"
                )
                assert (await world.replicas(), process.states()) == (3, {"refused": 1})
                assert [reason for _, reason, _ in await world.events()] == ["TargetClaimed"]
                assert await world.conditions(theirs) == {}
                await world.cluster.delete(theirs)
                await periods(1)
                assert (await world.replicas(), process.states()) == (5, {"running": 1})
                assert (await world.conditions(ours))["ScalingActive"] == ("True", "ValidMetricFound")

        play(scene)

    def test_one_that_runs_stops_when_a_built_in_one_comes(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            world.queue(50)
            ours = await world.autoscale("ours", target={"name": "web"})
            async with world.running() as process:
                await periods(1)
                assert await world.replicas() == 5
                await world.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
                world.queue(80)
                await periods(4)
                assert await world.replicas() == 5
                assert (await world.conditions(ours))["ScalingActive"] == REFUSED
                assert_unlearnt(process)

        play(scene)

    def test_who_is_in_no_hurry_to_look_at_others_is_not_faster_than_they_are(self, play: Play) -> None:
        """With the gates of 1.37 the first round is made at once; the targets of others are known by then."""

        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            world.queue(50)
            await world.autoscale("ours", target={"name": "web"})
            await world.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with world.running(settings=Settings(features=FeatureGates.for_release("1.37"))) as process:
                await asyncio.sleep(1)
                assert (await world.replicas(), process.states()) == (3, {"refused": 1})

        play(scene)

    def test_a_refusal_is_written_once(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            await world.autoscale("ours", target={"name": "web"})
            await world.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with world.running():
                await periods(3)  # the second event makes a series, the third is only counted
                world.cluster.requests.clear()
                await periods(5)
                assert world.writes == []

        play(scene)

    def test_of_two_of_ours_the_older_one_runs_and_the_other_takes_over_when_it_goes(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            world.queue(50)
            first = await world.autoscale("zz-first", target={"name": "web"})
            await asyncio.sleep(2)
            second = await world.autoscale("aa-second", target={"name": "web"}, minReplicas=9)
            async with world.running():
                await periods(2)
                assert await world.replicas() == 5
                assert (await world.conditions(second))["AbleToScale"] == REFUSED
                assert (await world.conditions(first))["ScalingActive"] == ("True", "ValidMetricFound")
                await world.cluster.delete(first)
                await periods(1)
                assert await world.replicas() == 9

        play(scene)

    def test_two_targets_with_the_same_pods_are_ambiguous_as_for_the_built_in_controller(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            await world.cluster.create(
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
            world.queue(50)
            one = await world.autoscale("one", target={"name": "web"})
            other = await world.autoscale("other", target={"kind": "ReplicaSet", "name": "twin"})
            async with world.running():
                await periods(3)
                ambiguous = ("False", "AmbiguousSelector")
                assert [(await world.conditions(key))["ScalingActive"] for key in (one, other)] == [ambiguous] * 2
                message = await world.message(one, "ScalingActive")
                assert message == "pods by selector app=web are controlled by multiple HPAs: [shop/one shop/other]"
                await world.cluster.delete(other)
                await periods(2)
                assert (await world.conditions(one))["ScalingActive"] == ("True", "ValidMetricFound")

        play(scene)


async def writes_status(world: World, key: ObjectKey, desired: int = 3) -> None:
    """Do what the built-in controller does at the end of a round."""
    able = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "recommended size"}
    conditions = [{**able, "lastTransitionTime": "2026-01-01T12:00:00Z"}]
    status = {"status": {"currentReplicas": 3, "desiredReplicas": desired, "conditions": conditions}}
    await world.change(key, status, by="kube-controller-manager", status=True)


class TestReplace:
    @pytest.mark.promise("one-controller")
    def test_what_another_controller_ran_is_left_alone(self, play: Play) -> None:
        async def scene(world: World) -> None:
            for name in ("web", "free"):
                await world.deploy(name, replicas=3)
            world.queue(50)
            key = await world.autoscale(of=BUILT_IN)
            await world.autoscale("free", of=BUILT_IN)
            await writes_status(world, key)
            world.cluster.requests.clear()
            async with world.running(Mode.REPLACE) as process:
                await periods(3)
                assert (await world.replicas(), await world.replicas("free")) == (3, 5)
                assert process.states() == {"left_alone": 1, "running": 1}
                assert not [one for one in world.writes if one.name == "web"]

        play(scene)

    def test_a_flag_lets_it_be_taken_over(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            world.queue(50)
            key = await world.autoscale(of=BUILT_IN)
            await writes_status(world, key)
            async with world.running(Mode.REPLACE, take_over=True):
                await periods(2)
            assert await world.replicas() == 5
            async with world.running(Mode.REPLACE):  # it is ours now, and the flag is needed no more
                world.queue(70)
                await periods(2)
            assert await world.replicas() == 7

        play(scene)

    def test_who_writes_after_it_was_taken_over_is_alive_and_has_it(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            world.queue(50)
            key = await world.autoscale(of=BUILT_IN)
            await writes_status(world, key)
            async with world.running(Mode.REPLACE, take_over=True) as process:
                await periods(1)
                assert await world.replicas() == 5
                await asyncio.sleep(2)
                await writes_status(world, key, desired=4)
                world.queue(90)
                await periods(3)
                assert (await world.replicas(), process.states()) == (5, {"left_alone": 1})
                assert_unlearnt(process)

        play(scene)

    def test_that_is_said_once_however_often_the_other_one_writes(
        self, play: Play, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            key = await world.autoscale(of=BUILT_IN)
            await writes_status(world, key)
            async with world.running(Mode.REPLACE):
                for number in range(3):
                    await periods(1)
                    await writes_status(world, key, desired=4 + number)
                await periods(1)

        play(scene)
        said = [each.getMessage() for each in caplog.records if "is left alone" in each.getMessage()]
        assert len(said) == 1
        assert said[0] == (
            "shop/web is left alone (status of 2026-01-01T12:00:00Z): kube-controller-manager wrote its status last;"
            " where that controller is switched off, --take-over lets it be run"
        )


def assert_unlearnt(process: Process) -> None:
    """Demand that nothing is remembered of an autoscaler that is not run: it begins anew, and counts no pods."""
    assert process.controller is not None
    reconciler = process.controller.reconciler
    assert reconciler is not None
    assert ([one.history for one in reconciler.memory], len(reconciler.selectors)) == ([History()], 0)


class TestDryRun:
    @pytest.mark.promise("dry-run", runs="120 rounds of 6 autoscalers")
    def test_it_writes_nothing_at_all(self, play: Play) -> None:
        async def scene(world: World) -> None:
            for number in range(5):
                await world.deploy(f"web-{number}", replicas=3)
                await world.autoscale(f"web-{number}", of=BUILT_IN)
            await world.autoscale("lost", of=BUILT_IN)
            world.queue(50)
            world.cluster.requests.clear()
            async with world.running(Mode.DRY_RUN) as process:
                await periods(20)
                assert process.value("num_horizontal_pod_autoscalers") == 6
            assert world.cluster.requests.writes == 0
            assert world.cluster.requests.reads > 0
            assert {one.verb for one in world.cluster.requests} <= {Verb.GET, Verb.LIST, Verb.WATCH}

        play(scene)

    def test_it_tells_what_it_would_do_next_to_what_happened_and_nothing_twice(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            key = await world.autoscale(of=BUILT_IN)
            world.queue(50)
            await writes_status(world, key)
            async with world.running(Mode.DRY_RUN) as process:
                await periods(3)
                await world.change(DEPLOYMENT, {"spec": {"replicas": 5}})
                status = {"desiredReplicas": 5, "lastScaleTime": "2026-01-01T12:00:46Z"}
                await world.change(key, {"status": status}, by="kube-controller-manager", status=True)
                await world.settle()
                await periods(3)
            first, second = map(str, process.reports)
            assert first == (
                "2026-01-01T12:00:15Z shop/web: would scale from 3 to 5 (total divided by target);"
                " its controller wanted 3, differs"
            )
            assert second == (
                "2026-01-01T12:01:00Z shop/web: would leave it at 5 (within tolerance); its controller wanted 5, agrees"
            )
            assert process.reports[0].as_json()["agrees"] is False

        play(scene)

    def test_its_log_does_not_say_that_anything_was_done(self, play: Play, caplog: pytest.LogCaptureFixture) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            await world.autoscale(of=BUILT_IN)
            world.queue(50)
            async with world.running(Mode.DRY_RUN) as process:
                await periods(2)
            [said] = process.reports
            assert str(said) == (
                "2026-01-01T12:00:15Z shop/web: would scale from 3 to 5 (total divided by target);"
                " no controller has looked at it yet"
            )

        caplog.set_level(logging.INFO)
        play(scene)
        assert not [each for each in caplog.records if "scaled" in each.getMessage()]

    def test_changes_of_the_other_controller_count_for_the_limits_of_a_behavior(self, play: Play) -> None:
        """Only two pods per ten minutes: after the other controller added them, there is nothing left."""

        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            up = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
            key = await world.autoscale(of=BUILT_IN, behavior={"scaleUp": up})
            world.queue(200)
            async with world.running(Mode.DRY_RUN, settings=Settings()) as process:
                await periods(2)
                await world.change(DEPLOYMENT, {"spec": {"replicas": 5}})
                status = {"desiredReplicas": 5, "lastScaleTime": "2026-01-01T12:00:31Z"}
                await world.change(key, {"status": status}, by="kube-controller-manager", status=True)
                await periods(4)
            assert [(one.current, one.wanted) for one in process.reports] == [(3, 5), (5, 5)]

        play(scene)
