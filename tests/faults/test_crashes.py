"""Faults: the process crashes before or after a write, or the response of a write is lost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.component.owner_status import FAILED_EVENT
from ocf.testing import assert_quiet, crash_at_each_write
from ocf.testing.crash_matrix import DisturbanceReport
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedCrash, SimulatedProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster
    from ocf.objects import ObjectKey
    from ocf_server import EmbeddedCluster
    from tests.faults.conftest import Operator

CREATED: Final = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "PodDisruptionBudget", "ClusterRole"]
# The writes of each scenario, as verb and kind, including the owner's status.
SCENARIOS: Final = {
    "create": [*(f"apply {kind}" for kind in CREATED), "update Shop", "update Shop"],
    "upgrade": ["apply Deployment", "apply HorizontalPodAutoscaler", "update Shop", "update Shop"],
    "suspend": ["delete HorizontalPodAutoscaler", "apply Deployment", "update Shop", "update Shop"],
}
CRASHES: Final = [Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER]


@pytest.fixture
def start(operator: Operator) -> Callable[[str], Callable[[], Awaitable[Cluster]]]:
    """Return a function that returns the factory of a scenario's initial cluster."""
    begun: dict[str, EmbeddedCluster] = {}

    async def begin(scenario: str) -> EmbeddedCluster:
        if scenario == "create":
            return await operator.new_cluster()
        cluster = await operator.at_rest()
        changed: dict[str, Any] = {"version": "2.0.0"} if scenario == "upgrade" else {"suspended": True}
        await operator.change(cluster, spec=changed)
        return cluster

    def beginning(scenario: str) -> Callable[[], Awaitable[Cluster]]:
        async def make() -> Cluster:
            if scenario not in begun:
                begun[scenario] = await begin(scenario)
            return operator.clone(begun[scenario])

        return make

    return beginning


@pytest.fixture
def disturb(
    operator: Operator, start: Callable[[str], Callable[[], Awaitable[Cluster]]]
) -> Callable[..., Awaitable[DisturbanceReport]]:
    """Return a function that disturbs each write of a scenario; afterwards no write and no second event may follow."""

    async def run(scenario: str, *disturbances: Disturbance) -> DisturbanceReport:
        made: list[Cluster] = []
        recorded: list[Counter[tuple[ObjectKey, str]]] = []

        async def make() -> Cluster:
            made.append(await start(scenario)())
            operator.recorder.events = Counter()
            recorded.append(operator.recorder.events)
            return made[-1]

        report = await crash_at_each_write(
            make, operator.reconcile, others=operator.controllers, disturbances=disturbances
        )
        assert [f"{write.verb} {write.kind}" for write in report.writes] == SCENARIOS[scenario]
        for cluster in made:
            await assert_quiet(cluster, operator.reconcile)
        # The first run is the undisturbed one, which records every event once.
        assert set(recorded[0].values()) == {1}
        # A write without an answer fails its reconcile, which has one event of its own.
        expected = recorded[0] + Counter({(operator.owner, FAILED_EVENT): 1})
        assert all(events <= expected for events in recorded)
        return report

    return run


@pytest.mark.promise("condition-rules", runs="after every reconcile of 32 runs with a crash")
@pytest.mark.promise("crash", runs="every write of a creation, an upgrade and a suspension: 32 crashes")
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_next_process_completes_an_interrupted_reconcile(
    disturb: Callable[..., Awaitable[DisturbanceReport]], scenario: str
) -> None:
    report = await disturb(scenario, *CRASHES)
    assert len(report.rows) == 2 * len(SCENARIOS[scenario])
    report.assert_same()


@pytest.mark.promise("crash-status", runs="every status write of a creation, an upgrade and a suspension: 6 crashes")
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_conditions_are_correct_after_a_crash_before_the_status_write(
    operator: Operator, start: Callable[[str], Callable[[], Awaitable[Cluster]]], scenario: str, nth: int
) -> None:
    """One reconcile of the next process reports the condition of the undisturbed process, or a part of its message."""
    writes = SCENARIOS[scenario]
    number = [place for place, write in enumerate(writes, 1) if write == "update Shop"][nth - 1]
    twin, env = SimulatedCluster(await start(scenario)()), SimulatedCluster(await start(scenario)())
    crashing = SimulatedProcess(env, Disturbance.CRASH_BEFORE, number)
    for made in range(1, nth + 1):
        await operator.reconcile(SimulatedProcess(twin))
        if made == nth:
            with pytest.raises(SimulatedCrash):
                await operator.reconcile(crashing)
            await operator.reconcile(SimulatedProcess(env))
        else:
            await operator.reconcile(crashing)
            await operator.controllers(twin.cluster)
            await operator.controllers(env.cluster)

    wanted, found = await operator.condition(twin.cluster), await operator.condition(env.cluster)
    # Only the reconcile that created an object knows that it is new: the next one reports an update instead.
    for said in (wanted, found):
        said["reason"] = "Updating" if said["reason"] == "Creating" else said["reason"]
    assert found.pop("message") in wanted.pop("message")
    assert found == wanted


@pytest.mark.promise("lost-reply", runs="every write of a creation, an upgrade and a suspension, once each")
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_write_whose_response_was_lost_is_not_repeated(
    disturb: Callable[..., Awaitable[DisturbanceReport]], scenario: str
) -> None:
    report = await disturb(scenario, Disturbance.LOST_REPLY)
    assert len(report.rows) == len(SCENARIOS[scenario])
    report.assert_same()
