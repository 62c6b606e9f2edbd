"""Replicas that divide the owners by namespace divide their children, too, and hide nothing that a reconcile reads.

Public report: an object that a filtered cache does not have looks as if it did not exist, so that an operator creates
it again (https://github.com/NVIDIA/k8s-nim-operator/pull/741).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from ocf.cluster import ListOptions, Request, Verb
from ocf.component import ReconcileContext
from ocf.errors import NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.shards import slot_of
from ocf.runtime.operator import Watch
from ocf.runtime.operator.operator_caches import divided_kinds
from ocf.runtime.sharding import Sharding
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests import support

from .conftest import DEFINITION, Env, Gateway, Shop, shop
from .test_sharding import CHILDREN, Fleet, mottos

# Their first letters differ, which divides them evenly.
NAMESPACES: Final = tuple(f"{number:02}-town" for number in range(30))
SLOTS: Final = 12
NAMES: Final = ("one", "two", "three")


def run(work: Callable[[Fleet], Awaitable[None]], *, gate: bool = True) -> None:
    async def on_stage() -> None:
        gates = {"ShardedListAndWatch": gate}
        cluster = EmbeddedCluster(namespaces=NAMESPACES, now=LoopClock().now, feature_gates=gates)
        fleet = Fleet(await support.defined(cluster, DEFINITION), Sharding(by="namespace", slots=SLOTS))
        for namespace in NAMESPACES:
            await create_shop(fleet, namespace)
        try:
            await work(fleet)
        finally:
            for name in [*fleet.managers]:
                await fleet.stop(name)

    run_in_virtual_time(on_stage())


async def create_shop(fleet: Fleet, namespace: str, name: str = "corner") -> None:
    made = shop(name)
    made["metadata"]["namespace"] = namespace
    await fleet.cluster.create(made, field_manager="kubectl")


def settings_in(namespace: str, name: str = "corner-settings") -> ObjectKey:
    return ObjectKey("v1", "ConfigMap", name, namespace)


def config(namespace: str, name: str, **data: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": {"central": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def edit_children(fleet: Fleet, motto: str) -> None:
    for live in (await fleet.cluster.list("v1", "ConfigMap")).items:
        if live["metadata"]["name"] == "corner-settings":
            await next(iter(fleet.envs.values())).edit(ObjectKey.of(live), {"data": {"motto": motto}})


def cached(fleet: Fleet, kind: str) -> list[int]:
    """Return how many objects of a kind each replica holds, by its name."""
    found = []
    for _, manager in sorted(fleet.managers.items()):
        assert manager.registry is not None
        where = {"api_version": "v1", "kind": kind, "namespace": ""}
        found.append(int(manager.registry.get_sample_value("ocf_cached_objects", where) or 0))
    return found


def home_of(fleet: Fleet, name: str, *, own: bool) -> str:
    """Return a namespace that is in a slot of a replica, or is not."""
    shards = fleet.managers[name]._shards
    assert shards is not None
    return next(one for one in NAMESPACES if (slot_of(one, SLOTS) in shards.slots.held) is own)


@pytest.mark.parametrize("gate", [True, False], ids=["filtered by the API server", "filtered here"])
def test_each_of_three_replicas_has_a_third_of_the_children_in_memory_and_of_their_events(*, gate: bool) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.start(*NAMES)
        for kind in ("ConfigMap", "Service"):
            held = cached(fleet, kind)
            assert sum(held) == len(NAMESPACES)
            assert max(held) < len(NAMESPACES) / 2
        fleet.forget()
        await edit_children(fleet, "changed by hand")
        await asyncio.sleep(30)
        assert await mottos(fleet) == {"open"}
        # The edit, and the write that reverts it.
        events = [env.gateway.events["ConfigMap"] for env in fleet.envs.values()]
        if gate:
            assert sum(events) == 2 * len(NAMESPACES)
            assert max(events) < len(NAMESPACES)
        else:
            assert events == [2 * len(NAMESPACES)] * len(NAMES)

    run(work, gate=gate)


@pytest.mark.parametrize(("seconds", "gate"), [(0.1, True), (2.05, True), (14, False)])
def test_children_that_change_while_replicas_come_and_go_are_corrected(seconds: float, *, gate: bool) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.start("one")
        for step, change in enumerate((fleet.start("two", "three"), fleet.kill("one"))):
            changing = asyncio.ensure_future(change)
            await asyncio.sleep(seconds)
            await edit_children(fleet, f"changed in step {step}")
            await changing
            await asyncio.sleep(40)
            assert await mottos(fleet) == {"open"}
            assert fleet.twice == []
        assert sum(cached(fleet, "ConfigMap")) == len(NAMESPACES)

    run(work, gate=gate)


def test_a_child_that_a_new_replica_has_not_listed_yet_is_not_taken_for_absent() -> None:
    """The list of its kind takes long; the one of the owners does not."""

    async def work(fleet: Fleet) -> None:
        await fleet.start("one")
        creates: list[str] = []
        slow = {"on": False}

        async def meddle(request: Request) -> None:
            if request.kind == "ConfigMap" and request.verb is Verb.LIST and slow["on"]:
                await asyncio.sleep(4)
            if request.kind == "ConfigMap" and not request.verb.is_read:
                creates.append(request.name)

        fleet.forget()
        starting = asyncio.ensure_future(fleet.start("two"))
        await asyncio.sleep(0)
        fleet.envs["two"].gateway.meddle = meddle
        slow["on"] = True
        await starting
        assert fleet.names("two") == {"corner"}
        gets = [one for one in fleet.envs["two"].gateway.requests if one.kind == "ConfigMap" and one.verb is Verb.GET]
        assert (creates, gets) == ([], [])

    run(work)


def test_an_object_of_another_namespace_that_is_read_by_name_triggers_and_is_watched_alone() -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.start(*NAMES)
        home = home_of(fleet, "one", own=False)
        central = settings_in(home, "central")
        seen: list[str] = []

        async def read(_: Shop, context: ReconcileContext) -> None:
            try:
                seen.append((await context.cluster.get(central))["data"]["motto"])
            except NotFoundError:
                seen.append("missing")

        fleet.envs["one"].before = read
        await touch(fleet, "read it")
        before = cached(fleet, "ConfigMap")
        for expected, change in (
            ("first", fleet.cluster.create(config(home, "central", motto="first"), field_manager="kubectl")),
            ("second", fleet.envs["one"].edit(central, {"data": {"motto": "second"}})),
            ("missing", fleet.cluster.delete(central)),
        ):
            await touch(fleet, f"before {expected}")
            seen.clear()
            await change
            await asyncio.sleep(20)
            assert {*seen} == {expected}
        assert cached(fleet, "ConfigMap")[0] <= before[0] + 1

    run(work)


async def touch(fleet: Fleet, note: str) -> None:
    """Have all owners reconciled."""
    for live in (await fleet.cluster.list("example.com/v1", "Shop")).items:
        await fleet.envs["one"].edit(ObjectKey.of(live), {"metadata": {"annotations": {"note": note}}})
    await asyncio.sleep(20)


@pytest.mark.parametrize("where", ["all namespaces", "another namespace"])
def test_a_list_beyond_the_own_namespaces_has_all_objects_and_triggers(where: str) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.start(*NAMES)
        home = home_of(fleet, "one", own=False)
        options = ListOptions(namespace=home if where == "another namespace" else "", label_selector="central=yes")
        seen: list[list[str]] = []

        async def read(_: Shop, context: ReconcileContext) -> None:
            found = (await context.cluster.list("v1", "ConfigMap", options)).items
            seen.append([one["metadata"]["name"] for one in found])

        await fleet.cluster.create(config(home, "a"), field_manager="kubectl")
        fleet.envs["one"].before = read
        await touch(fleet, "read them")
        assert {tuple(one) for one in seen} == {("a",)}
        seen.clear()
        await fleet.cluster.create(config(home, "b"), field_manager="kubectl")
        await asyncio.sleep(20)
        assert {tuple(one) for one in seen} == {("a", "b")}
        # One replica holds all of the kind from now on, and the others hold their part.
        assert cached(fleet, "ConfigMap")[0] == len(NAMESPACES) + 2
        assert max(cached(fleet, "ConfigMap")[1:]) < len(NAMESPACES) / 2
        await edit_children(fleet, "changed by hand")
        await asyncio.sleep(20)
        assert await mottos(fleet) == {"open"}

    run(work)


@pytest.mark.parametrize("count", [3, 60])
def test_what_a_reconcile_writes_in_another_namespace_is_seen_and_watched(count: int) -> None:
    """Beyond the number of single watches, the replica holds all objects of the kind."""

    async def work(fleet: Fleet) -> None:
        await fleet.start("one", "two")
        home = home_of(fleet, "one", own=False)
        made = [settings_in(home, f"made-{number}") for number in range(count)]

        async def write(_: Shop, context: ReconcileContext) -> None:
            for key in made:
                manifest = config(home, key.name, motto="ours")
                await context.cluster.apply(manifest, field_manager="shops/made", force=True)

        fleet.envs["one"].before = write
        await touch(fleet, "write them")
        # The others are written again in the same reconcile.
        await fleet.envs["one"].edit(made[-1], {"data": {"motto": "changed by hand"}})
        await asyncio.sleep(20)
        assert (await fleet.cluster.get(made[-1]))["data"] == {"motto": "ours"}

    run(work)


def test_a_list_of_children_that_fails_after_slots_were_taken_fails_the_reconcile_and_is_repeated() -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.start("one", "two")

        async def meddle(request: Request) -> None:
            if request.kind == "ConfigMap" and request.verb is Verb.LIST:
                raise ServerError("no answer")

        env = fleet.envs["one"]
        env.gateway.meddle = meddle
        await fleet.kill("two")
        fleet.forget()
        await asyncio.sleep(60)
        writes = [one for one in env.gateway.requests if one.kind == "ConfigMap" and not one.verb.is_read]
        assert len(fleet.names("one")) == 1
        assert len(env.passes) > len(NAMESPACES)
        env.gateway.meddle = None
        await asyncio.sleep(120)
        await edit_children(fleet, "changed by hand")
        await asyncio.sleep(20)
        assert await mottos(fleet) == {"open"}
        assert cached(fleet, "ConfigMap") == [len(NAMESPACES)]
        assert writes == []

    run(work)


@pytest.mark.parametrize(
    ("changed", "namespaces", "expected"),
    [
        pytest.param({"owns": CHILDREN}, (), {*CHILDREN}, id="children"),
        pytest.param({}, (), set(), id="kinds that are not declared"),
        pytest.param({"owns": CHILDREN}, ("town",), set(), id="a process of some namespaces"),
        pytest.param(
            {"owns": CHILDREN, "watches": [Watch("v1", "Service", lambda _: ())]}, (), {CHILDREN[0]}, id="a watch"
        ),
        pytest.param({"owns": [*CHILDREN, ("example.com/v1", "Shop")]}, (), {*CHILDREN}, id="owners"),
    ],
)
def test_only_kinds_of_children_that_nothing_else_watches_are_divided(
    changed: dict[str, Any], namespaces: tuple[str, ...], expected: set[tuple[str, str]]
) -> None:
    cluster = EmbeddedCluster()
    operator = Env(cluster, Gateway(cluster), LoopClock()).operator(**changed)
    assert divided_kinds([operator], namespaces) == expected
