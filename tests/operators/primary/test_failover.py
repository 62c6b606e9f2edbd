"""The operator of databases in virtual time: primaries that fail, in the middle of whatever else happens."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from ocf.cluster import DeleteOptions, Propagation
from tests.operators.primary.world import MERGE, World, in_virtual_time

LOST: Final = pytest.mark.parametrize("way", ["unready", "pod cannot start", "StatefulSet cannot start"])


async def lose(world: World, member: str, way: str) -> None:
    """Let the pod of a member fail; its replacement, if there is one, does not become ready."""
    if way == "unready":
        await world.make_unready(member)
        return
    for name in await world.names("v1", "Node"):
        await world.cluster.patch(world.node(name), {"spec": {"unschedulable": True}}, MERGE)
    kind, name = ("Pod", f"{member}-0") if way.startswith("pod") else ("StatefulSet", member)
    await world.cluster.delete(world.key(kind, name), DeleteOptions(propagation=Propagation.BACKGROUND))


async def schedule_again(world: World) -> None:
    for name in await world.names("v1", "Node"):
        await world.cluster.patch(world.node(name), {"spec": {"unschedulable": None}}, MERGE)


@LOST
def test_a_primary_that_is_lost_for_too_long_is_replaced_by_one_promotion(way: str) -> None:
    """Of https://github.com/bitnami/charts/issues/21614 and https://github.com/reactive-tech/kubegres/issues/187.

    Two members never accept writes at once; the operator calls the promoted one to do so, and its pod keeps running.
    """

    async def scene(world: World) -> None:
        before = (await world.get("Pod", "main-2-0"))["metadata"]["uid"]
        await lose(world, "main-0", way)
        await world.follow(50)
        assert not world.servers.promoted
        assert (await world.conditions())["PrimaryAvailable"]["reason"] == "NotReady"
        await world.follow(40)
        await schedule_again(world)
        await world.follow(60)
        assert world.servers.promoted == ["main-2"]
        assert await world.names() == ["main-1", "main-2", "main-3"]
        assert (await world.get("Pod", "main-2-0"))["metadata"]["uid"] == before
        assert (await world.endpoints("main-rw"), await world.endpoints("main-ro")) == (
            ["main-2"],
            ["main-1", "main-3"],
        )
        assert "data-main-0-0" in await world.names("v1", "PersistentVolumeClaim")
        conditions = await world.conditions()
        assert (conditions["Ready"]["reason"], conditions["PrimaryAvailable"]["status"]) == ("Healthy", "True")
        assert "Promoting" not in conditions
        reasons = [one["reason"] for one in await world.events()]
        assert (reasons.count("FailoverStarted"), reasons.count("Promoted")) == (1, 1)
        assert world.servers.most_primaries == 1

    in_virtual_time(scene)


@LOST
def test_a_primary_that_is_back_in_time_stays_the_primary(way: str) -> None:
    async def scene(world: World) -> None:
        await lose(world, "main-0", way)
        await world.follow(30)
        await schedule_again(world)
        if way == "unready":
            await world.cluster.delete(world.key("Pod", "main-0-0"))
        await world.follow(60)
        assert not world.servers.promoted
        assert await world.names() == ["main-0", "main-1", "main-2"]
        assert await world.endpoints("main-rw") == ["main-0"]
        # Another absence has a time of its own.
        await lose(world, "main-0", way)
        await world.follow(50)
        assert not world.servers.promoted

    in_virtual_time(scene)


def test_writes_reach_no_primary_that_is_about_to_be_replaced_and_none_is_promoted_before_that_is_gone() -> None:
    """Of https://github.com/cloudnative-pg/cloudnative-pg/pull/10409: a Service that leads to the old primary."""

    async def scene(world: World) -> None:
        await world.hold("main-0")
        await world.make_unready("main-0")
        await world.follow(90)
        assert not world.servers.promoted
        assert (await world.conditions())["Promoting"]["message"] == "waits until main-0 is gone"
        assert await world.endpoints("main-rw") == ["main-2"]
        await world.release("main-0")
        await world.follow(60)
        assert world.servers.promoted == ["main-2"]
        assert await world.names() == ["main-1", "main-2", "main-3"]

    in_virtual_time(scene)


