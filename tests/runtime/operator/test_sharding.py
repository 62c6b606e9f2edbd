"""Several replicas of an operator divide its owners: none is reconciled twice at once, and none is left.

The kinds of the children are declared, so that replicas that divide the owners by namespace divide these, too.

Public report: an object that moves to another shard is reconciled by both of them
(https://github.com/aws-controllers-k8s/community/issues/2545).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pytest

from ocf.cluster import Request, Verb
from ocf.component import ReconcileContext
from ocf.errors import ConfigError, NotFoundError, ServerError
from ocf.objects import ObjectKey
from ocf.runtime.operator import BackgroundTask, Lease, ManagerOptions
from ocf.runtime.operator.manager import Manager
from ocf.runtime.sharding import Sharding
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests import support

from .conftest import DEFINITION, Env, Gateway, Shop, now, shop

SHOPS: Final = 30
NAMESPACES: Final = ("town", "village", "city", "port", "hill", "lake")
CHILDREN: Final = (("v1", "ConfigMap"), ("v1", "Service"))
LEASE_TIME: Final = 15
By = Literal["uid", "namespace"]


async def cut(_: Any) -> None:
    raise ServerError("connection refused")


@dataclass
class Fleet:
    """Replicas of one operator."""

    cluster: EmbeddedCluster
    sharding: Sharding | None
    """How the replicas divide the owners that are started from now on; None for one leader."""
    envs: dict[str, Env] = field(default_factory=dict)
    managers: dict[str, Manager] = field(default_factory=dict)
    busy: dict[str, str] = field(default_factory=dict)
    """The replica that reconciles each owner now."""
    twice: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """How often each owner was reconciled."""
    _ends: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = field(default_factory=dict)

    async def start(self, *names: str, **changed: Any) -> None:
        changed = {"owns": CHILDREN, **changed}
        for name in names:
            env = Env(self.cluster, Gateway(self.cluster), LoopClock())
            env.before = self._noting(name)
            end = asyncio.Event()
            self.envs[name] = env
            self._ends[name] = asyncio.create_task(self._run(name, env, end, changed)), end
        await asyncio.sleep(30)

    def _noting(self, name: str) -> Callable[[Shop, ReconcileContext], Awaitable[object]]:
        async def note(owner: Shop, _: ReconcileContext) -> None:
            uid = str(owner.metadata.uid)
            if uid in self.busy:
                self.twice.append(f"{owner.metadata.name}: {self.busy[uid]} and {name}")
            self.busy[uid] = name
            try:
                await asyncio.sleep(0.2)
            finally:
                self.busy.pop(uid, None)
            self.done[owner.metadata.name] += 1

        return note

    async def _run(self, name: str, env: Env, end: asyncio.Event, changed: dict[str, Any]) -> None:
        options = {"lease": Lease("shops", "default", name), "sharding": self.sharding}
        async with env.operating(options=options, **changed) as manager:
            self.managers[name] = manager
            await end.wait()

    async def stop(self, name: str) -> None:
        """Stop a replica gracefully."""
        task, end = self._ends.pop(name)
        end.set()
        await task
        del self.envs[name], self.managers[name]

    async def kill(self, name: str) -> None:
        """End a replica; none of its requests arrives any more."""
        self.envs.pop(name).gateway.meddle = cut
        del self.managers[name]
        task, _ = self._ends.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def names(self, replica: str) -> set[str]:
        """Return the owners that a replica has reconciled."""
        return {name for name, _ in self.envs[replica].passes}

    def forget(self) -> None:
        self.done.clear()
        for env in self.envs.values():
            env.forget()

    def check(self, names: set[str]) -> None:
        """Require that each owner was reconciled by one replica, and no two did so at once."""
        assert self.twice == []
        assert {*self.done} == names
        found = [self.names(replica) for replica in self.envs]
        assert sum(map(len, found)) == len(set().union(*found))


def run(work: Callable[[Fleet], Awaitable[None]], *, by: By = "uid", gate: bool = False, slots: int = 12) -> None:
    """Run a test with a fleet, in virtual time."""

    async def on_stage() -> None:
        gates = {"ShardedListAndWatch": gate}
        cluster = EmbeddedCluster(namespaces=NAMESPACES, now=LoopClock().now, feature_gates=gates)
        fleet = Fleet(await support.defined(cluster, DEFINITION), Sharding(by=by, slots=slots))
        try:
            await work(fleet)
        finally:
            for name in [*fleet.managers]:
                await fleet.stop(name)

    run_in_virtual_time(on_stage())


async def create(fleet: Fleet, count: int = SHOPS, start: int = 0) -> set[str]:
    for number in range(start, start + count):
        made = shop(f"shop-{number}")
        made["metadata"]["namespace"] = NAMESPACES[number % len(NAMESPACES)]
        await fleet.cluster.create(made, field_manager="kubectl")
    return {f"shop-{number}" for number in range(start, start + count)}


async def edit_all(fleet: Fleet, motto: str) -> None:
    for live in (await fleet.cluster.list("example.com/v1", "Shop")).items:
        await next(iter(fleet.envs.values())).edit(ObjectKey.of(live), {"spec": {"motto": motto}})


async def mottos(fleet: Fleet) -> set[str]:
    found = (await fleet.cluster.list("v1", "ConfigMap")).items
    return {live["data"]["motto"] for live in found if live["metadata"]["name"].endswith("-settings")}


MODES: Final = [
    pytest.param("uid", False, id="by uid, filtered here"),
    pytest.param("uid", True, id="by uid, filtered by the API server"),
    pytest.param("namespace", False, id="by namespace, filtered here"),
    pytest.param("namespace", True, id="by namespace, filtered by the API server"),
]


@pytest.mark.parametrize(("by", "gate"), MODES)
def test_replicas_come_and_go_and_each_owner_has_one(by: By, *, gate: bool) -> None:
    async def work(fleet: Fleet) -> None:
        names = await create(fleet)
        await fleet.start("one")
        fleet.check(names)
        fleet.forget()
        await fleet.start("two", "three")
        # Those that moved are reconciled by their new replica, and by no other.
        assert fleet.twice == []
        assert not fleet.names("one")
        fleet.forget()
        await edit_all(fleet, "closed")
        await asyncio.sleep(30)
        fleet.check(names)
        assert await mottos(fleet) == {"closed"}
        fleet.forget()
        await fleet.kill("two")
        await edit_all(fleet, "for sale")
        await asyncio.sleep(LEASE_TIME + 10)
        assert await mottos(fleet) == {"for sale"}
        fleet.check(names)
        await fleet.stop("three")
        await asyncio.sleep(10)
        fleet.forget()
        more = await create(fleet, 10, SHOPS)
        await asyncio.sleep(10)
        fleet.check(more)

    run(work, by=by, gate=gate)


@pytest.mark.parametrize("gate", [False, True])
def test_a_replica_caches_its_own_owners(*, gate: bool) -> None:
    async def work(fleet: Fleet) -> None:
        await create(fleet, 60)
        await fleet.start("one", "two", "three")
        cached = []
        for manager in fleet.managers.values():
            assert manager.registry is not None
            where = {"api_version": "example.com/v1", "kind": "Shop", "namespace": ""}
            cached.append(manager.registry.get_sample_value("ocf_cached_objects", where))
        # The last write of a reconcile in a slot that is given up stays in the cache.
        assert 60 <= sum(filter(None, cached)) <= 66
        assert max(filter(None, cached)) < 30

    run(work, gate=gate, slots=24)


def test_an_owner_of_another_replica_is_not_taken_for_deleted() -> None:
    """What is held for it, what it had, and its finalizers stay as they are."""

    async def work(fleet: Fleet) -> None:
        await create(fleet)
        await fleet.start("one")
        before = {ObjectKey.of(each): each for each in (await fleet.cluster.list("v1", "ConfigMap")).items}
        await fleet.start("two", "three")
        for name in ("two", "three"):
            await fleet.stop(name)
        await fleet.start("four")
        after = {ObjectKey.of(each): each for each in (await fleet.cluster.list("v1", "ConfigMap")).items}
        assert after == before
        writes = [
            request.kind
            for env in fleet.envs.values()
            for request in env.gateway.requests
            if not request.verb.is_read and request.kind not in {"Lease", "Event"}
        ]
        assert {*writes} <= {"Shop", "ConfigMap", "Service"}

    run(work)


def test_the_owners_of_a_slot_that_was_lost_and_is_held_again_are_reconciled() -> None:
    """Their cache has never been without them, so that no event is about them."""

    async def work(fleet: Fleet) -> None:
        names = await create(fleet)
        await fleet.start("one")
        fleet.forget()
        gateway = fleet.envs["one"].gateway

        async def cut_leases(request: Request) -> None:
            if request.kind == "Lease":
                raise ServerError("connection refused")

        gateway.meddle = cut_leases
        await asyncio.sleep(LEASE_TIME)
        await edit_all(fleet, "closed")
        await asyncio.sleep(LEASE_TIME)
        assert not fleet.done
        gateway.meddle = None
        await asyncio.sleep(10)
        fleet.check(names)
        assert await mottos(fleet) == {"closed"}

    run(work)


def test_an_owner_whose_slot_is_lost_and_taken_again_during_a_list_is_not_taken_for_deleted() -> None:
    """The list began without the slot, and ends when it is held.

    The process knows what it manages for the owner until that is deleted, so it puts back a reference that was removed.
    """

    async def work(fleet: Fleet) -> None:
        await create(fleet)
        await fleet.start("one")
        lists: list[float] = []

        async def meddle(request: Request) -> None:
            if request.kind == "Lease" and not lists:
                raise ServerError("connection refused")
            if request.kind == "Shop" and request.verb is Verb.LIST:
                lists.append(now())
                await asyncio.sleep(10 if len(lists) == 1 else 0)

        async def fail(*_: object) -> None:
            raise ServerError("the author's code does not work any more")

        env = fleet.envs["one"]
        env.gateway.meddle, env.before = meddle, fail
        await asyncio.sleep(LEASE_TIME + 30)
        assert len(lists) > 1
        assert fleet.managers["one"].health.ready["shards"]() == ""
        made = [one for one in (await fleet.cluster.list("v1", "ConfigMap")).items if "motto" in one.get("data", {})]
        assert len(made) == SHOPS
        for live in made:
            await env.edit(ObjectKey.of(live), {"metadata": {"ownerReferences": None}})
        for live in (await fleet.cluster.list("example.com/v1", "Shop")).items:
            await fleet.cluster.delete(ObjectKey.of(live))
        await asyncio.sleep(30)
        assert await mottos(fleet) == set()

    run(work)


def test_a_deleted_owner_and_its_successor_of_the_same_name_are_two_owners() -> None:
    async def work(fleet: Fleet) -> None:
        names = await create(fleet)
        await fleet.start("one", "two", "three")
        for _ in range(3):
            for live in (await fleet.cluster.list("example.com/v1", "Shop")).items:
                await fleet.cluster.delete(ObjectKey.of(live))
            await create(fleet)
            await asyncio.sleep(20)
            fleet.forget()
            await edit_all(fleet, f"at {asyncio.get_running_loop().time()}")
            await asyncio.sleep(20)
            fleet.check(names)
            assert len(await mottos(fleet)) == 1

    run(work)


@pytest.mark.parametrize("by", ["uid", "namespace"])
def test_an_object_that_is_not_selected_any_more_is_released_by_the_replica_of_its_slot(by: By) -> None:
    """Its label was removed while no replica saw it, or it is in a slot that is taken later."""

    async def work(fleet: Fleet) -> None:
        async def clean_up(*_: object) -> None:
            return None

        async def held() -> set[str]:
            found = (await fleet.cluster.list("example.com/v1", "Shop")).items
            return {live["metadata"]["name"] for live in found if live["metadata"].get("finalizers")}

        async def label(text: str) -> None:
            for live in (await fleet.cluster.list("example.com/v1", "Shop")).items:
                await fleet.cluster.update(
                    {**live, "metadata": {**live["metadata"], "labels": {"at": text}}}, field_manager="kubectl"
                )

        selecting: dict[str, Any] = {"select": "at=work", "on_delete": clean_up}
        names = await create(fleet)
        await label("work")
        await fleet.start("one", "two", **selecting)
        assert await held() == names
        await fleet.stop("one")
        await fleet.kill("two")
        await label("home")
        await fleet.start("three", **selecting)
        # The other half is released when the slots of the replica that was killed are taken.
        assert await held() == set()

    run(work, by=by)


@pytest.mark.parametrize(("by", "gate"), MODES)
def test_the_end_of_an_owner_is_seen_by_those_that_read_it_in_all_replicas(by: By, *, gate: bool) -> None:
    """Only its own replica has it in the cache of the owners."""

    async def work(fleet: Fleet) -> None:
        names = await create(fleet)
        read = ObjectKey("example.com/v1", "Shop", "shop-0", NAMESPACES[0])

        async def look(_: Shop, context: ReconcileContext) -> None:
            with suppress(NotFoundError):
                await context.cluster.get(read)

        await fleet.start("one", "two")
        for env in fleet.envs.values():
            env.before = look
        await edit_all(fleet, "closed")
        await asyncio.sleep(10)
        for change in ({"spec": {"motto": "for sale"}}, None):
            fleet.forget()
            if change is not None:
                await fleet.envs["one"].edit(read, change)
            else:
                await fleet.cluster.delete(read)
            await asyncio.sleep(10)
            assert fleet.names("one") | fleet.names("two") >= names - {"shop-0"}
            assert not fleet.names("one") & fleet.names("two")

    run(work, by=by, gate=gate)


def test_a_reconcile_in_a_slot_that_is_given_up_reads_its_owner() -> None:
    async def work(fleet: Fleet) -> None:
        await create(fleet, 4)
        await fleet.start("one")
        read: list[str] = []

        async def read_late(owner: Shop, context: ReconcileContext) -> None:
            await asyncio.sleep(40)
            live = await context.cluster.get(owner.key)
            read.append(live["metadata"]["name"])

        fleet.envs["one"].before = read_late
        await edit_all(fleet, "closed")
        await asyncio.sleep(1)
        await fleet.start("two")
        assert not read
        await asyncio.sleep(30)
        assert sorted(read) == [f"shop-{number}" for number in range(4)]

    run(work)


def test_a_task_of_the_leader_runs_in_one_replica() -> None:
    async def work(fleet: Fleet) -> None:
        running: list[str] = []
        started: Counter[str] = Counter()

        def task(name: str) -> BackgroundTask:
            async def refresh(_: object) -> None:
                running.append(name)
                started[name] += 1
                assert len(running) == 1
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    running.remove(name)

            return BackgroundTask(name="refresh", run=refresh)

        for name in ("one", "two", "three"):
            await fleet.start(name, tasks=[task(name)])
        assert running == ["one"]
        await fleet.stop("one")
        await asyncio.sleep(10)
        (holder,) = running
        assert holder in {"two", "three"}
        assert started == {"one": 1, holder: 1}

    run(work)


def test_a_process_without_its_leases_is_not_ready() -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.start("one")
        manager = fleet.managers["one"]
        assert manager.health.ready["shards"]() == ""
        fleet.envs["one"].gateway.meddle = cut
        await asyncio.sleep(10)
        assert "connection refused" in manager.health.ready["shards"]()
        fleet.envs["one"].gateway.meddle = None
        await asyncio.sleep(10)
        assert manager.health.ready["shards"]() == ""

    run(work)


@pytest.mark.parametrize("gate", [False, True])
def test_metrics_and_readiness_say_what_a_replica_holds_and_which_side_selects_it(*, gate: bool) -> None:
    async def work(fleet: Fleet) -> None:
        await fleet.start("one", "two")
        side = "the API server" if gate else "this process"
        for manager in fleet.managers.values():
            said = manager.health.notes["shards"]()
            assert said == f"6 of 12 slots; replicas: 2; {side} selects the objects of Shop"
            assert manager.registry is not None
            labels = {"name": "shops", "api_version": "example.com/v1", "kind": "Shop"}
            assert manager.registry.get_sample_value("ocf_sharded_by_server", labels) == int(gate)
        held = Counter[str]()
        for manager in fleet.managers.values():
            assert manager.registry is not None
            assert manager.registry.get_sample_value("ocf_replicas", {"name": "shops"}) == 2
            for slot in map(str, range(12)):
                value = manager.registry.get_sample_value("ocf_slot_held", {"name": "shops", "slot": slot})
                held[slot] += int(value or 0)
        assert held == dict.fromkeys(map(str, range(12)), 1)

    run(work, gate=gate)


@pytest.mark.parametrize(
    ("changed", "end"),
    [
        pytest.param(Sharding(slots=4), "stop", id="fewer slots"),
        pytest.param(Sharding(slots=4), "kill", id="fewer slots, and the former replicas are killed"),
        pytest.param(Sharding(slots=20), "stop", id="more slots"),
        pytest.param(Sharding(by="namespace", slots=12), "stop", id="by another field"),
        pytest.param(None, "stop", id="one leader"),
    ],
)
def test_a_rolling_update_that_changes_how_owners_are_divided_reconciles_none_twice_at_once(
    changed: Sharding | None, end: Literal["stop", "kill"]
) -> None:
    """The replicas of before and of after run at the same time; each owner is edited all the while."""

    async def work(fleet: Fleet) -> None:
        names = await create(fleet, 12)
        await fleet.start("old-1", "old-2")
        fleet.sharding = changed
        for number in (1, 2):
            await fleet.start(f"new-{number}")
            await edit_all(fleet, f"in step {number}")
            await asyncio.sleep(5)
            assert not fleet.names(f"new-{number}")
            await (fleet.stop if end == "stop" else fleet.kill)(f"old-{number}")
            await edit_all(fleet, f"after step {number}")
        await asyncio.sleep(2 * LEASE_TIME + 10)
        assert await mottos(fleet) == {"after step 2"}
        fleet.forget()
        await edit_all(fleet, "closed")
        await asyncio.sleep(20)
        fleet.check(names)
        assert await mottos(fleet) == {"closed"}

    run(work)


def test_sharding_without_a_lease_is_an_error() -> None:
    with pytest.raises(ConfigError, match="needs a lease"):
        ManagerOptions(sharding=Sharding())


def test_the_rights_are_those_of_leases_whose_names_are_not_known() -> None:
    options = ManagerOptions(lease=Lease("shops", "ops"), sharding=Sharding())
    rules = options.policy_rules()
    assert {(rule.verb, rule.name, rule.namespace) for rule in rules if rule.resource == "leases"} == {
        (verb, "", "ops") for verb in ("create", "delete", "get", "list", "update")
    }


def test_many_changes_of_the_slots_do_not_delay_the_lists_of_the_owners() -> None:
    """Each of them ends the watch of the owners, which is not a failure after which a cache waits longer."""

    async def work(fleet: Fleet) -> None:
        names = await create(fleet)
        await fleet.start("one")
        for number in range(8):
            await fleet.start(f"other-{number}")
            await fleet.stop(f"other-{number}")
        await asyncio.sleep(5)
        manager = fleet.managers["one"]
        assert manager.health.ready["watches"]() == ""
        fleet.forget()
        await edit_all(fleet, "closed")
        await asyncio.sleep(8)
        fleet.check(names)

    run(work)
