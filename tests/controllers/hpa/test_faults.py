"""Bad input and broken surroundings: said in the controller's words, nothing shrinks, nobody else is affected."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from pydantic import BaseModel

from ocf.cluster import InterceptingCluster, Request, Subresource, Verb
from ocf.controllers.hpa import BUILT_IN, Mode
from ocf.controllers.metrics_client import EXTERNAL_METRICS, RESOURCE_METRICS
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime import crds
from ocf.runtime.operator import Lease
from ocf.testing import FaultyCluster, faults
from tests.controllers.hpa.conftest import NAMESPACE, PERIOD, Play, World, periods

CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]


async def beside(world: World) -> None:
    """Set up an autoscaler that nothing is wrong with."""
    await world.deploy("fine", replicas=3)
    await world.autoscale("fine")
    world.queue(50)


class TestMetrics:
    def test_an_api_that_is_down_shrinks_nothing_and_stops_nobody_else(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            await world.deploy(replicas=6)
            key = await world.autoscale(metrics=CPU)
            world.metrics.fail(RESOURCE_METRICS, ServerError("it is down", code=503))
            async with world.running() as process:
                await periods(30)
                assert (await world.replicas(), await world.replicas("fine")) == (6, 5)
                assert (await world.conditions(key))["ScalingActive"] == ("False", "FailedGetResourceMetric")
                assert await world.message(key, "ScalingActive") == (
                    "the HPA was unable to compute the replica count: failed to get cpu utilization:"
                    " unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API:"
                    " it is down"
                )
                told = {reason for name, reason, _ in await world.events() if name == "web"}
                assert told == {"FailedGetResourceMetric", "FailedComputeMetricsReplicas"}
                failed = {"action": "none", "error": "internal", "metric_type": "Resource"}
                assert process.value("metric_computation_total", **failed) == 30
                world.metrics.fail(RESOURCE_METRICS, None)
                world.burn("web", "100m", 6)
                await periods(1)
                assert await world.replicas() == 12

        play(scene)

    def test_one_of_two_metrics_that_is_missing_lets_grow_and_never_shrink(self, play: Play) -> None:
        async def scene(world: World) -> None:
            queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            metrics = [*CPU, {"type": "External", "external": queue}]
            for name in ("web", "other"):
                await world.deploy(name, replicas=4)
            await world.autoscale(metrics=metrics)
            world.queue(70)
            async with world.running() as process:
                await periods(1)
                assert await world.replicas() == 7
                await world.settle()
                world.queue(10)
                await periods(40)
                assert await world.replicas() == 7
                assert process.value("reconciliations_total", action="scale_up", error="internal") == 1

        play(scene)

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
    def test_nonsense_as_a_value_moves_nothing_below_and_nobody_else(self, play: Play, value: str) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            await world.deploy(replicas=4)
            metric = {"metric": {"name": "odd"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            await world.autoscale(minReplicas=2, metrics=[{"type": "External", "external": metric}])
            world.metrics.set_external(NAMESPACE, "odd", value)
            async with world.running() as process:
                await periods(4)
                assert await world.replicas("fine") == 5
                assert 2 <= await world.replicas() <= 20
                assert process.states() == {"running": 2}

        play(scene)

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
    def test_an_answer_that_is_none_is_a_failure_of_the_metric(self, play: Play, answer: Any) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            await world.deploy(replicas=4)
            odd = {"metric": {"name": "odd"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            await world.autoscale(metrics=[{"type": "External", "external": odd}])

            class Odd:
                async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Any:
                    if metric == "odd":
                        return answer
                    return await world.metrics.external_metric(namespace, metric, selector=selector)

            async with world.running(metrics=Odd()) as process:  # type: ignore[arg-type]  # nothing else is asked
                await periods(4)
                assert await world.replicas("fine") == 5
                assert await world.replicas() in (4, 1, 5)
                rounds = sum(
                    process.value("reconciliations_total", action=action, error=error)
                    for action in ("none", "scale_up", "scale_down")
                    for error in ("none", "internal", "spec")
                )
                assert rounds == 8  # every round of both came to its end

        play(scene)

    def test_an_api_that_never_answers_is_a_failure_and_holds_nobody_up(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            await world.deploy(replicas=4)
            odd = {"metric": {"name": "odd"}, "target": {"type": "AverageValue", "averageValue": "10"}}
            key = await world.autoscale(metrics=[{"type": "External", "external": odd}])

            class Silent:
                async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Any:
                    if metric == "odd":
                        await asyncio.sleep(3600)
                    return await world.metrics.external_metric(namespace, metric, selector=selector)

            async with world.running(metrics=Silent()) as process:  # type: ignore[arg-type]  # as above
                await periods(1)
                assert await world.replicas("fine") == 5
                await periods(3)
                assert (await world.replicas(), process.states()) == (4, {"running": 2})
                assert (await world.conditions(key))["ScalingActive"] == ("False", "FailedGetExternalMetric")
                assert "no answer within 10 s" in await world.message(key, "ScalingActive")

        play(scene)


def test_a_round_that_never_ends_is_told_to_whoever_asks_whether_the_process_lives(play: Play) -> None:
    async def scene(world: World) -> None:
        await beside(world)

        class Silent(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                if request.subresource is Subresource.SCALE:
                    await asyncio.sleep(3600)
                return await send()

        async with world.running(cluster=Silent(world.cluster)) as process:
            await periods(2)
            assert process.controller is not None
            assert (process.controller.ready(), process.controller.live()) == ("", "")
            await asyncio.sleep(300)
            assert re.fullmatch("a reconcile has been running for 3.. s, more than 300 s", process.controller.live())
            await asyncio.sleep(3600)

    play(scene)


class TestScales:
    @pytest.mark.parametrize(("conflicts", "replicas"), [(1, 5), (4, 5), (5, 3)])
    def test_a_scale_that_others_change_meanwhile_is_tried_five_times(
        self, play: Play, conflicts: int, replicas: int
    ) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            await world.deploy(replicas=3)
            key = await world.autoscale()
            faulty = FaultyCluster(
                world.cluster, [faults.conflict(name="web", kind="Deployment", subresource="scale", times=conflicts)]
            )
            async with world.running(cluster=faulty) as process:
                await periods(1)
                assert (await world.replicas(), await world.replicas("fine")) == (replicas, 5)
                faulty.assert_all_injected()
                if replicas == 3:
                    assert (await world.conditions(key))["AbleToScale"] == ("False", "FailedUpdateScale")
                    status = (await world.cluster.get(key))["status"]
                    assert (status["currentReplicas"], status["desiredReplicas"]) == (3, 0)
                    ((_, _, note),) = await world.events("FailedRescale")
                    assert note == (
                        "New size: 5; reason: external metric queue(nil) above target; error: the object has been"
                        " modified; please apply your changes to the latest version and try again"
                    )
                    assert process.value("reconciliations_total", action="none", error="internal") == 1
                await periods(1)
                assert await world.replicas() == 5

        play(scene)

    def test_the_tries_are_ten_milliseconds_apart(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            await world.autoscale()
            world.queue(50)
            tries: list[float] = []

            class Noting(InterceptingCluster):
                async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                    if request.subresource is Subresource.SCALE and not request.verb.is_read:
                        tries.append(asyncio.get_running_loop().time())
                    return await send()

            always = faults.conflict(kind="Deployment", subresource="scale", times=None)
            async with world.running(cluster=Noting(FaultyCluster(world.cluster, [always]))):
                await periods(1)
            assert len(tries) == 5
            assert all(0.010 <= later - earlier <= 0.012 for earlier, later in pairwise(tries))

        play(scene)

    def test_a_refused_scale_is_not_remembered_as_a_change(self, play: Play) -> None:
        """One pod per ten minutes: the pod that could not be added may be added in the next round."""

        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]}
            await world.autoscale(behavior={"scaleUp": up})
            world.queue(100)
            fault = faults.server_error(500, kind="Deployment", subresource="scale", verbs=[Verb.UPDATE])
            async with world.running(cluster=FaultyCluster(world.cluster, [fault])):
                await periods(1)
                assert await world.replicas() == 3
                await periods(3)
                assert await world.replicas() == 4

        play(scene)

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
    def test_a_target_without_a_scale(self, play: Play, target: Manifest, message: str) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            key = await world.autoscale(target=target)
            async with world.running():
                await periods(3)
                assert (await world.conditions(key))["AbleToScale"] == ("False", "FailedGetScale")
                told = await world.message(key, "AbleToScale")
                assert told.startswith(f"the HPA controller was unable to get the target's current scale: {message}")
                assert await world.events("FailedGetScale")
                assert await world.replicas("fine") == 5
                await world.deploy("gone", replicas=3)
                await periods(1)
                if message:
                    assert await world.replicas("gone") == 5

        play(scene)


class ShopSpec(BaseModel):
    replicas: int = 1


class ShopStatus(BaseModel):
    replicas: int = 0
    selector: str = ""


class Shop(BaseModel):
    spec: ShopSpec
    status: ShopStatus | None = None


async def shop(world: World, selector: str) -> Manifest:
    """Create an object of a kind of somebody's own with two replicas, and return a reference to it."""
    parts = crds.ScaleSubresource(selector=".status.selector")
    await world.cluster.create(crds.crd("example.com", crds.CRDVersion("v1", Shop, scale=parts)), field_manager="admin")
    target = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner"}
    metadata = {"name": "corner", "namespace": NAMESPACE}
    corner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"replicas": 2}}
    await world.cluster.create(corner, field_manager="user")
    await world.change(ObjectKey.of(corner), {"status": {"replicas": 2, "selector": selector}}, status=True)
    return target


