"""The controller in virtual time: when it reconciles, and exactly what it writes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import Settings
from ocf.cluster import Subresource, Verb
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.modes import BUILT_IN, OWN
from ocf.controllers.hpa.state import StateStore
from ocf.controllers.hpa.status_writer import FIELD_MANAGER
from ocf.objects import ObjectKey
from ocf.objects.timestamps import format_time
from tests.controllers.hpa.conftest import NAMESPACE, PERIOD, Env, RunScenario, periods

KINDS = [
    pytest.param(Mode.OWN_KIND, OWN, id="a kind of our own"),
    pytest.param(Mode.REPLACE, BUILT_IN, id="in place of the built-in controller"),
]


@pytest.mark.parametrize(("mode", "kind"), KINDS)
def test_a_reconcile_writes_the_scale_then_the_status_and_an_event(
    run_scenario: RunScenario, mode: Mode, kind: tuple[str, str]
) -> None:
    async def scenario(env: Env) -> None:
        await env.deploy(replicas=3)
        key = await env.autoscale(of=kind)
        env.queue(50)
        env.cluster.requests.clear()
        async with env.running(mode) as process:
            await periods()
            assert Verb.GET not in {one.verb for one in env.cluster.requests}  # watched kinds are not requested
            assert await env.replicas() == 5
            assert await env.events() == [
                ("web", "SuccessfulRescale", "New size: 5; reason: external metric queue(nil) above target")
            ]
            written = [(one.kind, one.subresource) for one in env.writes]
            assert written == [("Deployment", Subresource.SCALE), (kind[1], Subresource.STATUS), ("Event", None)]
            assert process.value("reconciliations_total", action="scale_up", error="none") == 1
            computed = {"action": "scale_up", "error": "none", "metric_type": "External"}
            assert process.value("metric_computation_total", **computed) == 1
            assert process.value("desired_replicas", namespace=NAMESPACE, hpa_name="web") == 5
            assert process.value("num_horizontal_pod_autoscalers") == 1
        shown = {"targets": "16667m/10 (avg)"} if mode is Mode.OWN_KIND else {}
        assert (await env.cluster.get(key))["status"] == shown | {
            "currentReplicas": 3,
            "desiredReplicas": 5,
            "lastScaleTime": "2026-01-01T12:00:15Z",
            "currentMetrics": [
                {"type": "External", "external": {"metric": {"name": "queue"}, "current": {"averageValue": "16667m"}}}
            ],
            "conditions": [
                {
                    "type": "AbleToScale",
                    "status": "True",
                    "reason": "SucceededRescale",
                    "message": "the HPA controller was able to update the target scale to 5",
                    "lastTransitionTime": "2026-01-01T12:00:15Z",
                },
                {
                    "type": "ScalingActive",
                    "status": "True",
                    "reason": "ValidMetricFound",
                    "message": "the HPA was able to successfully calculate a replica count from"
                    " external metric queue(nil)",
                    "lastTransitionTime": "2026-01-01T12:00:15Z",
                },
                {
                    "type": "ScalingLimited",
                    "status": "False",
                    "reason": "DesiredWithinRange",
                    "message": "the desired count is within the acceptable range",
                    "lastTransitionTime": "2026-01-01T12:00:15Z",
                },
            ],
        }

    run_scenario(scenario)


@pytest.mark.promise("hpa-controller", runs="60 reconciles of 10 autoscalers, of each kind")
@pytest.mark.parametrize(("mode", "kind"), KINDS)
def test_where_nothing_changes_nothing_is_written_and_only_watches_are_renewed(
    run_scenario: RunScenario, mode: Mode, kind: tuple[str, str]
) -> None:
    async def scenario(env: Env) -> None:
        for number in range(10):
            await env.deploy(f"web-{number}", replicas=3)
            await env.autoscale(f"web-{number}", of=kind)
        env.queue(30)
        async with env.running(mode) as process:
            await periods(3)
            env.cluster.requests.clear()
            await periods(3)
            assert env.writes == []
            assert {one.verb for one in env.cluster.requests} <= {Verb.LIST, Verb.WATCH}
            assert len(env.cluster.requests) <= 2 * 4  # kinds: autoscalers of both, pods, Deployments
            assert process.value("reconciliations_total", action="none", error="none") == 60

    run_scenario(scenario)


class TestWhen:
    """One fixed delay, and no immediate reconcile before 1.37."""

    @pytest.mark.parametrize(
        ("features", "at"),
        [
            pytest.param(FeatureGates.for_release("1.36"), PERIOD, id="up to 1.36 after a period"),
            pytest.param(FeatureGates.for_release("1.37"), 0.0, id="since 1.37 at once"),
        ],
    )
    def test_a_new_autoscaler(self, run_scenario: RunScenario, features: FeatureGates, at: float) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            async with env.running(settings=Settings(features=features)):
                await asyncio.sleep(7)
                await env.autoscale()
                await asyncio.sleep(max(0.0, at - 0.5))
                assert await env.replicas() == (3 if at else 5) or not at
                await asyncio.sleep(1)
                assert await env.replicas() == 5

        run_scenario(scenario)

    @pytest.mark.parametrize(("version", "soon"), [("1.36", False), ("1.37", True)])
    def test_a_changed_spec(self, run_scenario: RunScenario, version: str, *, soon: bool) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(30)
            async with env.running(settings=Settings(features=FeatureGates.for_release(version))):
                key = await env.autoscale()
                await periods(2)
                await env.change(key, {"spec": {"minReplicas": 6}})
                await asyncio.sleep(1)
                assert await env.replicas() == (6 if soon else 3)
                await periods()
                assert await env.replicas() == 6

        run_scenario(scenario)

    def test_an_autoscaler_is_reconciled_once_per_period_however_often_it_changes(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale()
            env.queue(30)
            async with env.running() as process:
                await asyncio.sleep(0.5)
                for number in range(120):
                    await env.change(key, {"metadata": {"labels": {"number": str(number)}}})
                    await asyncio.sleep(1)
                assert process.value("reconciliations_total", action="none", error="none") in (7, 8)

        run_scenario(scenario)

    def test_an_error_does_not_delay_the_next_reconcile(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale()  # the metric does not exist
            async with env.running() as process:
                await periods(10)
                assert process.value("reconciliations_total", action="none", error="internal") == 10

        run_scenario(scenario)

    def test_an_autoscaler_of_our_kind_may_have_its_own_period(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.deploy("slow", replicas=3)
            await env.autoscale(settings={"syncPeriodSeconds": 2})
            await env.autoscale("slow")
            env.queue(50)
            async with env.running():
                await asyncio.sleep(2.5)
                assert (await env.replicas(), await env.replicas("slow")) == (5, 3)
                await asyncio.sleep(13)
                assert (await env.replicas(), await env.replicas("slow")) == (5, 5)

        run_scenario(scenario)


class TestOverrides:
    def test_its_own_tolerance(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            value = {"type": "Value", "value": "100"}
            queue = {"type": "External", "external": {"metric": {"name": "queue"}, "target": value}}
            for name, overrides in (("web", {"tolerance": "0.01"}), ("usual", {})):
                await env.deploy(name, replicas=10)
                await env.autoscale(name, metrics=[queue], settings=overrides)
            env.queue(105)
            async with env.running():
                await periods()
            assert (await env.replicas(), await env.replicas("usual")) == (11, 10)

        run_scenario(scenario)

    def test_its_own_window(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            for name, overrides in (("web", {"downscaleStabilizationSeconds": 30}), ("usual", {})):
                await env.deploy(name, replicas=5)
                await env.autoscale(name, settings=overrides)
            env.queue(10)
            async with env.running():
                await periods(4)
                assert (await env.replicas(), await env.replicas("usual")) == (1, 5)
                await periods(20)
                assert await env.replicas("usual") == 1

        run_scenario(scenario)

    def test_its_own_initialization_period(self, run_scenario: RunScenario) -> None:
        """Pods that started 90 seconds ago count at once for one, and as unready for the other."""

        async def scenario(env: Env) -> None:
            for name, overrides in (("web", {"cpuInitializationPeriodSeconds": 60}), ("usual", {})):
                await env.deploy(name, replicas=2)
                resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
                await env.autoscale(name, metrics=[{"type": "Resource", "resource": resource}], settings=overrides)
                ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}
                status = {"startTime": "2026-01-01T11:58:30Z", "conditions": [ready]}
                for number in range(2):
                    key = ObjectKey("v1", "Pod", f"{name}-{number}", NAMESPACE)
                    await env.change(key, {"status": status}, status=True)
                env.use_cpu(name, "100m", 2)
            async with env.running():
                await periods()
            assert (await env.replicas(), await env.replicas("usual")) == (4, 2)

        run_scenario(scenario)


class TestInvalidSpecs:
    def test_an_invalid_autoscaler_has_conditions_and_is_run_once_it_is_fixed(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(behavior={"scaleDown": {"stabilizationWindowSeconds": 4000}})
            async with env.running() as process:
                await periods(2)
                refused = ("False", "InvalidSpec")
                assert await env.conditions(key) == {"AbleToScale": refused, "ScalingActive": refused}
                message = await env.message(key, "ScalingActive")
                assert message.endswith(
                    "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 4000: must be less than or"
                    " equal to 3600"
                )
                assert (await env.replicas(), process.states()) == (3, {"invalid": 1})
                assert process.value("reconciliations_total", action="none", error="spec") == 2
                await env.change(key, {"spec": {"behavior": None}})
                await periods(1)
                assert (await env.replicas(), process.states()) == (5, {"running": 1})
                assert (await env.conditions(key))["ScalingActive"] == ("True", "ValidMetricFound")

        run_scenario(scenario)


class TestDeletedAutoscalers:
    def test_no_state_of_a_deleted_autoscaler_is_kept(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale()
            env.queue(30)
            async with env.running() as process:
                await periods(2)
                assert process.controller is not None
                reconciler = process.controller.reconciler
                assert reconciler is not None
                assert (len(reconciler.states), len(reconciler.selectors)) == (1, 1)
                await env.cluster.delete(key)
                await asyncio.sleep(1)
                assert (len(reconciler.states), len(reconciler.selectors)) == (0, 0)
                assert process.controller._queue.later == 0
                assert (process.states(), process.value("num_horizontal_pod_autoscalers")) == ({}, 0)
                env.cluster.requests.clear()
                await periods(3)
                assert env.writes == []

        run_scenario(scenario)

    def test_a_recreated_autoscaler_starts_without_history(self, run_scenario: RunScenario) -> None:
        """Recommendations for the old one do not limit the new one."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=8)
            key = await env.autoscale()
            env.queue(80)
            async with env.running():
                await periods(2)
                await env.cluster.delete(key)
                await env.change(ObjectKey("apps/v1", "Deployment", "web", NAMESPACE), {"spec": {"replicas": 2}})
                await env.sync_pods()
                env.queue(10)
                await env.autoscale()
                await periods(2)
                assert await env.replicas() == 2  # the old one would have kept 8

        run_scenario(scenario)

    def test_a_new_uid_is_a_new_autoscaler(self) -> None:
        memory, metadata = StateStore(Settings()), {"name": "web", "namespace": NAMESPACE}
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": reference, "maxReplicas": 3}
        first, second = (
            {"apiVersion": OWN[0], "kind": OWN[1], "metadata": {**metadata, "uid": uid}, "spec": spec} for uid in "ab"
        )
        key = ObjectKey.of(first)
        known, is_new = memory.get_or_create(key, first)
        assert (is_new, memory.get_or_create(key, first), len(memory)) == (True, (known, False), 1)
        other, is_new = memory.get_or_create(key, second)
        assert (is_new, other is known, len(memory)) == (True, False, 1)

    def test_the_state_does_not_grow(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})
            async with env.running() as process:
                for number in range(400):
                    env.queue(30 + number % 7 * 10)
                    await env.sync_pods()
                    await asyncio.sleep(PERIOD)
                assert process.controller is not None
                reconciler = process.controller.reconciler
                assert reconciler is not None
                (known,) = reconciler.states
                assert len(known.history.recommendations or ()) <= 60 / PERIOD + 2
                assert len(known.history.scale_ups) + len(known.history.scale_downs) <= 8

        run_scenario(scenario)


