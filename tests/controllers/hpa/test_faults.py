"""Invalid input and failures: reported with the controller's messages, without scaling down or affecting others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from pydantic import BaseModel

from ocf.cluster import InterceptingCluster, Request, Subresource, Verb
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.modes import BUILT_IN
from ocf.controllers.hpa.status_writer import write_scale
from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.metrics_client.client import EXTERNAL_METRICS
from ocf.errors import ConflictError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime import crds
from ocf.runtime.operator import Lease
from ocf.testing import FaultyCluster, faults
from tests.controllers.hpa.conftest import NAMESPACE, PERIOD, Env, RunScenario, periods

CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]


async def beside(env: Env) -> None:
    """Create a valid autoscaler."""
    await env.deploy("fine", replicas=3)
    await env.autoscale("fine")
    env.queue(50)


class TestMetrics:
    def test_an_api_that_is_down_scales_nothing_down_and_affects_no_other_autoscaler(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            await env.deploy(replicas=6)
            key = await env.autoscale(metrics=CPU)
            env.metrics.fail(RESOURCE_METRICS, ServerError("it is down", code=503))
            async with env.running() as process:
                await periods(30)
                assert (await env.replicas(), await env.replicas("fine")) == (6, 5)
                assert (await env.conditions(key))["ScalingActive"] == ("False", "FailedGetResourceMetric")
                assert await env.message(key, "ScalingActive") == (
                    "the HPA was unable to compute the replica count: failed to get cpu utilization:"
                    " unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API:"
                    " it is down"
                )
                reasons = {reason for name, reason, _ in await env.events() if name == "web"}
                assert reasons == {"FailedGetResourceMetric", "FailedComputeMetricsReplicas"}
                failed = {"action": "none", "error": "internal", "metric_type": "Resource"}
                assert process.value("metric_computation_total", **failed) == 30
                env.metrics.fail(RESOURCE_METRICS, None)
                env.use_cpu("web", "100m", 6)
                await periods(1)
                assert await env.replicas() == 12

        run_scenario(scenario)

    def test_with_one_of_two_metrics_missing_it_only_scales_up(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            metrics = [*CPU, {"type": "External", "external": queue}]
            for name in ("web", "other"):
                await env.deploy(name, replicas=4)
            await env.autoscale(metrics=metrics)
            env.queue(70)
            async with env.running() as process:
                await periods(1)
                assert await env.replicas() == 7
                await env.sync_pods()
                env.queue(10)
                await periods(40)
                assert await env.replicas() == 7
                assert process.value("reconciliations_total", action="scale_up", error="internal") == 1

        run_scenario(scenario)

    @pytest.mark.parametrize(
        "value",
        [
            pytest.param("NaN", id="no number"),
            pytest.param("-1", id="negative"),
            pytest.param("1e1000000000", id="absurd"),
            pytest.param("9" * 40, id="beyond 64 bits"),
            pytest.param("", id="empty"),
            pytest.param("1 Gi", id="malformed"),
        ],
    )
    def test_an_invalid_value_keeps_the_limits_and_affects_no_other_autoscaler(
        self, run_scenario: RunScenario, value: str
    ) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            await env.deploy(replicas=4)
            metric = {"metric": {"name": "odd"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            await env.autoscale(minReplicas=2, metrics=[{"type": "External", "external": metric}])
            env.metrics.set_external(NAMESPACE, "odd", value)
            async with env.running() as process:
                await periods(4)
                assert await env.replicas("fine") == 5
                assert 2 <= await env.replicas() <= 20
                assert process.states() == {"running": 2}

        run_scenario(scenario)

    @pytest.mark.parametrize(
        "answer",
        [
            pytest.param([None], id="no object"),
            pytest.param([{"value": {}}], id="no value"),
            pytest.param([7], id="a number"),
            pytest.param([{"value": "1", "timestamp": "soon"}], id="no time"),
            pytest.param("items", id="a text"),
        ],
    )
    def test_a_malformed_response_is_a_failure_of_the_metric(self, run_scenario: RunScenario, answer: Any) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            await env.deploy(replicas=4)
            odd = {"metric": {"name": "odd"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            await env.autoscale(metrics=[{"type": "External", "external": odd}])

            class Odd:
                async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Any:
                    if metric == "odd":
                        return answer
                    return await env.metrics.external_metric(namespace, metric, selector=selector)

            async with env.running(metrics=Odd()) as process:  # type: ignore[arg-type]  # nothing else is asked
                await periods(4)
                assert await env.replicas("fine") == 5
                assert await env.replicas() in (4, 1, 5)
                reconciles = sum(
                    process.value("reconciliations_total", action=action, error=error)
                    for action in ("none", "scale_up", "scale_down")
                    for error in ("none", "internal", "spec")
                )
                assert reconciles == 8  # every reconcile of both has ended

        run_scenario(scenario)

    def test_an_api_that_never_responds_is_a_failure_and_delays_no_other_autoscaler(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            await env.deploy(replicas=4)
            odd = {"metric": {"name": "odd"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            key = await env.autoscale(metrics=[{"type": "External", "external": odd}])

            class Silent:
                async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Any:
                    if metric == "odd":
                        await asyncio.sleep(3600)
                    return await env.metrics.external_metric(namespace, metric, selector=selector)

            async with env.running(metrics=Silent()) as process:  # type: ignore[arg-type]  # as above
                await periods(1)
                assert await env.replicas("fine") == 5
                await periods(6)
                assert (await env.replicas(), process.states()) == (4, {"running": 2})
                assert (await env.conditions(key))["ScalingActive"] == ("False", "FailedGetExternalMetric")
                assert "no answer within 60 s" in await env.message(key, "ScalingActive")

        run_scenario(scenario)

    @pytest.mark.parametrize(
        ("takes", "timeout", "replicas"),
        [
            pytest.param(20, 60, 6, id="longer than a period, as with the built-in controller"),
            pytest.param(55, 60, 6, id="nearly as long as the API server waits"),
            pytest.param(20, 10, 4, id="longer than the timeout of requests"),
        ],
    )
    def test_a_slow_api_scales_if_it_responds_in_time(
        self, run_scenario: RunScenario, takes: int, timeout: int, replicas: int
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=4)
            env.metrics.set_external(NAMESPACE, "queue", "60")
            queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            await env.autoscale(metrics=[{"type": "External", "external": queue}])

            class Slow:
                async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Any:
                    await asyncio.sleep(takes)
                    return await env.metrics.external_metric(namespace, metric, selector=selector)

            async with env.running(metrics=Slow(), request_timeout=timeout):  # type: ignore[arg-type]  # as above
                await periods(6)
                assert await env.replicas() == replicas

        run_scenario(scenario)


def test_a_reconcile_that_never_ends_fails_the_liveness_check(run_scenario: RunScenario) -> None:
    async def scenario(env: Env) -> None:
        await beside(env)

        class Silent(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                if request.subresource is Subresource.SCALE:
                    await asyncio.sleep(3600)
                return await send()

        async with env.running(cluster=Silent(env.cluster)) as process:
            await periods(2)
            assert process.controller is not None
            assert (process.controller.ready(), process.controller.live()) == ("", "")
            await asyncio.sleep(300)
            assert re.fullmatch("a reconcile has been running for 3.. s, more than 300 s", process.controller.live())
            await asyncio.sleep(3600)

    run_scenario(scenario)


class TestScales:
    def test_a_conflict_is_not_retried_before_kubernetes_1_34(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            target = ObjectKey("apps/v1", "Deployment", "web", NAMESPACE)
            version = (await env.cluster.get(target))["metadata"]["resourceVersion"]
            faulty = FaultyCluster(env.cluster, [faults.conflict(name="web", kind="Deployment", subresource="scale")])

            with pytest.raises(ConflictError):
                await write_scale(faulty, target, 5, version=version, retry=False)
            assert await env.replicas() == 3
            faulty.assert_all_injected()

        run_scenario(scenario)

    @pytest.mark.parametrize(("conflicts", "replicas"), [(1, 5), (4, 5), (5, 3)])
    def test_a_conflicting_scale_is_written_five_times(
        self, run_scenario: RunScenario, conflicts: int, replicas: int
    ) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            await env.deploy(replicas=3)
            key = await env.autoscale()
            faulty = FaultyCluster(
                env.cluster, [faults.conflict(name="web", kind="Deployment", subresource="scale", times=conflicts)]
            )
            async with env.running(cluster=faulty) as process:
                await periods(1)
                assert (await env.replicas(), await env.replicas("fine")) == (replicas, 5)
                faulty.assert_all_injected()
                if replicas == 3:
                    assert (await env.conditions(key))["AbleToScale"] == ("False", "FailedUpdateScale")
                    status = (await env.cluster.get(key))["status"]
                    assert (status["currentReplicas"], status["desiredReplicas"]) == (3, 0)
                    ((_, _, note),) = await env.events("FailedRescale")
                    assert note == (
                        "New size: 5; reason: external metric queue(nil) above target; error: the object has been"
                        " modified; please apply your changes to the latest version and try again"
                    )
                    assert process.value("reconciliations_total", action="none", error="internal") == 1
                await periods(1)
                assert await env.replicas() == 5

        run_scenario(scenario)

    def test_the_attempts_are_ten_milliseconds_apart(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale()
            env.queue(50)
            tries: list[float] = []

            class Noting(InterceptingCluster):
                async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                    if request.subresource is Subresource.SCALE and not request.verb.is_read:
                        tries.append(asyncio.get_running_loop().time())
                    return await send()

            always = faults.conflict(kind="Deployment", subresource="scale", times=None)
            async with env.running(cluster=Noting(FaultyCluster(env.cluster, [always]))):
                await periods(1)
            assert len(tries) == 5
            assert all(0.010 <= later - earlier <= 0.012 for earlier, later in pairwise(tries))

        run_scenario(scenario)

    def test_a_rejected_scale_does_not_count_as_a_scale_event(self, run_scenario: RunScenario) -> None:
        """One pod per ten minutes: the pod that could not be added may be added in the next reconcile."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]}
            await env.autoscale(behavior={"scaleUp": up})
            env.queue(100)
            fault = faults.server_error(500, kind="Deployment", subresource="scale", verbs=[Verb.UPDATE])
            async with env.running(cluster=FaultyCluster(env.cluster, [fault])):
                await periods(1)
                assert await env.replicas() == 3
                await periods(3)
                assert await env.replicas() == 4

        run_scenario(scenario)

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            pytest.param({"name": "gone"}, 'deployments.apps "gone" not found', id="absent"),
            pytest.param(
                {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "x"}, "", id="cannot be scaled"
            ),
            pytest.param({"apiVersion": "example.com/v1", "kind": "Nothing", "name": "x"}, "", id="unknown kind"),
        ],
    )
    def test_a_target_without_a_scale(self, run_scenario: RunScenario, target: Manifest, message: str) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            key = await env.autoscale(target=target)
            async with env.running():
                await periods(3)
                assert (await env.conditions(key))["AbleToScale"] == ("False", "FailedGetScale")
                text = await env.message(key, "AbleToScale")
                assert text.startswith(f"the HPA controller was unable to get the target's current scale: {message}")
                assert await env.events("FailedGetScale")
                assert await env.replicas("fine") == 5
                await env.deploy("gone", replicas=3)
                await periods(1)
                if message:
                    assert await env.replicas("gone") == 5

        run_scenario(scenario)


