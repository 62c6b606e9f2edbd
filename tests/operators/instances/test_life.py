"""Instances, folders, sources and dashboards in virtual time: what users ask for, and what is in the servers then.

Public reports of an operator of this kind: https://github.com/grafana/grafana-operator/issues/2100 (an instance that is
not ready is called again and again).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from ocf.cluster import ListOptions
from ocf.objects import Manifest, ObjectKey
from ocf.testing import roll_out
from tests.operators.instances.world import BOARD, Panels, in_virtual_time

Step = Callable[[Panels], Awaitable[Any]]

EU: Final = {"matchLabels": {"region": "eu"}}
RESYNC: Final = 600


def secret(name: str, namespace: str = "town") -> ObjectKey:
    return ObjectKey("v1", "Secret", name, namespace)


async def two_boards(world: Panels) -> None:
    """A folder with a dashboard everywhere, and a dashboard of the servers with a label."""
    await world.make("Folder", "news", uid="news")
    await world.board("all", folder="news")
    await world.board("some", instances=EU)
    await asyncio.sleep(10)


def test_a_thing_is_in_each_server_that_it_selects_and_a_folder_is_there_before_its_dashboards() -> None:
    async def scene(world: Panels) -> None:
        await world.board("all", folder="news")
        await world.board("some", instances=EU)
        await asyncio.sleep(10)
        assert world.boards() == {"eu": ["some"]}
        status, reason, message = await world.condition("Dashboard", "all")
        assert (status, reason) == ("False", "Blocked")
        assert "Folder/town/news" in message
        await world.make("Folder", "news", uid="news")
        await asyncio.sleep(10)
        assert world.boards() == {"eu": ["all", "some"], "us": ["all"]}
        assert {uid: one["folder"] for uid, one in world.servers.at("us", "dashboards").items()} == {"all": "news"}
        for host in ("eu", "us"):
            first = [one for one in world.servers.log if f" {host}/" in one and "some" not in one]
            assert first == [f"PUT {host}/folders/news", f"PUT {host}/dashboards/all"]
        for kind, name in (("Folder", "news"), ("Dashboard", "all"), ("Dashboard", "some"), ("Instance", "eu")):
            assert (await world.condition(kind, name))[1] == "Healthy"
        assert await world.condition("Dashboard", "some", "Placed") == ("True", "Selected", "1 instances are selected")

    in_virtual_time(scene)


def test_a_dashboard_waits_for_its_folder_in_each_server_alone() -> None:
    async def scene(world: Panels) -> None:
        place = ("us", "folders", "news")
        world.servers.things[place] = {"title": "news", "owner": "another system"}
        await two_boards(world)
        await asyncio.sleep(120)
        assert world.boards() == {"eu": ["all", "some"]}
        status, reason, message = await world.condition("Dashboard", "all")
        assert (status, reason) == ("False", "Blocked")
        assert message == "external/Dashboard/all@town/us: the folder news is not in town/us yet"
        del world.servers.things[place]
        await asyncio.sleep(120)
        assert world.boards() == {"eu": ["all", "some"], "us": ["all"]}
        assert not [one for one in world.servers.log if one.startswith("refused")]

    in_virtual_time(scene)


async def unlabel(world: Panels) -> None:
    await world.label("eu", region=None)


async def label(world: Panels) -> None:
    await world.label("us", region="eu")


async def select_others(world: Panels) -> None:
    await world.change("Dashboard", "some", instances={"matchLabels": {"region": "us"}})


async def select_nothing(world: Panels) -> None:
    await world.change("Dashboard", "some", instances=None)


async def narrow_the_folder(world: Panels) -> None:
    await world.change("Folder", "news", instances=EU)


async def delete_the_folder(world: Panels) -> None:
    await world.world.cluster.delete(world.key("Folder", "news"))


async def delete_a_dashboard(world: Panels) -> None:
    await world.world.cluster.delete(world.key("Dashboard", "all"))


async def delete_an_instance(world: Panels) -> None:
    await world.world.cluster.delete(world.key("Instance", "eu"))


async def leave_the_folder(world: Panels) -> None:
    await world.change("Dashboard", "all", folder=None)
    await world.world.cluster.delete(world.key("Folder", "news"))


async def rename(world: Panels) -> None:
    await world.change("Dashboard", "some", uid="other")


@pytest.mark.parametrize(
    ("change", "boards", "folders"),
    [
        pytest.param(unlabel, {"eu": ["all"], "us": ["all"]}, ["eu", "us"], id="an instance loses the label"),
        pytest.param(label, {"eu": ["all", "some"], "us": ["all", "some"]}, ["eu", "us"], id="one gets the label"),
        pytest.param(select_others, {"eu": ["all"], "us": ["all", "some"]}, ["eu", "us"], id="another selector"),
        pytest.param(select_nothing, {"eu": ["all"], "us": ["all"]}, ["eu", "us"], id="no selector"),
        pytest.param(narrow_the_folder, {"eu": ["all", "some"]}, ["eu"], id="the folder leaves an instance"),
        pytest.param(delete_the_folder, {"eu": ["some"]}, [], id="the folder is deleted"),
        pytest.param(leave_the_folder, {"eu": ["all", "some"], "us": ["all"]}, [], id="a dashboard leaves its folder"),
        pytest.param(delete_a_dashboard, {"eu": ["some"]}, ["eu", "us"], id="a dashboard is deleted"),
        pytest.param(delete_an_instance, {"us": ["all"]}, ["us"], id="an instance is deleted"),
        pytest.param(rename, {"eu": ["all", "other"], "us": ["all"]}, ["eu", "us"], id="another uid"),
    ],
)
def test_what_is_in_the_servers_follows_selectors_labels_and_deletions(
    change: Step, boards: dict[str, list[str]], folders: list[str]
) -> None:
    async def scene(world: Panels) -> None:
        await two_boards(world)
        await change(world)
        await asyncio.sleep(60)
        assert world.boards() == boards
        assert sorted(host for host, kind, _ in world.servers.things if kind == "folders") == folders
        assert max(world.servers.created.values()) == 1

    in_virtual_time(scene)


@pytest.mark.parametrize("change", [delete_the_folder, delete_a_dashboard, delete_an_instance])
def test_what_is_deleted_is_gone_once_the_servers_are_clean(change: Step) -> None:
    async def scene(world: Panels) -> None:
        await two_boards(world)
        names = [("Folder", "news"), ("Dashboard", "all"), ("Instance", "eu")]
        await change(world)
        await asyncio.sleep(60)
        assert sum([await world.gone(*one) for one in names]) == 1

    in_virtual_time(scene)


def test_an_instance_is_deleted_once_nothing_is_in_its_server() -> None:
    async def scene(world: Panels) -> None:
        await two_boards(world)
        world.stub.fail("eu", 503)
        await delete_an_instance(world)
        await asyncio.sleep(60)
        message = (await world.condition("Instance", "eu", "instances/CleanedUp"))[2]
        assert "these are still in the server: Folder town/news, Dashboard town/all, Dashboard town/some" in message
        world.stub.heal("eu")
        await asyncio.sleep(400)
        assert await world.gone("Instance", "eu")
        assert world.boards() == {"us": ["all"]}

    in_virtual_time(scene)


@pytest.mark.parametrize("turns", [0, 20, 60, 120])
def test_what_is_being_made_while_its_instance_is_deleted_does_not_stay_in_the_server(turns: int) -> None:
    """The owner's reconcile may have selected the instance before that was deleted, and record it only after that."""

    async def scene(world: Panels) -> None:
        await asyncio.sleep(5)
        await world.board("new")
        for _ in range(turns):
            await asyncio.sleep(0)  # a turn of the event loop
        await world.world.cluster.delete(world.key("Instance", "us"))
        await asyncio.sleep(60)
        assert (world.boards(), await world.gone("Instance", "us")) == ({"eu": ["new"]}, True)

    in_virtual_time(scene)


