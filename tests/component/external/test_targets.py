"""Several targets of an external resource: each has its own outcome, record, limits, backoff and pause.

Public reports: https://github.com/kubernetes-sigs/controller-runtime/issues/631 (a delay for external systems),
https://github.com/kubernetes-sigs/controller-runtime/pull/3107 (reactive, without a flood),
https://github.com/grafana/grafana-operator/issues/2100 (an instance that is not ready is called again and again),
https://github.com/syself/cluster-api-provider-hetzner/issues/1757 (the rate limit of an external API).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from ocf import component
from ocf.cluster import InterceptingCluster, PatchOptions, PatchType
from ocf.component import Component, Reason
from ocf.concepts import GuardStatus, StatusReport
from ocf.errors import NotFoundError, ProviderUnavailableError, ServerError
from ocf.objects import ObjectKey
from ocf.primitives import external
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, RecordingCluster, run_in_virtual_time
from ocf_server import CustomKind, EmbeddedCluster
from tests.component.external.conftest import OWNER, Bucket, Buckets, Live, Shop, System
from tests.component.external.test_one_target import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ocf.cluster import Cluster, Request
    from ocf.objects import Manifest


class Busy(Buckets):
    """A client that counts the calls that are under way at each target."""

    def __init__(self, system: System) -> None:
        super().__init__(system)
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def read(self, identity: external.Identity) -> Live | None:
        self.now[identity.target] += 1
        self.most[identity.target] = max(self.most[identity.target], self.now[identity.target])
        try:
            return await super().read(identity)
        finally:
            self.now[identity.target] -= 1


class World:
    """An operator that runs in virtual time, and its owners."""

    def __init__(self, *targets: str) -> None:
        self.system = System()
        self.client = Busy(self.system)
        self.targets = targets
        self.registry = CollectorRegistry()
        self.cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town"])

    def declare(self, owner: Manifest) -> Component:
        name = owner["metadata"]["name"]
        made = component.Builder("web", owner=ObjectKey.of(owner))
        size = (owner.get("spec") or {}).get("size", 1)
        bucket = external.Builder(self.client, name=f"town-{name}", desired=Bucket(size=size))
        return made.with_resource(bucket.with_targets(*self.targets) if self.targets else bucket).build()

    @asynccontextmanager
    async def running(self, through: Cluster | None = None, **options: Any) -> AsyncIterator[None]:
        shops: Operator[Any] = Operator(
            name="shops", owner=OwnerType("example.com/v1", "Shop"), components=self.declare
        )
        self.registry = CollectorRegistry()
        given = ManagerOptions(listen=None, clock=LoopClock(), registry=self.registry, **options)
        async with running(through or self.cluster, shops, options=given):
            yield

    def metrics(self) -> dict[str, float]:
        samples = [one for family in self.registry.collect() for one in family.samples]
        named = [(one.name, ",".join(f'{key}="{value}"' for key, value in one.labels.items()), one) for one in samples]
        return {f"{name}{{{labels}}}": one.value for name, labels, one in named}

    async def create(self, number: int, *, first: int = 0) -> None:
        for at in range(first, number):
            shop = {
                "apiVersion": "example.com/v1",
                "kind": "Shop",
                "metadata": {"name": f"s{at}", "namespace": "town"},
                "spec": {},
            }
            await self.cluster.create(shop, field_manager="user")

    def at(self, target: str) -> int:
        return sum(place == target for place, _ in self.system.buckets)

    async def owner(self, name: str = "s0") -> Manifest:
        return await self.cluster.get(ObjectKey("example.com/v1", "Shop", name, "town"))

    async def ready(self, name: str = "s0") -> Manifest:
        conditions = (await self.owner(name))["status"]["conditions"]
        found: Manifest = next(one for one in conditions if one["type"] == "Ready")
        return found


@pytest.mark.parametrize(
    ("open_at", "made", "reason"),
    [
        pytest.param(["eu", "us"], ["eu", "us"], "Healthy", id="at each"),
        pytest.param(["us"], ["us"], "Blocked", id="at one"),
        pytest.param([], [], "Blocked", id="at none"),
    ],
)
def test_a_guard_with_an_argument_blocks_the_targets_for_which_it_says_so(
    open_at: list[str], made: list[str], reason: str
) -> None:
    async def check(shop: Shop) -> None:
        def ready_at(target: str) -> StatusReport[GuardStatus]:
            is_open = target in open_at
            return StatusReport(GuardStatus.UNBLOCKED if is_open else GuardStatus.BLOCKED, f"no folder at {target}")

        bucket = shop.builder().with_targets("eu", "us").with_guard(ready_at)
        declared = component.Builder("web", owner=OWNER).with_resource(bucket).build()
        shop.declare = lambda: declared
        condition = (await shop.result()).condition
        assert (sorted(target for target, _ in shop.system.buckets), condition.reason) == (made, reason)
        assert {call.partition("@")[2] for call in shop.system.calls} == {*made}
        missing = [one for one in ("eu", "us") if one not in made]
        assert all(f"no folder at {one}" in condition.message for one in missing[:1])

    run(check)


@pytest.mark.promise("external-targets")
def test_a_target_that_hangs_holds_up_neither_another_one_nor_a_worker() -> None:
    async def check() -> None:
        world = World("eu", "us")
        world.system.faults["*", "us"] = 3600.0
        async with world.running():
            await world.create(200)
            await asyncio.sleep(5)
            assert world.at("eu") == 200
            assert world.client.most["us"] == Buckets.max_calls
            await asyncio.sleep(120)
            # The pause of the target: one call at a time finds out whether it answers again.
            calls = world.system.calls.count("read@us")
            assert calls < 20
            shown = world.metrics()
            assert shown['ocf_external_target_healthy{target="eu"}'] == 1
            assert shown['ocf_external_target_healthy{target="us"}'] == 0
            assert shown['ocf_external_calls{target="us"}'] <= 1
            failing = await world.ready("s199")
            assert (failing["status"], failing["reason"]) == ("False", "Failing")
            assert "@us: no answer within 10 s" in failing["message"]
            assert "@eu" not in failing["message"]
            world.system.faults.clear()
            await asyncio.sleep(400)
            assert world.at("us") == 200
            assert {(await world.ready(f"s{at}"))["status"] for at in range(200)} == {"True"}
            assert set(world.system.created.values()) == {1}

    run_in_virtual_time(check())


@pytest.mark.parametrize(("hours", "shown"), [(1.9, {"eu": 1, "us": 0}), (2.1, {})])
def test_a_target_that_nothing_needs_any_more_is_not_reported_as_failing_for_ever(
    hours: float, shown: dict[str, int]
) -> None:
    """An alert fired for ever: https://github.com/external-secrets/external-secrets/issues/2542."""

    async def check() -> None:
        world = World("eu", "us")
        world.system.faults["*", "us"] = ServerError("down")
        async with world.running():
            await world.create(1)
            await asyncio.sleep(60)
            await world.cluster.patch(
                ObjectKey("example.com/v1", "Shop", "s0", "town"),
                {"metadata": {"annotations": {"shops.ocf.dev/paused": "true"}}},
                PatchOptions(patch_type=PatchType.MERGE, field_manager="user"),
            )
            await asyncio.sleep(hours * 3600)
            name = "ocf_external_target_healthy"
            found = {one: world.metrics().get(f'{name}{{target="{one}"}}') for one in ("eu", "us")}
            assert {one: value for one, value in found.items() if value is not None} == shown

    run_in_virtual_time(check())


