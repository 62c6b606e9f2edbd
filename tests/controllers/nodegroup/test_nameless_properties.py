"""What holds with a provider that keeps no names, whatever answers it loses and however late it lists machines."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from ocf.nodegroups import MachineRequest
from tests.controllers.nodegroup.conftest import SMALL, Env, run
from tests.controllers.nodegroup.test_nameless_machines import DELAY, nameless

MOST: Final = 3
SLOT: Final = 12  # reconciles with the same faults
# An example takes as long as several of others: 10 in `make test`, 125 in `make properties`.
EXAMPLES: Final = settings().max_examples // 4


@dataclass(frozen=True)
class Slot:
    """What the cloud and the users do for some minutes.

    Args:
        lost: How many answers are lost.
        late: After how long the machine of a lost answer is listed.
        pods: How many pods there are, each of which needs a node.
        restarts: Whether each reconcile is that of a new process.
    """

    lost: int
    late: timedelta
    pods: int
    refuses: bool = False
    restarts: bool = False


slots = st.builds(
    Slot,
    lost=st.integers(0, 2),
    late=st.sampled_from([DELAY, timedelta(minutes=2), timedelta(minutes=4), timedelta(minutes=12)]),
    pods=st.integers(0, MOST),
    refuses=st.sampled_from([False, False, True]),
    restarts=st.booleans(),
)


@pytest.mark.promise("node-groups-nameless")
@settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate])
@example([Slot(2, timedelta(minutes=12), 3), Slot(1, timedelta(minutes=4), 0), Slot(0, DELAY, 2, restarts=True)])
@given(st.lists(slots, min_size=1, max_size=4))
def test_each_machine_belongs_to_one_request_or_to_the_user(faults: list[Slot]) -> None:
    env = Env([SMALL])

    async def set_pods(number: int) -> None:
        wanted = {"theirs-0", *(f"web-{each}" for each in range(number))}
        known = {pod["metadata"]["name"] for pod in await env.objects("Pod")}
        if gone := known - wanted:
            await env.remove_pods(*gone)
        for name in sorted(wanted - known):
            await env.add_pod(name, cpu="1500m")

    async def scenario() -> None:
        cloud = nameless(env)
        await env.set_up(offeringIDs=["small"], maxNodes=MOST, scaleDownCooldown="0s")
        await cloud.create(MachineRequest("theirs", "", "small", "fra"))
        (theirs,) = env.provider.machines()
        # A pod of theirs, so that the node of the user has no room.
        env.clock.advance(timedelta(minutes=1))
        await env.others()
        await env.add_pod("theirs-0", cpu="1900m")
        await env.others()

        async def tick() -> None:
            await env.tick()
            machines = env.provider.machines()
            assert theirs.id in {each.id for each in machines}
            assert len(machines) - 1 <= MOST
            ids = [each["status"]["machineId"] for each in await env.objects("VPSieNode") if _has_machine(each)]
            assert len(ids) == len(set(ids))
            assert theirs.id not in ids

        for slot in faults:
            cloud.lost, cloud.late, cloud.refuses = slot.lost, slot.late, slot.refuses
            await set_pods(slot.pods)
            for _ in range(SLOT):
                if slot.restarts:
                    env.restart(provider=cloud)
                await tick()
        cloud.lost, cloud.refuses = 0, False
        # Longer than a machine is listed late, a refused type is left alone, and an idle node stays.
        for _ in range(120):
            await tick()
        ids = {each["status"]["machineId"] for each in await env.objects("VPSieNode")}
        assert ids == {each.id for each in env.provider.machines()} - {theirs.id}
        assert await env.waiting() == []

    run(scenario())


def _has_machine(node: dict[str, object]) -> bool:
    status = node.get("status")
    return isinstance(status, dict) and bool(status.get("machineId"))