class ShopSpec(BaseModel):
    replicas: int = 1


class ShopStatus(BaseModel):
    replicas: int = 0
    selector: str = ""


class Shop(BaseModel):
    spec: ShopSpec
    status: ShopStatus | None = None


async def shop(env: Env, selector: str) -> Manifest:
    """Create an object of a custom kind with two replicas, and return a reference to it."""
    parts = crds.ScaleSubresource(selector=".status.selector")
    await env.cluster.create(crds.crd("example.com", crds.CRDVersion("v1", Shop, scale=parts)), field_manager="admin")
    target = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner"}
    metadata = {"name": "corner", "namespace": NAMESPACE}
    corner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"replicas": 2}}
    await env.cluster.create(corner, field_manager="user")
    await env.change(ObjectKey.of(corner), {"status": {"replicas": 2, "selector": selector}}, status=True)
    return target


class TestSelectors:
    @pytest.mark.parametrize(
        ("selector", "event", "condition"),
        [
            pytest.param("", "SelectorRequired", ("ScalingActive", "InvalidSelector"), id="none"),
            pytest.param("app=((", "FailedGetScale", ("AbleToScale", "FailedGetScale"), id="malformed"),
            pytest.param("app=shop", "SuccessfulRescale", None, id="good"),
        ],
    )
    def test_a_target_of_another_kind_needs_a_selector(
        self, run_scenario: RunScenario, selector: str, event: str, condition: tuple[str, str] | None
    ) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            target = await shop(env, selector)
            key = await env.autoscale("corner", target=target)
            async with env.running():
                await periods(2)
                live = await env.cluster.get(ObjectKey("example.com/v1", "Shop", "corner", NAMESPACE))
                assert await env.events(event)
                assert live["spec"]["replicas"] == (2 if condition else 5)
                if condition is not None:
                    assert (await env.conditions(key))[condition[0]] == ("False", condition[1])
                assert await env.replicas("fine") == 5

        run_scenario(scenario)

    def test_two_autoscalers_of_the_built_in_kind_on_one_target_are_ambiguous(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            await env.autoscale("other", of=BUILT_IN)
            await env.deploy("other", replicas=3)
            await env.deploy(replicas=3)
            keys = [await env.autoscale(name, of=BUILT_IN, target={"name": "web"}) for name in ("one", "two")]
            async with env.running(Mode.REPLACE):
                await periods(1)
                count = await env.replicas()
                env.queue(90)
                await periods(3)
                assert await env.replicas() == count  # the first one was reconciled before the second was known
                for key in keys:
                    assert (await env.conditions(key))["ScalingActive"] == ("False", "AmbiguousSelector")
                assert await env.replicas("other") == 9

        run_scenario(scenario)


class TestStatus:
    def test_a_failed_status_write_is_reported_and_the_scale_stays_written(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await beside(env)
            await env.deploy(replicas=3)
            key = await env.autoscale()
            fault = faults.server_error(503, name="web", kind="HorizontalAutoscaler", subresource="status", times=2)
            async with env.running(cluster=FaultyCluster(env.cluster, [fault])) as process:
                await periods(1)
                assert (await env.replicas(), "status" in await env.cluster.get(key)) == (5, False)
                await periods(3)
                assert len(await env.events("FailedUpdateStatus")) == 1
                assert process.value("reconciliations_total", action="scale_up", error="internal") == 1
                assert (await env.cluster.get(key))["status"]["desiredReplicas"] == 5

        run_scenario(scenario)

    def test_an_autoscaler_that_changes_during_a_reconcile_is_not_overwritten(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale()
            env.queue(50)

            async def change() -> None:
                await env.change(key, {"spec": {"maxReplicas": 19}})

            meanwhile = faults.meanwhile(change, verbs=[Verb.UPDATE], kind="Deployment", subresource="scale")
            async with env.running(cluster=FaultyCluster(env.cluster, [meanwhile])):
                await periods(1)
                assert (await env.cluster.get(key))["spec"]["maxReplicas"] == 19
                assert [reason for _, reason, _ in await env.events()] == ["SuccessfulRescale", "FailedUpdateStatus"]
                await periods(1)
                assert (await env.cluster.get(key))["status"]["desiredReplicas"] == 5

        run_scenario(scenario)

    @pytest.mark.parametrize("verb", [Verb.GET, Verb.UPDATE])
    def test_an_autoscaler_that_is_deleted_during_its_reconcile_leaves_no_state(
        self, run_scenario: RunScenario, verb: Verb
    ) -> None:
        """Also if it is deleted before its selector is read, and so before the selector is recorded."""

        async def scenario(env: Env) -> None:
            target = await shop(env, "app=shop")
            key = await env.autoscale("corner", target=target)
            env.queue(50)

            async def delete() -> None:
                await env.cluster.delete(key)
                await asyncio.sleep(1)

            meanwhile = faults.meanwhile(delete, verbs=[verb], kind="Shop", subresource="scale")
            async with env.running(cluster=FaultyCluster(env.cluster, [meanwhile])) as process:
                await periods(2)
                assert process.controller is not None
                reconciler = process.controller.reconciler
                assert reconciler is not None
                assert (len(reconciler.states), len(reconciler.selectors), process.states()) == (0, 0, {})

        run_scenario(scenario)


class TestLeaders:
    def test_a_candidate_stops_at_once(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            first, second = (Lease("hpa", "default", name) for name in ("one", "two"))
            async with env.running(lease=first):
                await periods(1)
                async with env.running(lease=second) as waiting:
                    await periods(1)
                    before = asyncio.get_running_loop().time()
                    await waiting.stop()
                    assert asyncio.get_running_loop().time() - before < 1

        run_scenario(scenario)

    def test_a_stop_does_not_wait_for_caches_that_cannot_be_filled(self, run_scenario: RunScenario) -> None:
        class Silent(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                if request.kind == "Pod":
                    await asyncio.sleep(3600)
                return await send()

        async def scenario(env: Env) -> None:
            lease = Lease("hpa", "default", "one")
            async with env.running(cluster=Silent(env.cluster), lease=lease) as process:
                await periods(1)
                assert process.controller is not None
                assert process.controller.ready() == "autoscalers and pods are not read yet"
                before = asyncio.get_running_loop().time()
                await process.stop()
                assert asyncio.get_running_loop().time() - before < 1
            found = await env.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "hpa", "default"))
            assert found["spec"]["holderIdentity"] == ""

        run_scenario(scenario)

    def test_the_next_leader_continues_after_the_first_one_lost_the_cluster(self, run_scenario: RunScenario) -> None:
        """The first leader loses the cluster during a write; it stops writing, and the second one takes over."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale()
            env.queue(50)

            class Link(InterceptingCluster):
                cut = False

                async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                    if request.subresource is Subresource.SCALE:
                        self.cut = True  # from here on nothing arrives
                    if self.cut:
                        await asyncio.sleep(3600)
                    return await send()

            link = Link(env.cluster)
            first, second = (Lease("hpa", "default", name) for name in ("one", "two"))
            async with env.running(cluster=link, lease=first) as one:
                await asyncio.sleep(3)
                async with env.running(lease=second) as two:
                    await asyncio.sleep(PERIOD)
                    assert (link.cut, await env.replicas(), two.states()) == (True, 3, {})
                    await asyncio.sleep(60)
                    assert (await env.replicas(), two.states()) == (5, {"running": 1})
                    assert one.states() == {}
                    assert (await env.conditions(key))["AbleToScale"][0] == "True"
                    env.queue(70)
                    await periods(2)
                    assert await env.replicas() == 7
                assert one.task is not None
                one.task.cancel()
                await asyncio.wait([one.task])
                link.cut = False

        run_scenario(scenario)

    def test_a_leader_that_stops_releases_its_lease(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale()
            env.queue(50)
            lease = Lease("hpa", "default", "one")
            async with env.running(lease=lease):
                await periods(2)
                assert await env.replicas() == 5
            found = await env.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "hpa", "default"))
            assert found["spec"]["holderIdentity"] == ""

        run_scenario(scenario)


def test_an_external_api_that_is_down_has_the_message_of_the_controller(run_scenario: RunScenario) -> None:
    async def scenario(env: Env) -> None:
        await env.deploy(replicas=3)
        key = await env.autoscale()
        env.metrics.fail(EXTERNAL_METRICS, ServerError("the server is currently unable to handle the request"))
        async with env.running():
            await periods(1)
            assert await env.message(key, "ScalingActive") == (
                "the HPA was unable to compute the replica count: unable to get external metric shop/queue/nil:"
                " unable to fetch metrics from external metrics API: the server is currently"
                " unable to handle the request"
            )

    run_scenario(scenario)
