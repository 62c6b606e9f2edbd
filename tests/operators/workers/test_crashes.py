"""The operators of workers, disturbed at each write and at each call of a scheduler: the same end, nothing twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.errors import ApiError, NotFoundError
from ocf.testing import OwnerEnv, VirtualClock, crash_at_each_write, disturbed_call, roll_out
from ocf.testing.simulated_process import Disturbance
from ocf_server import EmbeddedCluster
from tests.operators.workers.scheduler import SCHEDULERS, SchedulerError
from tests.operators.workers.world import KINDS, FakeSchedulers, World, operators, unconnected
from tests.requirements import Sampled

T = TypeVar("T")

THREE: Final = ["main-a-0", "main-a-1", "main-a-2"]
STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="kubelet", subresource=Subresource.STATUS)
OTHERS: Final = (Disturbance.CRASH_BEFORE, Disturbance.LOST_REPLY, Disturbance.REJECTED, Disturbance.CONFLICT)
MOST: Final = 16


@dataclass(frozen=True)
class DisturbedSchedulers:
    """The schedulers as one process asks them, which may crash then; what is polled changes nothing.

    Args:
        cluster: That of the process.
    """

    cluster: Cluster
    inner: FakeSchedulers

    async def choose(self, _cluster: str, _namespace: str, workers: Sequence[str]) -> str:
        async def send() -> str:
            return self.inner.choose([*workers])

        return await self._sent("choose", send)

    async def retire(self, _cluster: str, _namespace: str, workers: Sequence[str]) -> None:
        async def send() -> None:
            self.inner.retired.update(workers)

        await self._sent("retire", send)

    async def desired(self, cluster: str, _namespace: str) -> int:
        return self.inner.wanted.get(cluster, 0)

    async def _sent(self, name: str, send: Callable[[], Awaitable[T]]) -> T:
        try:
            return await disturbed_call(self.cluster, name, send)
        except ApiError as error:
            raise SchedulerError("no answer") from error


Step = Callable[[World], Awaitable[None]]


@dataclass
class Lives:
    """Worlds that begin alike, and whatever becomes of them.

    Args:
        steps: What users and workers do, each once the operators are at rest; the last one begins the life that is
            disturbed.
        same: Whether each question has the same answer.
    """

    steps: Sequence[Step]
    same: bool = True
    clock: VirtualClock = field(default_factory=VirtualClock)
    worlds: list[World] = field(default_factory=list)
    _first: World | None = None

    async def make(self) -> EmbeddedCluster:
        """Return a cluster in its first state."""
        if self._first is None:
            self._first = await self._at_rest()
        assert isinstance(self._first.cluster, EmbeddedCluster)
        made = self._first.cluster.clone()
        world = World(made, schedulers=FakeSchedulers(dict(self._first.schedulers.wanted), same=self.same))
        self.worlds.append(world)
        await self.steps[-1](world)
        return made

    async def reconcile(self, cluster: Cluster) -> timedelta | None:
        """Reconcile all owners once, as a process does that remembers nothing."""
        return await self._reconcile(self.worlds[-1], cluster)

    async def work(self, cluster: Cluster) -> None:
        """Report all workloads as rolled out."""
        await roll_out(cluster)

    async def _reconcile(self, world: World, cluster: Cluster) -> timedelta | None:
        first, *others = operators(unconnected)
        env = OwnerEnv(first, world.key("ComputeRun", "night"), cluster, self.clock, others=others)
        env.values[SCHEDULERS] = DisturbedSchedulers(cluster, world.schedulers)
        return await env.reconcile()

    async def _at_rest(self) -> World:
        cluster = EmbeddedCluster(namespaces=["town"], now=self.clock.now)
        for kind in KINDS:
            await cluster.apply(kind.definition(), field_manager="user")
        world = World(cluster, schedulers=FakeSchedulers(same=self.same))
        for step in self.steps[:-1]:
            await step(world)
            for _ in range(12):
                await self._reconcile(world, cluster)
                await self.work(cluster)
                self.clock.advance(timedelta(seconds=10))
        world.schedulers.forget()
        return world


async def create(world: World) -> None:
    await world.cluster_of(a=3)


async def shrink(world: World) -> None:
    await world.regroup(a=1)


async def grow(world: World) -> None:
    await world.regroup(a=4, b=1)


async def scale(world: World) -> None:
    world.schedulers.wanted["main"] = 5
    await world.scaler_of(downAfterSeconds=20)


async def want_less(world: World) -> None:
    world.schedulers.wanted["main"] = 1


async def unscale(world: World) -> None:
    await world.cluster.delete(world.key("GroupScaler", "main-a"))


async def run(world: World) -> None:
    await world.run()


async def succeed(world: World) -> None:
    await world.cluster.patch(world.key("Pod", "night-runner"), {"status": {"phase": "Succeeded"}}, STATUS)


async def lose(world: World) -> None:
    await world.cluster.delete(world.key("Pod", "night-runner"))


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("steps", "workers"),
    [
        pytest.param([create], THREE, id="creation"),
        pytest.param([create, grow], [*THREE, "main-a-3", "main-b-0"], id="growth"),
        pytest.param([create, shrink], ["main-a-2"], id="fewer workers"),
        pytest.param([create, scale], [*THREE, "main-a-3", "main-a-4"], id="scaled up"),
        pytest.param([create, scale, want_less], ["main-a-4"], id="scaled down"),
        pytest.param([create, scale, unscale], ["main-a-3", "main-a-4", "main-a-2"], id="no scaler any more"),
        pytest.param([run], ["night-a-0", "night-a-1"], id="a run"),
        pytest.param([run, succeed], [], id="the end of a run"),
        pytest.param([run, lose], [], id="a runner that is lost"),
    ],
)
async def test_the_end_is_the_same_whichever_write_or_call_is_disturbed(
    steps: list[Step], workers: list[str], sampled: Sampled
) -> None:
    lives = Lives(steps)
    report = await crash_at_each_write(
        lives.make,
        lives.reconcile,
        others=lives.work,
        clock=lives.clock,
        external=lambda cluster: {*next(one for one in lives.worlds if one.cluster is cluster).schedulers.retired},
        # A runner that was created is not applied any more, so one of its two writes may be missing.
        masks=["metadata.managedFields"] if steps == [run] else [],
        disturbances=[Disturbance.CRASH_AFTER, *(one for one, _ in sampled([(one, steps) for one in OTHERS]))],
        max_reconciles=MOST,
    )
    report.assert_same()
    for world in lives.worlds:
        assert await world.names() == sorted(workers)
        assert "night-runner" not in await world.names("Pod") or steps[-1] in (run, succeed)


async def test_each_worker_that_leaves_was_chosen_once_whichever_write_or_call_is_disturbed() -> None:
    """A choice that was not stored is made again, and has another answer by then; nothing was done because of it."""
    lives = Lives([create, shrink], same=False)
    report = await crash_at_each_write(
        lives.make,
        lives.reconcile,
        others=lives.work,
        clock=lives.clock,
        disturbances=[Disturbance.CRASH_AFTER, *OTHERS],
        max_reconciles=MOST,
    )
    calls = [one.name for one in report.writes if one.api_version == "external"]
    assert (calls.count("choose"), calls.count("retire")) == (2, 1)
    for world in lives.worlds:
        stayed = await world.names()
        assert len(stayed) == 1
        assert 2 <= len(world.schedulers.questions) <= 3
        assert {*world.schedulers.retired} == {*THREE} - {*stayed}


async def test_the_result_is_stored_before_the_cluster_goes_and_stands_when_the_runner_is_tidied_away() -> None:
    lives = Lives([run, succeed])

    async def tidy(cluster: Cluster) -> None:
        await lives.work(cluster)
        world = lives.worlds[-1]
        if not await world.names("ComputeCluster"):
            with suppress(NotFoundError):
                await cluster.delete(world.key("Pod", "night-runner"))

    await crash_at_each_write(
        lives.make,
        lives.reconcile,
        others=tidy,
        clock=lives.clock,
        disturbances=[Disturbance.CRASH_AFTER, *OTHERS],
        max_reconciles=MOST,
    )
    for world in lives.worlds:
        assert (await world.names("ComputeCluster"), await world.names("Pod")) == ([], [])
        assert (await world.status("ComputeRun", "night"))["result"] == "Succeeded"