_TWO_PER_TEN_MINUTES: Final = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}


@pytest.mark.parametrize("jump", [pytest.param(600, id="ahead"), pytest.param(-600, id="back")])
class TestClockJumps:
    """Windows and policy periods follow elapsed time, as in Go, and not the time of day."""

    def test_a_stabilization_window_lasts_as_long_as_it_says(self, run_scenario: RunScenario, jump: float) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=8)
            await env.autoscale()
            env.queue(20)
            async with env.running():
                await periods(2)
                env.clock.jump(jump)
                await periods(18)
                assert await env.replicas() == 8
                await periods(2)
                assert await env.replicas() == 2

        run_scenario(scenario)

    def test_the_period_of_a_policy_lasts_as_long_as_it_says(self, run_scenario: RunScenario, jump: float) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale(behavior={"scaleUp": _TWO_PER_TEN_MINUTES})
            env.queue(200)
            async with env.running():
                await periods(2)
                assert await env.replicas() == 5
                env.clock.jump(jump)
                await periods(38)
                assert await env.replicas() == 5
                await periods(2)
                assert await env.replicas() == 7

        run_scenario(scenario)

    def test_a_dry_run_places_the_changes_of_the_other_controller_on_elapsed_time(
        self, run_scenario: RunScenario, jump: float
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale(of=BUILT_IN, behavior={"scaleUp": _TWO_PER_TEN_MINUTES})
            env.queue(200)
            async with env.running(Mode.DRY_RUN) as process:
                await periods(2)
                env.clock.jump(jump)
                await env.change(ObjectKey("apps/v1", "Deployment", "web", NAMESPACE), {"spec": {"replicas": 5}})
                status = {"desiredReplicas": 5, "lastScaleTime": format_time(env.clock.now())}
                await env.change(key, {"status": status}, by="kube-controller-manager", status=True)
                await periods(37)
                assert [(one.current, one.wanted) for one in process.reports] == [(3, 5), (5, 5)]
                await periods(4)
                assert [(one.current, one.wanted) for one in process.reports][2:] == [(5, 7)]

        run_scenario(scenario)


class TestRestarts:
    def test_a_restart_scales_nothing_down_for_the_length_of_the_window(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=8)
            await env.autoscale()
            env.queue(10)
            for _ in range(3):
                async with env.running():
                    await periods(4)
                assert await env.replicas() == 8
            async with env.running():
                await periods(22)
                assert await env.replicas() == 1

        run_scenario(scenario)

    def test_a_stop_lets_a_running_reconcile_end(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale()
            env.queue(50)

            class Slow:
                async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> object:
                    await asyncio.sleep(5)
                    return await env.metrics.external_metric(namespace, metric, selector=selector)

            async with env.running(metrics=Slow()) as process:  # type: ignore[arg-type]  # nothing else is asked
                await asyncio.sleep(PERIOD + 1)
                assert await env.replicas() == 3
                await process.stop()
                assert await env.replicas() == 5
                assert (await env.conditions(key))["AbleToScale"] == ("True", "SucceededRescale")
                assert [reason for _, reason, _ in await env.events()] == ["SuccessfulRescale"]

        run_scenario(scenario)


def test_the_writes_are_our_own(run_scenario: RunScenario) -> None:
    async def scenario(env: Env) -> None:
        await env.deploy(replicas=3)
        key = await env.autoscale(of=BUILT_IN)
        env.queue(50)
        async with env.running(Mode.REPLACE):
            await periods()
        entries = (await env.cluster.get(key))["metadata"]["managedFields"]
        assert [one["manager"] for one in entries if one.get("subresource") == "status"] == [FIELD_MANAGER]

    run_scenario(scenario)


def test_slow_responses_for_some_do_not_delay_others(run_scenario: RunScenario) -> None:
    """Four of five workers wait for an answer that takes a minute; the fifth does all the rest."""

    async def scenario(env: Env) -> None:
        slow = {"type": "AverageValue", "averageValue": "10"}
        for number in range(24):
            await env.deploy(f"web-{number}", replicas=3)
            name = f"slow-{number}" if number < 4 else "queue"
            metric = {"type": "External", "external": {"metric": {"name": name}, "target": slow}}
            await env.autoscale(f"web-{number}", metrics=[metric])
        env.queue(50)

        class Slow:
            async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> object:
                await asyncio.sleep(60 if metric.startswith("slow") else 0)
                return await env.metrics.external_metric(namespace, "queue", selector=selector)

        settings = replace(Settings(), workers=5, sync_period=timedelta(seconds=PERIOD))
        async with env.running(metrics=Slow(), settings=settings):  # type: ignore[arg-type]  # as above
            await periods(1)
            quick = [await env.replicas(f"web-{number}") for number in range(4, 24)]
            assert quick == [5] * 20
            assert [await env.replicas(f"web-{number}") for number in range(4)] == [3] * 4

    run_scenario(scenario)
