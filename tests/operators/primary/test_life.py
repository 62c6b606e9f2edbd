"""The operator of databases in virtual time, beside the StatefulSet controller: what users ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import pytest

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.errors import NotFoundError
from ocf.objects import Manifest
from ocf.testing import LoopClock
from tests.operators.primary.model import Database
from tests.operators.primary.operator import databases
from tests.operators.primary.world import MERGE, World, in_virtual_time

ALL: Final = ["main-0", "main-1", "main-2"]
CLASS: Final = ("storage.k8s.io/v1", "StorageClass")


def times(lives: list[Manifest]) -> list[str]:
    return [one["metadata"]["creationTimestamp"] for one in lives]


def test_replicas_are_created_once_the_primary_is_ready_and_never_before_is_the_database_healthy() -> None:
    async def scene(world: World) -> None:
        assert await world.names() == ALL
        made = times([await world.get("StatefulSet", name) for name in ALL])
        assert made[0] < made[1] == made[2]
        assert [(await world.get("ConfigMap", name))["data"]["role"] for name in ALL] == [
            "primary",
            "replica",
            "replica",
        ]
        assert (await world.endpoints("main-rw"), await world.endpoints("main-ro")) == (
            ["main-0"],
            ["main-1", "main-2"],
        )
        assert await world.names("v1", "PersistentVolumeClaim") == [f"data-{name}-0" for name in ALL]
        assert world.seen == ["Blocked", "Creating", "Healthy"]

    in_virtual_time(scene)


def test_two_databases_of_a_namespace_have_nothing_in_common() -> None:
    async def scene(world: World) -> None:
        await world.create("main-1", replicas=1)
        await world.follow(30)
        assert await world.names() == ["main-0", "main-1", "main-1-0", "main-1-1", "main-2"]
        found = [await world.endpoints(name) for name in ("main-rw", "main-ro", "main-1-rw", "main-1-ro")]
        assert found == [["main-0"], ["main-1", "main-2"], ["main-1-0"], ["main-1-1"]]
        await world.change(promote="main-1-1")  # of the other one
        await world.follow(30)
        assert not world.servers.promoted
        await world.change(replicas=0)
        await world.follow(30)
        assert await world.names() == ["main-0", "main-1-0", "main-1-1"]

    in_virtual_time(scene)


def test_nothing_is_written_at_rest() -> None:
    async def scene(world: World) -> None:
        before = world.cluster.resource_version
        await asyncio.sleep(24 * 3600)
        assert world.cluster.resource_version == before
        async with world.operating():  # another process, with an empty memory
            await asyncio.sleep(60)
        assert world.cluster.resource_version == before

    in_virtual_time(scene)


def test_a_set_grows_with_new_names_and_shrinks_by_one_choice_that_leaves_its_claim() -> None:
    """Of https://github.com/CrunchyData/postgres-operator/issues/1339: who was a primary before can leave, too."""

    async def scene(world: World) -> None:
        await world.change(promote="main-2")
        await world.follow(60)
        await world.change(replicas=1)
        await world.follow(60)
        assert world.servers.left == ["main-1"]
        assert await world.names() == ["main-0", "main-2"]
        await world.change(replicas=0)
        await world.follow(60)
        assert world.servers.left == ["main-1", "main-0"]
        assert await world.names() == ["main-2"]
        await world.change(replicas=2)
        await world.follow(60)
        assert await world.names() == ["main-2", "main-3", "main-4"]
        claims = await world.names("v1", "PersistentVolumeClaim")
        assert claims == [f"data-main-{number}-0" for number in range(5)]
        assert await world.names("v1", "ConfigMap") == ["main-2", "main-3", "main-4"]

    in_virtual_time(scene)


def test_a_set_shrinks_once_the_servers_can_be_asked_and_all_else_goes_on_meanwhile() -> None:
    async def scene(world: World) -> None:
        world.servers.unreachable.add("main-2")
        await world.change(replicas=1)
        await world.make_unready("main-0")
        await world.follow(90)
        # The set has shrunk by the primary that failed.
        assert world.servers.promoted == ["main-1"]
        assert (world.servers.left, await world.names()) == ([], ["main-1", "main-2"])
        await world.change(replicas=0)
        await world.follow(30)
        assert await world.names() == ["main-1", "main-2"]
        world.servers.unreachable.clear()
        await world.follow(30)
        await world.check(["main-1"])

    in_virtual_time(scene)


