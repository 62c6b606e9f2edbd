"""Our rounds beside the real controller's, tick by tick, on a real control plane."""

from __future__ import annotations

import pytest

from ocf.testing.envtest import Program, Programs
from tests.controllers.comparison.running import staged
from tests.controllers.comparison.scenarios import DIFFERENCES, SCENARIOS
from tests.controllers.comparison.ticks import Ours, told_by


async def test_each_round_is_the_controllers(envtest_programs: Programs, envtest_controllers: object) -> None:
    """All scenarios side by side: what we see through the real APIs, and what we make of it."""
    del envtest_controllers
    async with staged(envtest_programs) as stage:
        played = await stage.play(SCENARIOS)

    assert Program.CONTROLLER_MANAGER not in envtest_programs.missing
    differences = set()
    for name, rounds in played.items():
        ours = Ours()
        for number, each in enumerate(rounds):
            made, told = ours.decide(each.seen, each.tick.at), told_by(each.tick)
            if made != told:
                differences.add((name, number))
                if (name, number) not in DIFFERENCES:
                    pytest.fail(f"round {number} of {name}:\n{made}\n{told}")

    assert differences == DIFFERENCES
