"""The process crashes before or after any write."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest

from examples.memcached.samples import EVERYTHING
from ocf.component.owner_status import FAILED_EVENT
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.testing import crash_at_each_write, run_in_virtual_time
from ocf.testing.crash_matrix import DisturbanceReport
from ocf.testing.simulated_process import Disturbance, SimulatedCrash, SimulatedProcess
from ocf.testing.simulated_process import SimulatedCluster as Ledger
from ocf.testing.snapshots import snapshot
from tests.examples.memcached.faults.env import HPA, KINDS, OWNER, OperatorEnv, Step, new_env

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ocf.cluster import Cluster, Request
    from ocf.objects import Manifest
    from ocf_server import EmbeddedCluster

SCENARIOS: Final[dict[str, Step]] = {
    "create": lambda env: env.create(EVERYTHING),
    "upgrade": lambda env: env.change(image="memcached:1.6.30", monitoring=None),
    "suspend": lambda env: env.change(suspended=True),
}
# What is written in each, the status included: after the reconcile, and after the pods have changed.
WRITES: Final = {
    "create": [*(f"apply {kind}" for kind in KINDS), "update Memcached", "update Memcached"],
    "upgrade": [
        *("apply Deployment", "apply Service", "apply NetworkPolicy", "delete ServiceMonitor"),
        *("update Memcached", "update Memcached"),
    ],
    "suspend": [f"delete {HPA}", "apply Deployment", "update Memcached", "update Memcached"],
}
CRASHES: Final = (Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER)
LIFE: Final = 60.0
RESYNCS: Final = 4


class EventCounter(NullRecorder):
    """Recorder that keeps the events of reconciles."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()

    def happened(self, event: Event) -> None:
        self.events[f"{event.reason} {event.resource}"] += 1


class Envs:
    """An environment for each run of a scenario; all begin with copies of one cluster."""

    def __init__(self, scenario: str) -> None:
        self._scenario = scenario
        self._begun: EmbeddedCluster | None = None
        self.all: list[OperatorEnv] = []
        self.events: list[Counter[str]] = []

    async def new_cluster(self) -> Cluster:
        """Return a cluster in which the scenario has just begun."""
        if self._begun is None:
            self._begun = await self._begin()
        env = OperatorEnv(self._begun.clone())
        self.all.append(env)
        self.events.append(Counter())
        return env.server

    async def _begin(self) -> EmbeddedCluster:
        env = await new_env()
        await env.certificates()
        if self._scenario != "create":
            await env.create(EVERYTHING)
            async with env.operating(env.server, {"events": False}):
                await asyncio.sleep(LIFE)
        await SCENARIOS[self._scenario](env)
        return env.server

    async def live(self, through: Cluster) -> None:
        """Run one process for a while; it reconciles all caches four times, the last times in sync."""
        recorder, env = EventCounter(), self.all[-1]
        recorder.events = self.events[-1]
        resync = timedelta(seconds=LIFE / (RESYNCS + 2))
        async with env.operating(through, {"events": False}, resync=resync, recorders=[recorder]):
            await asyncio.sleep(LIFE)
        assert len(env.passes) >= RESYNCS


async def disturbed(scenario: str, disturbances: Iterable[Disturbance]) -> DisturbanceReport:
    """Disturb each write of a scenario; no event may be recorded twice."""
    envs = Envs(scenario)
    report = await crash_at_each_write(envs.new_cluster, envs.live, disturbances=tuple(disturbances))
    assert [asked(write) for write in report.writes] == WRITES[scenario]
    assert set(envs.events[0].values()) == {1}
    # A write that fails, or has no answer, fails its reconcile, which has one event of its own.
    for events in envs.events:
        more = events - envs.events[0]
        assert set(more.values()) <= {1}
        assert all(key.startswith(FAILED_EVENT) for key in more)
    return report


def asked(write: Request) -> str:
    return f"{write.verb} {write.kind}"


@pytest.mark.promise("crash", runs="the Memcached operator at each write of three scenarios: 36 crashes")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_next_process_completes_an_interrupted_reconcile(scenario: str) -> None:
    """Before and after every write of three scenarios: same objects, creates and deletes; resyncs write nothing."""
    report = run_in_virtual_time(disturbed(scenario, CRASHES))
    assert len(report.rows) == 2 * len(WRITES[scenario])
    report.assert_same()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_failed_write_or_lost_response_does_not_change_the_final_state(scenario: str) -> None:
    """The same process continues and backs off."""
    report = run_in_virtual_time(disturbed(scenario, (Disturbance.LOST_REPLY, Disturbance.REJECTED)))
    assert len(report.rows) == 2 * len(WRITES[scenario])
    report.assert_same()


@pytest.mark.promise("crash-status", runs="the Memcached operator at each status write: 6 crashes")
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conditions_are_correct_after_a_crash_before_the_status_write(scenario: str, nth: int) -> None:
    """The first status that the next process writes is the one that the crashed process was about to write."""
    number = [place for place, write in enumerate(WRITES[scenario], 1) if write == "update Memcached"][nth - 1]

    async def until(envs: Envs, ledger: Ledger, disturbance: Disturbance, number: int) -> Manifest:
        with suppress(SimulatedCrash):
            await envs.live(SimulatedProcess(ledger, disturbance, number))
        assert [asked(write) for write in ledger.writes[number - 1 :]] == ["update Memcached"]
        (status,) = (await snapshot(ledger.cluster, [OWNER])).values()
        return status

    async def main() -> None:
        envs = Envs(scenario)
        wanted = await until(envs, Ledger(await envs.new_cluster()), Disturbance.CRASH_AFTER, number)
        ledger = Ledger(await envs.new_cluster())
        before = await until(envs, ledger, Disturbance.CRASH_BEFORE, number)
        found = await until(envs, ledger, Disturbance.CRASH_AFTER, number + 1)
        assert found == wanted != before

    run_in_virtual_time(main())