def test_an_image_is_rolled_out_one_at_a_time_the_primary_last_with_one_reason() -> None:
    async def scene(world: World) -> None:
        world.seen.clear()
        world.servers.busy["main-2"] = "it is being backed up"
        await world.change(image="db:2")
        await world.follow(60)
        message = (await world.conditions())["Ready"]["message"]
        assert "1 of 3 are up to date; StatefulSet main-2: it is being backed up" in message
        world.servers.busy.clear()
        await world.follow(60)
        assert [name for name, _ in groupby(world.servers.restarts)] == ["main-1", "main-2", "main-0"]
        assert world.seen in (["Updating", "Healthy"], ["Healthy", "Updating", "Healthy"])
        images = [(await world.get("StatefulSet", name))["spec"]["template"]["spec"]["containers"][0] for name in ALL]
        assert [one["image"] for one in images] == ["db:2"] * 3
        assert not world.servers.promoted
        # The new pods have their roles.
        assert (await world.endpoints("main-rw"), await world.endpoints("main-ro")) == (
            ["main-0"],
            ["main-1", "main-2"],
        )

    in_virtual_time(scene)


def test_a_bad_image_stops_at_the_first_replica_and_going_back_repairs_it() -> None:
    """Of https://github.com/valkey-io/valkey-operator/issues/267: the primary waits for a replica."""

    async def scene(world: World) -> None:
        await world.change(image="db:bad", phaseSeconds=120)
        await world.follow(2)
        await world.make_unready("main-1")
        await world.follow(150)
        assert (await world.conditions())["Ready"]["reason"] in ("Degraded", "Down")
        assert (await world.get("StatefulSet", "main-2"))["spec"]["template"]["spec"]["containers"][0][
            "image"
        ] == "db:1"
        assert await world.endpoints("main-rw") == ["main-0"]
        await world.change(image="db:1")
        await world.cluster.delete(world.key("Pod", "main-1-0"))
        await world.follow(60)
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"
        assert not world.servers.promoted

    in_virtual_time(scene)


def test_a_user_lets_a_replica_change_places_with_the_primary_which_keeps_running() -> None:
    """Of https://github.com/CrunchyData/postgres-operator/issues/916: the working primary is not deleted."""

    async def scene(world: World) -> None:
        before = [(await world.get("Pod", f"{name}-0"))["metadata"]["uid"] for name in ALL]
        await world.change(promote="main-1")
        await world.follow(60)
        assert (world.servers.demoted, world.servers.promoted) == (["main-0"], ["main-1"])
        assert world.servers.most_primaries == 1
        assert [(await world.get("Pod", f"{name}-0"))["metadata"]["uid"] for name in ALL] == before
        assert (await world.endpoints("main-rw"), await world.endpoints("main-ro")) == (
            ["main-1"],
            ["main-0", "main-2"],
        )
        assert [(await world.get("ConfigMap", name))["data"]["role"] for name in ALL] == [
            "replica",
            "primary",
            "replica",
        ]
        assert "Promoting" not in await world.conditions()
        status = await world.status()
        assert (status["primary"], status["replicas"], status["handledPromote"]) == (
            "main-1",
            ["main-2", "main-0"],
            "main-1",
        )

    in_virtual_time(scene)


def test_a_diff_shows_what_a_promotion_changes_and_asks_no_server_to_change_its_role() -> None:
    async def scene(world: World) -> None:
        await world.annotate("databases.ocf.dev/paused", "true")
        await world.change(promote="main-1", image="db:2")
        await asyncio.sleep(10)
        operator, before = databases(world.servers), world.cluster.resource_version

        async def components(context: ReconcileContext) -> Sequence[Component]:
            return await operator.callbacks.components(Database.model_validate(context.owner), context)

        (found,) = await component.diff(
            components, await world.database(), world.cluster, operator=operator.name, clock=LoopClock()
        )
        assert [one.resource for one in found.objects] == ["v1/Service/town/main-rw", "apps/v1/StatefulSet/town/main-1"]
        assert (world.cluster.resource_version, world.servers.restarts) == (before, [])
        assert (world.servers.promoted, world.servers.demoted) == ([], [])

    in_virtual_time(scene)


