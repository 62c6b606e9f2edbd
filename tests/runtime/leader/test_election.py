"""Leader election in virtual time: when a term starts and ends, and that terms never overlap."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, Request, Verb
from ocf.concepts import Clock
from ocf.errors import ConfigError, ForbiddenError, LeaseLostError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.leader import Timing, lead
from ocf.testing import FaultyCluster, InterceptingCluster, faults
from ocf_server import EmbeddedCluster

LEASE: Final = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default")
HANDOVERS: Final = 200

Run = Callable[[Any], Any]
NewClock = Callable[..., Clock]


def now() -> float:
    return asyncio.get_running_loop().time()


class Link(InterceptingCluster):
    """The connection of one process to the cluster: it can be cut, be slow, and lose responses."""

    def __init__(self, cluster: Cluster, chance: random.Random | None = None) -> None:
        super().__init__(cluster)
        self.cut = False
        self.silent = False
        self._chance = chance

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if self._chance is not None:
            await asyncio.sleep(self._chance.uniform(0, 0.8))
        if self.silent:
            await asyncio.sleep(3600)
        if self.cut:
            raise ServerError("no answer")
        answer = await send()
        if self._chance is not None and not request.verb.is_read and self._chance.random() < 0.05:
            raise ServerError("the answer was lost")
        return answer


async def spec(cluster: Cluster) -> Manifest:
    found: Manifest = (await cluster.get(LEASE))["spec"]
    return found


def leading(cluster: Cluster, identity: str, clock: Clock, **more: Any) -> Any:
    return lead(cluster, "shops", namespace="default", identity=identity, clock=clock, random=lambda: 0.5, **more)


def test_the_first_candidate_leads_at_once_and_releases_the_lease(run: Run, new_clock: NewClock) -> None:
    async def work() -> None:
        cluster = EmbeddedCluster()
        async with leading(cluster, "one", new_clock()) as leadership:
            assert (leadership.identity, now()) == ("one", 0)
            held = await spec(cluster)
        assert (held["holderIdentity"], held["leaseDurationSeconds"], held["leaseTransitions"]) == ("one", 15, 0)

        async with leading(cluster, "two", new_clock()):
            assert now() == 0
            held = await spec(cluster)
        assert (held["holderIdentity"], held["leaseTransitions"]) == ("two", 1)
        assert (await spec(cluster))["holderIdentity"] == ""

    run(work())


def test_a_leader_renews_the_lease(run: Run, new_clock: NewClock) -> None:
    async def work() -> None:
        cluster = EmbeddedCluster()
        async with leading(cluster, "one", new_clock()):
            taken = await spec(cluster)
            await asyncio.sleep(3601)
            held = await spec(cluster)
        assert held["acquireTime"] == taken["acquireTime"] == "2026-01-01T12:00:00.000000Z"
        assert held["renewTime"] == "2026-01-01T13:00:00.000000Z"

    run(work())


def test_a_new_leader_follows_when_the_lease_of_a_dead_one_expires(run: Run, new_clock: NewClock) -> None:
    """The candidate measures on its own clock, from when it first saw the lease."""

    async def follow() -> tuple[float, float]:
        cluster = EmbeddedCluster()
        link = Link(cluster)
        died: list[float] = []

        async def first() -> None:
            async with leading(link, "one", new_clock(timedelta(seconds=5))):
                link.cut = True
                try:
                    await asyncio.sleep(3600)
                finally:
                    died.append(now())

        task = asyncio.create_task(first())
        await asyncio.sleep(1)
        async with leading(cluster, "two", new_clock(timedelta(seconds=-5))):
            followed = now()
        with suppress(LeaseLostError):
            await task
        return died[0], followed

    died, followed = run(follow())
    assert died == pytest.approx(10)
    assert followed == pytest.approx(16)


@pytest.mark.parametrize("way", ["cut", "silent"])
def test_the_work_ends_at_the_renew_deadline(run: Run, new_clock: NewClock, way: str) -> None:
    """Whether the cluster returns errors or does not respond; nothing is written to it from then on."""

    async def work() -> tuple[float, float]:
        link = Link(EmbeddedCluster())
        refused = 0.0
        begun = now()
        with pytest.raises(LeaseLostError, match="could not be renewed in time"):  # noqa: PT012 (the block is cancelled)
            async with leading(link, "one", new_clock()) as leadership:
                setattr(link, way, True)
                try:
                    await asyncio.sleep(3600)
                finally:
                    refused = now() - begun
                    with pytest.raises(ForbiddenError, match="lost"):
                        await leadership.cluster.delete(LEASE)
        return refused, now() - begun

    refused, ended = run(work())
    assert refused == ended == pytest.approx(10)


def test_a_blocked_loop_writes_nothing_after_the_deadline(run: Run, new_clock: NewClock) -> None:
    """The cancellation has not been delivered yet, but the lease has expired."""

    class Held:
        late = timedelta(0)

        def __init__(self) -> None:
            self._clock = new_clock()

        def now(self) -> Any:
            return self._clock.now()

        def elapsed(self) -> timedelta:
            return self._clock.elapsed() + self.late

    async def work() -> None:
        clock = Held()
        async with leading(EmbeddedCluster(), "one", clock) as leadership:
            shop = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
            live = await leadership.cluster.create(shop, field_manager="test")
            clock.late = timedelta(seconds=10)
            for write in (
                leadership.cluster.create(shop, field_manager="test"),
                leadership.cluster.update(live, field_manager="test"),
                leadership.cluster.apply(shop, field_manager="test"),
                leadership.cluster.delete(ObjectKey.of(shop)),
            ):
                with pytest.raises(ForbiddenError, match="lease default/shops is lost"):
                    await write
            assert await leadership.cluster.get(ObjectKey.of(shop)) == live

    run(work())


def test_a_lease_taken_by_another_process_ends_the_work_at_once(run: Run, new_clock: NewClock) -> None:
    async def work() -> float:
        cluster = EmbeddedCluster()
        with pytest.raises(LeaseLostError, match="another holds it"):  # noqa: PT012 (the block is cancelled)
            async with leading(cluster, "one", new_clock()):
                lease = await cluster.get(LEASE)
                lease["spec"]["holderIdentity"] = "another"
                await cluster.update(lease, field_manager="kubectl")
                await asyncio.sleep(3600)
        assert (await spec(cluster))["holderIdentity"] == "another"
        return now()

    assert run(work()) == pytest.approx(2)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faults.server_error(503, first=2, times=3), id="errors"),
        pytest.param(faults.timeout(first=2, times=3), id="requests that are lost"),
        pytest.param(faults.conflict(kind="Lease", first=2, times=2), id="conflicts"),
        pytest.param(faults.lost_reply(verbs=[Verb.UPDATE], first=1, times=2), id="answers that are lost"),
        pytest.param(faults.lost_reply(verbs=[Verb.CREATE]), id="an answer that is lost at first"),
        pytest.param(faults.too_many_requests(first=1, times=2), id="too many requests"),
    ],
)
def test_single_failures_do_not_end_the_work(run: Run, new_clock: NewClock, fault: faults.Fault) -> None:
    async def work() -> None:
        cluster = FaultyCluster(EmbeddedCluster(), [fault])
        async with leading(cluster, "one", new_clock()):
            await asyncio.sleep(100)
            held = await spec(cluster)
        assert (held["holderIdentity"], held["leaseTransitions"]) == ("one", 0)
        cluster.assert_all_injected()

    run(work())


def test_an_error_of_the_work_releases_the_lease(run: Run, new_clock: NewClock) -> None:
    """Also a `TimeoutError`, which must not be taken for the end of the lease."""

    async def work() -> None:
        cluster = EmbeddedCluster()
        with pytest.raises(TimeoutError, match="of the work"):
            async with leading(cluster, "one", new_clock()):
                raise TimeoutError("of the work")
        assert (await spec(cluster))["holderIdentity"] == ""

    run(work())


def test_cancellation_releases_the_lease(run: Run, new_clock: NewClock) -> None:
    async def work() -> None:
        cluster = EmbeddedCluster()

        async def operate() -> None:
            async with leading(cluster, "one", new_clock()):
                await asyncio.sleep(3600)

        task = asyncio.create_task(operate())
        await asyncio.sleep(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await spec(cluster))["holderIdentity"] == ""

    run(work())


@dataclass
class Oracle:
    """Records the running leaders, and the writes of each."""

    working: set[str] = field(default_factory=set)
    terms: int = 0
    overlaps: int = 0
    writes: int = 0

    def begin(self, identity: str) -> None:
        self.overlaps += bool(self.working)
        self.working.add(identity)
        self.terms += 1

    def write(self, identity: str) -> None:
        self.overlaps += self.working != {identity}
        self.writes += 1

    def end(self, identity: str) -> None:
        self.working.discard(identity)


async def operate(link: Link, identity: str, clock: Clock, oracle: Oracle, chance: random.Random) -> None:
    """Lead repeatedly, and end each term in another way: release, error, or lost connection."""
    while oracle.terms < HANDOVERS:
        with suppress(LeaseLostError, ZeroDivisionError):
            async with lead(link, "shops", namespace="default", identity=identity, clock=clock, random=chance.random):
                oracle.begin(identity)
                try:
                    await term(link, identity, oracle, chance)
                finally:
                    oracle.end(identity)
        await asyncio.sleep(chance.uniform(5, 30))
        link.cut = link.silent = False


async def term(link: Link, identity: str, oracle: Oracle, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 40)):
        await asyncio.sleep(0.5)
        oracle.write(identity)
    match chance.randrange(4):
        case 0:
            raise ZeroDivisionError
        case 1:
            link.cut = True
        case 2:
            link.silent = True
        case _:
            return
    while True:
        await asyncio.sleep(0.1)
        oracle.write(identity)


@pytest.mark.promise(
    "one-leader", runs="200 terms of three processes: wrong clocks, slow requests, lost answers, partitions"
)
def test_two_never_lead_at_once(run: Run, new_clock: NewClock) -> None:
    """Clocks with 5 seconds of offset, slow requests, lost responses, partitions: 200 terms, and none overlap."""

    async def work() -> Oracle:
        cluster, oracle = EmbeddedCluster(), Oracle()
        async with asyncio.TaskGroup() as group:
            for number, skew in enumerate((-5, 0, 5)):
                chance = random.Random(number)  # noqa: S311 (a schedule, no secret)
                link = Link(cluster, chance)
                clock = new_clock(timedelta(seconds=skew))
                group.create_task(operate(link, f"operator-{number}", clock, oracle, chance))
        return oracle

    oracle = run(work())

    assert oracle.terms >= HANDOVERS
    assert oracle.writes > 1000
    assert oracle.overlaps == 0


def test_a_leader_whose_lease_is_deleted_writes_it_again(run: Run, new_clock: NewClock) -> None:
    """The API server would create it by an update, and rejects the version of the deleted one."""

    async def work() -> None:
        cluster = EmbeddedCluster()
        async with lead(cluster, LEASE.name, namespace=LEASE.namespace, identity="one", clock=new_clock()) as leader:
            for _ in range(3):
                await cluster.delete(LEASE)
                await asyncio.sleep(5)
                assert (await cluster.get(LEASE))["spec"]["holderIdentity"] == leader.identity
            await asyncio.sleep(60)

    run(work())


class TestTiming:
    @pytest.mark.parametrize(
        "wrong",
        [
            pytest.param({"renew_deadline": timedelta(seconds=15)}, id="deadline as long as the lease"),
            pytest.param({"retry_period": timedelta(seconds=5)}, id="no time for a second attempt"),
            pytest.param({"retry_period": timedelta(0)}, id="no period"),
            pytest.param({"jitter": -1.0}, id="negative jitter"),
            pytest.param({"lease": timedelta(seconds=15.5)}, id="half seconds"),
        ],
    )
    def test_durations_that_do_not_decrease_are_rejected(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ConfigError):
            Timing(**wrong)
