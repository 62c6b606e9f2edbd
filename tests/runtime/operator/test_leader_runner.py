"""`LeaderRunner`: terms, the stop signal, and the state of the term."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from ocf.cluster import Cluster, Request
from ocf.controllers.hpa import HpaController
from ocf.errors import ConfigError, ServerError
from ocf.objects import ObjectKey
from ocf.runtime.operator import Lease
from ocf.runtime.operator.leader_runner import LeaderRunner, Runnable
from ocf.testing import InterceptingCluster, LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster

LEASE = Lease("job", "default", "one")
KEY = ObjectKey("coordination.k8s.io/v1", "Lease", "job", "default")
HPA_CONTROLLER: type[Runnable] = HpaController
"""That it is a runnable is checked by type."""


class Job:
    """A runnable that runs until it is stopped, and then for one more second."""

    def __init__(self) -> None:
        self.finished = False
        self.stops = 0
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        await self._stopped.wait()
        await asyncio.sleep(1)
        self.finished = True

    def stop(self) -> None:
        self.stops += 1
        self._stopped.set()

    def ready(self) -> str:
        return "not read yet"

    def live(self) -> str:
        return "stuck"


def opening(
    job: Runnable, *, delay: float = 0, closed: list[Cluster] | None = None
) -> Callable[[Cluster], AbstractAsyncContextManager[Runnable]]:
    @asynccontextmanager
    async def term(cluster: Cluster) -> AsyncIterator[Runnable]:
        await asyncio.sleep(delay)
        try:
            yield job
        finally:
            if closed is not None:
                closed.append(cluster)

    return term


def test_a_stop_lets_the_runnable_end_and_releases_the_lease() -> None:
    async def main() -> None:
        cluster, job, closed = EmbeddedCluster(), Job(), list[Cluster]()
        runner = LeaderRunner(cluster, opening(job, closed=closed), lease=LEASE, clock=LoopClock())
        assert (runner.ready(), runner.live()) == ("", "")
        task = asyncio.create_task(runner.run())
        await asyncio.sleep(5)
        assert (runner.ready(), runner.live()) == ("not read yet", "stuck")
        assert (await cluster.get(KEY))["spec"]["holderIdentity"] == "one"
        runner.stop()
        await task
        assert (job.finished, len(closed), runner.ready()) == (True, 1, "")
        assert (await cluster.get(KEY))["spec"]["holderIdentity"] == ""

    run_in_virtual_time(main())


def test_an_event_of_the_caller_stops_it_too() -> None:
    async def main() -> None:
        job, stopped = Job(), asyncio.Event()
        runner = LeaderRunner(EmbeddedCluster(), opening(job), stopped=stopped)
        task = asyncio.create_task(runner.run())
        await asyncio.sleep(5)
        stopped.set()
        await task
        assert (job.finished, job.stops, runner.stopping) == (True, 1, True)

    run_in_virtual_time(main())


@pytest.mark.parametrize(
    ("holder", "delay"), [pytest.param("two", 0, id="waits for the lease"), pytest.param("", 1000, id="starts a term")]
)
def test_a_stop_does_not_wait_for_a_term_to_start(holder: str, delay: float) -> None:
    async def main() -> None:
        cluster, job, clock = EmbeddedCluster(), Job(), LoopClock()
        other = LeaderRunner(cluster, opening(Job()), lease=Lease("job", "default", holder), clock=clock)
        others = asyncio.create_task(other.run()) if holder else None
        await asyncio.sleep(1)
        runner = LeaderRunner(cluster, opening(job, delay=delay), lease=LEASE, clock=clock)
        task = asyncio.create_task(runner.run())
        await asyncio.sleep(5)
        runner.stop()
        async with asyncio.timeout(1):
            await task
        assert (job.finished, job.stops) == (False, 0)
        if others is not None:
            other.stop()
            await others

    run_in_virtual_time(main())


def test_an_error_of_the_runnable_is_raised_and_releases_the_lease() -> None:
    class Broken(Job):
        async def run(self) -> None:
            raise ConfigError("no such kind")

    async def main() -> None:
        cluster = EmbeddedCluster()
        with pytest.raises(ConfigError, match="no such kind"):
            await LeaderRunner(cluster, opening(Broken()), lease=LEASE, clock=LoopClock()).run()
        assert (await cluster.get(KEY))["spec"]["holderIdentity"] == ""

    run_in_virtual_time(main())


@pytest.mark.parametrize("taken", [True, False], ids=["another process takes it", "it is not renewed"])
def test_a_term_that_outlives_its_lease_asks_for_a_restart(*, taken: bool) -> None:
    """A process that neither leads nor ends, because a task ignores its cancellation."""

    class Deaf(Job):
        async def run(self) -> None:
            while not self.stops:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

    class Failing(InterceptingCluster):
        fails = False

        async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
            if self.fails:
                raise ServerError("unavailable", code=503)
            return await super().intercept(request, send)

    async def main() -> None:
        cluster, job = Failing(EmbeddedCluster()), Deaf()
        runner = LeaderRunner(cluster, opening(job), lease=LEASE, clock=LoopClock())
        task = asyncio.create_task(runner.run())
        await asyncio.sleep(5)
        assert runner.lost() == ""
        live = await cluster.get(KEY)
        if taken:
            spec = {**live["spec"], "holderIdentity": "two", "leaseDurationSeconds": 3600}
            await cluster.update({**live, "spec": spec}, field_manager="two")
        else:
            cluster.fails = True
        await asyncio.sleep(50)
        assert runner.lost() == ""
        await asyncio.sleep(30)
        assert "the lease default/job was lost" in runner.lost()
        assert "and its term goes on" in runner.lost()
        runner.stop()
        await task
        assert runner.lost() == ""

    run_in_virtual_time(main())


def test_a_lost_lease_starts_a_new_term() -> None:
    async def main() -> None:
        cluster, clock, jobs = EmbeddedCluster(), LoopClock(), list[Job]()

        @asynccontextmanager
        async def term(_: Cluster) -> AsyncIterator[Job]:
            jobs.append(Job())
            yield jobs[-1]

        runner = LeaderRunner(cluster, term, lease=LEASE, clock=clock)
        task = asyncio.create_task(runner.run())
        await asyncio.sleep(5)
        live = await cluster.get(KEY)
        taken = {"holderIdentity": "two", "leaseDurationSeconds": 1}
        await cluster.update({**live, "spec": {**live["spec"], **taken}}, field_manager="two")
        await asyncio.sleep(timedelta(minutes=1).total_seconds())
        runner.stop()
        await task
        assert [job.finished for job in jobs] == [False, True]

    run_in_virtual_time(main())
