"""Replicas and their slots in virtual time: two never hold a slot at once, and in the end all slots are held evenly.

Public reports of what can go wrong: after a change of the replicas some objects have no replica
(https://github.com/argoproj/argo-cd/issues/24147), or replicas and the setting of their number differ
(https://github.com/argoproj/argo-cd/issues/26399), and a lease is reported as taken before it is written
(https://github.com/akkadotnet/Akka.Management/issues/3402).
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ocf.cluster import Cluster, Request
from ocf.concepts import Clock
from ocf.errors import ConfigError, ForbiddenError, LeaseLostError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.leader import Timing, lead
from ocf.runtime.sharding import Sharding
from ocf.runtime.sharding.membership import Membership
from ocf.runtime.sharding.slots import Slots
from ocf.testing import InterceptingCluster, LoopClock, VirtualClock, run_in_virtual_time
from ocf_server import EmbeddedCluster

LEASE: Final = Timing().lease.total_seconds()
LEASE_KEY: Final = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default")
SHARDING: Final = Sharding(slots=12)
FEWEST, MOST = 2, 10
"""Numbers of replicas."""


@dataclass
class SkewedClock:
    """A clock that is wrong by some seconds, and runs faster or slower than others by up to one percent."""

    skew: timedelta
    rate: float = 1.0

    def now(self) -> datetime:
        return LoopClock(skew=self.skew).now()

    def elapsed(self) -> timedelta:
        return LoopClock().elapsed() * self.rate + timedelta(days=1) + self.skew


class Link(InterceptingCluster):
    """The way of one replica to the API server: slow, sometimes with lost answers, sometimes cut."""

    def __init__(self, cluster: Cluster, chance: random.Random, *, lossy: bool = True) -> None:
        super().__init__(cluster)
        self.chance, self.lossy, self.cut = chance, lossy, False

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        del request
        await asyncio.sleep(self.chance.uniform(0, 0.1))
        if self.cut:
            raise ServerError("unreachable", code=503)
        answer = await send()
        if self.lossy and self.chance.random() < 0.02:
            raise ServerError("the answer is lost", code=504)
        await asyncio.sleep(self.chance.uniform(0, 0.1))
        return answer


@dataclass
class Replica:
    """One process: what it holds, and workers that are always busy in each of its slots."""

    name: str
    membership: Membership
    link: Link
    writes: Counter[int] = field(default_factory=Counter)
    refused: int = 0

    @property
    def slots(self) -> Slots:
        return self.membership.slots

    async def work(self, leave: asyncio.Event, oracle: Oracle) -> None:
        async with self.membership.joined() as slots, asyncio.TaskGroup() as workers:
            busy = [workers.create_task(self._work_in(slot, slots, oracle)) for slot in range(slots.sharding.slots)]
            await leave.wait()
            for task in busy:
                task.cancel()

    async def _work_in(self, slot: int, slots: Slots, oracle: Oracle) -> None:
        cluster = slots.fenced(oracle.target)
        while True:
            with suppress(LeaseLostError):
                async with slots.working(slot):
                    for _ in range(self.link.chance.randint(1, 20)):
                        try:
                            await cluster.create(note(f"{self.name}-{slot}"), field_manager="test")
                        except ForbiddenError:
                            self.refused += 1
                        else:
                            self.writes[slot] += 1
                            oracle.wrote(self, slot)
                        await asyncio.sleep(self.link.chance.uniform(0.05, 0.3))
            await asyncio.sleep(self.link.chance.uniform(0.05, 0.3))


class Sink(InterceptingCluster):
    """A cluster that takes every write and stores none."""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        del request, send
        return {}


def note(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


class Oracle:
    """Sees what every replica holds."""

    def __init__(self, cluster: EmbeddedCluster, sharding: Sharding) -> None:
        self.cluster, self.target, self.sharding = cluster, Sink(cluster), sharding
        self.replicas: dict[str, Replica] = {}
        self.overlaps: list[str] = []
        self.longest = 0.0
        """The longest time in seconds for which a slot had no holder, since `calm`."""
        self._held_at: dict[int, float] = {}
        self._started = 0

    def wrote(self, writer: Replica, slot: int) -> None:
        for other in self.replicas.values():
            if other is not writer and slot in other.slots.held:
                self.overlaps.append(f"{writer.name} wrote in slot {slot} of {other.name}")

    async def watch(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            holders = Counter(slot for each in self.replicas.values() for slot in each.slots.held)
            self.overlaps += [
                f"slot {slot} has {count} holders at {now}" for slot, count in holders.items() if count > 1
            ]
            for slot in holders:
                self.longest = max(self.longest, now - self._held_at.get(slot, 0.0))
                self._held_at[slot] = now
            await asyncio.sleep(0.1)

    def calm(self) -> None:
        self.longest = 0.0

    @property
    def held(self) -> dict[str, int]:
        return {each.name: len(each.slots.held) for each in self.replicas.values()}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Runner]:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self.watch())
            runner = Runner(self, tasks)
            yield runner
            for name in [*self.replicas]:
                runner.kill(name)
            watching.cancel()


class Runner:
    """Starts, stops and kills replicas."""

    def __init__(self, oracle: Oracle, tasks: asyncio.TaskGroup) -> None:
        self.oracle, self._tasks, self._started = oracle, tasks, 0
        self._running: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def start(self, *, lossy: bool = False, sharding: Sharding | None = None, seed: int = 0) -> str:
        self._started += 1
        name = f"replica-{self._started}"
        chance = random.Random(f"{seed} {name}")  # noqa: S311 (a schedule, no secret)
        clock = SkewedClock(timedelta(seconds=chance.uniform(-60, 60)), chance.uniform(0.99, 1.01))
        link = Link(self.oracle.cluster, chance, lossy=lossy)
        replica = Replica(name, member(link, name, clock, sharding or self.oracle.sharding, chance.random), link)
        leave = asyncio.Event()
        self.oracle.replicas[name] = replica
        self._running[name] = (self._tasks.create_task(replica.work(leave, self.oracle), name=name), leave)
        return name

    async def stop(self, name: str) -> None:
        """Stop a replica as a rolling update does; it is given up after a while if it does not end."""
        task, leave = self._running.pop(name)
        leave.set()
        await asyncio.wait([task], timeout=60)
        self.oracle.replicas.pop(name)
        task.cancel()

    def kill(self, name: str) -> None:
        """End a replica at once; none of its requests arrives any more."""
        task, _ = self._running.pop(name)
        self.oracle.replicas.pop(name).link.cut = True
        task.cancel()

    @property
    def names(self) -> list[str]:
        return [*self._running]


def member(
    cluster: Cluster,
    name: str,
    clock: Clock,
    sharding: Sharding = SHARDING,
    chance: Callable[[], float] = lambda: 0.5,
    *,
    timing: Timing = Timing(),  # noqa: B008 (a frozen value)
) -> Membership:
    return Membership(
        cluster,
        LEASE_KEY,
        name,
        sharding=sharding,
        timing=timing,
        clock=clock,
        random=chance,
    )


ACTIONS: Final = ("start", "stop", "kill", "cut", "restore", "delete", "roll")


async def act(what: str, runner: Runner, chance: random.Random, seed: int) -> None:
    """Do something to the replicas."""
    names = runner.names
    match what:
        case "start" if len(names) < MOST:
            runner.start(lossy=True, seed=seed)
        case "stop" if len(names) > FEWEST:
            await runner.stop(chance.choice(names))
        case "kill" if len(names) > FEWEST:
            runner.kill(chance.choice(names))
        case "cut" | "restore":
            runner.oracle.replicas[chance.choice(names)].link.cut = what == "cut"
        case "delete":
            await delete_some(runner.oracle.cluster, chance)
        case "roll":
            for name in names:
                runner.start(lossy=True, seed=seed)
                await runner.stop(name)


async def delete_some(cluster: EmbeddedCluster, chance: random.Random) -> None:
    """Delete some of the Leases, as a user may."""
    found = (await cluster.list("coordination.k8s.io/v1", "Lease")).items
    for lease in chance.sample(found, min(len(found), 3)):
        with suppress(NotFoundError):
            await cluster.delete(ObjectKey.of(lease))


@pytest.mark.promise(
    "one-replica-per-owner",
    runs="2 to 10 replicas: crashes, cuts, wrong clocks, lost answers, deleted Leases, rolling updates",
)
@settings(max_examples=8)
# The answer to a take is lost, and the share of the replica that the slot names is full.
@example(15, [("start", 0.0)] * 3)
@given(st.integers(0, 2**32), st.lists(st.tuples(st.sampled_from(ACTIONS), st.floats(0, 40)), min_size=3, max_size=12))
def test_two_replicas_never_hold_a_slot_and_all_slots_are_held_in_the_end(
    seed: int, schedule: list[tuple[str, float]]
) -> None:
    async def work() -> Oracle:
        chance = random.Random(seed)  # noqa: S311 (a schedule, no secret)
        oracle = Oracle(EmbeddedCluster(now=LoopClock().now), SHARDING)
        async with oracle.running() as runner:
            for _ in range(chance.randint(2, 5)):
                runner.start(lossy=True, seed=seed)
            await asyncio.sleep(20)
            for what, pause in schedule:
                await act(what, runner, chance, seed)
                await asyncio.sleep(pause)
            for each in oracle.replicas.values():
                each.link.cut = each.link.lossy = False
            await asyncio.sleep(4 * LEASE)
            counts = oracle.held
            assert sum(counts.values()) == SHARDING.slots, (
                counts,
                [r.membership.ready() for r in oracle.replicas.values()],
            )
            assert max(counts.values()) - min(counts.values()) <= 1
            assert sum(sum(each.writes.values()) for each in oracle.replicas.values()) > 0
        return oracle

    assert run_in_virtual_time(work()).overlaps == []


def test_a_crash_costs_the_slots_of_the_replica_the_duration_of_a_lease_at_most() -> None:
    async def work() -> list[float]:
        lost: list[float] = []
        for seed in range(6):
            oracle = Oracle(EmbeddedCluster(now=LoopClock().now), SHARDING)
            async with oracle.running() as runner:
                for _ in range(3):
                    runner.start(seed=seed)
                await asyncio.sleep(30 + seed / 3)
                oracle.calm()
                runner.kill(runner.names[seed % 3])
                await asyncio.sleep(2 * LEASE)
                assert sum(oracle.held.values()) == SHARDING.slots
                lost.append(oracle.longest)
        return lost

    # A request of the way takes up to 0.2 s, and taking the slots over takes three.
    assert max(run_in_virtual_time(work())) <= LEASE + 0.6


def test_a_replica_that_joins_moves_its_share_while_all_others_keep_the_rest() -> None:
    async def work() -> None:
        oracle = Oracle(EmbeddedCluster(now=LoopClock().now), SHARDING)
        async with oracle.running() as runner:
            first = runner.start()
            await asyncio.sleep(10)
            for number in (2, 3, 4):
                before = {name: each.slots.held for name, each in oracle.replicas.items()}
                runner.start()
                await asyncio.sleep(20)
                assert sorted(oracle.held.values()) == [SHARDING.slots // number] * number
                assert all(oracle.replicas[name].slots.held <= held for name, held in before.items())
            oracle.calm()
            await runner.stop(first)
            await asyncio.sleep(10)
            assert sorted(oracle.held.values()) == [4, 4, 4]
            # No replica waits for the end of a Lease that was given up.
            assert oracle.longest < LEASE / 2
        assert oracle.overlaps == []

    run_in_virtual_time(work())


async def taken(replica: Membership) -> None:
    """Wait until a replica that is alone holds all slots."""
    while len(replica.slots.held) < SHARDING.slots:
        await replica.slots.changed.wait()


def test_a_slot_is_given_up_when_its_work_has_ended() -> None:
    """The lease of the process is renewed for as long as that takes."""

    async def work() -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)
        one, two = member(cluster, "one", LoopClock()), member(cluster, "two", LoopClock())
        async with one.joined() as slots:
            await taken(one)
            async with two.joined() as others:
                async with asyncio.TaskGroup() as tasks:

                    async def keep_busy(slot: int) -> None:
                        async with slots.working(slot):
                            await asyncio.sleep(10 * LEASE)

                    for slot in range(SHARDING.slots):
                        tasks.create_task(keep_busy(slot))
                    await asyncio.sleep(9 * LEASE)
                    assert not others.held
                    leaving = slots.held - slots.accepted
                    assert len(leaving) == SHARDING.slots // 2
                    for slot in leaving:
                        with pytest.raises(LeaseLostError):
                            async with slots.working(slot):
                                pass
                await asyncio.sleep(5)
                assert others.held == leaving

    run_in_virtual_time(work())


def test_a_replica_that_ends_while_it_takes_slots_gives_them_up() -> None:
    async def work() -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)

        class Slow(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                del request
                answer = await send()
                await asyncio.sleep(0.1)
                return answer

        for tenths in range(12):
            replica = member(Slow(cluster), f"replica-{tenths}", LoopClock())
            async with replica.joined() as slots:
                await asyncio.sleep(tenths / 10)
            assert not slots.held
            found = (await cluster.list("coordination.k8s.io/v1", "Lease")).items
            assert not [each for each in found if each["spec"]["holderIdentity"].startswith("replica")]

    run_in_virtual_time(work())


def test_what_runs_in_a_lost_slot_is_cancelled_and_cannot_write() -> None:
    """Also what goes on after its cancellation, or was started by it."""

    async def work() -> None:
        chance = random.Random(1)  # noqa: S311 (a schedule, no secret)
        link = Link(EmbeddedCluster(now=LoopClock().now), chance, lossy=False)
        one = member(link, "one", LoopClock())
        cancelled = asyncio.Event()
        async with one.joined() as slots:
            await taken(one)
            cluster = slots.fenced(Sink(link))

            async def write() -> None:
                await cluster.create(note("a"), field_manager="test")

            async def ignore_the_end() -> None:
                async with slots.working(3):
                    await write()
                    link.cut = True
                    try:
                        await asyncio.sleep(10 * LEASE)
                    finally:
                        assert asyncio.get_running_loop().time() - began < LEASE
                        cancelled.set()
                        link.cut = False
                        # The process gets its lease, and maybe the slot, again; this work does not.
                        await asyncio.sleep(30)
                        assert slots.held
                        for attempt in (write(), asyncio.create_task(write())):
                            with pytest.raises(ForbiddenError):
                                await attempt

            began = asyncio.get_running_loop().time()
            with pytest.raises(LeaseLostError):
                await ignore_the_end()
            assert cancelled.is_set()
            async with slots.working(3):
                await write()

    run_in_virtual_time(work())


def test_a_process_that_was_paused_holds_nothing_of_before() -> None:
    """Its renewal may succeed at once, before anything else runs."""

    async def work() -> None:
        clock = VirtualClock()
        slots = Slots(SHARDING, LEASE_KEY, "one", clock)
        clock.advance(timedelta(seconds=1))
        slots.extend(clock.elapsed() + timedelta(seconds=10))
        slots.add(0, 1)
        clock.advance(timedelta(seconds=10))
        assert not slots.held
        assert slots.extend(clock.elapsed() + timedelta(seconds=10)) == 2
        assert not slots.held

    run_in_virtual_time(work())


def test_a_leader_and_replicas_that_divide_otherwise_wait_for_each_other() -> None:
    """A rolling update from one leader to several replicas, to other slots, and back."""

    async def work() -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)
        oracle, leading = Oracle(cluster, SHARDING), False

        async def operate(stop: asyncio.Event, started: asyncio.Event) -> None:
            nonlocal leading
            async with lead(cluster, "shops", namespace="default", identity="old", clock=LoopClock()):
                started.set()
                leading = True
                await stop.wait()
                leading = False

        async def watch() -> None:
            while True:
                modes = {each.slots.sharding for each in oracle.replicas.values() if each.slots.held}
                assert len(modes) + leading <= 1
                await asyncio.sleep(0.1)

        async with asyncio.TaskGroup() as tasks, oracle.running() as runner:
            watching = tasks.create_task(watch())
            for sharding in (SHARDING, Sharding(slots=12, by="namespace"), Sharding(slots=20)):
                stop, started = asyncio.Event(), asyncio.Event()
                old = tasks.create_task(operate(stop, started))
                await started.wait()
                names = [runner.start(sharding=sharding) for _ in range(2)]
                await asyncio.sleep(5 * LEASE)
                assert not any(oracle.held.values())
                stop.set()
                await old
                # More slots than before take as long as the death of a replica.
                await asyncio.sleep(LEASE + 10)
                assert sorted(oracle.held.values()) == [sharding.slots / 2] * 2
                others = [runner.start(sharding=Sharding(slots=sharding.slots + 1)) for _ in range(2)]
                await asyncio.sleep(5 * LEASE)
                assert not any(oracle.held[name] for name in others)
                # Those that wait have no share yet, so that none of the slots is without a holder.
                assert [oracle.held[name] for name in names] == [sharding.slots / 2] * 2
                for name in names:
                    await runner.stop(name)
                await asyncio.sleep(2 * LEASE + 5)
                assert sum(oracle.held.values()) == sharding.slots + 1
                for name in others:
                    await runner.stop(name)
            watching.cancel()

    run_in_virtual_time(work())


def slot_leases(leases: list[Manifest]) -> set[int]:
    names = [each["metadata"]["name"] for each in leases]
    return {int(name.rpartition("-")[2]) for name in names if name.startswith("shops-slot-")}


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize(("before", "after"), [(16, 4), (5, 1), (5, 5), (4, 8)])
def test_the_leases_of_slots_beyond_a_smaller_number_are_deleted_when_no_replica_has_the_former_one(
    caplog: pytest.LogCaptureFixture, before: int, after: int, end: str
) -> None:
    """Until then, replicas with the new number wait; the log and the readiness check name the lease they wait for."""
    caplog.set_level("INFO", "ocf.runtime.sharding")
    theirs, ours = (f'"{slots} slots by uid, 15/10/2 s"' for slots in (before, after))
    expected = f"waits: the lease {LEASE_KEY} is held by {theirs}, not by {ours}"

    async def work() -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)
        oracle = Oracle(cluster, Sharding(slots=before))

        async def present() -> set[int]:
            return slot_leases([*(await cluster.list("coordination.k8s.io/v1", "Lease")).items])

        # Of another operator, whose name begins with the same text.
        foreign = {"metadata": {"name": "shops-slot-99", "namespace": "default"}, "spec": {"holderIdentity": "other"}}
        await cluster.create({"apiVersion": LEASE_KEY[0], "kind": "Lease", **foreign}, field_manager="other")
        async with oracle.running() as runner:
            old = [runner.start() for _ in range(2)]
            await asyncio.sleep(30)
            assert await present() == {*range(before), 99}
            new = [runner.start(sharding=Sharding(slots=after)) for _ in range(2)]
            await asyncio.sleep(2 * LEASE)
            if before != after:
                assert not any(oracle.held[name] for name in new)
                described = {oracle.replicas[name].membership.describe() for name in new}
                assert described == {expected}
                assert [oracle.replicas[name].membership.ready() for name in new] == ["", ""]
                assert caplog.text.count(expected) == 2
            for name in old:
                if end == "stop":
                    await runner.stop(name)
                else:
                    runner.kill(name)
            await asyncio.sleep(3 * LEASE)
            assert await present() == {*range(after), 99}
            assert sorted(oracle.held.values()) == [after // 2, after - after // 2]
            (first, *_) = oracle.replicas.values()
            assert first.membership.describe() == f"{len(first.slots.held)} of {after} slots; replicas: 2"
        assert oracle.overlaps == []

    run_in_virtual_time(work())


def test_a_slot_is_not_taken_by_a_replica_that_waits_for_a_shorter_time_than_its_holder_holds_it() -> None:
    """After a change of `renew_deadline` or `retry_period`; the holder is cut off, and does not know that yet."""

    async def work(later: float) -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)
        second = timedelta(seconds=1)
        link = Link(cluster, random.Random(1), lossy=False)  # noqa: S311 (a schedule, no secret)
        one = member(link, "one", LoopClock(), timing=Timing(renew_deadline=12.5 * second, jitter=1))
        two = member(cluster, "two", LoopClock(), timing=Timing(retry_period=4.5 * second, jitter=1))
        async with one.joined() as slots:
            await taken(one)
            async with two.joined() as others:
                await asyncio.sleep(LEASE + later)
                link.cut = True
                for _ in range(20 * 10):
                    assert not slots.held & others.held
                    await asyncio.sleep(0.1)

    # How long after the last renewal the other replica sees it differs.
    for half in range(9):
        run_in_virtual_time(work(half / 2))


def test_slots_are_taken_although_some_requests_fail_each_time() -> None:
    class Busy(InterceptingCluster):
        """A cluster that rejects a part of the requests, as an API server that has too many."""

        sent = 0

        async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
            self.sent += "-slot-" in request.name
            if "-slot-" in request.name and self.sent % 5 == 0:
                raise ServerError("too many requests", code=429)
            return await send()

    async def work() -> None:
        cluster = Busy(EmbeddedCluster(now=LoopClock().now))
        replica = member(cluster, "one", LoopClock(), Sharding(slots=64))
        async with replica.joined() as slots:
            await asyncio.sleep(LEASE + 15)
            assert len(slots.held) == 64
            # None of them is written again and again.
            assert 64 < cluster.sent < 2.5 * 64

    run_in_virtual_time(work())


def test_the_leases_of_killed_replicas_do_not_stay() -> None:
    async def work() -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)
        oracle = Oracle(cluster, SHARDING)
        async with oracle.running() as runner:
            runner.start()
            for _ in range(3):
                killed = runner.start()
                await asyncio.sleep(10)
                runner.kill(killed)
            await asyncio.sleep(10 * LEASE)
            found = (await cluster.list("coordination.k8s.io/v1", "Lease")).items
            replicas = [each for each in found if "-replica-" in each["metadata"]["name"]]
            assert [each["spec"]["holderIdentity"] for each in replicas] == [*oracle.replicas]

    run_in_virtual_time(work())


def test_a_deleted_lease_of_a_slot_is_not_taken_from_its_holder() -> None:
    async def work() -> None:
        cluster = EmbeddedCluster(now=LoopClock().now)
        oracle = Oracle(cluster, SHARDING)
        async with oracle.running() as runner:
            for _ in range(3):
                runner.start()
            await asyncio.sleep(30)
            before = {name: each.slots.held for name, each in oracle.replicas.items()}
            for lease in (await cluster.list("coordination.k8s.io/v1", "Lease")).items:
                if "-slot-" in lease["metadata"]["name"] or "-replica-" in lease["metadata"]["name"]:
                    await cluster.delete(ObjectKey.of(lease))
            await asyncio.sleep(30)
            assert {name: each.slots.held for name, each in oracle.replicas.items()} == before
        assert oracle.overlaps == []

    run_in_virtual_time(work())


def test_a_lease_that_ends_too_soon_for_the_other_durations_is_an_error() -> None:
    with pytest.raises(ConfigError, match="lease > renew_deadline"):
        Membership(
            EmbeddedCluster(),
            LEASE_KEY,
            "one",
            sharding=SHARDING,
            timing=Timing(lease=timedelta(seconds=12)),
            clock=LoopClock(),
            random=random.random,
        )
