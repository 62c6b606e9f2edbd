"""Scalers beside others: other scalers, HPAs that exist, users who rename, suspend, pause and delete."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from ocf.objects import Manifest
from tests.operators.scaler.world import HPA, MAIN, WEB, World, deployment, in_virtual_time, queue

SECOND: Final = MAIN._replace(name="second")
FOREIGN: Final = HPA._replace(name="theirs")
TO_WEB: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
DISABLED: Final = {"scaleDown": {"selectPolicy": "Disabled"}}


def foreign(**spec: Any) -> Manifest:
    wanted = {"type": "AverageValue", "averageValue": "5"}
    metric = {"type": "External", "external": {"metric": {"name": "other"}, "target": wanted}}
    return {"scaleTargetRef": TO_WEB, "maxReplicas": 9, "metrics": [metric], **spec}


def test_of_two_scalers_of_a_target_the_older_one_scales_and_the_other_one_says_so() -> None:
    async def scene(world: World) -> None:
        world.amounts |= {"mail": 15, "news": 35}
        await world.scaler()
        await asyncio.sleep(5)
        await world.scaler("second", queue("news"))
        await asyncio.sleep(300)
        assert await world.replicas() == 2
        assert await world.autoscalers() == ["main"]
        assert (await world.conditions(SECOND))["Ready"] == ("False", "TargetTaken")
        assert "the older Scaler main" in await world.message("Ready", SECOND)
        assert (await world.conditions())["Ready"] == ("True", "Healthy")
        await world.settle()
        await world.cluster.delete(MAIN)
        await asyncio.sleep(120)
        assert await world.autoscalers() == ["second"]
        assert await world.replicas() == 4
        assert (await world.conditions(SECOND))["Ready"] == ("True", "Healthy")

    in_virtual_time(scene)


@pytest.mark.parametrize("version", ["apps/v1", "apps/v1beta1"])
def test_a_target_that_another_version_names_is_the_same_one(version: str) -> None:
    async def scene(world: World) -> None:
        await world.scaler()
        await asyncio.sleep(5)
        await world.scaler("second", target={"apiVersion": version, "name": "web"})
        await asyncio.sleep(30)
        assert (await world.conditions(SECOND))["Ready"] == ("False", "TargetTaken")

    in_virtual_time(scene)


def test_a_scaler_that_is_given_the_target_of_another_one_gives_up_its_own() -> None:
    async def scene(world: World) -> None:
        await world.cluster.create(deployment(WEB._replace(name="api")), field_manager="user")
        await world.scaler()
        await asyncio.sleep(5)
        await world.scaler("second", target={"name": "api"})
        await asyncio.sleep(30)
        assert await world.autoscalers() == ["main", "second"]
        await world.change(SECOND, target={"name": "web"})
        await asyncio.sleep(30)
        assert await world.autoscalers() == ["main"]
        assert (await world.conditions(SECOND))["Ready"] == ("False", "TargetTaken")

    in_virtual_time(scene)


def test_beside_an_hpa_of_another_owner_nothing_is_scaled_until_it_is_gone() -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 25
        await world.create(FOREIGN, spec=foreign())
        await world.scaler()
        await asyncio.sleep(300)
        assert (await world.autoscalers(), await world.replicas()) == (["theirs"], 0)
        assert (await world.conditions())["Ready"] == ("False", "ForeignAutoscaler")
        assert "HPA theirs" in await world.message("Ready")
        await world.settle()
        await world.cluster.delete(FOREIGN)
        await asyncio.sleep(90)
        assert (await world.autoscalers(), await world.replicas()) == (["main"], 3)

    in_virtual_time(scene)


@pytest.mark.parametrize("way", ["by its name", "named in the spec"])
def test_an_hpa_that_exists_is_adopted_with_all_its_fields(way: str) -> None:
    async def scene(world: World) -> None:
        key = HPA if way == "by its name" else FOREIGN
        before = await world.create(key, spec=foreign(behavior=DISABLED))
        world.amounts["mail"] = 35
        await world.scaler(**({} if key == HPA else {"autoscaler": key.name}))
        await asyncio.sleep(120)
        live = await world.cluster.get(key)
        assert live["metadata"]["uid"] == before["metadata"]["uid"]
        assert live["metadata"]["ownerReferences"][0]["kind"] == "Scaler"
        assert [one["external"]["metric"]["name"] for one in live["spec"]["metrics"]] == ["mail"]
        assert (live["spec"]["maxReplicas"], "behavior" in live["spec"]) == (4, False)
        assert await world.replicas() == 4
        await world.settle()

    in_virtual_time(scene)


def test_a_renamed_hpa_goes_before_the_new_one_comes() -> None:
    """That no target has two of them at any time is checked in each scene."""

    async def scene(world: World) -> None:
        world.amounts["mail"] = 25
        await world.scaler()
        await asyncio.sleep(120)
        for name in ("a", "z", "main"):
            await world.change(autoscaler=name)
            await asyncio.sleep(5)
            assert await world.autoscalers() == [name]
        await asyncio.sleep(120)
        assert await world.replicas() == 3

    in_virtual_time(scene)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="as it is"),
        pytest.param({"maxReplicas": 9}, id="with another maximum"),
        pytest.param({"autoscaler": "renamed"}, id="with another name"),
    ],
)
def test_a_suspended_scaler_has_no_hpa_and_applies_none_before(change: dict[str, Any]) -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 25
        await world.scaler()
        await asyncio.sleep(120)
        world.forget()
        await world.change(suspended=True, **change)
        await asyncio.sleep(30)
        assert await world.autoscalers() == []
        assert [str(one.verb) for one in world.written if one.kind == "HorizontalPodAutoscaler"] == ["delete"]
        assert (await world.conditions())["Ready"] == ("True", "Suspended")
        asked = world.asked()
        world.amounts["mail"] = 0
        await asyncio.sleep(3600)
        assert (await world.replicas(), world.asked()) == (3, asked)
        await world.settle()
        await world.change(suspended=False)
        await asyncio.sleep(120)
        assert await world.autoscalers() == [change.get("autoscaler", "main")]
        await asyncio.sleep(600)
        assert await world.replicas() == 0

    in_virtual_time(scene)


@pytest.mark.parametrize("count", [0, 2])
def test_a_suspended_scaler_holds_its_target_at_the_count_that_it_is_given(count: int) -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 35
        await world.scaler()
        await asyncio.sleep(120)
        await world.change(suspended=True, suspendedReplicas=count)
        await asyncio.sleep(30)
        assert await world.replicas() == count
        await world.edit(WEB, {"spec": {"replicas": 1}})
        await asyncio.sleep(31)
        assert await world.replicas() == count
        await world.settle()

    in_virtual_time(scene)


def test_a_paused_scaler_starts_and_stops_nothing_and_its_metrics_are_still_served() -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 15
        await world.scaler()
        await asyncio.sleep(120)
        await world.annotate(MAIN, {"scalers.ocf.dev/paused": "true"})
        await asyncio.sleep(30)
        world.amounts["mail"] = 35
        await asyncio.sleep(120)
        assert await world.replicas() == 4
        world.amounts["mail"] = 0
        await asyncio.sleep(3600)
        assert await world.replicas() == 1
        await world.settle()
        await world.annotate(MAIN, {"scalers.ocf.dev/paused": None})
        await asyncio.sleep(400)
        assert await world.replicas() == 0

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("at_first", "policy", "left"),
    [
        pytest.param(0, "Restore", 0, id="restores zero"),
        pytest.param(2, "Restore", 2, id="restores a count"),
        pytest.param(2, "Keep", 4, id="keeps what it has"),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_deleted_scaler_leaves_the_count_that_it_declares(
    at_first: int, policy: str, left: int, *, restarted: bool
) -> None:
    async def scene(world: World) -> None:
        world.amounts["mail"] = 35
        async with world.operating(world.operator()):
            await world.scaler(onDeletion=policy)
            await asyncio.sleep(120)
            assert await world.replicas() == 4
            if not restarted:
                await world.cluster.delete(MAIN)
                await asyncio.sleep(30)
        if restarted:
            await world.cluster.delete(MAIN)
            async with world.operating(world.operator()):
                await asyncio.sleep(30)
        assert not await world.found(MAIN)
        assert await world.autoscalers() == []
        await asyncio.sleep(300)
        assert await world.replicas() == left

    in_virtual_time(scene, operating=False, replicas=at_first)


@pytest.mark.parametrize("gone", ["target", "taken"])
def test_a_scaler_that_has_nothing_to_restore_is_deleted_all_the_same(gone: str) -> None:
    async def scene(world: World) -> None:
        await world.scaler(onDeletion="Restore")
        await asyncio.sleep(40)
        if gone == "target":
            await world.cluster.delete(WEB)
        else:
            await world.edit(WEB, {"spec": {"replicas": 3}})
            await world.create(FOREIGN, spec=foreign())
        await world.cluster.delete(MAIN)
        await asyncio.sleep(30)
        assert not await world.found(MAIN)
        assert gone == "target" or await world.replicas() == 3
        world.most = 0  # the test itself has made the second one

    in_virtual_time(scene, autoscaling=False)
