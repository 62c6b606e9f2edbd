"""The operator of scalers in virtual time, beside the HPA controller of `ocf`: what triggers and users do."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from ocf.cluster import DeleteOptions
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.crds import CamelModel, CustomResource, OwnerStatus, ScaleSubresource
from ocf.testing import OwnerEnv, VirtualClock, serving_http_stub
from ocf_server import EmbeddedCluster
from tests.operators.scaler.model import Scaler
from tests.operators.scaler.world import MAIN, WEB, World, deployment, in_virtual_time, queue, systems

METRIC: Final = {"name": "load", "metric": {"server": "http://prometheus", "query": "load", "perReplica": 10}}


def window(start: str, end: str, replicas: int = 3) -> Manifest:
    return {"name": "hours", "window": {"start": start, "end": end, "replicas": replicas}}


@pytest.mark.parametrize("trigger", [pytest.param(queue(), id="queue"), pytest.param(METRIC, id="query")])
def test_a_target_goes_from_zero_to_four_and_back(trigger: Manifest) -> None:
    async def scene(world: World) -> None:
        async def amount(number: float, seconds: float) -> int:
            world.amounts["mail"] = world.amounts["load"] = number
            await asyncio.sleep(seconds)
            return await world.replicas()

        await world.scaler("main", trigger)
        assert await amount(0, 60) == 0
        assert await amount(5, 35) == 1
        assert (await world.conditions())["Active"] == ("True", "Busy")
        assert await amount(38, 90) == 4
        assert (await world.conditions())["Ready"] == ("True", "Healthy")
        assert await amount(2, 400) == 1
        assert await amount(0, 290) == 1
        assert await amount(0, 60) == 0
        await world.settle()
        reasons = [reason for reason, _ in await world.events(MAIN)]
        assert [one for one in reasons if one.endswith("ctivated")] == ["Activated", "Deactivated"]
        assert await world.autoscalers() == ["main"]
        assert (await world.conditions())["Ready"] == ("True", "Healthy")

    in_virtual_time(scene)


def test_what_comes_again_within_the_cooldown_stops_nothing() -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 5
        await world.scaler()
        await asyncio.sleep(10)
        for _ in range(5):
            world.amounts["mail"] = 0
            await asyncio.sleep(250)
            world.amounts["mail"] = 5
            await asyncio.sleep(50)
            assert await world.replicas() == 1
        assert [reason for reason, _ in await world.events(MAIN)].count("Activated") == 1

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("trigger", "amount", "replicas"),
    [
        pytest.param(queue(activation=20), 20, 0, id="not more than the activation"),
        pytest.param(queue(activation=20), 21, 3, id="more than the activation"),
        pytest.param(window("11:00", "13:00"), 0, 3, id="within the hours"),
        pytest.param(window("13:00", "14:00"), 0, 0, id="before the hours"),
        pytest.param(window("22:00", "12:30"), 0, 3, id="hours past midnight"),
        pytest.param(window("22:00", "12:00"), 0, 0, id="after hours past midnight"),
        pytest.param(queue(), 1000, 4, id="at most the maximum"),
    ],
)
def test_how_many_replicas_a_trigger_asks_for(trigger: Manifest, amount: float, replicas: int) -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = amount
        await world.scaler("main", trigger)
        await asyncio.sleep(120)
        assert await world.replicas() == replicas

    in_virtual_time(scene)


def test_the_largest_of_several_triggers_counts() -> None:
    async def scene(world: World) -> None:
        world.amounts |= {"mail": 15, "load": 0}
        await world.scaler("main", queue(), METRIC, window("12:00", "12:30"))
        await asyncio.sleep(120)
        assert await world.replicas() == 3
        await asyncio.sleep(2400)
        assert await world.replicas() == 2

    in_virtual_time(scene)


def test_a_target_with_a_minimum_never_has_fewer_replicas() -> None:
    async def scene(world: World) -> None:
        await world.scaler(minReplicas=2)
        await asyncio.sleep(30)
        assert await world.replicas() == 2
        await asyncio.sleep(3600)
        assert await world.replicas() == 2
        await world.settle()

    in_virtual_time(scene)


def test_triggers_are_asked_once_per_period_however_many_ask() -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 25
        await world.scaler(pollSeconds=60)
        await asyncio.sleep(600)
        assert 9 <= world.asked() <= 11

    in_virtual_time(scene)


def test_nothing_is_written_at_rest_and_a_query_of_a_metric_costs_the_api_server_no_request() -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 25
        await world.scaler()
        await world.settle()
        await asyncio.sleep(10)  # after the last poll, and before the next one
        world.forget()
        for _ in range(50):
            answer = await world.read_path(PATH, [("labelSelector", "scaler.example.com/scaler=main")])
            assert answer["items"][0]["value"] == "25000m"
        assert not world.requests
        await asyncio.sleep(3600)
        assert {one.kind for one in world.requests if one.verb == "get"} <= {"Deployment"}
        assert world.reads <= 121

    in_virtual_time(scene)


PATH: Final = "/apis/external.metrics.k8s.io/v1beta1/namespaces/town/mail"


def test_each_scaler_has_its_own_metrics_under_names_that_others_use_too() -> None:
    async def scene(world: World) -> None:
        await world.cluster.create(deployment(WEB._replace(name="api")), field_manager="user")
        world.amounts |= {"mail": 40, "news": 20}
        await world.scaler()
        await world.scaler("other", {**queue("news"), "name": "mail"}, target={"name": "api"})
        await asyncio.sleep(120)
        assert await world.replicas() == 4
        assert await world.replicas(WEB._replace(name="api")) == 2

    in_virtual_time(scene)


# Failures


def test_a_trigger_that_fails_counts_for_the_fallback_after_a_while() -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        await world.scaler(fallback={"afterSeconds": 100, "replicas": 3})
        await asyncio.sleep(60)
        world.stub.fail("queues", 503)
        await asyncio.sleep(90)
        assert await world.replicas() == 0
        assert (await world.conditions())["Active"] == ("Unknown", "TriggersFailing")
        await asyncio.sleep(120)
        assert await world.replicas() == 3
        assert (await world.conditions())["Active"] == ("True", "Fallback")
        assert "mail gave no value" in await world.message("Active")
        await world.settle()
        world.stub.heal("queues")
        await asyncio.sleep(900)
        assert await world.replicas() == 0
        assert "failing" not in (await world.cluster.get(MAIN))["status"]

    in_virtual_time(scene)


def test_the_time_until_the_fallback_goes_on_in_another_process() -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        world.stub.fail("queues", 503)
        for _ in range(4):  # the third may end before its second poll has had an effect
            async with world.operating(world.operator()):
                if not await world.found(MAIN):
                    await world.scaler(fallback={"afterSeconds": 100, "replicas": 3})
                await asyncio.sleep(40)
        assert await world.replicas() >= 1

    in_virtual_time(scene, operating=False)


@pytest.mark.parametrize("fault", ["fail", "hang", "garbage"])
def test_without_a_fallback_nothing_is_scaled_while_a_trigger_fails(fault: str) -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        world.amounts["mail"] = 25
        await world.scaler()
        await asyncio.sleep(90)
        assert await world.replicas() == 3
        if fault == "garbage":
            world.amounts["mail"] = -1
        elif fault == "hang":
            world.stub.hang("queues")
        else:
            world.stub.fail("queues", 500)
        await asyncio.sleep(3600)
        assert await world.replicas() == 3
        conditions = await world.conditions()
        assert conditions["Active"] == ("Unknown", "TriggersFailing")
        assert conditions["Ready"][0] == "False"
        await world.settle()

    in_virtual_time(scene)


def test_one_trigger_that_fails_does_not_hide_what_another_one_says() -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        world.amounts["load"] = 15
        world.stub.fail("queues", 503)
        await world.scaler("main", queue(), METRIC)
        await asyncio.sleep(120)
        assert await world.replicas() == 2
        assert (await world.conditions())["Active"] == ("True", "Fallback")
        world.amounts["load"] = 0
        await asyncio.sleep(1200)
        assert await world.replicas() == 2  # the HPA controller scales down only if all metrics are known

    in_virtual_time(scene)


def test_polling_goes_on_while_the_component_fails() -> None:
    async def scene(world: World) -> None:
        world.refused.add("HorizontalPodAutoscaler")
        await world.scaler()
        await asyncio.sleep(1800)
        asked = world.asked()
        await asyncio.sleep(1800)
        assert 58 <= world.asked() - asked <= 61
        assert (await world.conditions())["AutoscalerReady"] == ("False", "Error")
        world.amounts["mail"] = 25
        await asyncio.sleep(31)
        assert await world.replicas() == 1
        world.refused.clear()
        await asyncio.sleep(120)
        assert await world.replicas() == 3
        assert (await world.conditions())["Ready"] == ("True", "Healthy")

    in_virtual_time(scene)


# Kinds


class FleetSpec(CamelModel):
    replicas: int = 0


class FleetStatus(OwnerStatus):
    replicas: int = 0
    selector: str = ""


class Fleet(
    CustomResource[FleetSpec, FleetStatus],
    group="fleet.example.com",
    version="v1",
    plural="fleetos",
    scale=ScaleSubresource(selector=".status.selector"),
):
    """A kind with a Scale, whose plural is not that of a dictionary."""


def test_a_kind_that_is_installed_later_is_scaled_as_any_other() -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 35
        target = {"apiVersion": Fleet.api_version, "kind": Fleet.kind, "name": "north"}
        await world.scaler(target=target)
        await asyncio.sleep(60)
        assert (await world.conditions())["Ready"] == ("False", "NotFound")
        await world.cluster.apply(Fleet.definition(), field_manager="admin")
        north = ObjectKey(Fleet.api_version, Fleet.kind, "north", "town")
        await world.create(north, spec={})
        await asyncio.sleep(46)
        assert await world.replicas(north) == 1
        assert (await world.conditions())["TargetReady"] == ("True", "Found")

    in_virtual_time(scene)


def test_a_target_that_comes_later_is_scaled_at_once_and_one_that_goes_is_missed() -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 5
        late = WEB._replace(name="late")
        await world.scaler(target={"name": "late"})
        await asyncio.sleep(12)
        await world.cluster.create(deployment(late), field_manager="user")
        await asyncio.sleep(4)
        assert await world.replicas(late) == 1
        await world.cluster.delete(late, DeleteOptions())
        await asyncio.sleep(40)
        assert (await world.conditions())["Ready"] == ("False", "NotFound")
        await world.settle()

    in_virtual_time(scene)


def test_a_count_that_a_user_sets_lasts_until_the_cooldown_ends() -> None:
    async def scene(world: World) -> None:
        await world.scaler()
        await asyncio.sleep(60)
        await world.edit(WEB, {"spec": {"replicas": 3}})
        await asyncio.sleep(200)
        assert await world.replicas() == 3
        await asyncio.sleep(200)
        assert await world.replicas() == 0

    in_virtual_time(scene, autoscaling=False)


def test_a_count_that_another_writer_sets_after_it_was_read_is_not_overwritten() -> None:
    async def scene(world: World) -> None:
        async def set_by_a_user() -> None:
            await world.edit(WEB, {"spec": {"replicas": 3}})

        world.before_scaling(set_by_a_user)
        world.amounts["mail"] = 5
        await world.scaler()
        await asyncio.sleep(45)
        assert await world.replicas() == 3
        assert "Activated" not in [reason for reason, _ in await world.events(MAIN)]
        assert (await world.conditions())["Active"] == ("True", "Busy")

    in_virtual_time(scene, autoscaling=False)


async def test_without_its_lifespan_as_in_a_preview_it_asks_no_trigger_and_scales_nothing() -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(namespaces=["town"], now=clock.now)
    await cluster.apply(Scaler.definition(), field_manager="admin")
    await cluster.create(deployment(), field_manager="user")
    world = World(cluster, amounts={"mail": 15})
    async with serving_http_stub(systems(world.amounts)) as world.stub:
        await world.scaler()
        await OwnerEnv(world.operator(), MAIN, cluster, clock).reconcile()
        assert (world.asked(), await world.replicas(), await world.autoscalers()) == (0, 0, ["main"])