def test_an_old_primary_that_does_not_stop_is_waited_for_as_long_as_the_spec_says() -> None:
    async def scene(world: World) -> None:
        await world.hold("main-0")
        await world.make_unready("main-0")
        await world.follow(60 + 100)
        assert not world.servers.promoted
        await world.follow(60)
        assert world.servers.promoted == ["main-2"]
        assert await world.names() == ["main-0", "main-1", "main-2", "main-3"]
        await world.release("main-0")
        await world.follow(30)
        assert await world.names() == ["main-1", "main-2", "main-3"]

    in_virtual_time(scene, phaseSeconds=120)


def test_a_failed_primary_goes_although_a_new_replica_waits() -> None:
    """Of https://github.com/reactive-tech/kubegres/issues/191: an old primary that is in the way of its successor."""

    async def scene(world: World) -> None:
        await world.make_unready("main-0")
        await world.follow(5)
        await world.change(replicas=3)
        await world.follow(5)
        blocked = (await world.conditions())["Ready"]
        assert (blocked["reason"], "waits for the primary main-0" in blocked["message"]) == ("Blocked", True)
        assert await world.names() == ["main-0", "main-1", "main-2"]
        await world.follow(90)
        assert world.servers.promoted == ["main-2"]
        assert await world.names() == ["main-1", "main-2", "main-3", "main-4"]
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"

    in_virtual_time(scene)


def test_without_a_candidate_the_primary_is_kept_and_the_condition_says_why() -> None:
    """Of https://github.com/mariadb-operator/mariadb-operator/issues/1628: no replica can be promoted for a while."""

    async def scene(world: World) -> None:
        world.servers.unreachable |= {"main-1", "main-2"}
        await world.make_unready("main-0")
        await world.follow(120)
        condition = (await world.conditions())["Promoting"]
        assert (condition["status"], condition["reason"]) == ("True", "NoCandidate")
        assert await world.names() == ["main-0", "main-1", "main-2"]
        world.servers.unreachable.clear()
        await world.follow(30)
        assert world.servers.promoted == ["main-2"]

    in_virtual_time(scene)


def test_the_last_replica_is_promoted() -> None:
    """Of https://github.com/reactive-tech/kubegres/issues/124."""

    async def scene(world: World) -> None:
        await world.make_unready("main-0")
        await world.follow(90)
        assert world.servers.promoted == ["main-1"]
        assert await world.names() == ["main-1", "main-2"]

    in_virtual_time(scene, replicas=1)


def test_a_promoted_replica_that_fails_at_once_is_given_its_own_time() -> None:
    """Of https://github.com/CrunchyData/postgres-operator/issues/652: one failure, and several failovers."""

    async def scene(world: World) -> None:
        await world.make_unready("main-2")
        await world.make_unready("main-0")
        await world.follow(100)
        assert world.servers.promoted == ["main-2"]
        await world.follow(100)
        assert world.servers.promoted == ["main-2", "main-1"]
        await world.follow(120)
        assert world.servers.promoted == ["main-2", "main-1"]
        assert await world.names() == ["main-1", "main-3", "main-4"]

    in_virtual_time(scene)


@pytest.mark.parametrize("lost", ["main-1", "main-2"])
@pytest.mark.parametrize("asked", [False, True], ids=["failover", "switchover"])
def test_a_promotion_whose_answer_is_lost_is_not_repeated(lost: str, *, asked: bool) -> None:
    async def scene(world: World) -> None:
        world.servers.lost_answers |= {"main-0", lost}
        if asked:
            await world.change(promote="main-2")
        else:
            await world.make_unready("main-0")
        await world.follow(120)
        assert (world.servers.promoted, world.servers.demoted) == (["main-2"], ["main-0"] if asked else [])
        await world.check(["main-0", "main-1", "main-2"] if asked else ["main-1", "main-2", "main-3"])

    in_virtual_time(scene)


