"""Our rounds beside the real controller's, tick by tick, on a real control plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ocf.testing.envtest import Programs
from tests.controllers.hpa.comparison.running import Sync, comparison_env
from tests.controllers.hpa.comparison.scenarios import DIFFERENCES, SCENARIOS
from tests.controllers.hpa.comparison.ticks import OurController, ReportedEvent, verdict_of_controller

Place = tuple[str, int]


def differences_of(played: Mapping[str, Sequence[Sync]], told: Mapping[str, set[ReportedEvent]]) -> dict[Place, object]:
    """Return what we made of rounds and what the controller made of them, where that is not the same."""
    found: dict[Place, object] = {}
    for name, rounds in played.items():
        ours = OurController()
        for number, each in enumerate(rounds):
            verdicts = ours.decide(each.seen, each.tick.at), verdict_of_controller(each.tick)
            if verdicts[0] != verdicts[1]:
                found[name, number] = verdicts
        if ours.events != told[name] and (name, 0) not in DIFFERENCES:
            found[name, len(rounds)] = ours.events ^ told[name]
    return found


@pytest.mark.promise("hpa-rounds")
async def test_each_round_is_the_controllers(envtest_programs: Programs, envtest_controllers: object) -> None:
    """All scenarios side by side: what we see through the real APIs, and what we make of it.

    The controller knows pods from a watch, which may lag on a busy machine: what differs is played once more, and must
    not differ again.
    """
    del envtest_controllers  # asked for so that the test is left out where there is no controller
    async with comparison_env(envtest_programs) as stage:
        found = differences_of(await stage.play(SCENARIOS), stage.events)
        suspects = {name for name, number in found if (name, number) not in DIFFERENCES}
        again = differences_of(await stage.play(suspects), stage.events)

    assert again == {}
    assert {place for place in found if place[0] not in suspects} == DIFFERENCES
