"""The operators of instances in random histories: the servers end as declared, and nothing is written then."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.cluster import ListOptions
from ocf.errors import NotFoundError
from ocf.objects import Manifest, selects
from tests.operators.instances.model import API_VERSION
from tests.operators.instances.world import Panels, in_virtual_time

HOSTS: Final = ("eu", "us")
REGIONS: Final = (None, "eu", "us")
FOLDERS: Final = (None, "f0", "f1")
STEPS: Final = st.one_of(
    st.tuples(st.just("label"), st.integers(0, 1), st.integers(0, 2)),
    st.tuples(st.just("select"), st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.just("select folder"), st.integers(0, 1), st.integers(0, 2)),
    st.tuples(st.just("folder"), st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.just("content"), st.integers(0, 2), st.integers(0, 9)),
    st.tuples(st.just("uid"), st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.just("delete"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("delete folder"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("delete instance"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("make"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("hang"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("fail"), st.integers(0, 1), st.sampled_from([429, 503])),
    st.tuples(st.just("lose"), st.integers(0, 1), st.integers(1, 3)),
    st.tuples(st.just("heal"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("edit"), st.integers(0, 1), st.integers(0, 2)),
)


def selector(number: int) -> Manifest:
    return {"matchLabels": {"region": REGIONS[number]}} if number else {"matchLabels": None}


async def take(world: Panels, step: str, one: int, number: int) -> None:
    """Let something happen; nothing does to what does not exist."""
    host, board, folder = HOSTS[one % 2], f"b{one}", f"f{one % 2}"
    changes: dict[str, tuple[str, str, Manifest]] = {
        "select": ("Dashboard", board, {"instances": selector(number % len(REGIONS))}),
        "select folder": ("Folder", folder, {"instances": selector(number % len(REGIONS))}),
        "folder": ("Dashboard", board, {"folder": FOLDERS[number % len(FOLDERS)]}),
        "content": ("Dashboard", board, {"inline": f"[{number}]"}),
        "uid": ("Dashboard", board, {"uid": f"{board}-{number}"}),
    }
    deleted = {
        "delete": world.key("Dashboard", board),
        "delete folder": world.key("Folder", folder),
        "delete instance": world.key("Instance", host),
    }
    with suppress(NotFoundError):
        if step in changes:
            kind, name, spec = changes[step]
            await world.change(kind, name, **spec)
        elif step in deleted:
            await world.world.cluster.delete(deleted[step])
        elif step == "label":
            await world.label(host, region=REGIONS[number % len(REGIONS)])
        elif step == "make":
            await make_missing(world)
        else:
            disturb(world, step, host, number)


def disturb(world: Panels, step: str, host: str, number: int) -> None:
    """Let a server fail, answer again, or have a dashboard that was edited there."""
    match step:
        case "hang":
            world.stub.hang(host)
        case "fail":
            world.stub.fail(host, number, retry_after=30)
        case "lose":
            world.stub.lose_answers(host, number)
        case "heal":
            world.stub.heal(host)
        case "edit":
            things = [*world.servers.at(host, "dashboards").values()]
            for one in things[number : number + 1]:
                one["content"] = "edited"


async def make_missing(world: Panels) -> None:
    for name in ("f0", "f1"):
        if await world.gone("Folder", name):
            await world.make("Folder", name, uid=name)
    for number, name in enumerate(("b0", "b1", "b2")):
        if await world.gone("Dashboard", name):
            await world.board(name, folder=FOLDERS[number])


async def declared(world: Panels) -> dict[tuple[str, str, str], object]:
    """Return what the objects declare: a dashboard is where its selector and that of its folder say so."""
    options = ListOptions(namespace="town")
    kinds = {
        kind: (await world.world.cluster.list(API_VERSION, kind, options)).items
        for kind in ("Instance", "Folder", "Dashboard")
    }
    found: dict[tuple[str, str, str], object] = {}
    for instance in kinds["Instance"]:
        host, labels = instance["metadata"]["name"], instance["metadata"].get("labels") or {}
        here = {
            one["metadata"]["name"]: one["spec"]
            for one in kinds["Folder"]
            if selects(one["spec"].get("instances"), labels)
        }
        found |= {(host, "folders", spec["uid"]): spec["title"] for spec in here.values()}
        for one in kinds["Dashboard"]:
            spec = one["spec"]
            if selects(spec.get("instances"), labels) and spec.get("folder") in {None, *here}:
                found[host, "dashboards", spec["uid"]] = (spec["inline"], spec.get("folder"))
    return found


@settings(max_examples=5)
@given(st.lists(st.tuples(STEPS, st.sampled_from([0.1, 3, 20, 200])), min_size=3, max_size=12))
def test_whatever_happens_the_servers_end_as_the_objects_declare(
    steps: list[tuple[tuple[str, int, int], float]],
) -> None:
    async def scene(world: Panels) -> None:
        await make_missing(world)
        await asyncio.sleep(5)
        for step, seconds in steps:
            await take(world, *step)
            await asyncio.sleep(seconds)
        # What failed answers again, and there is time for the longest delay and for a resync.
        for host in HOSTS:
            world.stub.heal(host)
        await asyncio.sleep(1800)
        seen = {
            place: one["title"] if place[1] == "folders" else (one["content"], one["folder"])
            for place, one in world.servers.things.items()
        }
        assert seen == await declared(world)
        await world.world.settle()

    in_virtual_time(scene)