@pytest.mark.parametrize("wanted", ["main-0", "main-7", "", "other-1"])
def test_who_is_no_replica_is_not_promoted_and_asked_for_once(wanted: str) -> None:
    async def scene(world: World) -> None:
        await world.change(promote=wanted)
        await world.follow(60)
        assert not world.servers.promoted
        assert (await world.status())["handledPromote"] == wanted
        refused = [one for one in await world.events() if one["reason"] == "PromotionRefused"]
        assert len(refused) == (wanted != "main-0")

    in_virtual_time(scene)


def test_a_switchover_to_a_server_that_cannot_be_reached_is_taken_back() -> None:
    async def scene(world: World) -> None:
        world.servers.unreachable.add("main-1")
        await world.change(promote="main-1", phaseSeconds=60)
        await world.follow(60)
        assert (await world.conditions())["Promoting"]["reason"] == "ServerUnreachable"
        await world.follow(120)
        # The primary was demoted already, and has to be promoted again.
        assert (world.servers.demoted, world.servers.promoted) == (["main-0"], ["main-0"])
        assert await world.endpoints("main-rw") == ["main-0"]
        assert await world.names() == ALL
        assert "Promoting" not in await world.conditions()

    in_virtual_time(scene)


def test_a_suspended_database_is_stopped_and_not_taken_for_one_that_has_failed() -> None:
    """Of https://github.com/skyhook-io/radar/pull/1614: one that wakes up is no outage that has lasted for long."""

    async def scene(world: World) -> None:
        await world.change(suspended=True)
        await world.follow(600)
        assert await world.names("v1", "Pod") == []
        assert (await world.conditions())["Ready"]["reason"] == "Suspended"
        assert (await world.conditions())["PrimaryAvailable"]["status"] == "Unknown"
        await world.change(suspended=False)
        await world.follow(60)
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"
        assert not world.servers.promoted
        assert (await world.endpoints("main-rw"), await world.endpoints("main-ro")) == (
            ["main-0"],
            ["main-1", "main-2"],
        )

    in_virtual_time(scene)


async def with_class(world: World, name: str, *, default: bool) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    body = {"apiVersion": CLASS[0], "kind": CLASS[1], "provisioner": "example.com/disk"}
    await world.cluster.create({**body, "metadata": {"name": name, "annotations": annotations}}, field_manager="user")


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param({}, {"size": "1Gi", "storageClass": "fast"}, id="the default class"),
        pytest.param({"storageClass": "slow"}, {"size": "1Gi", "storageClass": "slow"}, id="a class of the user's"),
        pytest.param({"size": "2Gi"}, {"size": "2Gi", "storageClass": "fast"}, id="the default class and a size"),
    ],
)
def test_the_volume_gets_its_default_and_a_later_change_of_it_is_undone(given: Manifest, stored: Manifest) -> None:
    async def prepare(world: World) -> None:
        await with_class(world, "slow", default=False)
        await with_class(world, "fast", default=True)

    async def scene(world: World) -> None:
        assert (await world.database())["spec"]["volume"] == stored
        assert (await world.status())["volume"] == stored
        claim = (await world.get("StatefulSet", "main-1"))["spec"]["volumeClaimTemplates"][0]["spec"]
        assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == (
            stored["storageClass"],
            stored["size"],
        )
        await world.change(volume={"size": "9Gi", "storageClass": None}, replicas=3)
        await world.follow(60)
        database = await world.database()
        assert database["spec"]["volume"] == stored
        generations = {one["observedGeneration"] for one in database["status"]["conditions"]}
        assert generations == {database["metadata"]["generation"]}
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"
        assert await world.names() == [*ALL, "main-3"]

    in_virtual_time(scene, prepare=prepare, volume=given)


