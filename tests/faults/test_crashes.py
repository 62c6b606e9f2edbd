"""Whatever happens to a write: the process dies before or after it, its answer is lost, it is refused."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.testing import Disturbance, DisturbanceReport, SimulatedCrash, assert_quiet, crash_at_each_write
from ocf.testing.simulated_process import SimulatedCluster, SimulatedProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster
    from ocf.objects import ObjectKey
    from tests.faults.conftest import Operator

CREATED: Final = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Service", "PodDisruptionBudget", "ClusterRole"]
# What is written in each scenario, as verb and kind, the owner's status included.
SCENARIOS: Final = {
    "create": [*(f"apply {kind}" for kind in CREATED), "update Shop", "update Shop"],
    "upgrade": ["apply Deployment", "apply HorizontalPodAutoscaler", "update Shop", "update Shop"],
    "suspend": ["delete HorizontalPodAutoscaler", "apply Deployment", "update Shop", "update Shop"],
}
CRASHES: Final = [Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER]


@pytest.fixture
def start(operator: Operator) -> Callable[[str], Callable[[], Awaitable[Cluster]]]:
    """Return what makes the cluster in which a scenario begins."""

    def beginning(scenario: str) -> Callable[[], Awaitable[Cluster]]:
        async def make() -> Cluster:
            if scenario == "create":
                return await operator.new_cluster()
            cluster = await operator.at_rest()
            changed: dict[str, Any] = {"version": "2.0.0"} if scenario == "upgrade" else {"suspended": True}
            await operator.change(cluster, spec=changed)
            return cluster

        return make

    return beginning


@pytest.fixture
def disturb(
    operator: Operator, start: Callable[[str], Callable[[], Awaitable[Cluster]]]
) -> Callable[..., Awaitable[DisturbanceReport]]:
    """Disturb each write of a scenario; every cluster that comes to rest has to be quiet, and no event told twice."""

    async def run(scenario: str, *disturbances: Disturbance) -> DisturbanceReport:
        made: list[Cluster] = []
        told: list[Counter[tuple[ObjectKey, str]]] = []

        async def make() -> Cluster:
            made.append(await start(scenario)())
            operator.told.events = Counter()
            told.append(operator.told.events)
            return made[-1]

        report = await crash_at_each_write(
            make, operator.reconcile, others=operator.controllers, disturbances=disturbances
        )
        assert [f"{write.verb} {write.kind}" for write in report.writes] == SCENARIOS[scenario]
        for cluster in made:
            await assert_quiet(cluster, operator.reconcile)
        # The first run is the undisturbed one: everything that it tells, it tells once.
        assert set(told[0].values()) == {1}
        assert all(events <= told[0] for events in told)
        return report

    return run


@pytest.mark.promise("condition-rules", runs="after every pass of 32 runs that crash")
@pytest.mark.promise("crash", runs="every write of a creation, an upgrade and a suspension: 32 crashes")
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_next_process_finishes_what_a_crash_left(
    disturb: Callable[..., Awaitable[DisturbanceReport]], scenario: str
) -> None:
    report = await disturb(scenario, *CRASHES)
    assert len(report.rows) == 2 * len(SCENARIOS[scenario])
    report.assert_same()


@pytest.mark.promise("crash-status", runs="every status write of a creation, an upgrade and a suspension: 6 crashes")
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_conditions_are_right_after_a_crash_before_they_were_stored(
    operator: Operator, start: Callable[[str], Callable[[], Awaitable[Cluster]]], scenario: str, nth: int
) -> None:
    """One pass of the next process says what the undisturbed one has said, and no more than that."""
    writes = SCENARIOS[scenario]
    number = [place for place, write in enumerate(writes, 1) if write == "update Shop"][nth - 1]
    twin, world = SimulatedCluster(await start(scenario)()), SimulatedCluster(await start(scenario)())
    crashing = SimulatedProcess(world, Disturbance.CRASH_BEFORE, number)
    for made in range(1, nth + 1):
        await operator.reconcile(SimulatedProcess(twin))
        if made == nth:
            with pytest.raises(SimulatedCrash):
                await operator.reconcile(crashing)
            await operator.reconcile(SimulatedProcess(world))
        else:
            await operator.reconcile(crashing)
            await operator.controllers(twin.cluster)
            await operator.controllers(world.cluster)

    wanted, found = await operator.condition(twin.cluster), await operator.condition(world.cluster)
    # That something is new, only the pass can have known that made it: the next one says less, and nothing else.
    for said in (wanted, found):
        said["reason"] = "Updating" if said["reason"] == "Creating" else said["reason"]
    assert found.pop("message") in wanted.pop("message")
    assert found == wanted


@pytest.mark.promise("lost-reply", runs="every write of a creation, an upgrade and a suspension, once each")
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_write_that_was_done_without_an_answer_is_not_done_twice(
    disturb: Callable[..., Awaitable[DisturbanceReport]], scenario: str
) -> None:
    report = await disturb(scenario, Disturbance.LOST_REPLY)
    assert len(report.rows) == len(SCENARIOS[scenario])
    report.assert_same()