def test_a_candidate_that_cannot_be_reached_is_replaced_by_another_one() -> None:
    async def scene(world: World) -> None:
        await world.hold("main-0")
        await world.make_unready("main-0")
        await world.follow(65)
        world.servers.unreachable.add("main-2")
        await world.release("main-0")
        await world.follow(60)
        assert (await world.conditions())["Promoting"]["reason"] == "ServerUnreachable"
        await world.follow(180)
        assert world.servers.promoted == ["main-1"]
        assert world.servers.most_primaries == 1
        assert await world.names() == ["main-1", "main-3", "main-4"]

    in_virtual_time(scene, phaseSeconds=60)


def test_a_primary_that_fails_while_it_changes_places_is_replaced_by_the_same_member() -> None:
    async def scene(world: World) -> None:
        world.servers.unreachable.add("main-0")
        await world.change(promote="main-1")
        await world.follow(5)
        await world.make_unready("main-0")
        await world.follow(90)
        assert world.servers.promoted == ["main-1"]
        assert await world.names() == ["main-1", "main-2", "main-3"]

    in_virtual_time(scene)


def test_a_suspension_in_the_middle_stops_all_members_and_the_failover_goes_on_later() -> None:
    async def scene(world: World) -> None:
        await world.hold("main-0")
        await world.make_unready("main-0")
        await world.follow(65)
        await world.change(suspended=True)
        await world.release("main-0")
        await world.follow(600)
        assert await world.names("v1", "Pod") == []
        assert not world.servers.promoted
        await world.change(suspended=False)
        await world.follow(60)
        assert world.servers.promoted == ["main-2"]
        assert await world.names() == ["main-1", "main-2", "main-3"]
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"

    in_virtual_time(scene)


def test_a_primary_that_fails_while_an_image_is_rolled_out_is_replaced_and_the_rollout_ends() -> None:
    async def scene(world: World) -> None:
        world.servers.busy["main-2"] = "it is busy"
        await world.change(image="db:2")
        await world.follow(20)
        await world.make_unready("main-0")
        await world.follow(90)
        world.servers.busy.clear()
        await world.follow(90)
        assert len(world.servers.promoted) == 1
        names = await world.names()
        assert len(names) == 3
        images = [(await world.get("StatefulSet", name))["spec"]["template"]["spec"]["containers"][0] for name in names]
        assert [one["image"] for one in images] == ["db:2"] * 3
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"

    in_virtual_time(scene)


def test_a_paused_database_fails_over_once_the_pause_ends() -> None:
    async def scene(world: World) -> None:
        await world.annotate("databases.ocf.dev/paused", "true")
        await asyncio.sleep(1)
        await world.make_unready("main-0")
        await asyncio.sleep(300)
        assert not world.servers.promoted
        assert await world.names() == ["main-0", "main-1", "main-2"]
        await world.annotate("databases.ocf.dev/paused", None)
        await world.follow(120)
        assert world.servers.promoted == ["main-2"]

    in_virtual_time(scene)


def test_the_time_of_a_promoted_replica_does_not_begin_while_the_old_primary_stops() -> None:
    async def scene(world: World) -> None:
        await world.hold("main-0")
        await world.make_unready("main-2")
        await world.make_unready("main-0")
        await world.follow(110)
        await world.release("main-0")
        await world.follow(50)
        assert world.servers.promoted == ["main-2"]
        assert (await world.conditions())["PrimaryAvailable"]["reason"] == "NotReady"
        await world.follow(20)
        assert world.servers.promoted == ["main-2", "main-1"]

    in_virtual_time(scene)