def test_a_retry_after_holds_for_all_resources_of_the_target_and_no_other_one() -> None:
    async def check() -> None:
        world = World("eu", "us")
        world.system.faults["apply", "us"] = ProviderUnavailableError("too many requests", retry_after=100)
        async with world.running():
            await world.create(1)
            await asyncio.sleep(1)
            world.system.faults.clear()
            await world.create(20, first=1)
            for at in range(1, 20):
                live = await world.owner(f"s{at}")
                live["spec"] = {"size": 2}
                await world.cluster.update(live, field_manager="user")
            await asyncio.sleep(98)
            assert (world.at("eu"), world.at("us")) == (20, 0)
            await asyncio.sleep(60)
            assert world.at("us") == 20

    run_in_virtual_time(check())


def test_events_of_the_owner_do_not_bypass_the_backoff() -> None:
    async def check() -> None:
        world = World()
        world.system.faults["*", ""] = ProviderUnavailableError("it is down")
        async with world.running():
            await world.create(1)
            for count in range(55):
                live = await world.owner()
                live["metadata"].setdefault("annotations", {})["touched"] = str(count)
                await world.cluster.update(live, field_manager="user")
                await asyncio.sleep(1)
            assert len(world.system.calls) <= 7

    run_in_virtual_time(check())