def test_the_final_backup_is_complete_before_any_object_goes() -> None:
    async def scene(world: World) -> None:
        world.servers.backups_left = 2
        uid = (await world.database())["metadata"]["uid"]
        await world.cluster.delete(world.main)
        await asyncio.sleep(15)
        assert await world.names() == ALL
        assert await world.names("v1", "Secret") == ["main-login"]
        cleaned = (await world.conditions())["databases/CleanedUp"]
        assert cleaned["message"] == "the final backup of main-0 is not complete"
        await asyncio.sleep(60)
        assert world.servers.backups == [("main-0", f"final-{uid}")]
        with pytest.raises(NotFoundError):
            await world.database()
        kinds: list[Any] = [
            ("apps/v1", "StatefulSet"),
            ("v1", "Pod"),
            ("v1", "Secret"),
            ("v1", "Service"),
            ("v1", "ConfigMap"),
        ]
        assert [await world.names(*kind) for kind in kinds] == [[]] * len(kinds)
        assert len(await world.names("v1", "PersistentVolumeClaim")) == 3

    in_virtual_time(scene)


def test_a_database_whose_backup_cannot_be_made_is_kept_and_says_why() -> None:
    async def scene(world: World) -> None:
        world.servers.unreachable.add("main-0")
        await world.change(suspended=True)
        await world.cluster.delete(world.main)
        await world.follow(60)
        assert "main-0 cannot be reached" in (await world.conditions())["databases/CleanedUp"]["message"]
        assert await world.names("v1", "Secret") == ["main-login"]
        await world.annotate("ocf.dev/skip-cleanup", "true")
        await world.follow(30)
        assert await world.names() == await world.names("v1", "Secret") == []

    in_virtual_time(scene)


def test_roles_that_were_lost_with_the_status_are_read_from_the_members() -> None:
    async def scene(world: World) -> None:
        await world.change(promote="main-2")
        await world.follow(60)
        await world.forget_status()
        await world.follow(60)
        status = await world.status()
        assert (status["primary"], status["replicas"], status["lastIndex"]) == ("main-2", ["main-0", "main-1"], 2)
        assert await world.names() == ALL
        assert await world.endpoints("main-rw") == ["main-2"]

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("kind", "name", "patch"),
    [
        pytest.param("Pod", "main-1-0", {"metadata": {"labels": {"primary.example.com/role": "primary"}}}, id="a role"),
        pytest.param("Pod", "main-0-0", {"metadata": {"labels": {"primary.example.com/role": None}}}, id="no role"),
        pytest.param(
            "Service", "main-rw", {"spec": {"selector": {"primary.example.com/member": "main-1"}}}, id="a selector"
        ),
        pytest.param("StatefulSet", "main-2", {"spec": {"replicas": 0}}, id="a count"),
        pytest.param("ConfigMap", "main-2", {"data": {"role": "primary"}}, id="a configuration"),
    ],
)
def test_what_another_client_changes_is_put_back_and_no_replica_is_promoted(
    kind: str, name: str, patch: Manifest
) -> None:
    async def scene(world: World) -> None:
        before = {key: (await world.get("StatefulSet", key))["metadata"]["uid"] for key in ALL}
        await world.cluster.patch(world.key(kind, name), patch, MERGE)
        await world.follow(40)
        await world.check(ALL)
        assert await world.endpoints("main-rw") == ["main-0"]
        assert {key: (await world.get("StatefulSet", key))["metadata"]["uid"] for key in ALL} == before
        assert not world.servers.promoted

    in_virtual_time(scene)


@pytest.mark.parametrize("kind", ["Secret", "Service", "ConfigMap", "StatefulSet"])
def test_what_a_user_deletes_is_back(kind: str) -> None:
    async def scene(world: World) -> None:
        for name in await world.names("apps/v1" if kind == "StatefulSet" else "v1", kind):
            await world.cluster.delete(world.key(kind, name))
        await world.follow(50)
        await world.check(ALL)
        assert await world.names("v1", "Secret") == ["main-login"]
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"
        assert not world.servers.promoted

    in_virtual_time(scene)