def test_instances_of_other_namespaces_are_selected_if_the_thing_says_so() -> None:
    async def scene(world: Panels) -> None:
        await world.server("hq", "village", region="eu")
        await world.make("Source", "metrics", uid="metrics", url="http://metrics", instances=EU)
        await asyncio.sleep(5)
        assert [*world.servers.at("hq", "sources")] == []
        await world.change("Source", "metrics", everywhere=True)
        await asyncio.sleep(5)
        assert ([*world.servers.at("hq", "sources")], [*world.servers.at("eu", "sources")]) == (["metrics"],) * 2
        await world.change("Source", "metrics", everywhere=False)
        await asyncio.sleep(10)
        assert ([*world.servers.at("hq", "sources")], [*world.servers.at("eu", "sources")]) == ([], ["metrics"])

    in_virtual_time(scene)


@pytest.mark.parametrize("edit", [{"content": "{}"}, {"folder": None}, None], ids=["changed", "moved", "deleted"])
def test_what_is_changed_in_a_server_is_repaired_at_the_resync(edit: dict[str, Any] | None) -> None:
    async def scene(world: Panels) -> None:
        await two_boards(world)
        place = ("us", "dashboards", "all")
        before = {**world.servers.things[place]}
        if edit is None:
            del world.servers.things[place]
        else:
            world.servers.things[place].update(edit)
        await asyncio.sleep(RESYNC + 60)
        assert world.servers.things[place] == before
        assert world.servers.log[-1] == "PUT us/dashboards/all"

    in_virtual_time(scene)