class TestSelectors:
    @pytest.mark.parametrize(
        ("selector", "event", "told"),
        [
            pytest.param("", "SelectorRequired", ("ScalingActive", "InvalidSelector"), id="none"),
            pytest.param("app=((", "FailedGetScale", ("AbleToScale", "FailedGetScale"), id="malformed"),
            pytest.param("app=shop", "SuccessfulRescale", None, id="good"),
        ],
    )
    def test_a_target_of_another_kind_needs_one(
        self, play: Play, selector: str, event: str, told: tuple[str, str] | None
    ) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            target = await shop(world, selector)
            key = await world.autoscale("corner", target=target)
            async with world.running():
                await periods(2)
                live = await world.cluster.get(ObjectKey("example.com/v1", "Shop", "corner", NAMESPACE))
                assert await world.events(event)
                assert live["spec"]["replicas"] == (2 if told else 5)
                if told is not None:
                    assert (await world.conditions(key))[told[0]] == ("False", told[1])
                assert await world.replicas("fine") == 5

        play(scene)

    def test_two_autoscalers_of_the_built_in_kind_on_one_target_are_ambiguous(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            await world.autoscale("other", of=BUILT_IN)
            await world.deploy("other", replicas=3)
            await world.deploy(replicas=3)
            keys = [await world.autoscale(name, of=BUILT_IN, target={"name": "web"}) for name in ("one", "two")]
            async with world.running(Mode.REPLACE):
                await periods(1)
                count = await world.replicas()
                world.queue(90)
                await periods(3)
                assert await world.replicas() == count  # the first one had its round before the second was known
                for key in keys:
                    assert (await world.conditions(key))["ScalingActive"] == ("False", "AmbiguousSelector")
                assert await world.replicas("other") == 9

        play(scene)


class TestStatus:
    def test_a_status_that_cannot_be_written_is_told_and_the_scale_stays_written(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await beside(world)
            await world.deploy(replicas=3)
            key = await world.autoscale()
            fault = faults.server_error(503, name="web", kind="HorizontalAutoscaler", subresource="status", times=2)
            async with world.running(cluster=FaultyCluster(world.cluster, [fault])) as process:
                await periods(1)
                assert (await world.replicas(), "status" in await world.cluster.get(key)) == (5, False)
                await periods(3)
                assert len(await world.events("FailedUpdateStatus")) == 1
                assert process.value("reconciliations_total", action="scale_up", error="internal") == 1
                assert (await world.cluster.get(key))["status"]["desiredReplicas"] == 5

        play(scene)

    def test_an_autoscaler_that_changes_during_a_round_is_not_written_over(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            key = await world.autoscale()
            world.queue(50)

            async def change() -> None:
                await world.change(key, {"spec": {"maxReplicas": 19}})

            meanwhile = faults.meanwhile(change, verbs=[Verb.UPDATE], kind="Deployment", subresource="scale")
            async with world.running(cluster=FaultyCluster(world.cluster, [meanwhile])):
                await periods(1)
                assert (await world.cluster.get(key))["spec"]["maxReplicas"] == 19
                assert [reason for _, reason, _ in await world.events()] == ["SuccessfulRescale", "FailedUpdateStatus"]
                await periods(1)
                assert (await world.cluster.get(key))["status"]["desiredReplicas"] == 5

        play(scene)

    @pytest.mark.parametrize("verb", [Verb.GET, Verb.UPDATE])
    def test_one_that_is_deleted_during_its_round_leaves_nothing_behind(self, play: Play, verb: Verb) -> None:
        """Also where it is deleted before its selector is read, and so before that is remembered."""

        async def scene(world: World) -> None:
            target = await shop(world, "app=shop")
            key = await world.autoscale("corner", target=target)
            world.queue(50)

            async def delete() -> None:
                await world.cluster.delete(key)
                await asyncio.sleep(1)

            meanwhile = faults.meanwhile(delete, verbs=[verb], kind="Shop", subresource="scale")
            async with world.running(cluster=FaultyCluster(world.cluster, [meanwhile])) as process:
                await periods(2)
                assert process.controller is not None
                reconciler = process.controller.reconciler
                assert reconciler is not None
                assert (len(reconciler.memory), len(reconciler.selectors), process.states()) == (0, 0, {})

        play(scene)


class TestLeaders:
    def test_who_waits_to_lead_stops_at_once(self, play: Play) -> None:
        async def scene(world: World) -> None:
            first, second = (Lease("hpa", "default", name) for name in ("one", "two"))
            async with world.running(lease=first):
                await periods(1)
                async with world.running(lease=second) as waiting:
                    await periods(1)
                    before = asyncio.get_running_loop().time()
                    await waiting.stop()
                    assert asyncio.get_running_loop().time() - before < 1

        play(scene)

    def test_a_stop_does_not_wait_for_caches_that_cannot_be_filled(self, play: Play) -> None:
        class Silent(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                if request.kind == "Pod":
                    await asyncio.sleep(3600)
                return await send()

        async def scene(world: World) -> None:
            lease = Lease("hpa", "default", "one")
            async with world.running(cluster=Silent(world.cluster), lease=lease) as process:
                await periods(1)
                assert process.controller is not None
                assert process.controller.ready() == "autoscalers and pods are not read yet"
                before = asyncio.get_running_loop().time()
                await process.stop()
                assert asyncio.get_running_loop().time() - before < 1
            found = await world.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "hpa", "default"))
            assert found["spec"]["holderIdentity"] == ""

        play(scene)

    def test_the_next_leader_goes_on_where_the_first_one_was_cut_off(self, play: Play) -> None:
        """The first leader loses the cluster in the middle of a write; it writes no more, and the second one does."""

        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            key = await world.autoscale()
            world.queue(50)

            class Link(InterceptingCluster):
                cut = False

                async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                    if request.subresource is Subresource.SCALE:
                        self.cut = True  # from here on nothing arrives
                    if self.cut:
                        await asyncio.sleep(3600)
                    return await send()

            link = Link(world.cluster)
            first, second = (Lease("hpa", "default", name) for name in ("one", "two"))
            async with world.running(cluster=link, lease=first) as one:
                await asyncio.sleep(3)
                async with world.running(lease=second) as two:
                    await asyncio.sleep(PERIOD)
                    assert (link.cut, await world.replicas(), two.states()) == (True, 3, {})
                    await asyncio.sleep(60)
                    assert (await world.replicas(), two.states()) == (5, {"running": 1})
                    assert one.states() == {}
                    assert (await world.conditions(key))["AbleToScale"][0] == "True"
                    world.queue(70)
                    await periods(2)
                    assert await world.replicas() == 7
                assert one.task is not None
                one.task.cancel()
                await asyncio.wait([one.task])
                link.cut = False

        play(scene)

    def test_a_leader_that_stops_gives_its_lease_back(self, play: Play) -> None:
        async def scene(world: World) -> None:
            await world.deploy(replicas=3)
            await world.autoscale()
            world.queue(50)
            lease = Lease("hpa", "default", "one")
            async with world.running(lease=lease):
                await periods(2)
                assert await world.replicas() == 5
            found = await world.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "hpa", "default"))
            assert found["spec"]["holderIdentity"] == ""

        play(scene)


def test_an_external_api_that_is_down_is_told_in_the_words_of_the_controller(play: Play) -> None:
    async def scene(world: World) -> None:
        await world.deploy(replicas=3)
        key = await world.autoscale()
        world.metrics.fail(EXTERNAL_METRICS, ServerError("the server is currently unable to handle the request"))
        async with world.running():
            await periods(1)
            assert await world.message(key, "ScalingActive") == (
                "the HPA was unable to compute the replica count: unable to get external metric shop/queue/nil:"
                " unable to fetch metrics from external metrics API: the server is currently"
                " unable to handle the request"
            )

    play(scene)