def test_a_slow_answer_is_taken_as_soon_as_it_is_there() -> None:
    async def check() -> None:
        world = World()
        world.system.faults["read", ""] = 3.0
        world.system.faults["apply", ""] = 3.0
        async with world.running():
            await world.create(1)
            await asyncio.sleep(4)
            assert (await world.ready())["reason"] == "Creating"
            await asyncio.sleep(3)
            assert (await world.ready())["status"] == "True"
            assert world.system.calls == ["read", "apply"]
            await world.cluster.delete(ObjectKey("example.com/v1", "Shop", "s0", "town"))
            await asyncio.sleep(10)
            assert not world.system.buckets
            with pytest.raises(NotFoundError):
                await world.owner()

    run_in_virtual_time(check())


def test_a_slow_read_of_what_is_in_sync_changes_no_condition() -> None:
    async def check() -> None:
        world = World()
        async with world.running():
            await world.create(1)
            await asyncio.sleep(5)
            world.system.faults["read", ""] = 5.0
            before = (await world.owner())["metadata"]["resourceVersion"]
            await asyncio.sleep(1300)
            assert world.system.calls.count("read") >= 3
            assert (await world.owner())["metadata"]["resourceVersion"] == before

    run_in_virtual_time(check())


def test_a_failure_that_goes_on_writes_the_status_once() -> None:
    async def check() -> None:
        world = World()
        async with world.running():
            await world.create(3)
            await asyncio.sleep(5)
            world.system.faults["*", ""] = 3600.0
            await asyncio.sleep(1300)
            before = world.cluster.resource_version
            assert (await world.ready())["reason"] == "Failing"
            calls = len(world.system.calls)
            await asyncio.sleep(1800)
            assert world.cluster.resource_version == before
            # A call in five minutes.
            assert 4 <= len(world.system.calls) - calls <= 12

    run_in_virtual_time(check())


def test_an_owner_is_deleted_while_it_is_created() -> None:
    async def check() -> None:
        world = World("eu", "us")
        world.system.faults["apply", "us"] = 5.0
        async with world.running():
            await world.create(1)
            await asyncio.sleep(1)
            await world.cluster.delete(ObjectKey("example.com/v1", "Shop", "s0", "town"))
            await asyncio.sleep(2)
            assert world.at("eu") == 0
            await asyncio.sleep(30)
            assert not world.system.buckets
            with pytest.raises(NotFoundError):
                await world.owner()

    run_in_virtual_time(check())


@pytest.mark.parametrize("most", [1, 2, 8])
def test_reads_of_many_owners_do_not_keep_each_other_from_what_follows(most: int) -> None:
    """A round of reads takes longer than a call may take; what was read before is applied nevertheless."""

    async def check() -> None:
        world = World()
        world.client.max_calls, world.client.time_limit = most, timedelta(seconds=1)
        world.system.faults["read", ""] = world.system.faults["apply", ""] = 0.3
        async with world.running():
            await world.create(24)
            await asyncio.sleep(1)
            shown = (await world.cluster.list("example.com/v1", "Shop")).items
            messages = [one["message"] for shop in shown for one in (shop.get("status") or {}).get("conditions", ())]
            assert messages
            assert not [text for text in messages if text.endswith(": ")]
            await asyncio.sleep(40)
            assert world.at("") == 24
            assert world.client.most[""] <= most
        assert max(world.system.created.values()) == 1

    run_in_virtual_time(check())


def test_no_call_outlives_the_operator() -> None:
    async def check() -> None:
        world = World()
        world.system.faults["apply", ""] = 5.0
        async with world.running():
            await world.create(1)
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        assert not world.system.buckets
        # The record is there, so the next process goes on.
        world.system.faults.clear()
        async with world.running():
            await asyncio.sleep(10)
            assert world.at("") == 1

    run_in_virtual_time(check())