def test_of_two_dashboards_with_one_uid_the_second_is_blocked_until_the_first_is_gone() -> None:
    async def scene(world: Panels) -> None:
        await world.board("first", uid="same")
        await asyncio.sleep(5)
        await world.board("second", uid="same", inline="{}")
        await asyncio.sleep(RESYNC * 2)
        assert {one["content"] for one in world.servers.at("eu", "dashboards").values()} == {BOARD}
        status, reason, message = await world.condition("Dashboard", "second")
        assert (status, reason) == ("False", "Blocked")
        assert "was made for another owner" in message
        assert max(world.servers.created.values()) == 1
        await world.world.cluster.delete(world.key("Dashboard", "first"))
        await asyncio.sleep(120)
        assert {one["content"] for one in world.servers.at("eu", "dashboards").values()} == {"{}"}

    in_virtual_time(scene)


def test_the_content_of_a_config_map_is_followed() -> None:
    async def scene(world: Panels) -> None:
        key = ObjectKey("v1", "ConfigMap", "boards", "town")
        await world.board("all", configMap={"name": "boards", "key": "sales.json"})
        await asyncio.sleep(5)
        assert "ConfigMap/town/boards" in (await world.condition("Dashboard", "all"))[2]
        await world.world.create(key, data={"sales.json": '{"b": 1, "a": 2}'})
        await asyncio.sleep(5)
        assert world.servers.things["eu", "dashboards", "all"]["content"] == '{"a": 2, "b": 1}'
        await world.world.edit(key, {"data": {"sales.json": "{"}})
        await asyncio.sleep(5)
        assert (await world.condition("Dashboard", "all"))[1] == "Error"
        await world.world.edit(key, {"data": {"sales.json": "[]"}})
        await asyncio.sleep(10)
        assert world.servers.things["us", "dashboards", "all"]["content"] == "[]"

    in_virtual_time(scene)


def test_content_at_a_url_is_fetched_again_after_its_period_and_a_host_that_hangs_changes_nothing() -> None:
    async def scene(world: Panels) -> None:
        world.servers.pages = {"shelf/pages/a": [1], "attic/pages/b": [2]}
        world.stub.hang("attic")
        await world.board("a", url="http://shelf/pages/a")
        await world.board("b", url="http://attic/pages/b")
        await asyncio.sleep(5)
        assert world.boards() == {"eu": ["a"], "us": ["a"]}
        world.stub.heal("attic")
        await asyncio.sleep(60)
        assert world.boards() == {"eu": ["a", "b"], "us": ["a", "b"]}
        world.servers.pages["shelf/pages/a"] = [3]
        await asyncio.sleep(RESYNC + 10)
        assert world.servers.things["eu", "dashboards", "a"]["content"] == "[3]"
        # A host that fails, or is slow, changes nothing in the servers.
        world.stub.fail("shelf", 503)
        await asyncio.sleep(RESYNC + 10)
        assert (await world.condition("Dashboard", "a"))[:2] == ("False", "Failing")
        assert world.boards() == {"eu": ["a", "b"], "us": ["a", "b"]}
        assert max(world.servers.created.values()) == 1

    in_virtual_time(scene)


def test_a_source_has_the_password_of_its_secret_which_is_shown_nowhere() -> None:
    async def scene(world: Panels) -> None:
        await world.make("Source", "db", uid="db", url="db:1", password={"name": "db", "key": "password"})
        await asyncio.sleep(5)
        assert (await world.condition("Source", "db"))[1] == "Blocked"
        for password in ("hunter2", "hunter3"):
            if await world.world.found(secret("db")):
                await world.world.edit(secret("db"), {"stringData": {"password": password}})
            else:
                await world.world.create(secret("db"), stringData={"password": password})
            await asyncio.sleep(10)
            stored = [world.servers.things[host, "sources", "db"]["password"] for host in ("eu", "us")]
            assert stored == [password, password]
            assert "hunter" not in str(await world.world.found(world.key("Source", "db")))

    in_virtual_time(scene)


def test_an_instance_that_moves_to_another_server_has_everything_there_at_once() -> None:
    async def scene(world: Panels) -> None:
        await two_boards(world)
        await world.world.edit(secret("us"), {"stringData": {"url": "http://new"}})
        await asyncio.sleep(20)
        assert world.boards()["new"] == ["all"]
        assert [*world.servers.at("new", "folders")] == ["news"]
        assert (await world.world.found(world.key("Instance", "us")))["status"]["url"] == "http://new"

    in_virtual_time(scene)