def test_many_owners_of_a_slow_target_cost_a_few_reconciles_each_and_finish() -> None:
    """However many wait: each is woken when it is its turn, and does not ask all the time whether it is."""
    reconciles: Counter[str] = Counter()

    class Counting(World):
        def declare(self, owner: Manifest) -> Component:
            reconciles[owner["metadata"]["name"]] += 1
            return super().declare(owner)

    async def check() -> None:
        world = Counting()
        world.system.faults["read", ""] = world.system.faults["apply", ""] = 4.0
        async with world.running():
            await world.create(120)
            # Two calls of each, eight at once, take 120 s.
            await asyncio.sleep(160)
            assert world.at("") == 120
            assert {(await world.ready(f"s{at}"))["status"] for at in range(120)} == {"True"}
        assert world.system.created.total() == 120
        assert reconciles.total() < 8 * 120

    run_in_virtual_time(check())


class Stubborn(System):
    """A system whose client catches the cancellation of some calls, until they are released."""

    verbs: frozenset[str] = frozenset()

    async def call(self, verb: str, target: str) -> None:
        await super().call(verb, target)
        while verb in self.verbs and target != "eu":
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)


@pytest.mark.parametrize("verb", ["read", "apply", "delete"])
def test_a_call_that_ignores_its_cancellation_does_not_hold_the_end_of_the_operator(
    verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        world = World()
        world.client.system = world.system = system = Stubborn()
        async with world.running():
            if verb == "delete":
                await world.create(1)
                await asyncio.sleep(5)
            system.verbs = frozenset({verb})
            if verb == "delete":
                await world.cluster.delete(ObjectKey("example.com/v1", "Shop", "s0", "town"))
            else:
                await world.create(1)
            await asyncio.sleep(1)
            assert system.calls[-1] == verb
            ending = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - ending < 5
        assert f"Busy.{verb} of external/Bucket/town-s0 goes on after its cancellation" in caplog.text
        system.verbs = frozenset()
        await asyncio.sleep(5)
        # The next process goes on, and what the former one has left behind disturbs it not.
        caplog.clear()
        async with world.running():
            await asyncio.sleep(10)
            assert world.at("") == (0 if verb == "delete" else 1)
        assert system.created.total() == 1
        assert not caplog.text

    run_in_virtual_time(check())


def test_a_call_that_goes_on_after_a_lost_lease_is_not_made_again_by_the_same_process() -> None:
    class Cut(InterceptingCluster):
        is_cut = False

        async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
            if self.is_cut and request.kind == "Lease":
                raise ServerError("no connection")
            return await send()

    async def check() -> None:
        world = World()
        world.client.system = world.system = system = Stubborn()
        system.verbs = frozenset({"apply"})
        network = Cut(world.cluster)
        async with world.running(network, lease=Lease("shops", "town")):
            await world.create(1)
            await asyncio.sleep(30)
            network.is_cut = True
            await asyncio.sleep(60)
            network.is_cut = False
            await asyncio.sleep(120)
            assert "Busy.apply goes on" in (await world.ready())["message"]
            assert system.calls.count("apply") == 1
            system.verbs = frozenset()
            await asyncio.sleep(60)
            assert (await world.ready())["status"] == "True"
            assert system.created.total() == 1

    run_in_virtual_time(check())


def test_a_call_that_goes_on_after_its_time_limit_is_a_failure_that_names_it() -> None:
    async def check() -> None:
        world = World("eu", "us")
        world.client.system = world.system = system = Stubborn()
        system.verbs = frozenset({"apply"})
        async with world.running():
            await world.create(1)
            await asyncio.sleep(9)
            assert (await world.ready())["reason"] == "Creating"
            await asyncio.sleep(20)
            shown = await world.ready()
            problem = "goes on after its time limit of 10 s: the client must not catch CancelledError"
            assert (shown["reason"], shown["message"]) == (
                "Failing",
                f"external/Bucket/town-s0@us: Busy.apply {problem}",
            )
            assert world.at("eu") == 1
            version = world.cluster.resource_version
            await asyncio.sleep(600)
            assert (world.cluster.resource_version, system.calls.count("apply@us")) == (version, 1)
            system.verbs = frozenset()
            await asyncio.sleep(60)
            assert (await world.ready())["status"] == "True"
            assert set(system.created.values()) == {1}

    run_in_virtual_time(check())


def test_the_records_of_all_targets_are_one_write() -> None:
    async def check(shop: Shop) -> None:
        targets = [f"t{number}" for number in range(10)]
        shop.declare = lambda: (
            component.Builder("web", owner=OWNER).with_resource(shop.builder().with_targets(*targets)).build()
        )
        through = RecordingCluster(shop.cluster)
        await shop.reconcile(through)
        # The records, the ids that the system has given, and the end of the reconcile.
        assert sum(one.subresource == "status" for one in through.writes) <= 5
        assert {one["applied"] != "" and one["id"] != "" for one in (await shop.records()).values()} == {True}
        through.requests.clear()
        await shop.reconcile(through)
        assert not through.writes
        assert len(shop.system.calls) == 20

    run(check)


def test_a_target_that_leaves_loses_the_resource_and_the_last_one_may_leave() -> None:
    async def check(shop: Shop) -> None:
        targets = ["eu", "us"]
        shop.declare = lambda: (
            component.Builder("web", owner=OWNER).with_resource(shop.builder().with_targets(*targets)).build()
        )
        result = await shop.result()
        assert [one.resource for one in result.outcomes] == [
            "external/Bucket/town-corner@eu",
            "external/Bucket/town-corner@us",
        ]
        for left in (["eu"], []):
            targets[:] = left
            await shop.reconcile()
            assert [place for place, _ in shop.system.buckets] == left
            assert len(await shop.records()) == len(left)

    run(check)


def test_a_target_that_cannot_be_called_keeps_its_record_until_it_can() -> None:
    async def check(shop: Shop) -> None:
        targets = ["eu", "us"]
        shop.declare = lambda: (
            component.Builder("web", owner=OWNER).with_resource(shop.builder().with_targets(*targets)).build()
        )
        await shop.reconcile()
        targets.remove("us")
        shop.system.faults["*", "us"] = ConnectionError()
        result = await shop.result()
        assert "external/Bucket/town-corner@us: no connection" in result.condition.message
        assert set(await shop.records()) == {"Bucket/town-corner@eu", "Bucket/town-corner@us"}
        shop.system.faults.clear()
        shop.wait(60)
        assert (await shop.result()).condition.status
        assert [place for place, _ in shop.system.buckets] == ["eu"]

    run(check)


def test_each_target_fails_alone_and_what_comes_after_goes_on() -> None:
    async def check(shop: Shop) -> None:
        shop.system.buckets["eu", "old"] = Live(id="old", key="another", size=7, labels={})
        shop.system.names["eu", "town-corner"] = "old"
        shop.system.faults["*", "us"] = TimeoutError()
        shop.declare = lambda: (
            component.Builder("web", owner=OWNER)
            .with_resource(shop.builder().with_targets("eu", "us", "asia"))
            .with_resource(shop.builder(name="after"))
            .build()
        )
        result = await shop.result()
        assert "made for another owner" in result.condition.message
        assert "@us: no answer" in result.condition.message
        assert {place for place, _ in shop.system.buckets} == {"eu", "asia", ""}
        assert result.requeue_after is not None
        assert result.requeue_after <= timedelta(seconds=10)

    run(check)


@pytest.mark.parametrize(("failing", "reason"), [(["us"], Reason.DEGRADED), (["eu", "us"], Reason.DOWN)])
def test_after_the_grace_period_a_resource_that_is_ready_somewhere_is_degraded(
    failing: list[str], reason: Reason
) -> None:
    async def check(shop: Shop) -> None:
        shop.system.faults = {("*", target): ConnectionError() for target in failing}
        shop.declare = lambda: (
            component.Builder("web", owner=OWNER)
            .with_resource(shop.builder().with_targets("eu", "us"))
            .with_grace_period(timedelta(minutes=1))
            .build()
        )
        await shop.reconcile()
        shop.wait(62)
        result = await shop.result()
        assert result.condition.reason is reason
        assert "no connection: ConnectionError" in result.condition.message

    run(check)