def test_an_instance_that_moves_takes_nothing_that_is_in_the_other_server() -> None:
    async def scene(world: Panels) -> None:
        await world.board("all")
        await asyncio.sleep(5)
        theirs = {"folder": None, "content": "[]", "owner": "theirs"}
        world.servers.things["new", "dashboards", "all"] = {**theirs}
        await world.world.edit(secret("us"), {"stringData": {"url": "http://new"}})
        await asyncio.sleep(RESYNC * 2)
        assert world.servers.things["new", "dashboards", "all"] == theirs
        assert (await world.condition("Dashboard", "all"))[0] == "False"
        del world.servers.things["new", "dashboards", "all"]
        await asyncio.sleep(RESYNC)
        assert world.servers.things["new", "dashboards", "all"]["content"] == BOARD
        assert (await world.condition("Dashboard", "all"))[1] == "Healthy"

    in_virtual_time(scene)


def test_an_instance_may_become_an_external_one() -> None:
    async def scene(world: Panels) -> None:
        cluster = world.world.cluster
        await world.make("Instance", "own", deployed={})
        await asyncio.sleep(5)
        await roll_out(cluster)
        world.servers.logins["own.town.svc:3000"] = await world.password("own")
        await world.board("all")
        await asyncio.sleep(15)
        assert world.boards()["own.town.svc:3000"] == ["all"]
        entries = {"url": "http://theirs/", "user": "admin", "password": "sesame"}
        await world.world.create(secret("theirs"), stringData=entries)
        await world.change("Instance", "own", deployed=None, external={"secretName": "theirs"})
        await asyncio.sleep(30)
        assert world.boards()["theirs"] == ["all"]
        for kind in (("apps/v1", "Deployment"), ("v1", "Service")):
            assert not (await cluster.list(*kind, ListOptions(namespace="town"))).items
        assert not await world.world.found(secret("own-login"))

    in_virtual_time(scene)


def test_wrong_credentials_are_shown_and_what_waits_for_them_goes_on_with_the_right_ones() -> None:
    async def scene(world: Panels) -> None:
        world.servers.logins["us"] = "changed"
        await asyncio.sleep(RESYNC + 10)
        assert "HTTP status 401" in (await world.condition("Instance", "us"))[2]
        await two_boards(world)
        assert world.boards() == {"eu": ["all", "some"]}
        await world.world.edit(secret("us"), {"stringData": {"password": "changed"}})
        await asyncio.sleep(RESYNC)
        assert world.boards() == {"eu": ["all", "some"], "us": ["all"]}
        assert (await world.condition("Instance", "us"))[1] == "Healthy"

    in_virtual_time(scene)


def test_a_deployed_server_is_filled_once_it_is_ready_and_restarts_for_its_settings_and_its_password() -> None:
    async def scene(world: Panels) -> None:
        cluster, host = world.world.cluster, "own.town.svc:3000"
        await world.make("Instance", "own", deployed={"settings": {"THEME": "dark"}})
        await two_boards(world)
        assert host not in world.boards()
        assert not [one for one in world.stub.requests if one.host == host]
        assert "own" in (await world.condition("Dashboard", "all"))[2]
        await roll_out(cluster)
        world.servers.logins[host] = password = await world.password("own")
        await asyncio.sleep(10)
        assert world.boards()[host] == ["all"]
        deployed = ObjectKey("apps/v1", "Deployment", "own", "town")
        templates = [(await cluster.get(deployed))["spec"]["template"]]
        await world.change("Instance", "own", deployed={"settings": {"THEME": "light"}})
        await asyncio.sleep(5)
        templates.append((await cluster.get(deployed))["spec"]["template"])
        assert await world.password("own") == password
        await world.world.edit(secret("own-login"), {"data": {"password": None}})
        await asyncio.sleep(5)
        templates.append((await cluster.get(deployed))["spec"]["template"])
        assert await world.password("own") != password
        assert len({str(one) for one in templates}) == 3
        # The server ends with its instance, so nothing in it holds anything.
        world.stub.hang(host)
        await cluster.delete(world.key("Instance", "own"))
        await asyncio.sleep(120)
        assert await world.gone("Instance", "own")
        assert (await world.condition("Dashboard", "all"))[1] == "Healthy"

    in_virtual_time(scene)


def test_an_instance_is_deployed_or_external() -> None:
    async def scene(world: Panels) -> None:
        both: Manifest = {"deployed": {}, "external": {"secretName": "eu"}}
        none: Manifest = {}
        for spec in (none, both):
            with pytest.raises(Exception, match="exactly one of deployed, external"):
                await world.make("Instance", "both", **spec)
        assert not (await world.world.cluster.list("apps/v1", "Deployment", ListOptions(namespace="town"))).items

    in_virtual_time(scene)
